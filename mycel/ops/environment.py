"""Environments: immutable tables that map parameters to values such as their gradients.

Parameters are represented by keys (`ref_to_embed`), which are equal only for the same parameter,
whatever its value. Setting a key gives a new environment; adding two environments adds the values
that both have for a key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter
from mycel.ops.creation import zeros_like
from mycel.ops.elementwise import add

__all__ = [
    "Environment",
    "SymbolicKey",
    "env_get",
    "environ_add",
    "environ_create",
    "environ_get",
    "environ_set",
    "ref_to_embed",
]


class SymbolicKey:
    """The key of a parameter in environments."""

    __slots__ = ("parameter",)

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicKey) and self.parameter is other.parameter

    def __hash__(self) -> int:
        return id(self.parameter)

    def __repr__(self) -> str:
        return f"<key of {self.parameter.name}>"


class Environment:
    """An immutable table of values by key."""

    __slots__ = ("_table",)

    def __init__(self, table: Mapping[Any, Any] | None = None) -> None:
        self._table = dict(table or {})

    def get(self, key: Any, default: Any) -> Any:
        """Return the value of a key, or `default`."""
        return self._table.get(key, default)

    def set(self, key: Any, value: Any) -> Environment:
        """Return the environment with a key set."""
        return Environment({**self._table, key: value})

    def merged(self, other: Environment) -> Environment:
        """Return the entries of both environments; values of a key that is in both are added."""
        table = dict(self._table)
        for key, value in other._table.items():
            table[key] = add(table[key], value) if key in table else value
        return Environment(table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"<environment of {', '.join(map(str, self._table)) or 'nothing'}>"


def _checked(name: str, args: tuple[Any, ...], count: int, environments: int = 1) -> tuple[Any, ...]:
    if len(args) != count:
        raise TypeError(f"{name}: takes {count} arguments, not {len(args)}")
    for value in args[:environments]:
        arguments.instance(name, "the argument", value, Environment, "an environment, which environ_create() makes")
    return args


def environ_create(*args: Any) -> Environment:
    """Return an empty environment.

    >>> import mycel as ms
    >>> len(ms.ops.environ_create())
    0
    """
    _checked("environ_create", args, 0, 0)
    return Environment()


def environ_set(*args: Any) -> Environment:
    """Take (environment, key, value) and return the environment with the value of the key set.

    Raises TypeError unless the first argument is an environment.

    >>> import mycel as ms
    >>> ms.ops.environ_get(ms.ops.environ_set(ms.ops.environ_create(), "k", 2), "k", 0)
    2
    """
    environment, key, value = _checked("environ_set", args, 3)
    return environment.set(key, value)


def environ_get(*args: Any) -> Any:
    """Take (environment, key, default) and return the value of the key, or the default.

    Raises TypeError unless the first argument is an environment.

    >>> import mycel as ms
    >>> ms.ops.environ_get(ms.ops.environ_create(), "k", 0)
    0
    """
    environment, key, default = _checked("environ_get", args, 3)
    return environment.get(key, default)


def environ_add(*args: Any) -> Environment:
    """Take two environments and return the entries of both; values of a key that is in both are
    added.

    Raises TypeError unless both arguments are environments.

    >>> import mycel as ms
    >>> one = ms.ops.environ_set(ms.ops.environ_create(), "k", ms.Tensor(2.0))
    >>> float(ms.ops.environ_get(ms.ops.environ_add(one, one), "k", 0))
    4.0
    """
    x, y = _checked("environ_add", args, 2, 2)
    return x.merged(y)


def ref_to_embed(*args: Any) -> SymbolicKey:
    """Return the key of a parameter in environments. Raises TypeError unless the argument is a
    Parameter.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor(1.0))
    >>> ms.ops.ref_to_embed(w) == ms.ops.ref_to_embed(w)
    True
    """
    if len(args) != 1 or not isinstance(args[0], Parameter):
        raise TypeError(
            f"ref_to_embed: takes one Parameter, not {', '.join(type(a).__name__ for a in args) or 'nothing'}"
        )
    return SymbolicKey(args[0])


def env_get(*args: Any) -> Any:
    """Take (environment, parameter) and return the parameter's value there, or zeros of its shape
    and type.

    Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> ms.ops.env_get(ms.ops.environ_create(), ms.Parameter(ms.Tensor([1.0, 2.0]))).tolist()
    [0.0, 0.0]
    """
    environment, parameter = _checked("env_get", args, 2)
    found = environment.get(ref_to_embed(parameter), None)
    return zeros_like(parameter) if found is None else found
