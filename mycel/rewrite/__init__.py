"""`mindspore.rewrite`: changes of a network's computation by the syntax tree of its `construct`.

`SymbolTree.create(net)` divides `construct` into statements of one operation each, `Node`s, which
can be inserted, erased and replaced; `get_network` returns a Cell that computes the result. The
stages are modules: `values` (operands), `statements` (statements, and Python code made from them),
`flattening` (source to statements), `tree` (blocks of statements, names, edits), `building`
(statements to source, class and Cell), `api` (the public classes) and `patterns` (nodes that are
found by a pattern and replaced).
"""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.rewrite.api import Node, SymbolTree
from mycel.rewrite.patterns import PatternEngine, PatternNode, Replacement, VarNode
from mycel.rewrite.statements import NodeType
from mycel.rewrite.values import ScopedValue, ValueType

__all__ = [
    "Node",
    "NodeType",
    "PatternEngine",
    "PatternNode",
    "Replacement",
    "ScopedValue",
    "SymbolTree",
    "ValueType",
    "VarNode",
]

__dir__ = _listing(__name__)
