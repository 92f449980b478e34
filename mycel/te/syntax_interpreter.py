"""Symbolic interpretation of a Python function's syntax tree, which gives a loop program.

The function's syntax is interpreted over symbols. Loops' variables and sizes are dimensions, reads
of arrays are formulas; all else is ordinary Python: numbers, shapes, element types, functions. What
is known when the operator is compiled is computed at once, so that a condition on it chooses, and a
loop over a list is written out.

A name that holds one number all the time is another name for its formula. One that is set again in
a loop or under a condition, or that reads what the program writes, is an array of no axes.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, same
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.legality import meeting, unwritten
from mycel._src.compiler.loops.programs import Agreement, Array, For, If, Program, called, index_of, size_of, statements
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.python_runtime import syntax_trees
from mycel.te import element_functions, language
from mycel.te.captured_variables import Names, Reads
from mycel.te.element_functions import element_function
from mycel.te.language import Made, Range
from mycel.te.traced_values import BINARY, Frame, Reference, Tracer, shown

__all__ = ["Types", "trace"]

_ROUNDS = 8
Types = Mapping[str, tuple[DType, int]]


class _Interpreter:
    """Interprets a function's syntax in an environment; helpers that it calls get another one.

    `tracer` collects what it comes to. `space` has the names that have a value, and `depth` is the
    number of calls around this one.
    """

    def __init__(self, tracer: Tracer, function: FunctionType, space: dict[str, Any], depth: int = 0) -> None:
        self.t, self.function, self.space, self.depth = tracer, function, space, depth
        self.result: Any = None
        self.file = function.__code__.co_filename
        tree, self.first_line = _syntax(function)
        self.tree = tree
        self.changing = _changing(tree)
        self.outer = Names(function, tracer.reads)

    def run(self) -> Any:
        self.block(self.tree.body)
        return self.result

    # Statements.

    def block(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            if self.result is not None:
                raise TypeError("a return ends an operator: it is the last statement, outside of loops and conditions")
            self.t.where = (self.file, self.first_line + node.lineno - 1)
            try:
                self.statement(node)
            except (TypeError, ValueError, IndexError, NameError, AttributeError, Unsupported) as error:
                if error is not self.t.told:
                    _place(error, self.t.title, *self.t.where)
                    self.t.told = error
                raise

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.If):
            self.condition(node)
        elif isinstance(node, ast.Assign):
            if len(node.targets) != 1:
                raise Unsupported("several assignments in one statement; write one for each")
            self.implicit(node, lambda: self.assign(node.targets[0], self.value(node.value)))
        elif isinstance(node, ast.AugAssign):
            self.implicit(node, lambda: self.augmented(node))
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value))
        elif isinstance(node, ast.Return):
            if self.depth == 0 and len(self.t.frames) > 1:
                raise TypeError("a return inside of a loop; return arrays after it")
            self.result = (self.value(node.value) if node.value is not None else (),)
        elif isinstance(node, ast.Assert):
            if self.t.truth(self.value(node.test)) is False:
                raise ValueError(f"the assertion does not hold: {ast.unparse(node.test)}")
        elif isinstance(node, ast.With):
            for item in node.items:
                self.value(item.context_expr)
            self.block(node.body)
        elif not (isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise Unsupported(
                f"{type(node).__name__} is no statement of operators; they have assignments, for, if, assert and return"
            )

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                raise ValueError(f"{len(values)} values for {len(target.elts)} names")
            for t, v in zip(target.elts, values):
                self.assign(t, v)
        elif isinstance(target, ast.Subscript):
            reference, indices = self.subscript(target)
            self.t.set(reference, self.t.place(reference, indices), value)
        elif isinstance(target, ast.Name):
            self.bind(target.id, value)
        else:
            raise Unsupported(f"{ast.unparse(target)} cannot be assigned to")

    def bind(self, name: str, value: Any) -> None:
        """Give a name a value: another name for it, or a variable where it changes."""
        if isinstance(value, Made):
            self.space[name] = self.t.array(value, f"{name}_")
            return
        value = self.t.element(value)
        number = isinstance(value, (bool, int, float, Dim, Formula))
        reads = formulas.reads_of(value) if isinstance(value, Formula) else ()
        if number and (name in self.changing or any(r.data in self.t.arrays for r in reads)):
            self.space[name] = self.t.variable(name, value, self.space.get(name))
        else:
            self.space[name] = value

    def augmented(self, node: ast.AugAssign) -> None:
        value = self.value(node.value)
        if isinstance(node.target, ast.Name):
            self.bind(node.target.id, self.t.binary(type(node.op), self.name(node.target), value))
            return
        if not isinstance(node.target, ast.Subscript):
            raise Unsupported(f"{ast.unparse(node.target)} cannot be assigned to")
        reference, indices = self.subscript(node.target)
        place = self.t.place(reference, indices)
        element = formulas.read(reference.array.name, place, reference.dtype)
        self.t.set(reference, place, self.t.binary(type(node.op), element, value))

    def loop(self, node: ast.For) -> None:
        if node.orelse:
            raise Unsupported("else of a loop; loops of operators are not left early")
        over = self.value(node.iter)
        if isinstance(over, range):
            over = language.serial(over.start, over.stop, over.step)
        if not isinstance(over, Range):
            for value in _listed(over):
                self.assign(node.target, value)
                self.block(node.body)
            return
        starts = [self.t.extent(v, "the start of a loop") for v in over.starts]
        stops = [self.t.extent(v, "the end of a loop") for v in over.stops]
        if over.kind == "unroll":
            if not all(type(v) is int for v in (*starts, *stops)):
                raise TypeError("unroll: the bounds must be known when the operator is compiled")
            for i in range(starts[0], stops[0], over.step):
                self.assign(node.target, i)
                self.block(node.body)
            return
        self.nested(node, over, starts, stops)

    def nested(self, node: ast.For, over: Range, starts: list[DimLike], stops: list[DimLike]) -> None:
        """Add the loops of a statement over a range, from `starts` up to `stops`.

        `node` is the statement and `over` the range.
        """
        before, where = dict(self.space), self.t.where
        names = [self.t.fresh(f"{name}_") for name in _names(node.target, len(starts))]
        for _ in names:
            self.t.frames.append(Frame())
        counts, values = zip(*[_iterations(n, a, b, over.step) for n, a, b in zip(names, starts, stops)])
        self.assign(node.target, values[0] if over.single else values)
        self.block(node.body)
        for name, (low, high) in zip(reversed(names), reversed(counts)):
            frame = self.t.frames.pop()
            self.t.emit(For(name, low, high, tuple(frame.body), over.kind, False, tuple(frame.private), where))
        # What is set inside ends with the loop, but for what was there before.
        self.space.clear()
        self.space.update(before)

    def condition(self, node: ast.If) -> None:
        test = self.t.truth(self.value(node.test))
        if isinstance(test, bool):
            self.block(node.body if test else node.orelse)
            return
        where, before = self.t.where, dict(self.space)
        bodies = []
        for part in (node.body, node.orelse):
            outside, self.t.frames[-1].body = self.t.frames[-1].body, []
            self.block(part)
            bodies.append(tuple(self.t.frames[-1].body))
            self.t.frames[-1].body = outside
            self.space.clear()
            self.space.update(before)
        self.t.emit(If(test, bodies[0], bodies[1], where))

    def implicit(self, node: ast.Assign | ast.AugAssign, run: Callable[[], None]) -> None:
        """Run a statement, inside loops over the names that stand in its indices and mean nothing.

        Such a name runs over all places at which the elements that it indexes exist.
        """
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        names = self.unknown_indices(node) if isinstance(target, ast.Subscript) else []
        if not names:
            run()
            return
        before = dict(self.space)
        symbols = {name: self.t.fresh(f"{name}_") for name in names}
        self.space.update({name: index_of(symbol) for name, symbol in symbols.items()})
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id not in before:
            raise NameError(f"{target.value.id} is not defined; make it with zeros, full or empty first")
        extents = self.extents(node, symbols)
        for _ in names:
            self.t.frames.append(Frame())
        run()
        for name in reversed(names):
            frame = self.t.frames.pop()
            loop = For(symbols[name], 0, extents[name], tuple(frame.body), "serial", False, (), self.t.where)
            self.t.emit(loop)
        self.space.clear()
        self.space.update(before)

    def unknown_indices(self, node: ast.AST) -> list[str]:
        """Return the names inside of indices that have no value, those of the target first."""
        found: dict[str, None] = {}
        parts = [node.targets[0] if isinstance(node, ast.Assign) else node.target, node]  # type: ignore[attr-defined]
        for part in parts:
            for s in ast.walk(part):
                if isinstance(s, ast.Subscript) and self.is_array(s.value):
                    for n in ast.walk(s.slice):
                        if isinstance(n, ast.Name) and n.id not in self.space and self.outer.is_index(n.id):
                            found[n.id] = None
        return list(found)

    def is_array(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and isinstance(self.space.get(node.id), Reference)

    def extents(self, node: ast.AST, symbols: Mapping[str, str]) -> dict[str, DimLike]:
        """Return how far each implicit index runs: as far as all elements that it indexes exist.

        An index that stands alone on an axis runs along it; one in a sum, as of a window, as far as
        the others leave room.
        """
        found: dict[str, DimLike] = {}
        places: list[tuple[DimLike, DimLike]] = []
        for s in ast.walk(node):
            if isinstance(s, ast.Subscript) and self.is_array(s.value):
                reference, indices = self.subscript(s)
                places += [(i, d) for i, d in zip(indices, reference.shape) if isinstance(i, Dim)]
        by_symbol = {symbol: name for name, symbol in symbols.items()}
        while len(found) < len(symbols):
            progress = False
            for position, size in places:
                open_names = [n for n in symbols_in(position) if n in by_symbol and by_symbol[n] not in found]
                if len(open_names) == 1:
                    room = _room(position, size, open_names[0], {symbols[n]: e for n, e in found.items()})
                    if room is not None:
                        found[by_symbol[open_names[0]]] = room
                        progress = True
            if not progress:
                missing = ", ".join(sorted(set(symbols) - set(found)))
                raise NameError(f"{missing}: how far the index runs does not follow from the elements; write the loop")
        for name, symbol in symbols.items():
            sizes = [size for position, size in places if same(position, index_of(symbol))]
            for size in sizes:
                if not same(size, found[name]):
                    text = f"{name} runs along axes of different sizes"
                    self.t.agreements.append(Agreement(found[name], size, text, self.t.where))
        return found

    # Values.

    def subscript(self, node: ast.Subscript) -> tuple[Reference, list[Any]]:
        reference = self.value(node.value)
        if not isinstance(reference, Reference):
            raise TypeError(f"{ast.unparse(node.value)} is no array of this operator")
        index = self.value(node.slice)
        return reference, list(index) if isinstance(index, tuple) else [index]

    def name(self, node: ast.Name) -> Any:
        if node.id in self.space:
            return self.space[node.id]
        if node.id in self.outer:
            return self.outer[node.id]
        for home in (language, element_functions):
            if node.id in home.__all__:
                return getattr(home, node.id)
        if node.id in _MINDSPORE:
            return _MINDSPORE[node.id]
        raise NameError(f"{node.id} is not defined; what a loop sets ends with it, so set it before the loop")

    def value(self, node: ast.expr) -> Any:
        t = self.t
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple([self.value(e) for e in node.elts])
        if isinstance(node, ast.Subscript):
            home = self.value(node.value)
            if isinstance(home, Reference):
                return t.read(*self.subscript(node))
            return home[self.value(node.slice)]
        if isinstance(node, ast.Slice):
            return slice(*[None if v is None else self.value(v) for v in (node.lower, node.upper, node.step)])
        if isinstance(node, ast.BinOp):
            if type(node.op) not in BINARY:
                raise Unsupported(f"{ast.unparse(node)}: operators have no {type(node.op).__name__}; write the loop")
            left, right = self.value(node.left), self.value(node.right)
            if isinstance(left, tuple) or isinstance(right, tuple):
                return BINARY[type(node.op)][1](left, right)
            return t.binary(type(node.op), left, right)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare):
            values = [self.value(v) for v in (node.left, *node.comparators)]
            parts = [t.compared(type(op), a, b) for op, a, b in zip(node.ops, values, values[1:])]
            return self.joined("logical_and", parts)
        if isinstance(node, ast.BoolOp):
            name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
            return self.joined(name, [self.value(v) for v in node.values])
        if isinstance(node, ast.IfExp):
            test = t.truth(self.value(node.test))
            if isinstance(test, bool):
                return self.value(node.body if test else node.orelse)
            return t.chosen(test, self.value(node.body), self.value(node.orelse))
        if isinstance(node, ast.Attribute):
            return self.t.reads.attribute(self.value(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise Unsupported(f"{ast.unparse(node)}: operators have no {type(node).__name__}")

    def joined(self, name: str, parts: Sequence[Any]) -> Any:
        made: Any = None
        for part in map(self.t.truth, parts):
            if made is None:
                made = part
            elif isinstance(made, bool) and isinstance(part, bool):
                made = (made and part) if name == "logical_and" else (made or part)
            else:
                made = formulas.operation(name, D.bool_, self.t.formula(made), self.t.formula(part))
        return made

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.t.element(self.value(node.operand))
        if isinstance(node.op, ast.Not):
            test = self.t.truth(value)
            return not test if isinstance(test, bool) else formulas.operation("logical_not", D.bool_, test)
        if not isinstance(value, Formula):
            return _UNARY[type(node.op)](value)
        if isinstance(node.op, ast.UAdd):
            return value
        name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
        return formulas.operation(name, value.dtype, value)

    def call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args: list[Any] = []
        for a in node.args:
            args += list(self.value(a.value)) if isinstance(a, ast.Starred) else [self.value(a)]
        kwargs = {k.arg: self.value(k.value) for k in node.keywords if k.arg is not None}
        if function in (min, max) and not (len(args) == 1 and isinstance(args[0], tuple) and _all_python(args[0])):
            return self.extreme(function, args)
        if function in _CASTS or isinstance(function, DType):
            return self.converted(function, args[0])
        if function is abs:
            return abs(args[0]) if _all_python(args) else self.t.applied("abs", args)
        if function is range:
            return language.serial(*args)
        name = element_function(function)
        if name is not None:
            known = _all_python(args) and function.__module__ != element_functions.__name__
            return function(*args) if known else self.t.applied(name, args)
        if function in _OWN or not isinstance(function, FunctionType) or _all_python((*args, *kwargs.values())):
            return function(*args, **kwargs)
        return self.inlined(function, args, kwargs)

    def extreme(self, function: Any, args: list[Any]) -> Any:
        values = list(args[0]) if len(args) == 1 else args
        if _all_python(values):
            return function(*values)
        made = values[0]
        for v in values[1:]:
            made = self.t.applied("maximum" if function is max else "minimum", [made, v])
        return made

    def converted(self, kind: Any, value: Any) -> Any:
        value = self.t.element(value)
        if not isinstance(kind, DType):
            if not isinstance(value, (Formula, Dim)):
                return kind(value)
            kind = {float: self.t.default, int: D.int64, bool: D.bool_}.get(kind) or D.from_any(kind)
        if kind is D.int64 and isinstance(value, Dim):
            return value
        return formulas.cast(self.t.formula(value), kind)

    def inlined(self, function: FunctionType, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return what another Python function gives; its statements become part of this program."""
        if self.depth > 20:
            raise RecursionError(f"{function.__name__} calls itself; operators do not recurse")
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        where = self.t.where
        found = _Interpreter(self.t, function, dict(bound.arguments), self.depth + 1).run()
        self.t.where = where
        return found[0] if found is not None else None


_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CASTS: tuple[Any, ...] = (
    float,
    int,
    bool,
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
)
_OWN: tuple[Any, ...] = tuple(getattr(language, n) for n in language.__all__ if callable(getattr(language, n)))
# Words of MindSpore's language for such functions.
_MINDSPORE: dict[str, Any] = {
    "output_tensor": language.zeros,
    **{n: getattr(D, n) for n in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")},
    "isnan": np.isnan,
    "isinf": np.isinf,
}


def _names(target: ast.expr, count: int) -> list[str]:
    """Return what the variables of `count` loops are called."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == count else [target] * count
    return [p.id if isinstance(p, ast.Name) else "i" for p in parts]


def _all_python(values: Sequence[Any]) -> bool:
    return not any(
        isinstance(v, (Formula, Reference, Dim)) or isinstance(v, tuple) and not _all_python(v) for v in values
    )


def _listed(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list, enumerate, zip, map)):
        return list(value)
    raise TypeError(f"a loop runs over a range, a grid or a list, not over {shown(value)}")


def _iterations(name: str, start: DimLike, stop: DimLike, step: int) -> tuple[tuple[DimLike, DimLike], Any]:
    """Return the bounds of a loop that counts by ones, and the index as the function sees it."""
    if step == 1:
        return (start, stop), index_of(name)
    count = -((start - stop) // step) if step > 0 else -((stop - start) // -step)
    return (0, count), start + index_of(name) * step


def _room(position: DimLike, size: DimLike, name: str, others: Mapping[str, DimLike]) -> DimLike | None:
    """Return how far an index may run so that `position` stays below `size`; None if that is open.

    `others` are the extents of the indices that are known.
    """
    rest = substitute(position, {name: 0})
    step = substitute(position, {name: 1}) - rest
    if type(step) is not int or step < 1 or not same(substitute(position, {name: 2}) - rest, 2 * step):
        return None
    most = substitute(rest, {n: e - 1 for n, e in others.items()})
    return (size - 1 - most) // step + 1


def _syntax(function: FunctionType) -> tuple[ast.FunctionDef, int]:
    """Return the syntax of a function, and the line before its first one."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise Unsupported(f"{function.__name__}: its source is not there; define operators in a file") from None
    tree = syntax_trees.module(textwrap.dedent("".join(lines))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise Unsupported(f"{function.__name__} is no function with a name; operators are defined with def")
    return tree, first


def _changing(tree: ast.FunctionDef) -> set[str]:
    """Return the names that are set again, in a loop or under a condition."""
    count: dict[str, int] = {}
    inside: set[str] = set()

    def visit(node: ast.AST, deep: bool) -> None:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        for t in targets:
            for n in ast.walk(t):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    count[n.id] = count.get(n.id, 0) + 1 + isinstance(node, ast.AugAssign)
                    if deep:
                        inside.add(n.id)
        for child in ast.iter_child_nodes(node):
            visit(child, deep or isinstance(node, (ast.For, ast.If)))

    visit(tree, False)
    return {name for name in inside if count[name] > 1}


def _place(error: Exception, title: str, file: str, line: int) -> Exception:
    """Put an operator's name and a line of its source into an error, and return it."""
    error.args = (f"{title}: {error}\n  in {file}:{line}",)
    return error


def trace(function: FunctionType, title: str, arguments: Mapping[str, Any], types: Types, reads: Reads) -> Program:
    """Return the program that a function defines.

    `title` is the operator's name for messages. `arguments` has the values of the parameters that
    are no arrays, and `types` the element type and number of axes of each one that is. `reads`
    notes what the function reads from outside.
    """
    kinds: list[DType] = []
    for _ in range(_ROUNDS):
        tracer = Tracer(title, kinds, reads)
        program = _traced(tracer, function, arguments, types)
        if tracer.kinds == kinds:
            return program
        kinds = tracer.kinds
    raise TypeError(f"{title}: the element types of its variables do not settle")


def _traced(tracer: Tracer, function: FunctionType, arguments: Mapping[str, Any], types: Types) -> Program:
    space: dict[str, Any] = dict(arguments)
    inputs = []
    for name, (dtype, rank) in types.items():
        inputs.append(Array(name, dtype, tuple([size_of(name, k) for k in range(rank)])))
        space[name] = Reference(tracer, inputs[-1])
    floating = [a.dtype for a in inputs if a.dtype.kind == "f"]
    tracer.default = floating[0] if floating else D.float32
    found = _Interpreter(tracer, function, space).run()
    results = found[0] if found is not None else None
    outputs = []
    for r in results if isinstance(results, tuple) else (results,):
        r = Reference(tracer, r.array) if isinstance(r, Reference) else r
        if isinstance(r, (Formula, Dim, int, float)):
            held = tracer.array(Made((), r.dtype if isinstance(r, Formula) else None, None), "result_")
            tracer.set(held, (), r)
            r = held
        if not isinstance(r, Reference) or r.array not in tracer.locals:
            raise TypeError(
                f"{tracer.title}: an operator returns arrays that it made with zeros, full or empty, not {shown(r)}"
            )
        if r.array in outputs:
            raise TypeError(f"{tracer.title}: one array is returned twice")
        outputs.append(r.array)
    inner = tuple([a for a in tracer.locals if a not in outputs])
    body = tuple(tracer.frames[0].body)
    program = Program(
        tracer.title, tuple(inputs), tuple(outputs), inner, body, None, tuple(dict.fromkeys(tracer.agreements))
    )
    _refuse(program)
    return program


def _refuse(program: Program) -> None:
    """Raise for reads before writes, and for loops said to be parallel whose iterations meet."""
    arrays = program.arrays
    for name, where in unwritten(program):
        raise _place(
            ValueError(f"{called(name)} is read before it is written; make it with zeros or full"), program.name, *where
        )
    for s in statements(program.body):
        if isinstance(s, For) and s.kind in ("parallel", "vectorize"):
            met = meeting(s)
            if met is not None:
                assert s.where is not None
                raise _place(
                    ValueError(
                        f"iterations of this {s.kind} loop cannot be shown not to meet in {called(met)}"
                        f"[{', '.join(map(str, arrays[met].shape))}]; use range"
                    ),
                    program.name,
                    *s.where,
                )
