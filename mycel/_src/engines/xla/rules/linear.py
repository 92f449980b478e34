"""XLA rules of matrix products, convolutions, decompositions and Fourier transforms.

Products have the precision of their operands' type; 16-bit floats accumulate in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.engines.xla.binding import jax, jnp, lax
from mycel._src.engines.xla.rules.elementwise import narrow

__all__ = ["RULES"]

# The axes of operands and results, by the number of axes.
_AXES = {3: ("NCH", "OIH", "NCH"), 4: ("NCHW", "OIHW", "NCHW"), 5: ("NCHWD", "OIHWD", "NCHWD")}


def _accumulated(x: Any) -> Any | None:
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


def _pseudo_inverse(a: Any, atol: Any, rtol: Any, *, hermitian: bool) -> Any:
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    kept = s > jnp.maximum(atol[..., None], rtol[..., None] * s[..., :1])
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(a.dtype)
    back = [jnp.conj(jnp.swapaxes(x, -1, -2)) for x in (u, v)]
    return (back[1] * inverse[..., None, :]) @ back[0]


def _others(x: Any) -> Any:
    """Return the product of all elements along the last axis but the one at each place."""
    ones = jnp.ones((*x.shape[:-1], 1), x.dtype)
    before = jnp.concatenate([ones, jnp.cumprod(x[..., :-1], -1)], -1)
    return before * jnp.concatenate([jnp.cumprod(x[..., :0:-1], -1)[..., ::-1], ones], -1)


def _det_slope(a: Any, *along: Any) -> Any:
    """Return the cofactors or, along one direction, their derivative; see
    `prims.linear_algebra.determinant`.
    """
    if len(along) > 1:
        raise NotImplementedError("the third derivative of a determinant is not known to the xla engine")
    u, s, v = jnp.linalg.svd(a)
    scale = (jnp.linalg.det(u) * jnp.linalg.det(v))[..., None, None]
    back = [jnp.conj(jnp.swapaxes(x, -1, -2)) for x in (u, v)]
    single = jnp.eye(s.shape[-1], dtype=bool)
    if not along:
        turned = jnp.where(single, _others(s)[..., None, :], 0)
    else:
        pairs = jnp.where(single, 0, _others(jnp.where(single, 1, s[..., None, :])))
        inner = back[0] @ along[0] @ back[1]
        sums = jnp.einsum("...ij,...ii->...j", pairs, inner)
        turned = jnp.where(single, sums[..., None, :], -pairs * jnp.swapaxes(inner, -1, -2))
    return (jnp.conj(u) @ (scale * turned) @ jnp.conj(v)).astype(a.dtype)


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
    "det_slope": _det_slope,
    "pseudo_inverse": _pseudo_inverse,
    "lu": lambda a: tuple(lax.linalg.lu(a)),
    "qr": lambda a, *, full: tuple(jnp.linalg.qr(a, mode="complete" if full else "reduced")),
    "fourier": _fourier,
}
