"""Base class that records constructor arguments, for serialising pipelines.

Nodes, samplers and transforms inherit from it. `graph_description.py` describes pipelines by
what it kept.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

Made = TypeVar("Made", bound="MadeOf")


class _OfConstructor:
    """The signature of a class, which is its constructor's: before Python 3.11.3 `inspect` asks
    `__new__` first, which takes anything.
    """

    def __get__(self, made: object | None, owner: type) -> inspect.Signature:
        constructor = inspect.getattr_static(owner, "__init__")
        if made is not None or constructor is object.__init__:
            raise AttributeError("__signature__")
        whole = inspect.signature(constructor)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class MadeOf:
    """The base class of objects that keep the arguments of their constructor in `_made_of`.

    It comes after the class with the constructor, whose signature is that of the subclasses.
    """

    __signature__ = _OfConstructor()
    # Whether the arguments are data in memory, which are not kept.
    _in_memory = False

    def __new__(cls: type[Made], *args: Any, **kwargs: Any) -> Made:
        made = object.__new__(cls)
        made.__dict__["_made_of"] = ((), {}) if cls._in_memory else (args, kwargs)
        return made
