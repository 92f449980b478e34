"""Making networks and models ready for the second-order optimizer `mycel.nn.thor`."""

from __future__ import annotations

from typing import Any, Optional

from mycel.base import arguments
from mycel.cells.cell import Cell
from mycel.nn.layer.thor_conversion import convert_to_thor
from mycel.train.model import Model

__all__ = ["ConvertModelUtils", "ConvertNetUtils"]


class ConvertNetUtils:
    """Replaces layers of a network by those that second-order optimization wants.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.ReLU())
    >>> ms.train.ConvertNetUtils().convert_to_thor_net(net)
    >>> type(net[0]).__name__
    'DenseThor'
    """

    def convert_to_thor_net(self, net: Cell) -> None:
        """Put `DenseThor`, `Conv2dThor`, `EmbeddingThor` and `EmbeddingLookupThor` in the place of
        trained `Dense`, `Conv2d`, `Embedding` and `EmbeddingLookup` layers.

        They compute the same from the same parameters. Classes derived from those, and layers with
        "wide" in their path, stay. `mycel.nn.thor` does this itself. A network that is itself such
        a layer stays as it is. Raises TypeError for what is no Cell.
        """
        arguments.instance("convert_to_thor_net", "net", net, Cell)
        net.update_cell_prefix()
        convert_to_thor(net)
        net.update_cell_type("second-order")


class ConvertModelUtils:
    """Makes a `Model` for second-order training."""

    @staticmethod
    def convert_to_thor_model(
        model: Model,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Optional[Cell] = None,
        metrics: Any = None,
        amp_level: str = "O0",
        loss_scale_manager: Any = None,
        keep_batchnorm_fp32: bool = False,
    ) -> Model:
        """Return a `Model` of the network and optimizer that are given, where the optimizer is that
        of `mycel.nn.thor`; otherwise `model` itself.

        The optimizer decides from its own count of steps when to compute its matrices anew, so any
        `Model` trains with it. Arguments are those of `Model`.

        >>> import mycel as ms
        >>> net = ms.nn.Dense(2, 1)
        >>> model = ms.train.Model(net)
        >>> ms.train.ConvertModelUtils.convert_to_thor_model(model, net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params())) is model
        True
        """
        arguments.instance("convert_to_thor_model", "model", model, Model)
        if type(optimizer).__name__ != "_Thor":
            return model
        options: dict[str, Any] = {"amp_level": amp_level, "metrics": metrics}
        if loss_scale_manager is not None:
            options["loss_scale_manager"] = loss_scale_manager
        if keep_batchnorm_fp32:
            options["keep_batchnorm_fp32"] = True
        return Model(network, loss_fn, optimizer, **options)
