"""Prepares networks and models for the second-order optimizer `mycel.nn.thor`."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.nn.layer.thor_conversion import convert_to_thor
from mycel.train.model import Model

__all__ = ["ConvertModelUtils", "ConvertNetUtils"]


class ConvertNetUtils:
    """The replacement of a network's layers by those for second-order optimization.

    >>> import mycel as ms
    >>> net = ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.ReLU())
    >>> ms.train.ConvertNetUtils().convert_to_thor_net(net)
    >>> type(net[0]).__name__
    'DenseThor'
    """

    def convert_to_thor_net(self, net: Cell) -> None:
        """Replace trained `Dense`, `Conv2d`, `Embedding` and `EmbeddingLookup` layers by
        `DenseThor`, `Conv2dThor`, `EmbeddingThor` and `EmbeddingLookupThor`.

        The new layers compute the same from the same parameters. Subclasses of those layers, layers
        with "wide" in their path, and a network that is itself such a layer are not replaced.
        `mycel.nn.thor` calls this itself. Raises TypeError unless `net` is a Cell.
        """
        arguments.instance("convert_to_thor_net", "net", net, Cell)
        net.update_cell_prefix()
        convert_to_thor(net)
        net.update_cell_type("second-order")


class ConvertModelUtils:
    """A converter of a `Model` to second-order training."""

    @staticmethod
    def convert_to_thor_model(
        model: Model,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Cell | None = None,
        metrics: Any = None,
        amp_level: str = "O0",
        loss_scale_manager: Any = None,
        keep_batchnorm_fp32: bool = False,
    ) -> Model:
        """Return a `Model` for training with the optimizer of `mycel.nn.thor`.

        The optimizer decides from its own count of training steps when to compute its matrices
        anew, so that any `Model` can train with it.

        Args:
            model (Model): The model to take the place of.
            network (Cell): As in `Model`.
            loss_fn (Callable[..., Any] | None): As in `Model`. Default: None.
            optimizer (Cell | None): As in `Model`. Default: None.
            metrics (dict[str, Any] | set[str] | None): As in `Model`. Default: None.
            amp_level (str): As in `Model`. Default: "O0".
            loss_scale_manager (LossScaleManager | None): As in `Model`. Default: None.
            keep_batchnorm_fp32 (bool): As in `Model`. Default: False.

        Returns:
            Model: The new model, or `model` itself if `optimizer` is another one.

        Examples:
            >>> import mycel as ms
            >>> net = ms.nn.Dense(2, 1)
            >>> model = ms.train.Model(net)
            >>> convert = ms.train.ConvertModelUtils.convert_to_thor_model
            >>> optimizer = ms.nn.SGD(net.trainable_params())
            >>> convert(model, net, ms.nn.MSELoss(), optimizer) is model
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
