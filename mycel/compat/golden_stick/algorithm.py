"""`CompAlgo`: the form that all algorithms of the golden stick have."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.train.serialization import load_checkpoint, load_param_into_net

__all__ = ["CompAlgo"]


class CompAlgo:
    """Base of algorithms that make networks smaller.

    `apply` gives the network that is trained or used, `convert` the one that is deployed.
    """

    def __init__(self, config: Any = None) -> None:
        self._save_mindir = False
        self._save_mindir_path = "./network"

    def apply(self, network: Cell, **kwargs: Any) -> Cell:
        """Return the network with the algorithm in it."""
        raise NotImplementedError(f"{type(self).__name__} has no apply; subclasses give it")

    def callbacks(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return callbacks for training, of which there are none."""
        return []

    def loss(self, loss_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return the loss function for training, which is the given one."""
        return loss_fn

    def summary(self, network: Cell) -> str:
        """Return the network's layers as text."""
        return repr(network)

    def set_save_mindir(self, save_mindir: bool) -> None:
        """Set whether `callbacks` write a file after training; only False is supported, as networks
        are written by `export`.
        """
        if arguments.flag(type(self).__name__, "save_mindir", save_mindir):
            raise ValueError(f"{type(self).__name__}: save_mindir is not supported; call export after convert")

    def set_save_mindir_path(self, save_mindir_path: str) -> None:
        """Set the path of that file."""
        self._save_mindir_path = arguments.text(type(self).__name__, "save_mindir_path", save_mindir_path)

    def convert(self, net_opt: Cell, ckpt_path: str = "") -> Cell:
        """Return the network as it is deployed, outside of training, with the parameters of a
        checkpoint, if one is given.

        Raises TypeError and ValueError for arguments that are none, and for a file that is not
        there.
        """
        name = type(self).__name__
        arguments.instance(name, "net_opt", net_opt, Cell)
        arguments.text(name, "ckpt_path", ckpt_path)
        if ckpt_path:
            if not os.path.isfile(ckpt_path):
                raise ValueError(f"{name}: there is no checkpoint {ckpt_path!r}")
            load_param_into_net(net_opt, load_checkpoint(ckpt_path))
        return net_opt.set_train(False)
