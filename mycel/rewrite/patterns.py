"""Patterns of nodes, and their replacement by others.

A pattern is a tree of `PatternNode`s: its root is the last operation, its inputs are what computes
the operands. `PatternEngine` visits the nodes of a tree from its inputs along those that use their
values, and compares each with the root of the pattern. A match is refused if something outside of
it reads a value of one of its inner nodes. The trees of inner Cells are searched where they are
called. The members of a container are compared in their order; as in MindSpore, nodes that are only
reached through a container are not searched.
"""

from __future__ import annotations

import abc
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.ops.operations.primitive import Primitive
from mycel.rewrite.api import Node, SymbolTree
from mycel.rewrite.statements import NodeType

__all__ = ["PatternEngine", "PatternNode", "Replacement", "VarNode"]

# The class that nodes without a known callee have.
_NO_CALLEE = type(None)


class PatternNode:
    """One operation of a pattern: a name, the class of the Cell or operator object, and patterns of
    the operands. Without these, any operands match.

    >>> import mycel as ms
    >>> from mycel.rewrite import PatternNode
    >>> conv = PatternNode("conv", ms.nn.Conv2d)
    >>> norm = PatternNode("norm", ms.nn.BatchNorm2d, [conv])
    >>> norm.name(), [node.name() for node in norm.get_inputs()]
    ('norm', ['conv'])
    """

    def __init__(
        self,
        pattern_node_name: str,
        match_type: type = _NO_CALLEE,
        inputs: list[PatternNode] | None = None,
    ) -> None:
        self._name = arguments.text("PatternNode", "pattern_node_name", pattern_node_name)
        self._type = match_type
        self._inputs = [] if inputs is None else _patterns("PatternNode", inputs)

    @staticmethod
    def from_node(node: Node) -> PatternNode:
        """Return a pattern that the Cell of a node matches, named by what the node assigns."""
        arguments.instance("PatternNode", "node", node, Node)
        targets = node.get_targets()
        made = PatternNode(str(targets[0]) if targets else node.get_name())
        if node.get_node_type() is NodeType.CallCell:
            made._type = node.get_instance_type()
        return made

    @staticmethod
    def create_pattern_from_node(node: Node) -> PatternNode:
        """Return the pattern of a node and of all nodes that lead to it."""
        made = PatternNode.from_node(node)
        made._inputs = [PatternNode.create_pattern_from_node(n) for n in node.get_inputs()]
        return made

    @staticmethod
    def create_pattern_from_list(type_list: list[type]) -> PatternNode | None:
        """Return the pattern of calls one after the other: the root is the last of the classes."""
        arguments.instance("PatternNode", "type_list", type_list, list)
        made: PatternNode | None = None
        for i, kind in enumerate(type_list):
            made = PatternNode(f"{i}-{kind}", kind, [] if made is None else [made])
        return made

    def add_input(self, node: PatternNode) -> None:
        """Add the pattern of one more operand."""
        self._inputs.append(arguments.instance("PatternNode", "node", node, PatternNode))

    def set_inputs(self, inputs: list[PatternNode]) -> None:
        """Set the patterns of all operands."""
        self._inputs = _patterns("PatternNode", inputs)

    def match(self, node: Node) -> bool:
        """Return whether a node calls what the pattern is a pattern of."""
        arguments.instance("PatternNode", "node", node, Node)
        return bool(self._type == node.get_instance_type())

    def get_inputs(self) -> list[PatternNode]:
        """Return the patterns of the operands."""
        return self._inputs

    def name(self) -> str:
        """Return the name under which a replacement finds the node that matched."""
        return self._name

    def type(self) -> Any:
        """Return the class that matches."""
        return self._type


def _patterns(owner: str, inputs: Any) -> list[PatternNode]:
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(n, PatternNode) for n in inputs):
        raise TypeError(f"{owner}: inputs must be a list of PatternNode, not {inputs!r}")
    return list(inputs)


class VarNode(PatternNode):
    """The pattern that any node matches; it is not among what a replacement is given."""

    def __init__(self) -> None:
        super().__init__("placeholder", Cell, [])

    def match(self, node: Node | None) -> bool:
        """Return whether there is a node."""
        return node is not None


class Replacement(abc.ABC):
    """What makes the nodes that take the place of a match; `build` is to be defined."""

    @abc.abstractmethod
    def build(self, pattern: PatternNode, is_chain_pattern: bool, matched: OrderedDict[str, Node]) -> list[Node]:
        """Return the new nodes in order; none, to leave the match as it is.

        Args:
            pattern: The root of the pattern.
            is_chain_pattern: Whether the pattern was given as a list of classes.
            matched: The nodes by the names of their patterns, the root last.
        """

    def __call__(self, pattern: PatternNode, is_chain_pattern: bool, matched: OrderedDict[str, Node]) -> list[Node]:
        return self.build(pattern, is_chain_pattern, matched)


class PatternEngine:
    """The replacement of every match of a pattern; `apply` does it.

    The pattern is a `PatternNode`, or a list of classes of Cells and operator objects that are
    called one after the other. Raises TypeError for others.

    >>> import mycel as ms
    >>> from mycel.rewrite import Node, PatternEngine, Replacement, SymbolTree
    >>> class Net(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.relu = ms.nn.ReLU()
    ...     def construct(self, x):
    ...         return self.relu(x)
    >>> class Tanh(Replacement):
    ...     def build(self, pattern, is_chain_pattern, matched):
    ...         node = matched[pattern.name()]
    ...         return [Node.create_call_cell(ms.nn.Tanh(), node.get_targets(), node.get_args())]
    >>> tree = SymbolTree.create(Net())
    >>> PatternEngine([ms.nn.ReLU], Tanh()).apply(tree)
    True
    >>> round(float(tree.get_network()(ms.Tensor(0.5))), 4)
    0.4621
    """

    def __init__(self, pattern: PatternNode | Sequence[type], replacement: Replacement | None = None) -> None:
        if not isinstance(replacement, Replacement):
            raise arguments.wrong_type("PatternEngine", "replacement", "a Replacement", replacement)
        self._replacement = replacement
        self._is_chain = isinstance(pattern, list)
        if isinstance(pattern, list):
            for kind in pattern:
                if not isinstance(kind, type) or not issubclass(kind, (Cell, Primitive)):
                    raise TypeError(f"PatternEngine: pattern must hold classes of Cells and operations, not {kind!r}")
            self._pattern = PatternNode.create_pattern_from_list(pattern)
        else:
            self._pattern = arguments.instance("PatternEngine", "pattern", pattern, PatternNode)

    def pattern(self) -> PatternNode | None:
        """Return the root of the pattern; None for an empty list."""
        return self._pattern

    def apply(self, stree: SymbolTree) -> bool:
        """Replace all matches in a tree and in the trees of its inner Cells.

        Returns whether a node of this tree itself was replaced, other than in containers.
        """
        arguments.instance("PatternEngine", "stree", stree, SymbolTree)
        if self._pattern is None:
            return False
        is_changed = False
        queue, visited = stree.get_inputs(), set[Node]()
        while queue:
            node = queue.pop(0)
            kind = node.get_node_type()
            if node in visited:
                continue
            if kind is NodeType.CellContainer:
                self._apply_to_members(stree, node)
                continue
            visited.add(node)
            if kind is NodeType.Tree:
                self.apply(node.get_sub_tree())
                queue += node.get_users()
                continue
            matched = self._matched(self._pattern, node)
            whole = matched is not None and self._check_match(self._pattern, matched)
            new = self._built(matched) if matched is not None and whole else []
            if matched is None or not new:
                queue += node.get_users()
                continue
            is_changed = True
            queue.append(self._replaced(stree, node, matched, new))
        return is_changed

    def _apply_to_members(self, stree: SymbolTree, container: Node) -> None:
        for s in list(container.get_handler().blocks["cells"]):
            node = s.node or Node(s)
            if s.tree is None:
                continue
            if node.get_node_type() is NodeType.Tree:
                self.apply(node.get_sub_tree())
                continue
            assert self._pattern is not None
            matched = self._matched(self._pattern, node)
            new = [] if matched is None else self._built(matched)
            if matched is not None and new:
                self._replaced(stree, node, matched, new)

    def _built(self, matched: OrderedDict[str, Node]) -> list[Node]:
        assert self._pattern is not None
        return self._replacement(self._pattern, self._is_chain, matched) or []

    @staticmethod
    def _replaced(stree: SymbolTree, root: Node, matched: OrderedDict[str, Node], new: list[Node]) -> Node:
        """Replace the root by new nodes, erase the others, and return the last new node."""
        last = stree.replace(root, new)
        for node in reversed(matched.values()):
            if node is not root:
                stree.erase(node)
        return last

    @staticmethod
    def _check_match(pattern: PatternNode, match_dict: OrderedDict[str, Node]) -> bool:
        """Return whether no node outside reads a value of a node inside, other than the root's."""
        inside = list(match_dict.values())
        return all(
            user in inside for name, node in match_dict.items() if name != pattern.name() for user in node.get_users()
        )

    def _matched(self, pattern: PatternNode, node: Node) -> OrderedDict[str, Node] | None:
        """Return the nodes by the names of their patterns, or None."""
        if node.get_node_type() not in (NodeType.CallCell, NodeType.CallPrimitive, NodeType.Input):
            return None
        if not pattern.match(node):
            return None
        found: OrderedDict[str, Node] = OrderedDict()
        if isinstance(pattern, VarNode):
            return found
        inputs = pattern.get_inputs()
        nodes = node.get_inputs() if inputs else []
        if len(inputs) != len(nodes):
            return None
        for inner, operand in zip(inputs, nodes):
            below = self._matched(inner, operand)
            if below is None:
                return None
            found.update(below)
        found[pattern.name()] = node
        return found
