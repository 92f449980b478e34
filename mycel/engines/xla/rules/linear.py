"""Products of matrices, convolutions, decompositions and Fourier transforms.

Products have the precision of their operands' type; 16-bit floats accumulate in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from mycel.engines.xla.binding import jax, jnp, lax
from mycel.engines.xla.rules.elementwise import narrow

__all__ = ["RULES"]

# The axes of operands and results, by the number of axes.
_AXES = {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW"), 5: ("NCHWD", "OIHWD", "NCHWD")}


def _accumulated(x: Any) -> Optional[Any]:
    return jnp.float32 if narrow(x) else None


def _matmul(a: Any, b: Any) -> Any:
    found = jnp.matmul(a, b, precision=lax.Precision.HIGHEST, preferred_element_type=_accumulated(a))
    return found.astype(a.dtype)


def _conv(x: Any, weight: Any, *, strides: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return lax.conv_general_dilated(
        x,
        weight,
        strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=_AXES[x.ndim],
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
        preferred_element_type=_accumulated(x),
    ).astype(x.dtype)


def _transposed(function: Callable[[Any], Any], ct: Any, shape: Any) -> Any:
    """Return the transpose of a linear function, applied to a cotangent; in float32 for 16 bits."""
    kind = jnp.float32 if narrow(ct) else ct.dtype
    return jax.linear_transpose(function, jax.ShapeDtypeStruct(tuple(shape), kind))(ct.astype(kind))[0].astype(ct.dtype)


def _same(x: Any) -> Any:
    return x.astype(jnp.float32) if narrow(x) else x


def _conv_grad_input(ct: Any, weight: Any, *, input_shape: Any, **params: Any) -> Any:
    return _transposed(lambda x: _conv(x, _same(weight), **params), ct, input_shape)


def _conv_grad_weight(x: Any, ct: Any, *, weight_shape: Any, **params: Any) -> Any:
    return _transposed(lambda w: _conv(_same(x), w, **params), ct, weight_shape)


# Decompositions.


def _triangular_solve(a: Any, b: Any, *, lower: bool, trans: str, unit: bool) -> Any:
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=True,
        lower=lower,
        transpose_a=trans != "N",
        conjugate_a=trans == "C",
        unit_diagonal=unit,
    )


def _svd(a: Any, *, full: bool, vectors: bool) -> Any:
    if not vectors:
        return jnp.linalg.svd(a, compute_uv=False)
    return tuple(jnp.linalg.svd(a, full_matrices=full))


def _eigh(a: Any, *, lower: bool) -> tuple[Any, Any]:
    vectors, values = lax.linalg.eigh(a, lower=lower, symmetrize_input=False)
    return values, vectors


def _fourier(x: Any, *, axes: tuple[int, ...], inverse: bool, factor: float = 1.0) -> Any:
    for axis in axes:
        x = jnp.fft.ifft(x, axis=axis, norm="forward") if inverse else jnp.fft.fft(x, axis=axis)
    return x if factor == 1.0 else x * x.real.dtype.type(factor)


RULES: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
    "conv": _conv,
    "conv_grad_input": _conv_grad_input,
    "conv_grad_weight": _conv_grad_weight,
    "cholesky": lambda a: jnp.linalg.cholesky(a, symmetrize_input=False),
    "triangular_solve": _triangular_solve,
    "eigh": _eigh,
    "svd": _svd,
    "lu": lambda a: tuple(lax.linalg.lu(a)),
    "qr": lambda a, *, full: tuple(jnp.linalg.qr(a, mode="complete" if full else "reduced")),
    "fourier": _fourier,
}
