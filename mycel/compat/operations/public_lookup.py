"""Which function of Mycel does the work of a name that MindSpore generates.

Names are compared by their words: ``BatchMatMulExt``, ``batch_mat_mul_ext`` and
``batch_matmul_ext`` are one. The function is looked for in this order:

1. a function of this room (`mycel.compat.operations.hand_written`) of that name: what is composed
  by hand;
2. a public function of that name, in `mycel.ops`, `mycel.mint` and the libraries below it, or a
   method of tensors;
3. the same without an ending or beginning that tells variants apart: ``_ext``, ``_view``, ``_v2``;
   ``inplace_add`` is the method ``add_``. A variant with ``ext`` is the function of `mycel.mint`.

The first whose parameters fit (`binding.bound_to`) is taken.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from mycel import mint, ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations import hand_written as given
from mycel.compat.operations.parameter_binding import LEFT, Names, bound_to
from mycel.mint.nn import functional

__all__ = ["key_of", "public_function", "served", "served_by_class", "words_of"]

# Endings that tell variants of an operation apart, the longest first.
_ENDINGS = (
    "_scalar_other",
    "_scalar_self",
    "_tensor_scalar",
    "_tensor_tensor",
    "_scalar_tensor",
    "_ext_view",
    "_scalar",
    "_tensor",
    "_impl",
    "_view",
    "_ext",
    "_v2",
    "_v3",
    "_op",
)
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


def public_function(name: str) -> Callable[..., Any] | None:
    """Return the function of a name in `mycel.mint` and the libraries around it, or None."""
    return next(_of_form(words_of(name), _MINT), None)


def served_by_class(name: str, names: Names, kind_of: Callable[[str], Any]) -> Callable[..., Any] | None:
    """Return a function of values for `names` that creates an operation and calls it: the
    parameters that the constructor of its class has go there, and the others are its inputs.

    `name` is the function's, and `kind_of` gives the class for what spellings of its name have in
    common, or None. None is returned where the constructor's parameters do not fit.
    """
    for form in _forms(words_of(name.rstrip("_")).removeprefix("infer_value_for_")):
        kind = kind_of(key_of(form))
        if kind is None or any(n.startswith("*") for n in names):
            continue
        own = inspect.signature(kind).parameters
        if any(p.default is p.empty and p.name not in names for p in own.values()):
            continue
        return _creating(kind, [n in own for n in names], [n for n in names if n in own])
    return None


def _creating(kind: Any, own: list[bool], parameters: list[str]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        given = dict(zip(parameters, (v for v, belongs in zip(values, own) if belongs)))
        operation = kind(**{k: v for k, v in given.items() if v is not LEFT})
        inputs = [v for v, belongs in zip(values, own) if not belongs]
        while inputs and (inputs[-1] is LEFT or inputs[-1] is None):
            inputs.pop()
        return operation(*inputs)

    return call


def served(name: str, names: Names) -> Callable[..., Any] | None:
    """Return a function of values for the parameters `names` that does the work of an operation or
    function called `name`; None if there is none.

    >>> import mycel as ms
    >>> served("AddExt", ["input", "other", "alpha"])(ms.Tensor([1.0]), 2.0, 3).tolist()
    [7.0]
    >>> served("NoSuchOperation", []) is None
    True
    """
    for function in _candidates(name) if name not in given.PRIVATE else (given.PRIVATE[name],):
        found = bound_to(function, names)
        if found is not None:
            return found
    return None


def _candidates(name: str) -> Iterator[Callable[..., Any]]:
    words = words_of(name).removeprefix("infer_value_for_")
    if words.endswith("_") and not words.startswith("_"):
        yield from _candidates(f"inplace_{words[:-1]}")
    for form in _forms(words):
        yield from _of_form(form, _OPS if form == words else _MINT)
    if words.startswith("inplace_"):
        for form in _forms(words.removeprefix("inplace_")):
            yield from _found(form + "_", (Tensor, *_MINT))
        for form in _forms(words.removeprefix("inplace_")):
            yield from map(_writing, _of_form(form, _MINT))


def _of_form(form: str, public: tuple[Any, ...]) -> Iterator[Callable[..., Any]]:
    if key_of(form) in _tables():
        yield _tables()[key_of(form)]
    yield from _found(form, (given,))
    yield from _found(form, public)


def _forms(words: str) -> Iterator[str]:
    """Return a name, and the same without endings that tell variants apart."""
    yield words
    for ending in _ENDINGS:
        if words.endswith(ending):
            yield from _forms(words.removesuffix(ending))


@cache
def _tables() -> dict[str, Callable[..., Any]]:
    return {key_of(n): f for table in (given.OTHER_NAMES, given.GRADIENTS) for n, f in table.items()}


def _writing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that writes what another one computes of a tensor into that tensor."""

    def written(input: Tensor, *args: Any, **named: Any) -> Tensor:
        return input.copy_(function(input, *args, **named))

    vars(written)["__signature__"] = inspect.signature(function)
    return written


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
