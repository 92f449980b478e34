"""Calls of operations whose results are asked of the real package and compared: expressions that
mean the same in both.

In an expression `g` is ``ops.auto_generate.gen_ops_prim``, `d` is ``gen_ops_def``, `p` is
``pyboost_inner_prim``, `e` is ``gen_extend_func`` and `ms` the package. ``T(2, 3)`` is a float32
tensor of that shape, ``P`` a positive one, ``U`` one within (-1, 1), ``N`` one of whole numbers
from 0, ``B`` one of flags, and ``L(...)`` a tensor of what is listed; a number as `seed` gives
another one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["draws", "namespace", "plain", "plain_array"]


def draws(tensor: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the functions that make tensors of expressions, of arrays by `tensor`."""

    def draw(shape: tuple[int, ...], seed: int) -> np.random.RandomState:
        return np.random.RandomState(seed + 7 * len(shape) + sum(shape))

    def T(*shape: int, seed: int = 0) -> Any:
        return tensor(draw(shape, seed).randn(*shape).astype(np.float32).round(3))

    def P(*shape: int, seed: int = 0) -> Any:
        return tensor(draw(shape, seed).uniform(0.5, 2, shape).astype(np.float32).round(3))

    def U(*shape: int, seed: int = 0) -> Any:
        return tensor(draw(shape, seed).uniform(-0.9, 0.9, shape).astype(np.float32).round(3))

    def N(*shape: int, most: int = 2, seed: int = 0, dtype: Any = np.int64) -> Any:
        return tensor(draw(shape, seed).randint(0, most, shape).astype(dtype))

    def B(*shape: int, seed: int = 0) -> Any:
        return tensor(draw(shape, seed).rand(*shape) < 0.5)

    def L(values: Any, dtype: Any = np.float32) -> Any:
        return tensor(np.array(values, dtype))

    return {"T": T, "P": P, "U": U, "N": N, "B": B, "L": L, "np": np}


def namespace(package: str) -> dict[str, Any]:
    """Return what the names in expressions mean with "mindspore"."""
    ms: Any = importlib.import_module(package)
    generated = f"{package}.ops.auto_generate"
    modules = {"g": "gen_ops_prim", "d": "gen_ops_def", "p": "pyboost_inner_prim", "e": "gen_extend_func"}
    loaded = {k: importlib.import_module(f"{generated}.{v}") for k, v in modules.items()}
    return {**draws(ms.Tensor), "ms": ms, **loaded}


def plain(value: Any) -> Any:
    """Return a result as what JSON holds: tensors as their type, shape and elements."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if hasattr(value, "asnumpy"):
        name = str(value.dtype).lower()
        array = value.astype("float32").asnumpy() if name.endswith("bfloat16") else value.asnumpy()
        return plain_array(name, array)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def plain_array(name: str, array: Any) -> Any:
    """Return an array, of a type called `name`, as what JSON holds."""
    if array.dtype.kind == "c":
        return [name, list(array.shape), [[float(v.real), float(v.imag)] for v in array.ravel().tolist()]]
    elements = [float(f"{v:.7g}") if isinstance(v, float) else v for v in array.ravel().tolist()]
    return [name, list(array.shape), elements]
