"""Classes, functions and instances of operations, made from the parameters that MindSpore has and
the function that does the work.

`Work` is that function: it takes the values of all parameters in the order of ``names_of``, the
inputs of the call first and then the constructor's. Where there is none, what is made can be
imported, subclassed and created, and raises Unsupported when it is called.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from mycel._src.staging.derivatives.recomputation import recompute
from mycel.compat.operations.parameter_binding import filled, parsed
from mycel.compat.unserved import unserved_class, unserved_function
from mycel.ops.operations.attributes import anything
from mycel.ops.operations.primitive import Primitive

__all__ = ["Work", "composed", "function", "names_of", "operation", "shown"]

Work = Callable[..., Any]


def names_of(call: inspect.Signature, constructor: inspect.Signature | None = None) -> list[str]:
    """Return the parameters of a call, and then those of the constructor."""
    return [*call.parameters, *(constructor.parameters if constructor is not None else ())]


def function(where: str, name: str, parameters: str, work: Work | None, advice: str) -> Callable[..., Any]:
    """Return a function of these parameters.

    `where` is the module's whole path, `work` what it does, and `advice` goes on after its name in
    the error if it does nothing.

    >>> function("m", "twice", "x, by=2", lambda x, by: x * by, "")(4)
    8
    """
    signature = parsed(parameters)
    if work is None:
        return unserved_function(f"{where}.{name}", advice, signature)
    done = work

    def call(*args: Any, **named: Any) -> Any:
        return done(*filled(name, signature, args, named))

    return _named(call, where, name, signature, f"Return what MindSpore's `{name}` returns.")


def operation(where: str, name: str, constructor: str, call: str, work: Work | None, advice: str) -> type[Primitive]:
    """Return a class of operations of this name: parameters of its constructor, inputs of its call.

    `where`, `work` and `advice` are those of `function`.

    >>> operation("m", "Scale", "by=2", "x", lambda x, by: x * by, "")(3)(5)
    15
    """
    start, inputs = parsed(constructor), parsed(call)
    if work is None:
        made = unserved_class(f"{where}.{name}", advice, start, Primitive, {"__init__": _constructor(name, start)})
        _named(vars(made)["__call__"], where, "__call__", _method(inputs), "")
        return made
    done, kept = work, list(start.parameters)

    def compute(*given: Any, **named: Any) -> Any:
        return done(*filled(name, inputs, given, named))

    def with_parameters(self: Primitive, *given: Any, **named: Any) -> Any:
        return done(*filled(name, inputs, given, named), *(self.attrs[k] for k in kept))

    _named(compute, where, name, inputs, "")
    defaults = {k: anything(p.default) for k, p in start.parameters.items()}
    made = types.new_class(
        name,
        (Primitive,),
        {"compute": with_parameters if kept else compute, "inputs": None, **defaults},
        lambda content: content.update(__module__=where, __doc__=f"MindSpore's operation {name} as an object."),
    )
    vars(made)["__call__"].__signature__ = _method(inputs)
    return made


def composed(where: str, name: str, constructor: str, call: str, work: Work) -> type[Primitive]:
    """Return a class of operations of which `work` is given the object and the inputs of a call.

    `where`, `name`, `constructor` and `call` are those of `operation`.

    >>> composed("m", "Scale", "by=2", "*args", lambda p, x: x * p.by)(3)(5)
    15
    """
    start, inputs = parsed(constructor), parsed(call)
    fixed = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in inputs.parameters.values())

    def compute(self: Primitive, *given: Any, **named: Any) -> Any:
        return work(self, *(filled(name, inputs, given, named) if fixed else given))

    def called(self: Primitive, *given: Any, **named: Any) -> Any:
        if self.attrs.get("recompute"):
            return recompute(compute, self, *given, **named)
        return compute(self, *given, **named)

    _named(called, where, "__call__", _method(inputs), "")
    content = {"__init__": _constructor(name, start), "__call__": called, "__signature__": start, "__module__": where}
    content["__doc__"] = f"MindSpore's operation {name} as an object."
    return type(name, (Primitive,), content)


def shown(where: str, name: str, parameters: str, work: Work) -> Callable[..., Any]:
    """Return a function that calls `work`, with the `parameters` that MindSpore shows.

    `where` and `name` are those of `function`.
    """

    def call(*args: Any, **named: Any) -> Any:
        return work(*args, **named)

    return _named(call, where, name, parsed(parameters), f"Return what MindSpore's `{name}` returns.")


def _constructor(name: str, signature: inspect.Signature) -> Callable[..., None]:
    def start(self: Primitive, *args: Any, **named: Any) -> None:
        Primitive.__init__(self, name)
        for key, value in zip(signature.parameters, filled(name, signature, args, named)):
            self.add_prim_attr(key, value)

    return start


def _method(signature: inspect.Signature) -> inspect.Signature:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = list(signature.parameters.values())
    return signature.replace(parameters=[own, *taken] if "self" not in signature.parameters else taken)


def _named(made: Any, where: str, name: str, signature: inspect.Signature, text: str) -> Any:
    made.__module__, made.__name__, made.__qualname__, made.__signature__ = where, name, name, signature
    made.__doc__ = text or made.__doc__
    return made
