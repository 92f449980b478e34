"""Discrete Fourier transforms.

One primitive, without normalisation: its adjoint is itself in the other direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base.errors import ShapeError
from mycel.ir.graph import Node
from mycel.ir.types import TensorType
from mycel.prims import shape as S
from mycel.prims.base import Primitive, Sample, need_kind, register

__all__ = ["fourier"]


def _infer(x: TensorType, *, axes: tuple[int, ...], inverse: bool) -> TensorType:
    need_kind("fourier", "c", x)
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.rank for a in axes):
        raise ShapeError(f"fourier: {axes} are not axes of {x}")
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(f"fourier: an axis of {x} has no elements")
    return x


def _reference(x: Any, *, axes: tuple[int, ...], inverse: bool) -> Any:
    found = np.fft.ifftn(x, axes=axes, norm="forward") if inverse else np.fft.fftn(x, axes=axes)
    return found.astype(x.dtype)


def _batch(size: Any, values: Any, batch_axes: Any, *, axes: tuple[int, ...], inverse: bool) -> tuple[Node, int]:
    x = S.move_axis(values[0], batch_axes[0], 0)
    return fourier(x, axes=tuple(a + 1 for a in axes), inverse=inverse), 0


fourier: Primitive = register(
    Primitive(
        "fourier",
        _infer,
        _reference,
        lambda ct, out, x, *, axes, inverse: (fourier(ct, axes=axes, inverse=not inverse),),
        _batch,
        samples=tuple(
            Sample(
                (np.exp(1j * np.arange(12.0) ** 2).reshape(3, 4).astype(k),),
                {"axes": a, "inverse": i},
                dtypes=(k,),
                differentiable=False,
            )
            for k in ("complex64", "complex128")
            for a, i in (((1,), False), ((0, 1), True))
        ),
        doc="Sums of x[n] exp(-2 pi i k n / N) over axes; with `inverse` of the conjugate exponentials. Neither is "
        "divided by N.",
    )
)
