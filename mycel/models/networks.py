"""Networks of the library: their architectures as records, and their weights as files.

Weights are kept as numbers of 16 bits; the figures of an entry are those of the network that has
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from mycel import nn, ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.search import Architecture

__all__ = ["Autoencoder", "architecture_of", "prepared", "read_weights", "weights_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Autoencoder:
    """A network that gives its input again, through products to fewer numbers: `sizes` of layers.

    >>> net = Autoencoder((8, 4, 2, 4, 8)).cell()
    >>> net(Tensor(np.ones((3, 8), np.float32))).shape
    (3, 8)
    """

    sizes: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an input without the batch."""
        return self.sizes[:1]

    def cell(self) -> nn.Cell:
        """Return a network with weights drawn anew."""
        layers: list[Any] = []
        for given, out in zip(self.sizes, self.sizes[1:]):
            layers += [nn.Dense(given, out), nn.ReLU()]
        return nn.SequentialCell(*layers[:-1])

    def record(self) -> dict[str, Any]:
        """Return the architecture as numbers and lists."""
        return asdict(self)


def architecture_of(record: Mapping[str, Any]) -> Architecture | Autoencoder:
    """Return the architecture of a record.

    Raises ValueError where it is none.
    """
    if "sizes" in record:
        return Autoencoder(tuple(int(n) for n in record["sizes"]))
    return Architecture.read(record)


def prepared(architecture: Architecture | Autoencoder, x: Array) -> Array:
    """Return rows of a task as a network takes them: in its resolution, resized bilinearly."""
    shape = architecture.shape
    if x.shape[1:] == tuple(shape):
        return x
    made: Array = ops.interpolate(Tensor(x), size=tuple(shape[1:]), mode="bilinear").asnumpy()
    return made


def _parameters(net: nn.Cell) -> dict[str, Any]:
    return dict(net.parameters_dict())


def weights_of(net: nn.Cell) -> bytes:
    """Return the parameters of a network as a file of safetensors, rounded to 16 bits.

    Raises ValueError for values that numbers of 16 bits do not have.
    """
    with np.errstate(over="ignore"):
        values = {name: p.asnumpy().astype(np.float16) for name, p in _parameters(net).items()}
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise ValueError(f"weights_of: {name} has values above {np.finfo(np.float16).max}, or none")
    return bytes(save(values))


def read_weights(net: nn.Cell, path: Path) -> None:
    """Give a network the parameters of a file.

    Raises ValueError where the file is damaged, or is that of another network.
    """
    try:
        values = load(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"read_weights: {path.name} is damaged: {error}") from error
    parameters = _parameters(net)
    if set(values) != set(parameters) or any(values[n].shape != tuple(p.shape) for n, p in parameters.items()):
        raise ValueError(f"read_weights: {path.name} has the weights of another network")
    for name, parameter in parameters.items():
        parameter.set_data(Tensor(values[name].astype(np.float32)))
