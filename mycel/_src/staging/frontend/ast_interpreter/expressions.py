"""Interprets expressions: each becomes a closure from a frame to a value.

Operators run on the values themselves; those of tensors add nodes to the graph. Expressions that
depend on the truth of a value (`and`, `or`, `not`, the conditional expression, chained comparisons)
use `control_flow` if it is the truth of a tensor.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Where, set_where
from mycel._src.staging.frontend.ast_interpreter.name_lookup import Evaluate, NameBuilder, visible
from mycel._src.staging.frontend.calls import operator_methods
from mycel._src.staging.frontend.calls.attribute_access import load_attribute
from mycel._src.staging.frontend.calls.frames import Closure, Code, Frame, call, mangled
from mycel._src.staging.frontend.calls.operator_methods import FAST
from mycel._src.staging.frontend.control_flow import conditionals, loop_unrolling
from mycel._src.staging.frontend.parallelism.operator_marks import marked_operator, marks_operator
from mycel._src.staging.frontend.source_code.scope_analysis import scope_of
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Evaluate", "ExpressionBuilder"]

BINARY: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
IN_PLACE: dict[type, Any] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_NEW = frozenset((list, dict, set, np.ndarray))
_UNARY: dict[type, Any] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_COMPARE: dict[type, Any] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class ExpressionBuilder(NameBuilder):
    """The builder of the closures of the expressions in one scope of a function."""

    def _Constant(self, node: ast.Constant) -> Evaluate:
        value = node.value
        return lambda f: value

    def _items(self, nodes: list[ast.expr]) -> Callable[[Frame], list[Any]]:
        if not any(isinstance(n, ast.Starred) for n in nodes):
            parts = [self.expression(n) for n in nodes]
            return lambda f: [p(f) for p in parts]
        mixed = [
            (isinstance(n, ast.Starred), self.expression(n.value if isinstance(n, ast.Starred) else n)) for n in nodes
        ]

        def run(f: Frame) -> list[Any]:
            result: list[Any] = []
            for starred, part in mixed:
                if starred:
                    result.extend(operator_methods.iterate(f.stage, part(f)))
                else:
                    result.append(part(f))
            return result

        return run

    def _Tuple(self, node: ast.Tuple) -> Evaluate:
        items = self._items(node.elts)
        return lambda f: tuple(items(f))

    def _List(self, node: ast.List) -> Evaluate:
        items = self._items(node.elts)
        return lambda f: created(f, items(f))

    def _Set(self, node: ast.Set) -> Evaluate:
        items = self._items(node.elts)
        return lambda f: created(f, set(items(f)))

    def _Dict(self, node: ast.Dict) -> Evaluate:
        pairs = [
            (None if k is None else self.expression(k), self.expression(v)) for k, v in zip(node.keys, node.values)
        ]

        def run(f: Frame) -> Any:
            result: dict[Any, Any] = {}
            for key, value in pairs:
                if key is None:
                    result.update(value(f))
                else:
                    k = key(f)
                    result[k] = value(f)
            return created(f, result)

        return run

    def _Attribute(self, node: ast.Attribute) -> Evaluate:
        target = self.expression(node.value)
        name, where = mangled(node.attr, self.code.class_name), self.where(node)

        def load(f: Frame) -> Any:
            owner, stage = target(f), f.stage
            set_where(where)
            return getattr(owner, name) if stage is None else load_attribute(stage, owner, name)

        return load

    def _Subscript(self, node: ast.Subscript) -> Evaluate:
        target, index, where = self.expression(node.value), self.expression(node.slice), self.where(node)

        def load(f: Frame) -> Any:
            value, i = target(f), index(f)
            set_where(where)
            if type(i) is Tensor and f.stage is not None:
                if isinstance(value, (list, tuple)):
                    return conditionals.choose_item(f, value, i)
                if isinstance(value, dict) and f.stage.is_number(i):
                    i = i.item()
            if f.stage is None or type(value) in FAST and type(i) in FAST:
                return value[i]
            return operator_methods.item(f.stage, value, i)

        return load

    def _Slice(self, node: ast.Slice) -> Evaluate:
        parts = [self.expression(p) if p is not None else (lambda f: None) for p in (node.lower, node.upper, node.step)]
        return lambda f: slice(*[p(f) for p in parts])

    def _JoinedStr(self, node: ast.JoinedStr) -> Evaluate:
        parts = [self.expression(p) for p in node.values]
        return lambda f: "".join([p(f) for p in parts])

    def _FormattedValue(self, node: ast.FormattedValue) -> Evaluate:
        value = self.expression(node.value)
        spec = self.expression(node.format_spec) if node.format_spec is not None else (lambda f: "")
        convert = {-1: None, 115: str, 114: repr, 97: ascii}[node.conversion]
        where = self.where(node.value)

        def run(f: Frame) -> str:
            v = value(f)
            set_where(where)
            if f.stage is not None and isinstance(v, Tensor):
                f.stage.need_value(v, "an f-string")
            return format(v if convert is None else convert(v), spec(f))

        return run

    # Operators.

    def _BinOp(self, node: ast.BinOp) -> Evaluate:
        left, right, apply = self.expression(node.left), self.expression(node.right), BINARY[type(node.op)]
        name = apply.__name__.rstrip("_")
        where = self.where(node)

        def run(f: Frame) -> Any:
            x, y = left(f), right(f)
            set_where(where)
            if f.stage is None:
                result = apply(x, y)
            elif type(x) in FAST and type(y) in FAST:
                # Called from here: what asks for a tensor's text is told apart by its frame.
                result = marked_operator(f.stage, apply, x, y) if marks_operator(f.stage, x, y) else apply(x, y)
            else:
                result = operator_methods.binary(f.stage, apply, name, x, y)
            return created(f, result) if type(result) in _NEW else result

        return run

    def _UnaryOp(self, node: ast.UnaryOp) -> Evaluate:
        value, where = self.expression(node.operand), self.where(node)
        if isinstance(node.op, ast.Not):
            return lambda f: conditionals.negate(f, value(f), where)
        apply = _UNARY[type(node.op)]
        name = f"__{apply.__name__}__"

        def run(f: Frame) -> Any:
            x = value(f)
            set_where(where)
            return apply(x) if f.stage is None or type(x) in FAST else operator_methods.unary(f.stage, apply, name, x)

        return run

    def _BoolOp(self, node: ast.BoolOp) -> Evaluate:
        parts = [self.expression(v) for v in node.values]
        is_and = isinstance(node.op, ast.And)
        where = self.where(node)

        def run(f: Frame, start: int = 0) -> Any:
            value: Any = None
            for i in range(start, len(parts)):
                value = parts[i](f)
                if i + 1 == len(parts):
                    return value
                if isinstance(value, Tensor) and f.stage is not None:
                    truth = conditionals.truth(f, value, where)
                    if isinstance(truth, Tensor):
                        return conditionals.connect(f, truth, value, is_and, partial(run, start=i + 1), where)
                else:
                    truth = bool(value)
                if truth is not is_and:
                    return value
            return value

        return run

    def _Compare(self, node: ast.Compare) -> Evaluate:
        first = self.expression(node.left)
        rest = [
            (self._comparison(op, self.where(node)), self.expression(c)) for op, c in zip(node.ops, node.comparators)
        ]
        where = self.where(node)
        if len(rest) == 1:
            compare, second = rest[0]

            def one(f: Frame) -> Any:
                x, y = first(f), second(f)
                set_where(where)
                return compare(f, x, y)

            return one

        def chain(f: Frame, left: Any, i: int) -> Any:
            compare, part = rest[i]
            right = part(f)
            set_where(where)
            value = compare(f, left, right)
            if i + 1 == len(rest):
                return value
            truth = conditionals.truth(f, value, where)
            if isinstance(truth, Tensor):
                return conditionals.connect(f, truth, value, True, lambda g: chain(g, right, i + 1), where)
            return chain(f, right, i + 1) if truth else value

        return lambda f: chain(f, first(f), 0)

    def _comparison(self, op: ast.cmpop, where: Where) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = _COMPARE[type(op)]
            return lambda f, a, b: same(a, b)
        if type(op) in _COMPARE:
            native = _COMPARE[type(op)]
            name = native.__name__

            def compare(f: Frame, a: Any, b: Any) -> Any:
                if f.stage is None or type(a) in FAST and type(b) in FAST:
                    return native(a, b)
                return operator_methods.compare(f.stage, native, name, a, b)

            return compare
        negated = isinstance(op, ast.NotIn)

        def contained(f: Frame, a: Any, b: Any) -> Any:
            if f.stage is None or type(b) in FAST and type(a) in FAST and type(b) not in (list, tuple):
                return (a in b) is not negated
            found = operator_methods.contains(f.stage, b, a)
            return conditionals.negate(f, found, where) if negated else found

        return contained

    def _IfExp(self, node: ast.IfExp) -> Evaluate:
        test, body, orelse = self.expression(node.test), self.expression(node.body), self.expression(node.orelse)
        where = self.where(node)

        def run(f: Frame) -> Any:
            truth = conditionals.truth(f, test(f), where)
            if isinstance(truth, Tensor):
                return conditionals.fork_value(f, truth, body, orelse, where)
            return body(f) if truth else orelse(f)

        return run

    # Calls.

    def _Call(self, node: ast.Call) -> Evaluate:
        if isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "super" and not node.args:
                return self._super()
            plain_name = self.scope.resolve(node.func.id, self.code.free)[0] == "global"
            if node.func.id in _NAMESPACES and plain_name and not any(isinstance(a, ast.Starred) for a in node.args):
                return self._namespace(node)
        where = self.where(node)
        target = self.expression(node.func)
        plain = not any(isinstance(a, ast.Starred) for a in node.args) and all(k.arg for k in node.keywords)
        args = [self.expression(a) for a in node.args] if plain else []
        keywords = [(str(k.arg), self.expression(k.value)) for k in node.keywords] if plain else []
        if plain and not keywords:

            def positional(f: Frame) -> Any:
                fn = target(f)
                values = [a(f) for a in args]
                set_where(where)
                return call(f.stage, fn, values, {})

            return positional
        if plain:

            def named(f: Frame) -> Any:
                fn = target(f)
                values = [a(f) for a in args]
                options = {k: v(f) for k, v in keywords}
                set_where(where)
                return call(f.stage, fn, values, options)

            return named
        items = self._items(node.args)
        mixed = [(k.arg, self.expression(k.value)) for k in node.keywords]

        def spread(f: Frame) -> Any:
            fn = target(f)
            values = items(f)
            options: dict[str, Any] = {}
            for name, part in mixed:
                value = part(f)
                for key, item in [(name, value)] if name is not None else list(value.items()):
                    if key in options:
                        raise TypeError(
                            f"{getattr(fn, '__name__', fn)}() got multiple values for keyword argument {key!r}"
                        )
                    options[key] = item
            set_where(where)
            return call(f.stage, fn, values, options)

        return spread

    def _namespace(self, node: ast.Call) -> Evaluate:
        """Return the closure of a call of `locals`, `globals`, `super` and other functions that
        read the names of their caller.
        """
        target, args, where = self.expression(node.func), [self.expression(a) for a in node.args], self.where(node)

        def run(f: Frame) -> Any:
            fn, given, stage = target(f), [a(f) for a in args], f.stage
            set_where(where)
            if fn is vars and given:
                return vars(given[0]) if stage is None else load_attribute(stage, given[0], "__dict__")
            if fn is locals or fn is vars:
                return created(f, dict(f.vars))
            if stage is not None and not stage.runs_each_time or fn not in (globals, eval, exec):
                return call(stage, fn, given, {})
            if fn is globals:
                return f.globals
            return fn(given[0], *(given[1:] or (f.globals, visible(f))))

        return run

    def _super(self) -> Evaluate:
        code = self.code

        def run(f: Frame) -> Any:
            g = f
            while g.code.scope.kind == "function" and g.owner is None and g.outer is not None:
                g = g.outer
            owner = g.owner
            if owner is None:
                cell = (f.cells or {}).get("__class__")
                if cell is None:
                    raise RuntimeError("super(): no arguments, and not inside a class")
                owner = cell.cell_contents
            first = g.code.positional[0] if g.code.positional else code.positional[0]
            return super(owner, g.vars[first])

        return run

    def _Lambda(self, node: ast.Lambda) -> Evaluate:
        return self.function(node, "<lambda>")

    def function(self, node: Any, name: str) -> Evaluate:
        """Return the closure that makes the function which is defined here."""
        a = node.args
        defaults = [self.expression(d) for d in a.defaults]
        keyword_defaults = {p.arg: self.expression(d) for p, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None}
        code = Code(
            node, self.file, name, scope_of(node, self.scope), self.code.free, self.code.class_name, self.code.build
        )

        def make(f: Frame) -> Any:
            values = tuple([d(f) for d in defaults])
            return Closure(code, f, values, {k: d(f) for k, d in keyword_defaults.items()} or None, name)

        return make

    # Comprehensions.

    def _comprehension(
        self, node: Any
    ) -> tuple[ExpressionBuilder, Callable[[Frame, Callable[[Frame], Any]], Iterator[Any]]]:
        """Return the builder for the scope of a comprehension, and a generator that runs its loops
        and yields `produce(frame)` in each round.
        """
        first = self.expression(node.generators[0].iter)
        inner = type(self)(self.code, scope_of(node, self.scope))
        levels = []
        for i, generator in enumerate(node.generators):
            source = None if i == 0 else inner.expression(generator.iter)
            levels.append(
                (source, inner.target(generator.target), [(inner.expression(c), inner.where(c)) for c in generator.ifs])
            )
        where = self.where(node)

        def rounds(f: Frame, level: int, produce: Any) -> Iterator[Any]:
            source, store, conditions = levels[level]
            assert source is not None
            yield from over(f, source(f), level, store, conditions, produce)

        def over(f: Frame, items: Any, level: int, store: Any, conditions: Any, produce: Any) -> Iterator[Any]:
            for item in loop_unrolling.static_items(f, items, where):
                store(f, item)
                if all(conditionals.static_truth(f, c(f), w, "a condition of a comprehension") for c, w in conditions):
                    if level + 1 < len(levels):
                        yield from rounds(f, level + 1, produce)
                    else:
                        yield produce(f)

        def start(f: Frame, produce: Any) -> Iterator[Any]:
            items = first(f)
            frame = Frame({}, f, f.globals, f.cells, f.stage, f.code)
            return over(frame, items, 0, levels[0][1], levels[0][2], produce)

        return inner, start

    def target(self, node: ast.expr) -> Callable[[Frame, Any], None]:
        """Return the closure that assigns to a target."""
        raise NotImplementedError

    def _ListComp(self, node: ast.ListComp) -> Evaluate:
        inner, start = self._comprehension(node)
        element = inner.expression(node.elt)
        return lambda f: created(f, list(start(f, element)))

    def _SetComp(self, node: ast.SetComp) -> Evaluate:
        inner, start = self._comprehension(node)
        element = inner.expression(node.elt)
        return lambda f: created(f, set(start(f, element)))

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Evaluate:
        inner, start = self._comprehension(node)
        element = inner.expression(node.elt)
        return lambda f: created(f, start(f, element))

    def _DictComp(self, node: ast.DictComp) -> Evaluate:
        inner, start = self._comprehension(node)
        key, value = inner.expression(node.key), inner.expression(node.value)
        return lambda f: created(f, dict(start(f, lambda g: (key(g), value(g)))))


_NAMESPACES = ("locals", "vars", "globals", "eval", "exec")


def created(f: Frame, value: Any) -> Any:
    return value if f.stage is None else f.stage.created(value)
