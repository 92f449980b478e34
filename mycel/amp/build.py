"""Training steps in mixed precision, from a network, a loss and an optimizer."""

from __future__ import annotations

from typing import Any

from mycel import nn
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.precision import converted
from mycel.amp.levels import LEVELS, auto_mixed_precision, get_black_list, keep_wide
from mycel.amp.managers import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager
from mycel.nn.loss_scale import TrainOneStepWithLossScaleCell
from mycel.nn.optim import Optimizer

__all__ = ["build_train_network"]

_OPTIONS = ("cast_model_type", "keep_batchnorm_fp32", "loss_scale_manager")


class WideLoss(nn.WithLossCell):
    """A network with its loss, computed in float32 whatever element type the network gives."""

    def construct(self, data: Any, label: Any) -> Any:
        """Return the loss."""
        return self._loss_fn(converted(self._backbone(data), D.float32), converted(label, D.float32))


def build_train_network(
    network: Cell,
    optimizer: Cell,
    loss_fn: Cell | None = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: Any,
) -> Cell:
    """Return a training step of a network in mixed precision, called with data and label and giving
    the loss.

    Args:
        network (Cell): The network, which is changed in place.
        optimizer (Cell): What updates its parameters.
        loss_fn (Cell | None): The Cell of the loss; None where the network itself gives it.
            Default: None.
        level (str): A level of `auto_mixed_precision`, in float16; "O2" scales the loss dynamically
            unless told otherwise. Default: "O0".
        boost_level (str): Must be "O0". Default: "O0".
        **kwargs (Any): `cast_model_type`, the element type that the whole network computes in, None
            for none; `keep_batchnorm_fp32`, whether the layers of `get_black_list` stay in float32;
            and `loss_scale_manager`, a `LossScaleManager` or None.

    Returns:
        Cell: The training step; with a manager that leaves out steps that overflow it gives (loss,
            overflow, scale).

    Raises:
        ValueError: For unknown levels and options.
        TypeError: For networks, optimizers and losses of another kind.

    Examples:
        >>> import mycel as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
        >>> step = ms.amp.build_train_network(net, optimizer, ms.nn.MSELoss(), level="O2")
        >>> loss, overflow, scale = step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1)))
        >>> loss.dtype, float(scale)
        (mindspore.float32, 16777216.0)
    """
    arguments.instance("build_train_network", "network", network, Cell)
    if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "parameters"):
        raise TypeError(f"build_train_network: optimizer must be an Optimizer, not {type(optimizer).__name__}")
    arguments.choice("build_train_network", "level", level, LEVELS)
    arguments.one_of("build_train_network", "boost_level", boost_level, ("O0", "O1", "O2"))
    if boost_level != "O0":
        raise Unsupported(f"build_train_network: boost_level {boost_level!r} is not supported; leave it at 'O0'")
    for name in kwargs:
        if name not in _OPTIONS:
            raise ValueError(f"build_train_network: unknown option {name!r}; the options are {', '.join(_OPTIONS)}")
    _set_precision(network, level, kwargs)
    if loss_fn is not None:
        arguments.instance("build_train_network", "loss_fn", loss_fn, Cell)
        network = nn.WithLossCell(network, loss_fn) if level == "O0" and not kwargs else WideLoss(network, loss_fn)
    manager: Any = kwargs.get("loss_scale_manager", DynamicLossScaleManager() if level == "O2" else None)
    if manager is None:
        return nn.TrainOneStepCell(network, optimizer).set_train()
    arguments.instance("build_train_network", "loss_scale_manager", manager, LossScaleManager)
    update = manager.get_update_cell()
    if update is None:
        scale = manager.get_loss_scale()
        if isinstance(manager, FixedLossScaleManager) and getattr(optimizer, "loss_scale", scale) != scale:
            logger.warning(
                "build_train_network: the loss scale %s is not undone, as the optimizer divides by %s; "
                "give the optimizer loss_scale=%s, or the manager drop_overflow_update=True",
                scale,
                optimizer.loss_scale,
                scale,
            )
        return nn.TrainOneStepCell(network, optimizer, scale).set_train()
    return TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=update).set_train()


def _set_precision(network: Cell, level: str, options: dict[str, Any]) -> None:
    kind = options.get("cast_model_type", D.float16 if level in ("O2", "O3") else None)
    if "cast_model_type" not in options and "keep_batchnorm_fp32" not in options:
        auto_mixed_precision(network, level)
    elif kind is not None and kind is not D.float32:
        network.to_float(kind)
        keep = options.get("keep_batchnorm_fp32")
        if keep or keep is None and level == "O2":
            keep_wide(network, get_black_list(), kind)
    elif level in ("O1", "auto"):
        auto_mixed_precision(network, level)
