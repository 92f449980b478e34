"""A primitive has one home: nothing but rule files may know primitives by name, and a rule file
knows names that there are.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from mycel._src.compiler.prims import REGISTRY
from mycel._src.compiler.prims.base import Primitive
from tests import sources

# The rules of an engine, a file format or a transformation, each in its one file or folder.
RULE_FILES = (
    "_src/engines/native/kernels/instruction_emitter.py",
    "_src/engines/native/operations/dense_rules.py",
    "_src/engines/native/operations/fusion_rules.py",
    "_src/engines/native/lowering/step_rules.py",
    "_src/engines/native/steps/view_rules.py",
    "_src/engines/native/math/function_definitions.py",
    "_src/engines/xla/rules",
    "_src/compiler/prims",
    "formats/graph_files/validation.py",
    "formats/mindir/export_rules.py",
    "formats/onnx/export/node_rules.py",
)
# What the native engine's expressions have beside the primitives.
OTHERS = {"round_16", "round_sum_16", "rescale_high", "rescale_whole"}


def may_name(text: str) -> bool:
    """Whether the name of a node's primitive may be in a source: see `is_name_of_primitive`."""
    return re.search(r"\.[\s\\]*op\b|\bprim(itive)?[\s\\]*\.[\s\\]*name\b", text) is not None


def may_compare(text: str) -> bool:
    """Whether a node's primitive may be compared in a source: see `compared_objects`."""
    return "mycel._src.compiler.prims." in text and re.search(r"\.[\s\\]*prim\b", text) is not None


def words(node: ast.AST) -> list[str]:
    """The strings in an expression, those of ``"a b".split()`` apart."""
    strings = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return [word for text in strings for word in text.split()]


def is_name_of_primitive(node: ast.AST) -> bool:
    """Whether an expression is the name of a node's primitive: `node.op`, `prim.name`,
    `node.prim.name`.
    """
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    return node.attr == "op" or (node.attr == "name" and owner in ("prim", "primitive"))


def functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield from (n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


def comparisons(tree: ast.Module) -> Iterator[int]:
    """The lines of functions in which the name of a primitive is compared, or looked up in a table
    of such names.
    """
    tables = {
        target.id
        for statement in tree.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        and not isinstance(statement.value, (ast.Constant, type(None)))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and set(words(statement.value)) & set(REGISTRY)
    }

    def holds_names(node: ast.AST) -> bool:
        return bool(set(words(node)) & set(REGISTRY)) or (isinstance(node, ast.Name) and node.id in tables)

    for function in functions(tree):
        named = {
            target.id
            for n in ast.walk(function)
            if isinstance(n, ast.Assign) and is_name_of_primitive(n.value)
            for target in n.targets
            if isinstance(target, ast.Name)
        }

        def is_name(node: ast.AST, named: set[str] = named) -> bool:
            return is_name_of_primitive(node) or (isinstance(node, ast.Name) and node.id in named)

        for n in ast.walk(function):
            if isinstance(n, ast.Compare) and is_name(n.left) and any(map(holds_names, n.comparators)):
                yield n.lineno
            elif isinstance(n, ast.Subscript) and is_name(n.slice) and holds_names(n.value):
                yield n.lineno
            elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "get":
                if n.args and is_name(n.args[0]) and holds_names(n.func.value):
                    yield n.lineno


def test_no_names_of_primitives_outside_of_rule_files() -> None:
    found = sorted(
        f"mycel/{name}:{line}"
        for name, tree in sources.trees(may_name)
        if not any(name == rules or name.startswith(rules + "/") for rules in RULE_FILES)
        for line in {*comparisons(tree)}
    )
    assert not found, f"compare with the primitive, or with a field of its record: {', '.join(found)}"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f(node): return node.op == 'matmul'", 1),
        ("def f(node): return node.op in ('add', 'sub')", 1),
        ("T = frozenset('add sub'.split())\ndef f(node): return node.prim.name in T", 1),
        ("T = {'add': 1}\ndef f(prim):\n    name = prim.name\n    return T.get(name), T[name]", 2),
        ("def f(tree): return tree.op == 'and', tree.name == 'add'", 0),
        ("def f(node): return f'{node.op} failed'", 0),
    ],
)
def test_what_counts_as_a_comparison(source: str, count: int) -> None:
    assert len(list(comparisons(ast.parse(source)))) == count


def test_rule_files_name_primitives_that_there_are() -> None:
    from mycel._src.compiler.prims import loops
    from mycel._src.engines.native.kernels import instruction_emitter
    from mycel._src.engines.native.lowering import step_rules
    from mycel._src.engines.native.operations import fusion_rules
    from mycel.formats.graph_files import validation
    from mycel.formats.mindir import export_rules
    from mycel.formats.onnx.export import node_rules

    tables = {
        "emit": instruction_emitter.RULES,
        "groups": fusion_rules.GROUP_RULES,
        "rules": fusion_rules.FULL_RULES,
        "steps": step_rules.STEP_RULES,
        "files": validation.FORMS,
        "MindIR operators": export_rules._OPERATORS,
        "MindIR rules": export_rules._RULES,
        "ONNX unary": node_rules._UNARY,
        "ONNX binary": node_rules._BINARY,
        "ONNX reductions": node_rules._REDUCTIONS,
        "ONNX rules": node_rules._RULES,
    }
    assert loops.loops.name in REGISTRY
    unknown = {(place, name) for place, table in tables.items() for name in table if name not in REGISTRY}
    assert unknown == {("emit", name) for name in OTHERS}


def compared_objects(tree: ast.Module) -> Iterator[tuple[int, str, object]]:
    """What `node.prim` is compared with in a module, as far as it is imported from a file of
    primitives by name.
    """
    imported = {
        alias.asname or alias.name: (n.module, alias.name)
        for n in ast.walk(tree)
        if isinstance(n, ast.ImportFrom) and n.module is not None and n.module.startswith("mycel._src.compiler.prims.")
        for alias in n.names
    }
    for n in ast.walk(tree):
        if isinstance(n, ast.Compare) and isinstance(n.left, ast.Attribute) and n.left.attr == "prim":
            for name in (m for c in n.comparators for m in ast.walk(c) if isinstance(m, ast.Name) and m.id in imported):
                module, attribute = imported[name.id]
                found = getattr(importlib.import_module(module), attribute)
                if not isinstance(found, ModuleType):
                    yield n.lineno, name.id, found


def test_primitives_are_compared_with_records() -> None:
    found = [
        f"mycel/{path}:{line}: {name}"
        for path, tree in sources.trees(may_compare)
        for line, name, value in compared_objects(tree)
        if not all(isinstance(v, Primitive) for v in (value if isinstance(value, tuple) else (value,)))
    ]
    assert not found, f"a primitive is never a function that applies one: {', '.join(found)}"
