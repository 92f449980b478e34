"""The errors of the compiler, each a subclass of the built-in error that MindSpore raises."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper, wraps
from types import FrameType, FunctionType
from typing import Any, TypeVar, cast

from mycel._src.foundation.public_names import listing as _listing

__all__ = [
    "BoundsError",
    "CompileError",
    "IndexRangeError",
    "InputError",
    "NeedsValue",
    "NonFiniteError",
    "ShapeError",
    "SizeError",
    "Unsupported",
    "VerifyError",
    "VmapError",
    "name_constructors",
    "named",
    "operation_called",
]

F = TypeVar("F", bound=Callable[..., Any])


class ShapeError(ValueError):
    """Shapes, or parameters that refer to them, do not fit the operation."""

    found: str = ""

    def raised_in(self, name: str) -> None:
        """Put the name of the operation that the user called in front of the message, once."""
        self.found = self.found or str(self)
        self.args = (self.found if name in self.found else f"{name}: {self.found}",)


class SizeError(ShapeError):
    """A size is negative, or larger than anything that memory can hold.

    The message begins with the name of the operation that the user called, where there is one.
    """

    def __init__(self, message: str, operation: str = "") -> None:
        self.operation = operation_called() or operation
        super().__init__(f"{self.operation}: {message}" if self.operation else message)

    def raised_in(self, name: str) -> None:
        if not self.operation:
            super().raised_in(name)


_PUBLIC = (
    "mycel.ops",
    "mycel._src.tensors.core.indexing",
    "mycel._src.tensors.core.view_cache",
    "mycel.mint",
    "mycel.numpy",
    "mycel.scipy",
    "mycel.nn",
    "mycel.common",
    "mycel._src.tensors.core.tensor",
    "mycel._src.tensors.core.binary_operators",
    "mycel._src.tensors.core.parameter",
    "mycel.experimental",
    "mycel.boost",
    "mycel.train",
)
_SUBSCRIPTS = {"__getitem__": "x[...]", "__setitem__": "x[...] = y"}
_WRAPPERS = ("method", "plainly", "run")
_USERS = (
    "mycel._src.staging.frontend",
    "mycel._src.staging.compiled.jit",
    "mycel._src.tensors.cells.cell",
    "mycel._src.staging.derivatives",
)


def operation_called() -> str:
    """Return the name of the public function, method or class that the user's program called.

    It is the outermost one of the public libraries that is running; "" where none is. The name is
    read from the frames of the call, so that it costs nothing until an error asks for it.
    """
    name = ""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("mycel.") or name and module.startswith(_USERS):
            break
        if module.startswith(_PUBLIC):
            found = frame.f_code.co_name
            found = _SUBSCRIPTS.get(found, found)
            if found in ("__init__", "__call__", "call", "construct"):
                found = type(frame.f_locals.get("self")).__name__
            if "name" in frame.f_code.co_freevars:
                # A function that another one made, under the name that it has there.
                found = str(frame.f_locals["name"])
            known = found in frame.f_globals or "self" in frame.f_locals or found in _SUBSCRIPTS.values()
            if known and not found.startswith(("__", "<")) and found not in _WRAPPERS:
                name = found.lstrip("_")
        frame = frame.f_back
    return name


def named(function: F, name: str = "") -> F:
    """Wrap a function so that every shape error raised inside it names it."""
    name = name or function.__name__.lstrip("_")

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except ShapeError as error:
            error.raised_in(name)
            raise

    return cast(F, run)


def name_constructors(namespace: dict[str, Any]) -> None:
    """Give the classes of a module that inherit a constructor one of their own name.

    Python's errors of missing arguments then name the class that the user called.
    """
    for name, kind in namespace.items():
        if not isinstance(kind, type) or name.startswith("_") or "__init__" in vars(kind):
            continue
        init = kind.__init__  # type: ignore[misc]
        if isinstance(init, FunctionType):
            made = FunctionType(init.__code__, init.__globals__, "__init__", init.__defaults__, init.__closure__)
            update_wrapper(made, init)
            made.__kwdefaults__, made.__qualname__ = init.__kwdefaults__, f"{name}.__init__"
            del made.__wrapped__  # type: ignore[attr-defined]
            kind.__init__ = made  # type: ignore[misc]


class IndexRangeError(IndexError, RuntimeError, ValueError):
    """An index taken from data is out of range.

    It is all three built-in errors, as MindSpore's operations raise now one and now another.
    """


class GradientError(RuntimeError, TypeError, ValueError):
    """A hook, or a derivative that the program defines, returned no gradients that fit.

    It is all three built-in errors, as MindSpore raises now one and now another.
    """


class InputError(TypeError, ValueError, RuntimeError):
    """The inputs of a call of an operation are too many or too few, or are not of its types.

    It is all three built-in errors, as MindSpore's operations raise now one and now another.
    """


class NotAnIndex(TypeError, ValueError):
    """A tensor that is no integer is used as one.

    It is both built-in errors: Python's own for values that are no index, and MindSpore's.
    """


class Unsupported(NotImplementedError):
    """Something that this engine or front end cannot do; the message names what it can."""


class CompileError(RuntimeError):
    """A function could not be compiled; the message shows the user's line.

    `undecided` is the place of the condition or loop that Python would have to decide, if it is
    known.
    """

    undecided: Any = None


class NeedsValue(TypeError):
    """Python asked for the value of a tensor that exists only as a node of a graph being built."""


class NonFiniteError(FloatingPointError):
    """An operation gave the first NaN or infinity, as `set_context(check_nan=True)` looks for.

    `message` is the text shown. `operation` is the operation's name, `kind` "NaN" or "infinity",
    `where` the place in the user's source (`file`, `line`, `column`). `gradient_of` names the
    operation whose derivative it belongs to, or is empty; `rounds` are the iteration numbers of the
    loops around it, outermost first, counted from 1.
    """

    def __init__(
        self,
        message: str,
        operation: str = "",
        kind: str = "NaN",
        where: Any = None,
        gradient_of: str = "",
        rounds: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.operation, self.kind, self.where, self.gradient_of, self.rounds = (
            operation,
            kind,
            where,
            gradient_of,
            rounds,
        )


class BoundsError(AssertionError):
    """Compiled code would have reached outside of a buffer, as MYCEL_CHECK=bounds checks.

    This is a defect of the compiler, not of the user's program.
    """


class VerifyError(AssertionError):
    """A graph violates an invariant of the representation.

    This is a defect of a compiler pass, not of the user's program.
    """


class VmapError(RuntimeError):
    """The arguments of `vmap` do not fit its axes, or its function cannot be batched.

    A function cannot be batched where it does something that is impossible for all examples at
    once.
    """


for _value in list(globals().values()):
    if isinstance(_value, type) and _value.__module__ == __name__:
        # The path that programs know.
        _value.__module__ = "mycel.errors"


__dir__ = _listing(__name__)
