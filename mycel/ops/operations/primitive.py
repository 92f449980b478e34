"""Operations as objects: what they have in common, and how a module defines them.

A module of this package has one class for each operation. The class statement names the function
that computes the operation, the parameters with their defaults or what they may be
(`mycel.ops.operations.attributes`), and the types of inputs that are not tensors
(`mycel.ops.operations.inputs`):

    class InTopK(Primitive, compute=lambda p, x, y: segments.intopk(x, y, p.k), k=integer()): ...

    class TopK(Primitive, compute=_top, inputs=(Tensor, int), sorted=True): ...

The function is given the object, which holds the parameters, and the inputs; where there are no
parameters, the inputs alone. A class without a docstring takes that of the function that it calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache, partial
from sys import modules
from types import FunctionType
from typing import Any

from mycel._src.compiler.ir.sharding.strategies import Strategy, attributes_of, note_unused, strategy_of
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.derivatives.recomputation import recompute
from mycel._src.staging.frontend.graph_building.stage import Stage
from mycel._src.staging.frontend.parallelism.operator_marks import marked_call
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.operations.attributes import NEEDED, Attribute, attribute_of
from mycel.ops.operations.inputs import Inputs, Kinds

__all__ = ["NEEDED", "Primitive", "alike", "need_dimensions", "need_one_shape", "only", "operations_of"]


class Primitive:
    """An operation as an object with a name. Subclasses define `__call__`.

    >>> import mycel as ms
    >>> ms.ops.Primitive("mine").name
    'mine'
    """

    def __init_subclass__(
        cls,
        compute: Callable[..., Any] | None = None,
        inputs: Sequence[Kinds] | None = (),
        **parameters: Any,
    ) -> None:
        if compute is None:
            super().__init_subclass__(**parameters)
        else:
            super().__init_subclass__()
            _define(cls, compute, inputs, parameters)

    _strategy: Strategy | None = None

    def __init__(self, name: str) -> None:
        self.name = arguments.text("Primitive", "name", name)
        self.instance_name = name
        self.attrs: dict[str, Any] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError(f"{self.name}: a Primitive is called through a subclass that defines __call__")

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Attach a named value, and return the operation itself."""
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    def get_attr_dict(self) -> dict[str, Any]:
        """Return the named values, those of the constructor's parameters among them.

        >>> import mycel as ms
        >>> ms.ops.MatMul(transpose_b=True).get_attr_dict()
        {'transpose_a': False, 'transpose_b': True}
        """
        return dict(self.attrs)

    def del_prim_attr(self, name: str) -> Primitive:
        """Remove a named value, if there is one, and return the operation itself."""
        if self.attrs.pop(name, self) is not self:
            delattr(self, name)
        return self

    def set_prim_instance_name(self, name: str) -> Primitive:
        """Give the object another name, and return the operation itself."""
        self.instance_name = name
        return self

    set_instance_name = set_prim_instance_name

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Set `input_names` and `output_names`, the names of inputs and outputs."""
        self.add_prim_attr("input_names", list(inputs))
        self.add_prim_attr("output_names", list(outputs))

    def check_elim(self, *args: Any) -> tuple[bool, Any]:
        """Return whether a call of the operation can be left out, and the result if so.

        It cannot, unless a subclass says so.
        """
        return False, None

    def recompute(self, mode: bool = True) -> Primitive:
        """Set whether a gradient computes the result anew, and return the operation itself.

        Otherwise the values that its derivative needs are kept.
        """
        self.attrs["recompute"] = arguments.flag(self.name, "the mode of recompute", mode)
        return self

    def set_stage(self, stage: int) -> Primitive:
        """Set the stage of a pipeline that the operation belongs to, and return the operation
        itself.

        It is noted in the regions of a divided program, and has no effect in one process.
        """
        self.add_prim_attr("stage", stage)
        self._decide()
        return self

    def set_device(self, device_target: str) -> Primitive:
        """Set the device that the operation should run on, as `primitive_target`, and return the
        operation itself.

        Every operation runs on the CPU.
        """
        arguments.one_of(self.name, "the device", device_target, ("CPU", "GPU", "Ascend"))
        return self.add_prim_attr("primitive_target", device_target)

    def place(self, role: str, rank_id: int) -> None:
        """Set the process that should run the operation: 'MS_WORKER' of rank 0 is this one.

        Raises ValueError for other processes.
        """
        if role != "MS_WORKER" or rank_id != 0:
            raise ValueError(f"{self.name}: place: there is the process ('MS_WORKER', 0) and no ({role!r}, {rank_id})")

    def shard(self, in_strategy: Any = None, out_strategy: Any = None) -> Primitive:
        """Set how inputs and outputs are divided among devices, and return the operation itself.

        Each is a tuple with an entry for each tensor: the number of parts of each of its axes, as
        (2, 4), or a `mycel.Layout` with the names of its axes. A compiled function has the strategy
        in its graph while parallel_mode is "semi_auto_parallel" or "auto_parallel"; otherwise it
        has no effect, which is logged once. A strategy that does not fit the tensors is a
        ValueError of the call. Raises TypeError for what is no strategy, ValueError for
        `out_strategy` alone and for layouts on one side only.

        >>> import mycel as ms
        >>> ms.ops.MatMul().shard(((2, 1), (1, 4))).in_strategy
        ((2, 1), (1, 4))
        """
        self._strategy = strategy_of(self.name, in_strategy, out_strategy)
        for name, value in attributes_of(in_strategy, out_strategy).items():
            self.add_prim_attr(name, value)
        self._decide()
        if in_strategy is not None:
            note_unused(f"{self.name}.shard")
        return self

    def _decide(self) -> None:
        """Note that what a graph says of the operation has changed."""
        stage = self.attrs.get("stage", -1)
        known = self._strategy
        inputs, results = (None, None) if known is None else (known.inputs, known.results)
        if known is not None or "stage" in self.attrs:
            self._strategy = Strategy(inputs, results, stage if type(stage) is int else -1)

    def __repr__(self) -> str:
        given = ", ".join(f"{k}={v}" for k, v in self.attrs.items() if v is not None)
        return f"Prim[{self.name}]" + (f"<{given}>" if given else "")


def operations_of(namespace: dict[str, Any]) -> list[str]:
    """Return the names of the operations that a module defines, given its namespace."""
    own = [v for v in namespace.values() if isinstance(v, type) and v.__module__ == namespace["__name__"]]
    return [v.__name__ for v in own if "compute" in vars(v)]


def only(p: Any, **allowed: Any) -> None:
    """Raise ValueError unless parameters of an operation have the values named, the only ones
    supported.
    """
    for parameter, value in allowed.items():
        if getattr(p, parameter) != value:
            raise ValueError(
                f"{p.name}: {parameter} must be {value!r}, which is all that is supported, not "
                f"{getattr(p, parameter)!r}"
            )


def need_one_shape(name: str, **tensors: Tensor) -> None:
    """Raise ShapeError unless the tensors named, inputs of the operation `name`, have one shape."""
    (first, *others) = tensors.values()
    if any(v.shape != first.shape for v in others):
        given = " and ".join(f"{k} {v._type}" for k, v in tensors.items())
        raise ShapeError(f"{name}: the inputs must have one shape, not {given}")


def need_dimensions(name: str, count: int, **tensors: Any) -> None:
    """Raise ShapeError unless the tensors named, inputs of the operation `name`, have `count`
    dimensions.
    """
    for parameter, value in tensors.items():
        if isinstance(value, Tensor) and value.ndim != count:
            raise ShapeError(f"{name}: {parameter} must be a tensor of {count} dimensions, not {value._type}")


def alike(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors of one shape, for the operation `name`, where `function` would
    broadcast them.
    """

    def compute(x: Tensor, y: Tensor) -> Any:
        need_one_shape(name, x=x, y=y)
        return function(x, y)

    return compute


def _text(name: str, compute: Callable[..., Any]) -> str:
    """Return the docstring of a class without one.

    It is that of the function that the class names, or the first paragraph of that of the public
    function which this one calls.
    """
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


def _define(
    cls: type[Primitive],
    compute: Callable[..., Any],
    inputs: Sequence[Kinds] | None,
    parameters: dict[str, Any],
) -> None:
    """Give a class the constructor of these parameters, and a call of `compute`.

    `inputs` are the types of the inputs that are not tensors; None where `compute` looks itself.
    """
    name = cls.__name__
    attributes = {k: attribute_of(v) for k, v in parameters.items()}
    known: set[tuple[type, ...]] = set()

    def start(self: Primitive, *args: Any, **named: Any) -> None:
        Primitive.__init__(self, name)
        signature: inspect.Signature = getattr(cls, "__signature__")  # noqa: B009
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; the parameters are {signature}") from None
        bound.apply_defaults()
        for k, v in bound.arguments.items():
            check, default = attributes[k]
            self.add_prim_attr(k, v if v is default else check(name, k, v))
        self.__dict__["init_attrs"] = dict(self.attrs)

    @cache
    def taken() -> Inputs:
        return Inputs(name, compute, 1 if parameters else 0, inputs or ())

    def look(given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if inputs is not None:
            taken().check(given, named)
        if not named:
            known.add(tuple(map(type, given)))

    def call(self: Primitive, *given: Any, **named: Any) -> Any:
        # Calls with inputs of the same types as an earlier one are not looked at again.
        if named or tuple(map(type, given)) not in known:
            look(given, named)
        if eager.active and isinstance(eager.local.staging, Stage):
            return marked_call(eager.local.staging, name, self, partial(staged, self), given, named)
        if self.attrs.get("recompute"):
            return recompute(plainly, self, *given, **named)
        if precision.active and not named:
            return plainly(self, *given)
        return compute(self, *given, **named) if parameters else compute(*given, **named)

    def staged(self: Primitive, *given: Any, **named: Any) -> Any:
        return (
            recompute(plainly, self, *given, **named) if self.attrs.get("recompute") else plainly(self, *given, **named)
        )

    def plainly(self: Primitive, *given: Any, **named: Any) -> Any:
        if precision.active and not named:
            return precision.narrowed((name,), (lambda *v: compute(self, *v)) if parameters else compute, *given)
        return compute(self, *given, **named) if parameters else compute(*given, **named)

    members: dict[str, Any] = {"__init__": start, "__call__": call, "compute": staticmethod(compute)}
    members["__signature__"] = _Later(cls, "__signature__", lambda: _signature(attributes))
    if cls.__doc__ is None:
        members["__doc__"] = _Later(cls, "__doc__", lambda: _text(name, compute))
    for member, value in members.items():
        setattr(cls, member, value)


class _Later:
    """An attribute of a class that is made when it is first asked for."""

    __slots__ = ("owner", "name", "make")

    def __init__(self, owner: type, name: str, make: Callable[[], Any]) -> None:
        self.owner, self.name, self.make = owner, name, make

    def __get__(self, instance: object, owner: type) -> Any:
        value = self.make()
        setattr(self.owner, self.name, value)
        return value


def _signature(attributes: dict[str, Attribute]) -> inspect.Signature:
    """Return the signature of a constructor with these parameters and their defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(k, kind, default=v.default) for k, v in attributes.items()])
