"""Values of arguments as short text, and the text's values in either package.

A call is written down as Python expressions over the names of `space`. Tensors of more than
`LONGEST` elements are written by element type, shape and range, and filled by rule.
"""

from __future__ import annotations

import importlib
import math
from types import ModuleType
from typing import Any

import numpy as np

LONGEST = 24
MODULES = {
    "ops": "ops",
    "mint": "mint",
    "mint.linalg": "mint.linalg",
    "mint.special": "mint.special",
    "mint.nn": "mint.nn",
    "mint.nn.functional": "mint.nn.functional",
    "mint.optim": "mint.optim",
    "numpy": "numpy",
    "nn": "nn",
    "common.initializer": "common.initializer",
    "nn.probability.distribution": "nn.probability.distribution",
    "nn.probability.bijector": "nn.probability.bijector",
    "experimental.optim": "experimental.optim",
    "experimental.optim.lr_scheduler": "experimental.optim.lr_scheduler",
    "amp": "amp",
    "boost": "boost",
    "scipy.linalg": "scipy.linalg",
    "train": "train",
    "dataset": "dataset",
    "dataset.transforms": "dataset.transforms",
    "dataset.vision": "dataset.vision",
    "dataset.text": "dataset.text",
    "dataset.audio": "dataset.audio",
}
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class Unwritable(Exception):
    """A value that has no text."""


def space(package: ModuleType) -> dict[str, Any]:
    """Return the names that the text of values uses, in `package`."""

    def T(dtype: str, values: Any) -> Any:
        return package.Tensor(values, getattr(package, dtype))

    def R(dtype: str, shape: tuple[int, ...], low: float, high: float) -> Any:
        return package.Tensor(_filled(dtype, shape, low, high), getattr(package, dtype))

    def A(dtype: str, values: Any) -> Any:
        return np.array(values, dtype)

    def F(dtype: str, shape: tuple[int, ...], low: float, high: float) -> Any:
        return _filled(dtype, shape, low, high).astype(dtype)

    def P(value: Any, name: str = "p") -> Any:
        return package.Parameter(value, name=name)

    found: dict[str, Any] = {"ms": package, "T": T, "R": R, "A": A, "F": F, "P": P, "inf": math.inf, "nan": math.nan}
    for name in MODULES.values():
        importlib.import_module(f"{package.__name__}.{name}")
    return found


def _filled(dtype: str, shape: tuple[int, ...], low: float, high: float) -> Any:
    """Return an array that runs through the range from `low` to `high` again and again."""
    steps = np.arange(math.prod(shape)).reshape(shape)
    if "int" in dtype:
        return low + steps % (high - low + 1)
    if dtype == "bool":
        return steps % 2 == 0
    return low + (high - low) * (steps * 7 % 23) / 22


def dtype_of(name: Any) -> str:
    """Return the name of an element type as both packages have it."""
    return {"Bool": "bool_"}.get(str(name), str(name)).lower()


def written(value: Any, package: ModuleType, made: dict[int, str]) -> str:
    """Return the text of a value; `made` has the texts of objects that recorded calls made."""
    if isinstance(value, PLAIN):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value).replace("-inf", "-inf")
        return "..." if value is ... else repr(value)
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, package.Parameter):
        return f"P({_tensor(value, package)}, {value.name!r})"
    if type(value).__name__ in ("Tensor", "StubTensor") and isinstance(value, package.Tensor):
        return _tensor(value, package)
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if type(value) in (list, package.ParameterTuple):
        return "[" + ", ".join(written(v, package, made) for v in value) + "]"
    if type(value) is tuple:
        return "(" + "".join(written(v, package, made) + ", " for v in value) + ")"
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {written(v, package, made)}" for k, v in value.items()) + "}"
    if type(value) is slice:
        return f"slice({value.start!r}, {value.stop!r}, {value.step!r})"
    if hasattr(value, "name") and type(value).__module__.startswith(package.__name__ + ".dataset"):
        return f"ms.dataset.{type(value).__module__.split('.')[2]}.{type(value).__name__}.{value.name}"
    for name in (
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "bool_",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "string",
    ):
        if (
            value is getattr(package, name)
            or type(value) is type(getattr(package, name))
            and value == getattr(package, name)
        ):
            return f"ms.{name}"
    raise Unwritable(type(value).__name__)


def _tensor(value: Any, package: ModuleType) -> str:
    dtype = dtype_of(value.dtype)
    if dtype == "string":
        raise Unwritable("string")
    array = value.astype(package.float32).asnumpy() if dtype == "bfloat16" else value.asnumpy()
    if array.size <= LONGEST and 0 not in array.shape:
        return f"T({dtype!r}, {_short(array)})"
    low, high = _range(array)
    return f"R({dtype!r}, {array.shape!r}, {low}, {high})"


def _array(value: Any) -> str:
    if value.dtype.kind not in "biufcUS":
        raise Unwritable("array")
    if value.size <= LONGEST and 0 not in value.shape:
        return f"A({str(value.dtype)!r}, {_short(value)})"
    if value.dtype.kind in "US":
        raise Unwritable("array")
    low, high = _range(value)
    return f"F({str(value.dtype)!r}, {value.shape!r}, {low}, {high})"


def _range(array: Any) -> tuple[Any, Any]:
    if array.size == 0 or array.dtype.kind in "bc":
        return 0, 1
    if array.dtype.kind in "iu":
        return int(array.min()), int(array.max())
    array = np.nan_to_num(array.astype(np.float64))
    return float(f"{array.min():.4g}"), float(f"{array.max():.4g}")


def _short(array: Any) -> str:
    if array.dtype.kind == "f":
        array = (
            np.vectorize(lambda v: float(f"{v:.6g}"), otypes=[float])(array.astype(np.float64)) if array.size else array
        )
    return str(array.tolist())
