"""Finds the first operation at which eager and compiled execution disagree.

A function is staged into its graph, and its result computed three ways on the same inputs: eagerly,
by the compiled graph, and by the graph's operations one by one (`engines.operation_by_operation`).
If the last two differ, the compiler is to blame: the search begins at a result that differs and
goes to an operand that differs as well (its value is computed by the compiled graph up to it),
until no operand differs; that node is the operation. If the operations one by one differ from the
eager result, the graph does not do what the program does: the eager run is logged with the values
of its operations, and the first node of the graph whose value is not among them is named. Tensors
that the function changes get their values back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, Where, toposort
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import CONSTANT, outputs_of
from mycel._src.engines import buffers
from mycel._src.engines.operation_by_operation import OneByOne, several
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.pytree import flatten
from mycel._src.foundation.settings import config
from mycel._src.staging.compiled.call_signature import key_of
from mycel._src.staging.compiled.jit import Jit
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recording import Recorder
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["Comparison", "compare_modes"]


class Comparison:
    """The result of `compare_modes`.

    `str` shows all of these.

    Args:
        difference (float): The largest relative difference between them.
        cause (str): "compiler" or "staging", if they do not agree. Default: "".
        operation (str): The name of the first operation that differs. Default: "".
        where (Where | None): Its place in the source (`file`, `line`, `column`), if it has one.
            Default: None.
        detail (str): A sentence about it. Default: "".
    """

    def __init__(
        self, difference: float, cause: str = "", operation: str = "", where: Where | None = None, detail: str = ""
    ) -> None:
        self.difference, self.cause, self.operation, self.where, self.detail = (
            difference,
            cause,
            operation,
            where,
            detail,
        )

    @property
    def agrees(self) -> bool:
        """Whether all results agree."""
        return not self.cause

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        if self.agrees:
            return f"eager and compiled execution agree; the largest relative difference is {self.difference:.3g}"
        lines = [f"eager and compiled execution differ, by {self.difference:.3g}, first at {self.operation}"]
        if self.where is not None:
            lines.append(excerpt(self.where))
        return "\n".join([*lines, f"  {self.detail}"])

    __repr__ = __str__


def compare_modes(
    fn: Callable[..., Any], *args: Any, rtol: float = 1e-4, atol: float = 1e-5, **kwargs: Any
) -> Comparison:
    """Run a function or Cell eagerly and compiled, and find the first operation at which they
    disagree.

    Values agree where ``|eager - compiled| <= atol + rtol * |eager|``, and integers and booleans
    where they are equal. The function is called once, in PYNATIVE_MODE; what it writes to
    parameters is undone.

    Args:
        fn (Callable[..., Any]): The function or Cell.
        *args (Any): Its arguments.
        rtol (float): The tolerance relative to the eager value. Default: 0.0001.
        atol (float): The absolute tolerance. Default: 1e-05.
        **kwargs (Any): Its arguments by name.

    Returns:
        Comparison: Whether they agree, and where not.

    Raises:
        Unsupported: For a function that is not one graph: compare the parts between its breaks.

    Examples:
        >>> import mycel as ms
        >>> ms.compare_modes(lambda x: ms.ops.sin(x) * 2, ms.Tensor([1.0, 2.0])).agrees
        True
    """
    return _Comparing(fn, args, kwargs, rtol, atol).run()


class _Log(Recorder):
    """A recording of an eager run that logs the values of its operations."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[np.ndarray[Any, Any]]] = {}

    def emit(self, primitive: Any, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        result = super().emit(primitive, inputs, params)
        for t in several(result):
            self._log(primitive, t)
        return result

    def enter_pair(self, primitive: Any, x: Tensor, y: Tensor, result: Tensor) -> None:
        """Log and record the `result` of a `primitive` applied to `x` and `y`."""
        super().enter_pair(primitive, x, y, result)
        self._log(primitive, result)

    def _log(self, primitive: Any, result: Tensor) -> None:
        self.values.setdefault(primitive.name, []).append(_array(result._buf, result._type).copy())


def _array(buffer: Any, kind: Any) -> np.ndarray[Any, Any]:
    array = buffers.to_array(buffer, kind)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


class _Comparing:
    """One comparison of `fn` for the arguments `args` and `kwargs`, with the tolerances `rtol` and
    `atol`.
    """

    def __init__(self, fn: Any, args: Any, kwargs: Any, rtol: float, atol: float) -> None:
        self.engine = OneByOne()
        self.function = fn.__wrapped__ if isinstance(fn, Jit) else fn
        self.args, self.kwargs, self.rtol, self.atol = args, kwargs, rtol, atol

    def run(self) -> Comparison:
        """Compare the three results."""
        compiled = Jit(self.function)
        version, plan = compiled.look(self.args, self.kwargs)
        if version is None or any(isinstance(t, TensorType) and not t.is_static for t in version.graph.output_types):
            reason = plan.refusal if plan is not None else "its data decide sizes"
            raise Unsupported(f"compare_modes: this function is not one graph; compare the parts between. {reason}")
        tensors: list[Tensor] = []
        key_of(self.args, self.kwargs, tensors)
        held = [*tensors, *version.tensors]
        log = _Log()
        with _kept(held):
            eagerly = [_values_of(t) for t in _tensors(self._eagerly(log))]
        self.inputs = [t._buf for t in held]
        graph = self.graph = version.graph
        values = self._values(graph)
        results = several(self.engine.program_of(graph)(*self.inputs)) if graph.outputs else ()
        worst = 0.0
        for node, found in zip(graph.outputs, results):
            size, differs = self.difference(_array(values[node], node.type), _array(found, node.type))
            worst = max(worst, size)
            if differs:
                return self._blame(node, values, size)
        staged = version.build([make(n.type, values[n]) for n in graph.outputs], tensors)
        for a, t in zip(eagerly, _tensors(staged)):
            b = _values_of(t)
            size, differs = (float("inf"), True) if a.shape != b.shape else self.difference(a, b)
            worst = max(worst, size)
            if differs:
                return self._unmatched(values, log, size)
        return Comparison(worst)

    def _eagerly(self, log: _Log) -> Any:
        before = config._context["mode"]
        config._context["mode"] = config.PYNATIVE_MODE
        try:
            with eager.use_context(log):
                return self.function(*self.args, **self.kwargs)
        finally:
            config._context["mode"] = before

    def difference(self, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> tuple[float, bool]:
        """Return the largest relative difference of two arrays, and whether it is too large."""
        if a.dtype.kind not in "fc":
            return float(not np.array_equal(a, b)), not np.array_equal(a, b)
        with np.errstate(all="ignore"):
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            gap = np.where(same, 0, np.abs(np.asarray(a, np.result_type(a, np.float64)) - b))
            scale = np.abs(a)
            relative = np.where(same, 0, gap / np.maximum(scale, np.finfo(np.float32).tiny))
            wrong = ~same & ~(gap <= self.atol + self.rtol * scale)
        worst = float(np.max(np.where(wrong | (gap > self.atol), relative, 0), initial=0))
        return worst, bool(wrong.any())

    def _values(self, graph: Graph) -> dict[Node, Any]:
        """Return the value of every node, one operation after another."""
        values: dict[Node, Any] = dict(zip(graph.inputs, self.inputs))
        for node in graph.nodes:
            values[node] = self.engine.run(node, [values[i] for i in node.inputs])
        return values

    def _prefix_differs(self, node: Node, values: dict[Node, Any]) -> float:
        """Return the difference between a node's value and its value by the compiled graph up to
        it; 0 where they agree.
        """
        if node.prim is None or node.prim is CONSTANT:
            return 0.0
        prefix = Graph(self.graph.inputs, several(outputs_of(node)), "prefix")
        found = several(self.engine.program_of(prefix)(*self.inputs))
        worst = 0.0
        for a, b, kind in zip(several(values[node]), found, several(node.type)):
            if isinstance(kind, TensorType):
                size, differs = self.difference(_array(a, kind), _array(b, kind))
                worst = max(worst, size if differs else 0.0)
        return worst

    def _blame(self, node: Node, values: dict[Node, Any], size: float) -> Comparison:
        """Return the operation at which the compiled graph first differs from its operations one by
        one.
        """
        while True:
            for i in node.inputs:
                found = self._prefix_differs(i, values)
                if found:
                    node, size = i, found
                    break
            else:
                break
        kinds = ", ".join(str(i.type) for i in node.inputs)
        detail = (
            f"{node.op}({kinds}) gives another value in compiled code than by itself; this is a defect of the compiler"
        )
        return Comparison(size, "compiler", node.op, node.where, detail)

    def _unmatched(self, values: dict[Node, Any], log: _Log, size: float) -> Comparison:
        """Return the first operation of the graph whose value no operation of the eager run
        gave.
        """
        for node in toposort(self.graph.outputs):
            if node.prim is None or node.prim is CONSTANT or (node.where is not None and node.where.gradient):
                continue
            known = log.values.get(node.op, ())
            if not known and (not node.prim.elementwise or node.prim in _JOINING):
                continue
            for v, kind in zip(several(values[node]), several(node.type)):
                array = _array(v, kind)
                if not any(k.shape == array.shape and not self.difference(k, array)[1] for k in known):
                    detail = (
                        "the eager run computes something else: the program goes by what is different while it "
                        "is "
                        "compiled"
                    )
                    return Comparison(size, "staging", node.op, node.where, detail)
        detail = "each operation has its value in both; the results are put together in different ways"
        return Comparison(size, "staging", "the result", None, detail)


# Operations that staging adds by itself.
_JOINING = (E.identity, E.SELECT, E.cast, E.stop_gradient)


def _values_of(t: Tensor) -> np.ndarray[Any, Any]:
    array = t.asnumpy()
    return array.astype(np.float32) if array.dtype.kind == "V" else array.copy()


def _tensors(result: Any) -> list[Tensor]:
    return [v for v in flatten(result)[0] if isinstance(v, Tensor)]


@contextmanager
def _kept(tensors: Sequence[Tensor]) -> Iterator[None]:
    """Return a context manager that restores the values of tensors at its end."""
    distinct = list({id(t): t for t in tensors}.values())
    before = [(t, t._buf) for t in distinct]
    for t in distinct:
        if t._buf is None:
            t._need_value("compare_modes")
        t._buf = buffers.copy(t._buf, t._type)
    try:
        yield
    finally:
        for t, buffer in before:
            t._buf = buffer
            t._node = None
