"""Operations as objects: what they have in common, and how a module defines them as rows of a table.

A module of this package says ``define = definer(globals())`` and then one row an operation: its name, the function that computes it, and its parameters
with their defaults (`NEEDED`: none). ``plain`` takes rows of operations without parameters. Every row becomes a class in the module and a name in its `__all__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from sys import modules
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.base.dtype import DType
from mycel.core import precision
from mycel.core.tensor import Tensor
from mycel.derivatives.recompute import recompute
from mycel.ir.dims import Dim

__all__ = ["NEEDED", "Primitive", "definer", "only", "plain"]

NEEDED: Any = inspect.Parameter.empty


class Primitive:
    """An operation as an object with a name. Subclasses define `__call__`.

    >>> import mycel as ms
    >>> ms.ops.Primitive("mine").name
    'mine'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.instance_name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError(f"{self.name}: a Primitive is called through a subclass that defines __call__")

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Attach a named value; the operation itself."""
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    def del_prim_attr(self, name: str) -> Primitive:
        """Remove a named value, if there is one; the operation itself."""
        if self.attrs.pop(name, self) is not self:
            delattr(self, name)
        return self

    def set_prim_instance_name(self, name: str) -> Primitive:
        """Give the object another name; the operation itself."""
        self.instance_name = name
        return self

    set_instance_name = set_prim_instance_name

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Name what goes in and what comes out, as `input_names` and `output_names`."""
        self.add_prim_attr("input_names", list(inputs))
        self.add_prim_attr("output_names", list(outputs))

    def check_elim(self, *args: Any) -> tuple[bool, Any]:
        """Whether calling the operation can be left out, and the result then: it cannot, unless a subclass says so."""
        return False, None

    def recompute(self, mode: bool = True) -> Primitive:
        """Whether a gradient computes the result anew instead of keeping what the operation's derivative needs; the operation itself."""
        self.attrs["recompute"] = arguments.flag(self.name, "the mode of recompute", mode)
        return self

    def set_stage(self, stage: int) -> Primitive:
        """Name the stage of a pipeline that the operation belongs to, which has no effect in one process; the operation itself."""
        return self.add_prim_attr("stage", stage)

    def set_device(self, device_target: str) -> Primitive:
        """Name the device that the operation should run on, as `primitive_target`; every operation runs on the CPU. The operation itself."""
        arguments.one_of(self.name, "the device", device_target, ("CPU", "GPU", "Ascend"))
        return self.add_prim_attr("primitive_target", device_target)

    def place(self, role: str, rank_id: int) -> None:
        """Name the process that should run the operation: 'MS_WORKER' of rank 0 is this one. ValueError for others."""
        if role != "MS_WORKER" or rank_id != 0:
            raise ValueError(f"{self.name}: place: there is the process ('MS_WORKER', 0) and no ({role!r}, {rank_id})")

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """Name how inputs and outputs are divided among devices, which has no effect on one; the operation itself."""
        for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
            arguments.optional(self.name, name, strategy, tuple)
            self.attrs[name] = strategy
        return self

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if v is not None)
        return f"Prim[{self.name}]" + (f"<{given}>" if given else "")


def definer(namespace: dict[str, Any]) -> Callable[..., None]:
    """The function that adds a class to a module's namespace and to its `__all__`."""

    def define(name: str, compute: Callable[..., Any], text: str = "", **parameters: Any) -> None:
        """A class whose objects call ``compute(object, *inputs)``, or a function of the inputs where it has no parameters."""
        namespace[name] = _operation(namespace["__name__"], name, compute, text, parameters)
        namespace["__all__"].append(name)

    return define


def only(p: Any, **allowed: Any) -> None:
    """ValueError where a parameter of an operation is not what is named, all that is supported."""
    for parameter, value in allowed.items():
        if getattr(p, parameter) != value:
            raise ValueError(
                f"{p.name}: {parameter} must be {value!r}, which is all that is supported, not {getattr(p, parameter)!r}"
            )


def plain(define: Callable[..., None], rows: dict[ModuleType, str]) -> None:
    """Operations without parameters: ``Class=function`` of the modules, divided by spaces."""
    for module, pairs in rows.items():
        for pair in pairs.split():
            name, _, function = pair.partition("=")
            define(name, getattr(module, function))


def _text(name: str, compute: Callable[..., Any]) -> str:
    """What a row without a text is: the function that it names, or the one that its own function calls, with that one's first paragraph."""
    public = modules["mycel.ops"].__dict__
    if public.get(compute.__name__) is compute:
        return f"`mycel.ops.{compute.__name__}` as an object."
    if compute.__doc__:
        return " ".join(compute.__doc__.partition("\n\n")[0].split())
    code, scope = compute.__code__, compute.__globals__
    called = [cell.cell_contents for cell in compute.__closure__ or ()] + list(compute.__defaults__ or ())
    called += [getattr(scope[a], b, None) for a, b in zip(code.co_names, code.co_names[1:]) if a in scope]
    for function in [*called, *map(scope.get, code.co_names)]:
        if isinstance(function, FunctionType) and function.__doc__:
            if function.__name__ in getattr(modules.get(function.__module__), "__all__", ()):
                first = " ".join(function.__doc__.partition("\n\n")[0].split())
                known = public.get(function.__name__) is function
                return f"`mycel.ops.{function.__name__}` as an object. {first}" if known else first
    return f"The operation {name} as an object."


# What a parameter with a default of a type may be, and what that is called.
_KINDS: dict[type, tuple[tuple[type, ...], str]] = {
    bool: ((bool, np.bool_, int), "a bool"),
    str: ((str, type(None)), "a string"),
    float: ((int, float, np.number, Tensor, type(None)), "a number"),
    int: ((int, float, np.number, tuple, list, Tensor, Dim, str, type(None), DType), "an int"),
}


def _fitting(name: str, parameter: str, value: Any, default: Any) -> Any:
    """`value`, a bool where the default is one; TypeError where it is nothing like the default."""
    kinds, word = _KINDS.get(type(default), ((object,), ""))
    if not isinstance(value, kinds):
        raise TypeError(f"{name}: {parameter} must be {word}, not {type(value).__name__}")
    return bool(value) if isinstance(default, bool) else value


def _operation(module: str, name: str, compute: Callable[..., Any], text: str, parameters: dict[str, Any]) -> type:
    given = [inspect.Parameter(k, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=v) for k, v in parameters.items()]
    signature = inspect.Signature(given)

    def start(self: Primitive, *args: Any, **named: Any) -> None:
        Primitive.__init__(self, name)
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; the parameters are {signature}") from None
        bound.apply_defaults()
        for k, v in bound.arguments.items():
            if v is not parameters[k]:
                v = _fitting(name, k, v, parameters[k])
            self.add_prim_attr(k, v)

    def call(self: Primitive, *inputs: Any, **named: Any) -> Any:
        if self.attrs.get("recompute"):
            return recompute(plainly, self, *inputs, **named)
        return plainly(self, *inputs, **named)

    def plainly(self: Primitive, *inputs: Any, **named: Any) -> Any:
        if precision.active and not named:
            return precision.narrowed((name,), (lambda *v: compute(self, *v)) if parameters else compute, *inputs)
        return compute(self, *inputs, **named) if parameters else compute(*inputs, **named)

    text = text or _text(name, compute)
    return type(
        name,
        (Primitive,),
        {
            "__init__": start,
            "__call__": call,
            "__doc__": text,
            "__module__": module,
            "__signature__": signature,
            "compute": staticmethod(compute),
        },  # fmt: skip
    )
