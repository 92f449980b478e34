"""`mutable`: Python numbers that a compiled function takes as inputs instead of constants.

`mutable` returns a number, tuple, list or dict of a class derived from Python's own, so that it is
an ordinary value for all other code. Compiled functions recognize the class: numbers inside it
become inputs of the graph (booleans, int64 and float64 scalars), which the stage knows to stand for
Python numbers. They therefore take the types of the tensors that they are combined with, answer
`isinstance` as numbers, and leave the function as Python numbers, as do numbers that tensors
decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import input_node
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.log import logger
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["MUTABLES", "describe_mutable", "mutable", "number_class", "plain", "replace_mutable"]


class _Int(int):
    """A variable int."""


class _Float(float):
    """A variable float."""


class _Bool(int):
    """A variable bool, which is no subclass of Python's because Python allows none."""

    def __new__(cls, value: Any) -> _Bool:
        return int.__new__(cls, bool(value))

    def __repr__(self) -> str:
        return repr(bool(self))

    __str__ = __repr__


class _Tuple(tuple[Any, ...]):
    """A tuple whose numbers are variable."""


class _List(list[Any]):
    """A list whose numbers are variable."""


class _Dict(dict[Any, Any]):
    """A dict whose numbers are variable."""


_CLASSES: dict[type, type] = {bool: _Bool, int: _Int, float: _Float, tuple: _Tuple, list: _List, dict: _Dict}
MUTABLES = frozenset(_CLASSES.values())
_DTYPES = {bool: D.bool_, int: D.int64, float: D.float64}
_PLAIN: dict[type, type] = {**{v: k for k, v in _CLASSES.items()}, **{k: k for k in _CLASSES}}
_NUMBERS: dict[str, Any] = {"b": bool, "f": float, "c": complex}


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Mark a number, tensor, tuple, list or dict so that compiled functions take the numbers in it
    as inputs.

    A call with other numbers then runs the code that was compiled before. A tensor is returned as
    it is, as tensors always are inputs. With `dynamic_len`, for tuples and lists whose items are
    all of one kind, the length may vary between calls; here each length is compiled once. In a
    compiled function the data is returned as it is. Raises TypeError for other data, also inside
    containers, and ValueError for `dynamic_len` with items of several kinds.

    >>> import mycel as ms
    >>> power = ms.jit(lambda x, n: x * n)
    >>> [float(power(ms.Tensor(2.0), ms.mutable(n))) for n in (3, 4)]
    [6.0, 8.0]
    """
    arguments.flag("mutable", "dynamic_len", dynamic_len)
    context = eager.local.context if eager.active else None
    if context is not None and context.is_staging:
        return input_data
    _check(input_data, input_data, ())
    if dynamic_len:
        if not isinstance(input_data, (tuple, list)):
            raise TypeError(f"mutable: dynamic_len needs a tuple or list, not {type(input_data).__name__}")
        if len({type(v) for v in input_data}) > 1:
            raise ValueError(f"mutable: with dynamic_len the items must be of one type, not {input_data!r}")
        logger.info("mutable(dynamic_len=True): each length is compiled once")
    if isinstance(input_data, Tensor):
        return input_data
    kind = next(k for k in _CLASSES if isinstance(input_data, k)) if not isinstance(input_data, _Bool) else bool
    made: Any = _CLASSES[kind](input_data)
    return made


def plain(value: Any) -> Any:
    """Return a marked tuple, list or dict, and those in it, as Python's own."""
    kind = type(value)
    if kind is _Dict:
        return {k: plain(v) for k, v in value.items()}
    if kind is _Tuple or kind is _List:
        return _PLAIN[kind]([plain(v) for v in value])
    return value


def _check(value: Any, whole: Any, above: tuple[int, ...]) -> None:
    if isinstance(value, (bool, int, float, Tensor)):
        return
    if not isinstance(value, (tuple, list, dict)) or id(value) in above:
        raise TypeError(
            "mutable: takes a bool, int, float, Tensor, or a tuple, list or dict of such without itself inside, "
            f"not {type(value).__name__} in {whole!r}"
        )
    for item in value.values() if isinstance(value, dict) else value:
        _check(item, whole, (*above, id(value)))


def describe_mutable(value: Any, tensors: list[Any], describe: Callable[[Any, list[Any]], Any]) -> Any:
    """Return what marked data contributes to a key: its form without its numbers.

    The numbers are added to `tensors` as tensors.
    """
    kind = _PLAIN.get(type(value))
    if kind in _DTYPES:
        number = _as_tensor(value, kind)
        if number is None:
            return (kind, value)
        tensors.append(number)
        return (mutable, number._type)
    if kind is dict:
        return (mutable, kind, *[(k, describe_mutable(v, tensors, describe)) for k, v in value.items()])
    if kind is not None:
        return (mutable, kind, *[describe_mutable(v, tensors, describe) for v in value])
    return describe(value, tensors)


def _as_tensor(value: Any, kind: Any) -> Tensor | None:
    """Return the tensor that stands for a number; None for a number with too many digits."""
    if kind is int and not -(1 << 63) <= value < 1 << 63:
        return None
    return Tensor(kind(value), _DTYPES[kind])


def replace_mutable(value: Any, name: str, arguments: Any) -> Any:
    """Return marked data in the form that the staged function sees.

    The tensors that stand for numbers are added to `arguments.numbers`.
    """
    kind = _PLAIN.get(type(value))
    if kind in _DTYPES:
        number = _as_tensor(value, kind)
        if number is None:
            return value
        node = input_node(number._type, name)
        staged = make_staged(node)
        arguments.nodes.append(node)
        arguments.staged.append(staged)
        arguments.numbers.append(staged)
        return staged
    if kind is dict:
        return arguments.keep({k: replace_mutable(v, f"{name}.{k}", arguments) for k, v in value.items()})
    if kind is not None:
        items = [replace_mutable(v, f"{name}.{i}", arguments) for i, v in enumerate(value)]
        return tuple(items) if kind is tuple else arguments.keep(items)
    return arguments.replace(value, name)


def number_class(value: Tensor) -> Any:
    """Return the class of the Python number that a tensor stands for."""
    return _NUMBERS.get(value.dtype.kind, int)
