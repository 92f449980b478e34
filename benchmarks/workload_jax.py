"""What workloads that are functions say in JAX's own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from workload_functions import functions

__all__ = ["courses", "workloads"]

_SAME = (
    "tanh exp log log1p sqrt sin cos logaddexp matmul einsum stack where ones_like zeros_like full_like reshape argmin "
    "maximum minimum eye diagonal mean cumsum cumprod roll triu"
).split()

# What JAX has no function for, and a loop that XLA takes minutes to compile unrolled.
_LEFT_OUT = ("wl_augment", "wl_ctc", "wl_soft_dtw")


def pad(x: Any, pads: tuple[int, ...], value: float) -> Any:
    pairs = list(zip(pads[::2], pads[1::2]))[::-1]
    return jnp.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs, constant_values=value)


def sort_down(x: Any) -> tuple[Any, Any]:
    order = jnp.argsort(-x, 1)
    return jnp.take_along_axis(x, order, 1), order


def workloads() -> Mapping[str, Callable[..., Any]]:
    """Return the functions by their cases' names."""
    T = SimpleNamespace(
        **{name: getattr(jnp, name) for name in _SAME},
        sigmoid=jax.nn.sigmoid,
        relu=jax.nn.relu,
        gelu=lambda x: jax.nn.gelu(x, approximate=False),
        cat=jnp.concatenate,
        unsqueeze=jnp.expand_dims,
        squeeze=jnp.squeeze,
        transpose=jnp.swapaxes,
        clamp=jnp.clip,
        abs2=lambda x: x.real**2 + x.imag**2,
        rfft=jnp.fft.rfft,
        rfft2=jnp.fft.rfft2,
        irfft2=jnp.fft.irfft2,
        re=jnp.real,
        im=jnp.imag,
        complex=lax.complex,
        pad=pad,
        to_int=lambda x: x.astype(jnp.int32),
        to_float=lambda x: x.astype(jnp.float32),
        take=lambda x, index: x[index],
        take_along=lambda x, index: jnp.take_along_axis(x, index, 1),
        index_add=lambda x, index, rows: x.at[index].add(rows),
        cholesky=jnp.linalg.cholesky,
        solve_lower=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        eigh=jnp.linalg.eigh,
        singular_values=lambda x: jnp.linalg.svd(x, compute_uv=False),
        sort_down=sort_down,
        sort_values=lambda x: jnp.sort(x, 1),
        topk_values=lambda x, k: lax.top_k(x, k)[0],
        flip=jnp.flip,
        detach=lax.stop_gradient,
    )
    return {name: function for name, function in functions(T).items() if name not in _LEFT_OUT}


def courses() -> Mapping[str, Callable[..., Any]]:
    """Return the workloads with a course of their own that JAX says as functions."""

    def newton(a: Any) -> Any:
        def more(x: Any) -> Any:
            return jnp.abs(x * jnp.exp(x) - a) > 1e-5 * a

        return lax.while_loop(more, lambda x: x - (x * jnp.exp(x) - a) / (jnp.exp(x) * (x + 1.0)), jnp.ones_like(a))

    return {"wl_newton": jax.vmap(newton)}
