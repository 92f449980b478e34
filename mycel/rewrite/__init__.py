"""`mindspore.rewrite`: changing what a network computes by the syntax tree of its `construct`.

`SymbolTree.create(net)` takes `construct` apart into statements of one operation each, `Node`s,
which can be inserted, erased and replaced; `get_network` gives a Cell that computes what is left.
The stages are modules: `values` (operands), `statements` (what a statement is, and how it becomes
Python again), `flattening` (source to statements), `tree` (blocks of statements, names, edits),
`building` (statements to source, class and Cell) and `api` (the public classes).
"""

from __future__ import annotations

from mycel.rewrite.api import Node, SymbolTree
from mycel.rewrite.statements import NodeType
from mycel.rewrite.values import ScopedValue, ValueType

__all__ = ["Node", "NodeType", "ScopedValue", "SymbolTree", "ValueType"]
