"""What objects were made with, kept for descriptions of pipelines."""

from __future__ import annotations

from typing import Any, TypeVar

Made = TypeVar("Made", bound="MadeOf")


class MadeOf:
    """The base class of objects that keep the arguments of their constructor in `_made_of`.

    It comes after the class with the constructor, whose signature is that of the subclasses.
    """

    # Whether the arguments are data in memory, which are not kept.
    _in_memory = False

    def __new__(cls: type[Made], *args: Any, **kwargs: Any) -> Made:
        made = object.__new__(cls)
        made.__dict__["_made_of"] = ((), {}) if cls._in_memory else (args, kwargs)
        return made
