"""Call signatures of compiled functions: a call's part of the cache key, and its arguments."""

from __future__ import annotations

import dataclasses
import types
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node, input_node
from mycel._src.staging.frontend.specialization.guards import frozen
from mycel._src.staging.frontend.specialization.mutable_numbers import MUTABLES, describe_mutable, replace_mutable
from mycel._src.staging.frontend.specialization.snapshots import CONTAINERS, Same
from mycel._src.tensors.core.autograd.gradient_hooks import carry_hooks, hooks_key
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["Arguments", "describe", "identities", "key_of"]

_PLAIN = frozenset((int, str, bytes, bool, complex, type(None), type(...)))


def identities(key: Any) -> Iterator[Same]:
    """Yield the objects in a key that are compared by identity."""
    if type(key) is tuple:
        for part in key:
            yield from identities(part)
    elif type(key) is Same:
        yield key


def describe(value: Any, tensors: list[Any]) -> Any:
    """Return what a value contributes to a key, and add its tensors to `tensors`."""
    kind = type(value)
    if kind is Tensor:
        tensors.append(value)
        return value._type
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if kind in MUTABLES:
        return describe_mutable(value, tensors, describe)
    if kind is tuple or kind is list:
        return (kind, *[describe(v, tensors) for v in value])
    if kind is dict or kind is OrderedDict:
        return (kind, *[(_static(k), describe(v, tensors)) for k, v in value.items()])
    if isinstance(value, Tensor):
        if isinstance(value, Parameter):
            return Same(value)
        tensors.append(value)
        return value._type
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return (kind, *[describe(v, tensors) for v in value])
    if kind is types.MethodType:
        return (kind, Same(value.__func__), Same(value.__self__))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return (kind, *[describe(getattr(value, n), tensors) for n in fields])
    return _static(value)


def _static(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return frozen(value)
    kind = type(value)
    if kind in _PLAIN or kind is slice or isinstance(value, (np.generic, np.dtype)):
        return (kind, repr(value)) if kind is slice or isinstance(value, np.generic) else (kind, value)
    if kind.__hash__ is not None and isinstance(value, (frozenset, range, tuple)):
        return (kind, value)
    return Same(value)


def key_of(args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> Any:
    """Return what stands for the arguments of a call, and add their tensors to `tensors`.

    Calls of one key may differ in the values of tensors.
    """
    key: Any = tuple([describe(a, tensors) for a in args])
    if kwargs:
        key = (key, tuple([(k, describe(v, tensors)) for k, v in kwargs.items()]))
    if len(tensors) > 1:
        numbers = [id(t) for t in tensors]
        if len(set(numbers)) != len(numbers):
            key = (key, "shared", tuple([numbers.index(n) for n in numbers]))
    hooks = hooks_key(tensors)
    return key if hooks is None else (key, "hooks", hooks)


class Arguments:
    """The arguments as the staged function sees them: tensors replaced, containers made anew."""

    def __init__(self, types: Sequence[Any] | None = None) -> None:
        self.types = types
        self.nodes: list[Node] = []
        self.staged: list[Tensor] = []
        self.containers: dict[int, Any] = {}
        self.known: dict[int, Tensor] = {}
        self.numbers: list[Tensor] = []
        self.opaque: list[Any] = []
        self.outside: set[int] = set()
        # where in a call, as indices one after the other, are lists and dicts
        self.places: dict[int, tuple[Any, ...]] = {}

    def replace(self, value: Any, name: str) -> Any:
        kind = type(value)
        if kind in MUTABLES:
            return replace_mutable(value, name, self)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            node = input_node(value._type if self.types is None else self.types[len(self.nodes)], name)
            self.nodes.append(node)
            known = self.known.get(id(value))
            staged = known if known is not None else make_staged(node)
            carry_hooks(value, staged)
            self.known[id(value)] = staged
            self.staged.append(staged)
            return staged
        if kind is tuple:
            return tuple([self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if kind is list:
            return self.keep([self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if kind is dict or kind is OrderedDict:
            return self.keep(kind((k, self.replace(v, f"{name}.{k}")) for k, v in value.items()))
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return kind(*[self.replace(v, f"{name}.{i}") for i, v in enumerate(value)])
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            made = object.__new__(kind)
            for field in dataclasses.fields(value):
                object.__setattr__(made, field.name, self.replace(getattr(value, field.name), f"{name}.{field.name}"))
            return self.keep(made)
        if isinstance(value, np.ndarray):
            return self.keep(value.copy())
        if isinstance(value, CONTAINERS):
            self.opaque.append(value)
        self.outside.add(id(value))
        return value

    def keep(self, value: Any) -> Any:
        self.containers[id(value)] = value
        return value

    def place(self, value: Any, made: Any, *path: Any) -> None:
        """Note where in a call the lists and dicts are for which others were `made`."""
        kind = type(value)
        if kind not in (list, dict, tuple, OrderedDict):
            return
        if kind is not tuple:
            self.places[id(made)] = path
        for k in value if isinstance(value, dict) else range(len(value)):
            self.place(value[k], made[k], *path, k)
