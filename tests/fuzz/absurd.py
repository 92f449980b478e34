"""Absurd arguments, as Python expressions, and the mutation of a working program by them.

A program is source. `mutate` parses it, takes one or two arguments of one call, and puts other
expressions in their place, so that what comes out is again source: short, readable, and all that a
replay needs.
"""

from __future__ import annotations

import ast
import random as random_module
from collections.abc import Iterator, Sequence

__all__ = ["absurd", "compiled", "mutate"]

WHOLE = (
    "0",
    "1",
    "-1",
    "2",
    "-2",
    "3",
    "5",
    "7",
    "100",
    "2**31-1",
    "2**31",
    "2**32",
    "2**62",
    "2**62+1",
    "2**63-1",
    "2**63",
    "2**64",
    "-2**31",
    "-2**63",
    "-2**63-1",
    "10**30",
    "True",
    "False",
    "np.int64(2)",
    "np.uint8(3)",
    "np.int64(-1)",
)
REAL = (
    "0.0",
    "-1.0",
    "0.5",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "-0.0",
    "np.float32(0.5)",
    "np.float64('nan')",
)
OTHER = (
    "None",
    "''",
    "'abc'",
    "'mean'",
    "'none'",
    "'same'",
    "b'abc'",
    "object()",
    "{}",
    "{'a': 1}",
    "set()",
    "{1, 2}",
    "1j",
    "len",
    "int",
    "float",
    "np.float32",
    "ms.float32",
    "ms.int32",
    "ms.bool_",
    "ms.complex64",
    "ms.float16",
    "ms.bfloat16",
    "ms.string",
    "slice(None)",
    "slice(1, 0, -1)",
    "...",
    "range(3)",
    "lambda *a: a",
    "iter([])",
    "ms",
    "ms.Tensor",
    "ops.Add()",
    "nn.ReLU()",
    "type('Any', (), {})()",
    "Exception('x')",
    "np.array([1, 'a', None], dtype=object)",
    "np.array(['a', 'b'])",
    "np.datetime64('2020-01-01')",
    "np.ones(2, dtype=[('a', 'i4')])",
    "'\\ud800'",
    "'a' * 5000",
)
SEQUENCES = (
    "()",
    "[]",
    "[[]]",
    "(0,)",
    "(1,)",
    "(-1,)",
    "(0, 1)",
    "(1, 0)",
    "(0, 0)",
    "(-1, -1)",
    "(1, 2, 3)",
    "(2, 2, 2, 2, 2)",
    "(1,) * 9",
    "(1,) * 40",
    "(2**62, 2**62)",
    "(2**32, 2**32)",
    "(2**63,)",
    "(-2**63, 1)",
    "(2**31, 1)",
    "(2**62 + 1,)",
    "(None,)",
    "(None, None)",
    "('a', 'b')",
    "(1.5, 2)",
    "(nan, inf)",
    "[(1, 2), (3,)]",
    "((1, 1), (1, 1))",
    "[True, False]",
    "(1j,)",
    "[None, 1]",
    "[x.Tensor([1.0])]".replace("x.", ""),
    "(Tensor([1.0, 2.0]), Tensor([3.0]))",
    "[object()]",
    "((0, 1), 2)",
    "[[1, 2], [3, 4]]",
    "([1], [2, 3])",
    "(Tensor(2), Tensor(3))",
    "[1, [2, [3, [4]]]]",
)
TENSORS = (
    "Tensor(3.0)",
    "Tensor(2)",
    "Tensor(-1)",
    "Tensor(True)",
    "Tensor([])",
    "Tensor(np.ones((2, 3), np.float32))",
    "Tensor(np.ones((3,), np.float32))",
    "Tensor(np.zeros((0, 3), np.float32))",
    "Tensor(np.ones((2, 0, 2), np.float32))",
    "Tensor(np.ones((1, 2, 3, 4, 5), np.float32))",
    "Tensor(np.ones((1,) * 8, np.float32))",
    "Tensor(np.full((2, 3), nan, np.float32))",
    "Tensor([inf, -inf, nan])",
    "Tensor([2**62])",
    "Tensor([2**62, 2**62])",
    "Tensor([-1, 5])",
    "Tensor([-2**63])",
    "Tensor([0, 1, 2], ms.int32)",
    "Tensor([[0, 1], [1, 0]])",
    "Tensor([0, 255], ms.uint8)",
    "Tensor([True, False])",
    "Tensor([2**64 - 1], ms.uint64)",
    "Tensor([1 + 2j, 3j])",
    "Tensor([1.0, 2.0], ms.float16)",
    "Tensor([1.0, 2.0], ms.bfloat16)",
    "Tensor([1.0, nan], ms.float64)",
    "Tensor(np.ones((2, 3, 4), np.int8))",
    "ms.Parameter(Tensor([1.0, 2.0]))",
    "np.ones((2, 3), np.float32)",
    "np.array(3)",
    "np.array([])",
    "np.ones((2, 2), dtype=object)",
    "Tensor(np.arange(24.0).reshape(1, 2, 3, 4))",
    "Tensor(np.ones((2, 3), np.float32)).T",
    "Tensor([1.0, 2.0])[::-1]",
    "ms.COOTensor(Tensor([[0, 1]]), Tensor([1.0]), (2, 2))",
    "ms.CSRTensor(Tensor([0, 1]), Tensor([0]), Tensor([1.0]), (1, 2))",
)
AROUND = (
    "({}).astype(ms.int32)",
    "({}).astype(ms.float16)",
    "({}).astype(ms.float64)",
    "({}).astype(ms.bool_)",
    "({}).astype(ms.uint8)",
    "({}).astype(ms.complex64)",
    "({}).astype(ms.bfloat16)",
    "({})[None]",
    "({})[..., :0]",
    "({})[:0]",
    "({})[0]",
    "({}).reshape(-1)",
    "({}).T",
    "({}) * nan",
    "-({})",
    "({}) + 2**40",
    "[{}]",
    "({},)",
    "({}, {})",
    "({}).asnumpy()",
    "list({})",
)
# What finds most.
FIRST = (
    "None",
    "3",
    "2**64",
    "inf",
    "nan",
    "'abc'",
    "object()",
    "[]",
    "()",
    "(1, 2)",
    "(1,)",
    "Tensor(3.0)",
    "Tensor([])",
    "Tensor(2)",
    "-1",
    "0",
    "{}",
    "len",
    "[None]",
    "Tensor([1.0])",
)
KINDS = (WHOLE, WHOLE, REAL, OTHER, SEQUENCES, SEQUENCES, TENSORS, TENSORS)


def absurd(random: random_module.Random) -> str:
    """An expression that few callers would write."""
    if random.random() < 0.4:
        return random.choice(FIRST)
    return random.choice(random.choice(KINDS))


def _parsed(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


class _Constants(ast.NodeTransformer):
    """Replaces the `at`-th constant of an expression, and counts them."""

    def __init__(self, at: int = -1, new: ast.expr | None = None) -> None:
        self.at, self.new, self.seen = at, new, 0

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        self.seen += 1
        return self.new if self.seen - 1 == self.at and self.new is not None else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return node if isinstance(node.op, ast.Pow) else self.generic_visit(node)


def _other(random: random_module.Random, old: ast.expr) -> ast.expr:
    """What stands where `old` stood: something else, the same with another number in it, or the
    same put into something.
    """
    if isinstance(old, ast.Starred):
        return _parsed(absurd(random))
    way = random.random()
    if way < 0.35:
        count = _Constants()
        count.visit(old)
        if count.seen:
            new = _parsed(random.choice(WHOLE if random.random() < 0.6 else random.choice((REAL, OTHER, SEQUENCES))))
            if isinstance(old, ast.Constant):
                return new
            return _Constants(random.randrange(count.seen), new).visit(_parsed(ast.unparse(old)))
    if way < 0.5 and not isinstance(old, (ast.Constant, ast.Tuple, ast.List, ast.Lambda, ast.UnaryOp)):
        return _parsed(random.choice(AROUND).replace("{}", ast.unparse(old)))
    return _parsed(absurd(random))


def _change(random: random_module.Random, call: ast.Call, parameters: Sequence[str]) -> None:
    given = len(call.args) + len(call.keywords)
    unused = [name for name in parameters[len(call.args) :] if name not in {word.arg for word in call.keywords}]
    way = random.random()
    if given and way < 0.06:
        same = absurd(random)
        call.args = [_parsed(same) for _ in call.args]
        call.keywords = [ast.keyword(word.arg, _parsed(same)) for word in call.keywords]
        return
    way = random.random()
    if unused and (way < 0.25 or not given):
        call.keywords.append(ast.keyword(random.choice(unused), _parsed(absurd(random))))
    elif way < 0.28 or not given:
        call.keywords.append(ast.keyword(f"unknown_{len(call.keywords)}", _parsed(absurd(random))))
    elif way < 0.30:
        call.args.append(_parsed(absurd(random)))
    else:
        at = random.randrange(given)
        if way < 0.34:
            del (call.args if at < len(call.args) else call.keywords)[
                at - (0 if at < len(call.args) else len(call.args))
            ]
        elif at < len(call.args):
            call.args[at] = _other(random, call.args[at])
        else:
            word = call.keywords[at - len(call.args)]
            word.value = _other(random, word.value)


def _named(call: ast.Call) -> str:
    of = call.func
    return of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of a program outside of its formatted texts, in which not every expression can be
    written.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Call):
            yield node
        yield from _calls(node)


# Calls that only make operands or show results.
PLAIN = set(
    (
        "Tensor print range len array ones zeros asnumpy astype arange sorted list tuple dict round float int str repr "
        "Array allclose sum tolist set_seed"
    ).split()
)


def mutate(random: random_module.Random, source: str, name: str, parameters: Sequence[str]) -> str:
    """`source` with one or two arguments of one call changed: of a call of `name`, or of another
    that is not only a detail.
    """
    tree = ast.parse(source)
    calls = list(_calls(tree))
    own = [call for call in calls if _named(call) == name]
    made = [call for call in calls if isinstance(call.func, ast.Call)]
    others = [call for call in calls if _named(call) not in PLAIN]
    pool = own if own and random.random() < 0.6 else made or others or calls
    if not pool:
        return source
    call = random.choice(pool)
    for _ in range(1 if random.random() < 0.7 else 2):
        _change(random, call, parameters if call in own else ())
    return ast.unparse(ast.fix_missing_locations(tree))


def compiled(source: str) -> str:
    """The program with its last expression as a compiled function."""
    tree = ast.parse(source)
    if not isinstance(tree.body[-1], ast.Expr):
        return source
    tree.body[-1] = ast.parse(f"ms.jit(lambda: {ast.unparse(tree.body[-1])})()").body[0]
    return ast.unparse(tree)
