"""`te.operator`: makes an operation on tensors of a Python function over elements."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.loops.programs import Array, Program
from mycel._src.compiler.prims.base import get_item
from mycel._src.compiler.prims.loops import loops
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.te.captured_variables import Reads
from mycel.te.operator_report import OperatorAccount
from mycel.te.schedule_search import Found, search
from mycel.te.schedules import scheduled
from mycel.te.syntax_interpreter import Types, trace

__all__ = ["Operator", "operator"]


class _Compiled:
    """A program of an operator, as long as nothing that it was made of has changed."""

    def __init__(self, owner: Operator, program: Program, reads: Reads) -> None:
        self.owner, self.program, self.reads = owner, program, reads
        self.plain = replace(program, plan=None)
        self.version = owner.version
        self.__qualname__ = owner.title

    @property
    def is_current(self) -> bool:
        """Whether the program would be made again as it is."""
        return self.version == self.owner.version and (not self.reads.found or self.reads.are_current())

    def of_sizes(self, key: Any) -> Program:
        """Return the program with the schedule that a search found for sizes, if one did."""
        found = self.owner.found.get(key)
        return found if found is not None and replace(found, plan=None) == self.plain else self.program


class Operator:
    """An operation on tensors that a Python function over elements defines; `operator` makes it.

    Tensors among the arguments are arrays; all other arguments are known when it is compiled, so
    that each other value of them is compiled anew.
    """

    def __init__(self, function: FunctionType) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.title = function.__name__
        self._signature = inspect.signature(function)
        self._backward: FunctionType | None = None
        self._schedule: FunctionType | None = None
        self._reassociate = False
        # How often what programs are made of was replaced.
        self.version = 0
        # By arguments and sizes: the programs that searches found to be fastest.
        self.found: dict[Any, Program] = {}
        self._programs = Remembered[Any, _Compiled](f"operator {self.title}", MANY)
        # By the types of tensors, and by other arguments.
        self._calls = Remembered[Any, tuple[_Compiled, Program]](f"calls of operator {self.title}", MANY)

    def __repr__(self) -> str:
        return f"<operator {self.title}{self._signature}>"

    def __reduce__(self) -> str:
        # As a function: by the name under which it is found.
        return self.function.__qualname__

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: Any) -> Operator:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [v for v in args if isinstance(v, Tensor)]
        key: Any = None
        if not kwargs and not eager.active:
            # As it was called before, which is found without binding the arguments.
            key = tuple([v._type if isinstance(v, Tensor) else (type(v), v) for v in args])
            try:
                found = self._calls.recent.get(key)
            except TypeError:
                key = found = None
            if found is not None and found[0].is_current:
                return eager.apply(loops, *tensors, program=found[1])
        bound = self._bound(args, kwargs)
        given = [v for v in bound.values() if isinstance(v, Tensor)]
        program = self._program(bound)
        if key is not None and len(given) == len(tensors):
            self._calls.replace(key, (self._known(bound)[1], program))
        return eager.apply(loops, *given, program=program)

    def program(self, *args: Any, **kwargs: Any) -> Program:
        """Return the loop program for arguments, which shows its loops when printed."""
        return self._program(self._bound(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> OperatorAccount:
        """Return an account of what runs for arguments: loops, schedule, bytes, memory and code.

        Nothing is run. `mycel.explain` shows the same of functions that call operators.

        >>> import mycel as ms
        >>> from mycel import te
        >>> @te.operator
        ... def running(x):
        ...     y = te.empty(x.shape)
        ...     total = 0.0
        ...     for i in range(x.shape[0]):
        ...         total += x[i]
        ...         y[i] = total
        ...     return y
        >>> account = running.explain(ms.Tensor([1.0, 2.0]))
        >>> account.steps.total.flops
        2
        """
        bound = self._bound(args, kwargs)
        types = [v._type for v in bound.values() if isinstance(v, Tensor)]
        program = self._program(bound)
        return OperatorAccount(program, self._graph(program, types))

    def _graph(self, program: Program, types: Sequence[TensorType]) -> Graph:
        inputs = [input_node(t, a.name) for t, a in zip(types, program.inputs)]
        whole = loops.node(*inputs, program=program)
        outputs: tuple[Node, ...] = (whole,)
        if isinstance(whole.type, tuple):
            outputs = tuple([get_item(whole, k) for k in range(len(whole.type))])
        return Graph(tuple(inputs), outputs, self.title)

    def derivative(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Give the operator a derivative of its own; a decorator.

        `function` is a function over elements as well. It takes the operator's arguments, then its
        results, then the cotangents of the results, and returns the cotangents of the tensors among
        the arguments that are of floating types.

        >>> import mycel as ms
        >>> from mycel import te
        >>> @te.operator
        ... def sigmoid(x):
        ...     y = te.empty(x.shape)
        ...     y[i] = 1 / (1 + te.exp(-x[i]))
        ...     return y
        >>> @sigmoid.derivative
        ... def _(x, y, dy):
        ...     dx = te.empty(x.shape)
        ...     dx[i] = dy[i] * y[i] * (1 - y[i])
        ...     return dx
        >>> ms.grad(lambda x: sigmoid(x).sum())(ms.Tensor([0.0])).tolist()
        [0.25]
        """
        found = arguments.instance("derivative", "function", function, FunctionType, "a Python function")
        self.version += found is not self._backward
        self._backward = found
        return function

    def schedule(self, function: Callable[..., Any] | None = None, *, reassociate: bool = False) -> Any:
        """Give the operator a schedule: how its loops run; a decorator.

        `function` takes a `Schedule` and changes the loops by its words. What it may not do, as two
        accesses to an element would change places, is a ValueError with the line. With
        `reassociate`, sums and products of floats may be associated in another way. Derivatives are
        those of the operator without its schedule.

        >>> import mycel as ms
        >>> from mycel import te
        >>> @te.operator
        ... def product(a, b):
        ...     c = te.zeros((a.shape[0], b.shape[1]))
        ...     c[i, j] += a[i, k] * b[k, j]
        ...     return c
        >>> @product.schedule
        ... def _(s):
        ...     outer, across, inner, along = s.tile("i", "j", 4, 16)
        ...     s.reorder(outer, across, s["k"], inner, along)
        ...     s.parallel(outer)
        ...     s.vectorize(along)
        >>> product(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])).tolist()
        [[11.0]]
        """
        if function is None:
            return functools.partial(self.schedule, reassociate=reassociate)
        found = arguments.instance("schedule", "function", function, FunctionType, "a Python function")
        reassociate = arguments.flag("schedule", "reassociate", reassociate)
        self.version += (found, reassociate) != (self._schedule, self._reassociate)
        self._schedule, self._reassociate = found, reassociate
        self.version += bool(self.found)
        self.found = {}
        return function

    def search(
        self, *args: Any, seconds: float = 10.0, reassociate: bool = False, again: bool = False, **kwargs: Any
    ) -> Found:
        """Search for the fastest schedule for arguments, and use it from now on for such sizes.

        Ctrl-C ends the search and keeps the fastest so far.

        Args:
            *args (Any): The arguments.
            seconds (float): About how long schedules are compiled and run on the arguments, in turn
                with the operator as it is, which stays where none is faster. Default: 10.0.
            reassociate (bool): Whether sums and products of floats may be associated in another
                way. Default: False.
            again (bool): Whether to search though something is kept; what is found is kept in the
                cache of compiled code, and taken from there by later processes. Default: False.
            **kwargs (Any): Further arguments by name.

        Returns:
            Found: The schedule, which it shows as source.

        Examples:
            >>> import mycel as ms
            >>> from mycel import te
            >>> @te.operator
            ... def doubled(x):
            ...     y = te.empty(x.shape)
            ...     for i in range(x.shape[0]):
            ...         y[i] = x[i] + x[i]
            ...     return y
            >>> found = doubled.search(ms.Tensor([1.0, 2.0]), seconds=0.1)
            >>> doubled(ms.Tensor([1.0, 2.0])).tolist()
            [2.0, 4.0]
        """
        seconds = arguments.number("search", "seconds", seconds, 0)
        flags = [arguments.flag("search", n, v) for n, v in (("reassociate", reassociate), ("again", again))]
        bound = self._bound(args, kwargs)
        tensors = [v for v in bound.values() if isinstance(v, Tensor)]
        if eager.active and eager.local.staging is not None:
            raise Unsupported(f"{self.title}: search runs the operator, so that it is called outside of compiled code")
        for t in tensors:
            if t._buf is None:
                t._need_value("search")
        key, compiled = self._known(bound)
        types = [t._type for t in tensors]
        usual, plain = compiled.program, compiled.plain
        values = [t._buf for t in tensors]
        found = search(plain, usual, types, values, lambda p: self._graph(p, types), (seconds, flags[0], flags[1]))
        sizes = (key, tuple([t.shape for t in types]))
        if found.program != self.found.get(sizes, usual):
            self.found[sizes] = found.program
            self.version += 1
        return found

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.title}: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _program(self, bound: Mapping[str, Any]) -> Program:
        key, compiled = self._known(bound)
        if not self.found:
            return compiled.program
        return compiled.of_sizes((key, tuple([v._type.shape for v in bound.values() if isinstance(v, Tensor)])))

    def _known(self, bound: Mapping[str, Any]) -> tuple[Any, _Compiled]:
        """Return what is compiled for arguments, and by what it is known."""
        types = {k: (v.dtype, v.ndim) for k, v in bound.items() if isinstance(v, Tensor)}
        fixed = {k: v for k, v in bound.items() if k not in types}
        key = (tuple(types.items()), tuple([(k, type(v), v) for k, v in fixed.items()]))
        try:
            found = self._programs.get(key)
        except TypeError:
            raise TypeError(
                f"{self.title}: arguments that are no tensors must be numbers, strings, types or tuples of them; make "
                "tensors of arrays and lists"
            ) from None
        if found is None or not found.is_current:
            found = self._compiled(fixed, bound, types)
            self._programs.replace(key, found)
        staging = eager.local.staging if eager.active else None
        if staging is not None:
            # What is compiled of it is no longer right when the program is not.
            staging.following.guard_attribute(found, "is_current", True)
        return key, found

    def _compiled(self, fixed: Mapping[str, Any], bound: Mapping[str, Any], types: Types) -> _Compiled:
        """Return the program for arguments, of which those in `fixed` are no tensors."""
        reads = Reads()
        program = trace(self.function, self.title, fixed, types, reads)
        if self._backward is not None:
            program = replace(program, derivative=self._own_derivative(program, bound, types, reads))
        if self._schedule is not None:
            program = scheduled(program, self._schedule, self._reassociate)
        return _Compiled(self, program, reads)

    def _own_derivative(self, program: Program, bound: Mapping[str, Any], types: Types, reads: Reads) -> Program:
        """Return the program of the derivative that the user gave, for certain arguments.

        `program` is that of the operator, `bound` has all arguments, `types` the element types and
        numbers of axes of its tensors, and `reads` notes what is read from outside.
        """
        function = self._backward
        assert function is not None
        smooth = [a for a in program.outputs if a.dtype.is_differentiable]
        names = list(inspect.signature(function).parameters)
        count = len(bound) + len(program.outputs) + len(smooth)
        if len(names) != count:
            raise TypeError(
                f"{self.title}: its derivative takes {len(names)} arguments, and {count} are there: those of the "
                f"operator, {len(program.outputs)} results and {len(smooth)} cotangents"
            )
        fixed: dict[str, Any] = {}
        known: dict[str, tuple[DType, int]] = {}
        for name, (own, value) in zip(names, bound.items()):
            if own in types:
                known[name] = types[own]
            else:
                fixed[name] = value
        for name, array in zip(names[len(bound) :], (*program.outputs, *smooth)):
            known[name] = (array.dtype, len(array.shape))
        made = trace(function, f"{self.title} backward", fixed, known, reads)
        wanted = [a for a in program.inputs if a.dtype.is_differentiable]
        if [(a.dtype, len(a.shape)) for a in made.outputs] != [(a.dtype, len(a.shape)) for a in wanted]:
            raise TypeError(
                f"{self.title}: its derivative returns {_kinds(made.outputs)}, and the inputs that it is of are "
                f"{_kinds(wanted)}"
            )
        return made


def _kinds(arrays: Sequence[Array]) -> str:
    return ", ".join(f"{a.dtype.name} of {len(a.shape)} axes" for a in arrays)


def operator(function: Callable[..., Any]) -> Operator:
    """Make an operation on tensors of a function over elements; a decorator.

    The function makes arrays with `zeros`, `full` and `empty`, writes their elements in loops over
    ``range``, `grid`, `parallel` and the like, and returns them. An index that means nothing in a
    statement runs over all places at which the elements exist: ``c[i, j] += a[i, k] * b[k, j]`` is
    a product of matrices.

    Raises TypeError, ValueError, IndexError and Unsupported, with the line, for what is no
    operator.

    >>> import mycel as ms
    >>> from mycel import te
    >>> @te.operator
    ... def product(a, b):
    ...     c = te.zeros((a.shape[0], b.shape[1]))
    ...     c[i, j] += a[i, k] * b[k, j]
    ...     return c
    >>> product(ms.Tensor([[1.0, 2.0]]), ms.Tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    found = arguments.instance("operator", "function", function, FunctionType, "a Python function")
    if found.__name__ == "<lambda>":
        raise TypeError("operator: function must be defined with def, as an operator is made of statements")
    return Operator(found)
