"""Translation of a routine's Python source to LLVM IR.

Every variable is a place on the stack with one type, which its first value decides; LLVM moves it
into a register. Types are `i1`, `i16`, `i32`, `i64`, `float`, `double` and vectors of them:
elements of less than 32 bits are i32 once they are read. A number of the program takes the type of
what it meets, of two integers the longer type is that of both, and no other two types meet: a
conversion is written out. Integers of 64 bits count places and do not overflow; others wrap. Floats
are computed as written, one rounding for each operation.

Both sides of a conditional expression are computed; an `if` computes one. An `if` on constants is
decided here. Functions that are called become part of the caller: they end with their only
`return`. Indices are not checked: who calls a routine has checked sizes.
"""

from __future__ import annotations

import ast
import inspect
import re
import struct
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.routines import vector_operations
from mycel._src.engines.routines.element_types import ELEMENTS
from mycel._src.foundation.python_runtime import syntax_trees

__all__ = ["Translated", "Value", "definition", "translate"]

_SIZES = {"i1": 1, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
_FLOATS = ("float", "double")
_COMPUTES_FLOATS = re.compile(" = (fadd|fsub|fmul|fdiv|sitofp|fptosi) ").search
_INTEGERS = frozenset(("i1", "i16", "i32", "i64"))
_CASTS = {"i16": "i16", "i32": "i32", "i64": "i64", "f32": "float", "f64": "double"}
_ARITHMETIC = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.Div: ("", "fdiv"),
    ast.BitAnd: ("and", ""),
    ast.BitOr: ("or", ""),
    ast.BitXor: ("xor", ""),
    ast.LShift: ("shl", ""),
    ast.RShift: ("ashr", ""),
}
_BITS = {"low_sum": "add", "low_product": "mul", "shifted_down": "lshr"}
_COMPARISONS = {
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
}


class Value(NamedTuple):
    """A number in the text, or an array, whose kind is an element type."""

    text: str
    kind: str


class Translated(NamedTuple):
    """The text of a module, and the numbers of the parameters whose arrays it writes."""

    text: str
    writes: frozenset[int]


class _Place(NamedTuple):
    """A variable, at an address on the stack."""

    address: str
    kind: str


def definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the definition of a function, as it stands in its file."""
    tree = syntax_trees.module(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(f"routine: expected a function, got {function!r}")
    return tree


def _number(value: float, kind: str) -> Value:
    count, element = vector_operations.element(kind)
    if count:
        return Value(vector_operations.number(_number(value, element).text, kind), kind)
    if kind in _FLOATS:
        exact = struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else float(value)
        return Value(f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}", kind)
    return Value(str(int(value)), kind)


def translate(
    function: Callable[..., Any],
    name: str,
    arrays: Mapping[str, str],
    numbers: Mapping[str, str],
    known: Mapping[str, Any],
) -> Translated:
    """Return a module with the function `name`.

    * `function`, `name`: the routine, and its name in the module.
    * `arrays`, `numbers`: the element types and types of its parameters, in order.
    * `known`: the values of the others.
    """
    writer = _Writer(function, arrays, numbers, known)
    text = writer.module(name)
    return Translated(text, frozenset(int(given.removeprefix("%p")) for given in writer.written))


class _Writer:
    """The text of a module as it grows; `function`, `arrays`, `numbers` and `known` are those of
    `translate`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arrays: Mapping[str, str],
        numbers: Mapping[str, str],
        known: Mapping[str, Any],
    ) -> None:
        self.function, self.tree = function, definition(function)
        self.globals: dict[str, Any] = function.__globals__
        self.arrays, self.numbers = arrays, numbers
        self.scope: dict[str, Any] = dict(known)
        self.head: list[str] = []
        self.lines: list[str] = []
        self.count = 0
        self.outside: set[str] = set()
        self.written: set[str] = set()

    def module(self, name: str) -> str:
        """Return the text of the module."""
        given = []
        for number, argument in enumerate(self.tree.args.args):
            known = argument.arg
            if known in self.arrays:
                given.append(f"ptr noalias %p{number}")
                self.scope[known] = Value(f"%p{number}", self.arrays[known])
            elif known in self.numbers:
                given.append(f"{self.numbers[known]} %p{number}")
                self.scope[known] = Value(f"%p{number}", self.numbers[known])
        self.body(self.tree.body)
        parts = [
            "; loops",
            *sorted(self.outside),
            f"define void @{name}({', '.join(given)}) #0 {{",
            *self.head,
            *self.lines,
            "  ret void",
            "}",
            *self.from_words(f"{name}_words", name, given),
            f'attributes #0 = {{ nounwind "prefer-vector-width"="{self.width()}" }}',
        ]
        return "\n".join(parts) + "\n"

    def width(self) -> int:
        """Return how many bits vectors are to have: LLVM's own choice is half of what the host has.

        All of it is faster where floats are computed, and slower where elements are only moved.
        """
        bits = 8 * host().vector_bytes
        return bits if any(_COMPUTES_FLOATS(line) for line in self.lines) else min(bits, 256)

    @staticmethod
    def from_words(name: str, called: str, given: list[str]) -> list[str]:
        """Return the function `name` that calls another one with the words of an array.

        `called` and `given` are that one's name and parameters.
        """
        lines, passed = [f"define void @{name}(ptr %words) nounwind {{"], []
        for number, kind in enumerate(parameter.split()[0] for parameter in given):
            lines.append(f"  %at{number} = getelementptr i64, ptr %words, i64 {number}")
            lines.append(f"  %word{number} = load {kind}, ptr %at{number}")
            passed.append(f"{kind} %word{number}")
        return [*lines, f"  call void @{called}({', '.join(passed)}) noinline", "  ret void", "}"]

    # Text.

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def named(self, text: str) -> str:
        return self.say(text, "").text

    def say(self, text: str, kind: str) -> Value:
        result = self.fresh()
        self.lines.append(f"  {result} = {text}")
        return Value(result, kind)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def jump(self, name: str) -> None:
        self.lines.append(f"  br label %{name}")

    def refuse(self, node: ast.AST, why: str) -> TypeError:
        return TypeError(f"routine {self.function.__name__}: line {getattr(node, 'lineno', 0)}: {why}")

    # Statements.

    def body(self, statements: list[ast.stmt]) -> Any | None:
        """Write statements; return what a `return` at their end gives."""
        for statement in statements:
            if isinstance(statement, ast.Return):
                return None if statement.value is None else self.value(statement.value)
            self.statement(statement)
        return None

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(node.value)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node.targets[0], node.value)
        elif isinstance(node, ast.AugAssign):
            old = ast.Name(node.target.id, ast.Load()) if isinstance(node.target, ast.Name) else node.target
            self.store(node.target, self._binary(node, type(node.op), self.value(old), self.value(node.value)))
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and not node.orelse:
            self.loop(node, node.target.id)
        elif isinstance(node, ast.While) and not node.orelse:
            self.while_loop(node)
        elif isinstance(node, ast.If):
            self.branch(node)
        elif not isinstance(node, ast.Pass):
            raise self.refuse(node, f"{type(node).__name__} is not translated")

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, found in list(zip(target.elts, [self.value(item) for item in value.elts])):
                self.store(one, found)
        elif isinstance(target, ast.Tuple):
            found = self.value(value)
            if not isinstance(found, tuple) or isinstance(found, Value) or len(found) != len(target.elts):
                raise self.refuse(target, "the values are not as many as the names")
            for one, item in zip(target.elts, found):
                self.store(one, item)
        else:
            self.store(target, self.value(value))

    def store(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            place = self.scope.get(target.id)
            if not isinstance(place, _Place):
                if isinstance(value, (bool, int, float)):
                    value = _number(value, "double" if isinstance(value, float) else "i64")
                place = self.scope[target.id] = self.new_place(value.kind)
            found = self.as_kind(target, value, place.kind)
            self.lines.append(f"  store {place.kind} {found.text}, ptr {place.address}")
        elif isinstance(target, ast.Subscript):
            address, element = self.address(target, target.value, target.slice)
            self.written.add(self.value(target.value).text)
            memory, kind, _ = ELEMENTS[element]
            if isinstance(value, Value) and value.kind == "i64" and kind == "i32":
                value = self.say(f"trunc i64 {value.text} to i32", "i32")
            found = self.as_kind(target, value, kind)
            if memory != kind:
                found = self.say(f"trunc {kind} {found.text} to {memory}", memory)
            self.lines.append(f"  store {memory} {found.text}, ptr {address}")
        else:
            raise self.refuse(target, "only names and elements are assigned")

    def new_place(self, kind: str) -> _Place:
        address = self.fresh()
        self.head.append(f"  {address} = alloca {kind}")
        return _Place(address, kind)

    def loop(self, node: ast.For, name: str) -> None:
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "range":
            raise self.refuse(node, "loops run over range")
        bounds = [self.value(argument) for argument in call.args]
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        if not isinstance(step, int) or not step:
            raise self.refuse(node, "a step is a constant")
        if all(isinstance(bound, int) for bound in (start, stop)) and len(range(start, stop, step)) <= 4:
            before = self.scope.get(name)
            for index in range(start, stop, step):
                self.scope[name] = index
                self.body(node.body)
            if isinstance(before, _Place):
                self.scope[name] = before
            return
        place = self.scope.get(name)
        if not isinstance(place, _Place):
            place = self.scope[name] = self.new_place("i64")
        first, last = (self.as_kind(node, bound, "i64") for bound in (start, stop))
        self.lines.append(f"  store i64 {first.text}, ptr {place.address}")
        again, inside, after = (f"l{self.count}{word}" for word in ("again", "inside", "after"))
        self.count += 1
        self.jump(again)
        self.label(again)
        now = self.say(f"load i64, ptr {place.address}", "i64")
        goes = self.say(f"icmp {'slt' if step > 0 else 'sgt'} i64 {now.text}, {last.text}", "i1")
        self.lines.append(f"  br i1 {goes.text}, label %{inside}, label %{after}")
        self.label(inside)
        self.body(node.body)
        now = self.say(f"load i64, ptr {place.address}", "i64")
        following = self.say(f"add nsw i64 {now.text}, {step}", "i64")
        self.lines.append(f"  store i64 {following.text}, ptr {place.address}")
        self.jump(again)
        self.label(after)

    def while_loop(self, node: ast.While) -> None:
        again, inside, after = (f"w{self.count}{word}" for word in ("again", "inside", "after"))
        self.count += 1
        self.jump(again)
        self.label(again)
        goes = self.value(node.test)
        self.lines.append(f"  br i1 {goes.text}, label %{inside}, label %{after}")
        self.label(inside)
        self.body(node.body)
        self.jump(again)
        self.label(after)

    def branch(self, node: ast.If) -> None:
        test = self.value(node.test)
        if not isinstance(test, Value):
            self.body(node.body if test else node.orelse)
            return
        so, otherwise, after = (f"i{self.count}{word}" for word in ("so", "else", "after"))
        self.count += 1
        self.lines.append(f"  br i1 {test.text}, label %{so}, label %{otherwise}")
        self.label(so)
        self.body(node.body)
        self.jump(after)
        self.label(otherwise)
        self.body(node.orelse)
        self.jump(after)
        self.label(after)

    # Values: Python's where they are known, else `Value`.

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.Subscript):
            whole = self.value(node.value)
            if isinstance(whole, tuple) and not isinstance(whole, Value):
                return whole[self.value(node.slice)]
            address, element = self.address(node, node.value, node.slice)
            memory, kind, widen = ELEMENTS[element]
            found = self.say(f"load {memory}, ptr {address}", memory)
            return self.say(f"{widen} {memory} {found.text} to {kind}", kind) if widen else Value(found.text, kind)
        if isinstance(node, ast.BinOp):
            return self._binary(node, type(node.op), self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self.compare(node, self.value(node.left), self.value(node.comparators[0]))
        if isinstance(node, ast.BoolOp):
            return self.logical(node)
        if isinstance(node, ast.IfExp):
            test = self.value(node.test)
            if not isinstance(test, Value):
                return self.value(node.body if test else node.orelse)
            return self._select(node, test, self.value(node.body), self.value(node.orelse))
        if isinstance(node, ast.Tuple):
            return tuple(self.value(item) for item in node.elts)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.refuse(node, f"{type(node).__name__} is not translated")

    def name(self, node: ast.Name) -> Any:
        found = self.scope[node.id] if node.id in self.scope else self.globals.get(node.id)
        if isinstance(found, _Place):
            return self.say(f"load {found.kind}, ptr {found.address}", found.kind)
        if found is None:
            raise self.refuse(node, f"{node.id} has no value")
        return found

    def address(self, node: ast.expr, whole: ast.expr, index: ast.expr, within: str = " inbounds") -> tuple[str, str]:
        """Return the address of the element `index` of the array `whole`, and the element's type.

        Errors are about `node`; `within` is what LLVM is told of the address.
        """
        array = self.value(whole)
        if not isinstance(array, Value) or array.kind not in ELEMENTS:
            raise self.refuse(node, "only arrays have elements")
        place = self.as_kind(node, self.value(index), "i64")
        memory = ELEMENTS[array.kind][0]
        return self.say(f"getelementptr{within} {memory}, ptr {array.text}, i64 {place.text}", "").text, array.kind

    def as_kind(self, node: ast.AST, value: Any, kind: str) -> Value:
        """Return a value in a type that it may take without a conversion that is written out."""
        if not isinstance(value, Value):
            if isinstance(value, float) and kind not in _FLOATS:
                raise self.refuse(node, f"{value} where an integer is")
            return _number(value, kind)
        if value.kind == kind:
            return value
        if kind in _SIZES and kind not in _FLOATS and _SIZES.get(value.kind, 64) < _SIZES[kind]:
            word = "zext" if value.kind == "i1" else "sext"
            return self.say(f"{word} {value.kind} {value.text} to {kind}", kind)
        raise self.refuse(node, f"{value.kind} where {kind} is; convert it")

    def alike(self, node: ast.AST, left: Any, right: Any) -> tuple[Value, Value]:
        """Return two values, of which one may be known, in one type."""
        kinds = [value.kind for value in (left, right) if isinstance(value, Value)]
        kind = max(kinds, key=lambda kind: _SIZES.get(kind, 0)) if _INTEGERS.issuperset(kinds) else kinds[0]
        return self.as_kind(node, left, kind), self.as_kind(node, right, kind)

    def _binary(self, node: ast.AST, operation: type[ast.operator], left: Any, right: Any) -> Any:
        if not isinstance(left, Value) and not isinstance(right, Value):
            tree = ast.BinOp(ast.Constant(left), operation(), ast.Constant(right))
            return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "", "eval"))
        one, other = self.alike(node, left, right)
        if operation in (ast.FloorDiv, ast.Mod) and one.kind not in _FLOATS:
            return self.quotient(one, other, operation is ast.Mod)
        integers, floats = _ARITHMETIC.get(operation, ("", ""))
        word = floats if vector_operations.element(one.kind)[1] in _FLOATS else integers
        if not word:
            raise self.refuse(node, f"{operation.__name__} of {one.kind}")
        exact = " nsw" if word in ("add", "sub", "mul") and one.kind == "i64" else ""
        return self.say(f"{word}{exact} {one.kind} {one.text}, {other.text}", one.kind)

    def quotient(self, one: Value, other: Value, rest: bool) -> Value:
        """Return a quotient that is rounded down, or what it leaves."""
        kind = one.kind
        cut = self.say(f"sdiv {kind} {one.text}, {other.text}", kind)
        left = self.say(f"srem {kind} {one.text}, {other.text}", kind)
        mixed = self.say(f"xor {kind} {left.text}, {other.text}", kind)
        signs = self.say(f"icmp slt {kind} {mixed.text}, 0", "i1")
        some = self.say(f"icmp ne {kind} {left.text}, 0", "i1")
        down = self.say(f"and i1 {signs.text}, {some.text}", "i1")
        if rest:
            more = self.say(f"select i1 {down.text}, {kind} {other.text}, {kind} 0", kind)
            return self.say(f"add {kind} {left.text}, {more.text}", kind)
        less = self.say(f"sext i1 {down.text} to {kind}", kind)
        return self.say(f"add {kind} {cut.text}, {less.text}", kind)

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return self.say(f"xor i1 {value.text}, true", "i1") if isinstance(value, Value) else not value
        if not isinstance(value, Value):
            return -value if isinstance(node.op, ast.USub) else value
        if not isinstance(node.op, ast.USub):
            raise self.refuse(node, "only - and not stand before a value")
        if value.kind in _FLOATS:
            return self.say(f"fneg {value.kind} {value.text}", value.kind)
        return self.say(f"sub {value.kind} 0, {value.text}", value.kind)

    def compare(self, node: ast.Compare, left: Any, right: Any) -> Any:
        operation = type(node.ops[0])
        if not isinstance(left, Value) and not isinstance(right, Value):
            tree = ast.Compare(ast.Constant(left), [operation()], [ast.Constant(right)])
            return eval(compile(ast.fix_missing_locations(ast.Expression(tree)), "", "eval"))
        one, other = self.alike(node, left, right)
        integers, floats = _COMPARISONS[operation]
        word = f"fcmp {floats}" if one.kind in _FLOATS else f"icmp {integers}"
        return self.say(f"{word} {one.kind} {one.text}, {other.text}", "i1")

    def logical(self, node: ast.BoolOp) -> Any:
        """Join truth values, all of which are computed unless one that is known decides."""
        conjunction = isinstance(node.op, ast.And)
        joined: Any = conjunction
        for item in node.values:
            value = self.value(item)
            if not isinstance(value, Value):
                if bool(value) != conjunction:
                    return not conjunction
                continue
            word = "and" if conjunction else "or"
            joined = (
                value if not isinstance(joined, Value) else self.say(f"{word} i1 {joined.text}, {value.text}", "i1")
            )
        return joined

    def _select(self, node: ast.AST, test: Value, so: Any, otherwise: Any) -> Value:
        if not isinstance(so, Value) and not isinstance(otherwise, Value):
            kind = "double" if isinstance(so, float) or isinstance(otherwise, float) else "i64"
            one, other = _number(so, kind), _number(otherwise, kind)
        else:
            one, other = self.alike(node, so, otherwise)
        return self.say(f"select i1 {test.text}, {one.kind} {one.text}, {one.kind} {other.text}", one.kind)

    # Calls.

    def call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.refuse(node, "functions are called by name, without keywords")
        name = node.func.id
        if name == "soon":
            return self.soon(node)
        if name in vector_operations.WORDS:
            vector = vector_operations.WORDS[name](self, node.args)
            return vector and Value(*vector)
        arguments = [self.value(argument) for argument in node.args]
        if name in _CASTS:
            return self.cast(node, arguments[0], _CASTS[name])
        if name in ("rint", "floor", "sqrt", "log", "cos"):
            return self.intrinsic(node, name, arguments[0])
        if name == "looked_up_at_once":
            return vector_operations.LOOKED_UP if vector_operations.NEEDED in host().feature_set else 0
        if name == "fused":
            texts = [self.as_kind(node, value, "double").text for value in arguments]
            return self.known_function("fma", "double", [texts[0], *(f"double {text}" for text in texts[1:])])
        if name == "len" and isinstance(arguments[0], tuple) and not isinstance(arguments[0], Value):
            return len(arguments[0])
        if name == "abs":
            value = arguments[0]
            if not isinstance(value, Value):
                return abs(value)
            return self.known_function(
                "fabs" if value.kind in _FLOATS else "abs",
                value.kind,
                [value.text] + ["i1 false"] * (value.kind not in _FLOATS),
            )
        if name == "upper_half":
            return self.upper_half(node, *arguments)
        if name in _BITS:
            one, other = (self.as_kind(node, value, "i64") for value in arguments)
            return self.say(f"{_BITS[name]} i64 {one.text}, {other.text}", "i64")
        if name == "within":
            return self.bounded(node, "least", [self.bounded(node, "most", arguments[:2]), arguments[2]])
        if name in ("least", "most"):
            return self.bounded(node, name, arguments)
        return self.inline(node, name, arguments)

    def soon(self, node: ast.Call) -> None:
        """Ask memory for an element, wherever that would be."""
        address, _ = self.address(node, node.args[0], node.args[1], "")
        self.outside.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")

    def upper_half(self, node: ast.AST, one: Any, other: Any) -> Value:
        """Return the upper half of the product of two numbers of 16 bits."""
        wide = [self.cast(node, self.cast(node, value, "i16"), "i32").text for value in (one, other)]
        product = self.say(f"mul nsw i32 {wide[0]}, {wide[1]}", "i32")
        return self.cast(node, self.say(f"ashr i32 {product.text}, 16", "i32"), "i16")

    def bounded(self, node: ast.AST, name: str, arguments: list[Any]) -> Any:
        """Return the `least` or the `most` of two values."""
        if not any(isinstance(value, Value) for value in arguments):
            return min(arguments) if name == "least" else max(arguments)
        one, other = self.alike(node, *arguments)
        word = ("slt", "olt") if name == "least" else ("sgt", "ogt")
        count, element = vector_operations.element(one.kind)
        test = f"fcmp {word[1]}" if element in _FLOATS else f"icmp {word[0]}"
        truth = vector_operations.kind_of(count, "i1") if count else "i1"
        found = self.say(f"{test} {one.kind} {one.text}, {other.text}", truth)
        return self.say(f"select {truth} {found.text}, {one.kind} {one.text}, {one.kind} {other.text}", one.kind)

    def intrinsic(self, node: ast.AST, name: str, value: Any) -> Value:
        if not isinstance(value, Value) or value.kind not in _FLOATS:
            raise self.refuse(node, f"{name} takes a float")
        return self.known_function(name, value.kind, [value.text])

    def known_function(self, name: str, kind: str, texts: list[str]) -> Value:
        suffix = {"float": "f32", "double": "f64"}.get(kind, kind)
        given = ", ".join([f"{kind} {texts[0]}", *texts[1:]])
        types = ", ".join([kind, *(text.split()[0] for text in texts[1:])])
        self.outside.add(f"declare {kind} @llvm.{name}.{suffix}({types})")
        return self.say(f"call {kind} @llvm.{name}.{suffix}({given})", kind)

    def cast(self, node: ast.AST, value: Any, kind: str) -> Value:
        if not isinstance(value, Value):
            return _number(int(value) if kind not in _FLOATS else value, kind)
        count, old = vector_operations.element(value.kind)
        if old == kind:
            return value
        if old in _FLOATS:
            word = "fptosi" if kind not in _FLOATS else "fpext" if kind == "double" else "fptrunc"
        elif kind in _FLOATS:
            word = "uitofp" if old == "i1" else "sitofp"
        elif old == "i1":
            word = "zext"
        else:
            word = "sext" if _SIZES[old] < _SIZES[kind] else "trunc"
        kind = vector_operations.kind_of(count, kind) if count else kind
        return self.say(f"{word} {value.kind} {value.text} to {kind}", kind)

    def inline(self, node: ast.Call, name: str, arguments: list[Any]) -> Any:
        """Write what a Python function does in place of its call."""
        function = self.globals.get(name)
        function = getattr(function, "function", function)
        if not inspect.isfunction(function):
            raise self.refuse(node, f"{name} is not a function that is translated")
        tree = definition(function)
        given = [argument.arg for argument in tree.args.args]
        if len(given) != len(arguments):
            raise self.refuse(node, f"{name} takes {len(given)} arguments")
        outer, names = self.scope, self.globals
        self.scope, self.globals = dict(zip(given, arguments)), function.__globals__
        result = self.body(tree.body)
        self.scope, self.globals = outer, names
        return result
