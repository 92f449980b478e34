"""Which function of Mycel does the work of a name that MindSpore generates.

Names are compared by their words: ``BatchMatMulExt``, ``batch_mat_mul_ext`` and
``batch_matmul_ext`` are one. The function is looked for in this order:

1. a function of this room (`mycel.compat.operations.given`) of that name: what is composed by hand;
2. a public function of that name, in `mycel.ops`, `mycel.mint` and the libraries below it, or a
   method of tensors;
3. the same without an ending or beginning that tells variants apart: ``_ext``, ``_view``, ``_v2``;
   ``inplace_add`` is the method ``add_``. A variant with ``ext`` is the function of `mycel.mint`.

The first whose parameters fit (`binding.bound_to`) is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Optional

from mycel import mint, ops
from mycel.compat.operations import given
from mycel.compat.operations.binding import Names, bound_to
from mycel.core.tensor import Tensor
from mycel.mint.nn import functional

__all__ = ["served", "words_of"]

_ENDINGS = ("_ext_view", "_ext", "_view", "_v2", "_v3", "_op")
_OPS: tuple[Any, ...] = (ops, mint, functional, mint.special, mint.linalg, Tensor)
_MINT: tuple[Any, ...] = (mint, functional, mint.special, mint.linalg, ops, Tensor)


def words_of(name: str) -> str:
    """Return the name of a class as that of a function.

    >>> words_of("BatchMatMulExt"), words_of("ACosGrad"), words_of("GroupedMatmulV4")
    ('batch_mat_mul_ext', 'a_cos_grad', 'grouped_matmul_v4')
    """
    parted = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", parted).lower()


def key_of(name: str) -> str:
    """Return what two spellings of one name have in common.

    >>> key_of("batch_mat_mul_ext") == key_of("BatchMatMulExt"), key_of("add_")
    (True, 'add_')
    """
    return name.lower().replace("_", "") + "_" * name.endswith("_")


def served(name: str, names: Names) -> Optional[Callable[..., Any]]:
    """Return a function of values for the parameters `names` that does the work of an operation or
    function called `name`; None if there is none.

    >>> import mycel as ms
    >>> served("AddExt", ["input", "other", "alpha"])(ms.Tensor([1.0]), 2.0, 3).tolist()
    [7.0]
    >>> served("NoSuchOperation", []) is None
    True
    """
    for function in _candidates(name):
        found = bound_to(function, names)
        if found is not None:
            return found
    return None


def _candidates(name: str) -> Iterator[Callable[..., Any]]:
    words = words_of(name)
    yield from _found(words, (given,))
    yield from _found(words, _OPS)
    for ending in _ENDINGS:
        if words.endswith(ending):
            yield from _found(words.removesuffix(ending), _MINT if "ext" in ending else _OPS)
    if words.startswith("inplace_"):
        stem = words.removeprefix("inplace_")
        for ending in ("", *_ENDINGS):
            if stem.endswith(ending):
                yield from _found(stem.removesuffix(ending) + "_", (Tensor, *_MINT))


def _found(words: str, owners: tuple[Any, ...]) -> Iterator[Callable[..., Any]]:
    for owner in owners:
        name = _names(owner).get(key_of(words))
        value = getattr(owner, name, None) if name is not None else None
        if callable(value) and not isinstance(value, (type, ModuleType)):
            yield value


@cache
def _names(owner: Any) -> dict[str, str]:
    """Return the names of functions that a module or class has, by `key_of`."""
    listed = getattr(owner, "__all__", None) or dir(owner)
    return {key_of(n): n for n in listed if not n.startswith("_") and not n[0].isupper()}
