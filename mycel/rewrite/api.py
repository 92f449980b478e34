"""The public classes: the tree of a network's statements, and one statement of it."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel.ops.operations.primitive import Primitive
from mycel.rewrite.building import build, source_of
from mycel.rewrite.flattening import kind_of_cell
from mycel.rewrite.statements import NodeType, Statement, python_of
from mycel.rewrite.tree import Tree, targets_of
from mycel.rewrite.values import ScopedValue

__all__ = ["Node", "Position", "SymbolTree"]


class Position(NamedTuple):
    """A place before or after a statement, from `SymbolTree.before` or `SymbolTree.after`."""

    tree: Tree
    statement: Statement
    is_after: bool


class Node:
    """One statement of a network, as `SymbolTree.nodes` returns it.

    `create_call_cell` and `create_call_function` create new ones.
    """

    def __init__(self, node: Statement) -> None:
        if not isinstance(node, Statement):
            raise TypeError(
                f"Node: nodes come from a SymbolTree or from Node.create_call_cell, not from a {type(node).__name__}"
            )
        self._statement = node
        node.node = self

    @staticmethod
    def create_call_cell(
        cell: Cell | Primitive,
        targets: list[ScopedValue | str],
        args: list[ScopedValue] | None = None,
        kwargs: dict[str, ScopedValue] | None = None,
        name: str = "",
        is_sub_net: bool = False,
    ) -> Node:
        """Return a call of a Cell or operator object, ``targets = self.name(*args, **kwargs)``,
        which belongs to no tree yet.

        It becomes an attribute when the node is inserted, or a member of the container that the
        node is inserted into.

        Args:
            cell (Cell | Primitive): What is called.
            targets (list[ScopedValue | str]): What the result is assigned to: names or text such as
                "x".
            args (list[ScopedValue] | None): The positional operands. Default: None.
            kwargs (dict[str, ScopedValue] | None): The keyword operands. Default: None.
            name (str): The name of the attribute, which is made unique; by default that of the
                class. Default: "".
            is_sub_net (bool): Whether a Cell of the user's gets a tree of its own. Default: False.

        Returns:
            Node: The node.

        Raises:
            TypeError: For arguments of other types.

        Examples:
            >>> import mycel as ms
            >>> from mycel.rewrite import Node, ScopedValue
            >>> x = ScopedValue.create_naming_value("x")
            >>> Node.create_call_cell(ms.nn.ReLU(), ["x"], [x]).get_name()
            'ReLU'
        """
        arguments.instance("create_call_cell", "cell", cell, (Cell, Primitive))
        if not isinstance(name, str) or (name and not name.isidentifier()):
            raise TypeError(f"create_call_cell: name must be a name for an attribute, not {name!r}")
        arguments.flag("create_call_cell", "is_sub_net", is_sub_net)
        if isinstance(cell, Primitive):
            kind = NodeType.CallPrimitive
        else:
            kind = kind_of_cell(cell) if is_sub_net else NodeType.CallCell
        return _call("create_call_cell", kind, name or type(cell).__name__, cell, targets, args, kwargs)

    @staticmethod
    def create_call_function(
        function: Callable[..., Any],
        targets: list[ScopedValue | str],
        args: list[ScopedValue] | None = None,
        kwargs: dict[str, ScopedValue] | None = None,
    ) -> Node:
        """Return a call of a function, ``targets = function(*args, **kwargs)``, which belongs to no
        tree yet.

        Args:
            function (Callable[..., Any]): The function.
            targets (list[ScopedValue | str]): What the result is assigned to: names or text such as
                "x".
            args (list[ScopedValue] | None): The positional operands. Default: None.
            kwargs (dict[str, ScopedValue] | None): The keyword operands. Default: None.

        Returns:
            Node: The node.

        Raises:
            TypeError: For arguments of other types.
        """
        if not callable(function) or isinstance(function, (Cell, type)) or not hasattr(function, "__name__"):
            raise TypeError(f"create_call_function: function must be a function, not {type(function).__name__}")
        name = re.sub(r"\W", "", function.__name__) or "function"
        return _call("create_call_function", NodeType.CallFunction, name, function, targets, args, kwargs)

    @staticmethod
    def create_input(param_name: str, default: ScopedValue | None = None) -> Node:
        """Return a further argument of a network, which is inserted after its last input.

        `default` is its default value, a constant. Raises TypeError for anything else.

        >>> from mycel.rewrite import Node
        >>> Node.create_input("mask").get_name()
        'input_mask'
        """
        arguments.text("create_input", "param_name", param_name)
        if not param_name.isidentifier():
            raise ValueError(f"create_input: param_name must be a name for an argument, not {param_name!r}")
        if default is not None:
            arguments.instance("create_input", "default", default, ScopedValue).constant()
        values = [] if default is None else [default]
        return Node(Statement(NodeType.Input, f"input_{param_name}", targets_of([param_name]), values))

    # What it is.

    def get_handler(self) -> Statement:
        """Return the statement that the node stands for."""
        return self._statement

    def get_instance(self) -> Any:
        """Return the Cell, operator object or function that is called, None if it is not known."""
        return self._statement.instance

    def get_attribute(self, key: str) -> Any:
        """Return the value of a key in `get_attributes`, or None."""
        return self.get_attributes().get(arguments.text("get_attribute", "key", key))

    def get_attributes(self) -> dict[str, Any]:
        """Return the public attributes of the Cell or operator object that is called, but no
        parameters and inner Cells, its class as "cls", and the values that `set_attribute` gave to
        keys, which come first.
        """
        known: dict[str, Any] = {}
        instance = self._statement.instance
        if self._statement.kind in (NodeType.CallCell, NodeType.CallPrimitive) and instance is not None:
            known = {n: v for n, v in vars(instance).items() if n[0] != "_" and not isinstance(v, (Cell, Parameter))}
            known["cls"] = type(instance)
        return {**known, **self._statement.attributes}

    def set_attribute(self, key: str, value: Any) -> None:
        """Keep a value under a key; it has no influence on the network.

        >>> import mycel as ms
        >>> from mycel.rewrite import Node
        >>> node = Node.create_call_cell(ms.nn.ReLU(), ["x"])
        >>> node.set_attribute("bits", 8)
        >>> node.get_attribute("bits")
        8
        """
        self._statement.attributes[arguments.text("set_attribute", "key", key)] = value

    def get_name(self) -> str:
        """Return the name, which no other node of its tree has."""
        return self._statement.name

    def get_node_type(self) -> NodeType:
        """Return the kind of the statement."""
        return self._statement.kind

    def get_instance_type(self) -> Any:
        """Return the class of the Cell or operator object that is called, the function, or the
        class of methods.

        It is NoneType if the callee is unknown, and for Python's own functions.
        """
        instance = self._statement.instance
        if self._statement.kind is not NodeType.CallFunction:
            return type(instance)
        if isinstance(instance, types.MethodType):
            return types.MethodType
        return instance if isinstance(instance, types.FunctionType) else type(None)

    def get_targets(self) -> list[ScopedValue]:
        """Return the values that the statement assigns."""
        return list(self._statement.targets)

    def get_args(self) -> list[ScopedValue]:
        """Return the positional operands, in order."""
        return list(self._statement.args)

    def get_kwargs(self) -> dict[str, ScopedValue]:
        """Return the keyword operands by name."""
        return dict(self._statement.kwargs)

    def get_inputs(self) -> list[Node]:
        """Return the nodes that compute the operands, one for each operand.

        Only nodes of the same block count, as it is not known which branch runs.
        """
        found = self._tree().providers(self._statement) if self._statement.tree is not None else {}
        return [_node(s) for s, _ in found.values()]

    def get_users(self) -> list[Node]:
        """Return the nodes of the same block that read the values of this one, in order."""
        found = self._tree().users(self._statement) if self._statement.tree is not None else {}
        users = [s for several in found.values() for s, _ in several]
        return [_node(s) for s in dict.fromkeys(users)]

    def get_arg_providers(self) -> dict[int, tuple[Node, int]]:
        """Return, for each operand by number, the node that computes it and the number of its
        target.
        """
        found = self._tree().providers(self._statement) if self._statement.tree is not None else {}
        return {i: (_node(s), target) for i, (s, target) in found.items()}

    def get_target_users(self, index: int = -1) -> dict[int, list[tuple[Node, int]]] | list[tuple[Node, int]]:
        """Return, for each target by number, the nodes that read it and the numbers of their
        operands; for one target only, if its number is given.
        """
        arguments.integer("get_target_users", "index", index, numpy=False)
        found = self._tree().users(self._statement) if self._statement.tree is not None else {}
        users = {i: [(_node(s), operand) for s, operand in several] for i, several in found.items()}
        return users if index == -1 else users.get(index, [])

    def get_symbol_tree(self) -> SymbolTree | None:
        """Return the tree of the node; None before it is inserted."""
        return None if self._statement.tree is None else SymbolTree(self._statement.tree)

    def get_sub_tree(self) -> SymbolTree:
        """Return the tree of the Cell that a node of type Tree calls.

        Raises TypeError for other nodes, AttributeError for a node in no tree.
        """
        if self._statement.kind is not NodeType.Tree:
            raise TypeError(f"get_sub_tree: node {self.get_name()!r} is of type {self._statement.kind.name}, not Tree")
        if self._statement.tree is None:
            raise AttributeError(f"get_sub_tree: node {self.get_name()!r} is in no tree; insert it first")
        return SymbolTree(self._tree().subtree(self._statement))

    # Changing what it reads.

    def set_arg(self, index: int, arg: ScopedValue | str) -> None:
        """Replace the operand number `index`; positional operands are counted before keywords.

        Text is a name such as "x" or "self.x". Raises ValueError for an operand that does not
        exist.
        """
        arguments.integer("set_arg", "index", index, numpy=False)
        arguments.instance("set_arg", "arg", arg, (ScopedValue, str))
        s = self._statement
        count = len(s.args) + len(s.kwargs)
        if not 0 <= index < count:
            raise ValueError(f"set_arg: node {s.name!r} has {count} operands, not one of number {index}")
        value = targets_of([arg])[0]
        if index < len(s.args):
            s.args[index] = value
        else:
            s.kwargs[list(s.kwargs)[index - len(s.args)]] = value
        if s.tree is not None:
            s.tree.changed(s)
            for o in value.objects():
                s.tree.variable_of(o, type(o).__name__.lower())

    def set_arg_by_node(self, arg_idx: int, src_node: Node, out_idx: int | None = None) -> None:
        """Replace an operand by the value of another node, or by target `out_idx` of several.

        Raises ValueError for numbers that do not exist.
        """
        arguments.instance("set_arg_by_node", "src_node", src_node, Node)
        if out_idx is not None and (not isinstance(out_idx, int) or isinstance(out_idx, bool)):
            raise TypeError(f"set_arg_by_node: out_idx must be an int, not {type(out_idx).__name__}")
        targets = src_node._statement.targets
        if out_idx is None and len(targets) != 1:
            raise ValueError(f"set_arg_by_node: node {src_node.get_name()!r} has {len(targets)} targets; give out_idx")
        if out_idx is not None and not 0 <= out_idx < len(targets):
            raise ValueError(
                f"set_arg_by_node: node {src_node.get_name()!r} has {len(targets)} targets, not one of number {out_idx}"
            )
        self.set_arg(arg_idx, targets[out_idx or 0])

    def _tree(self) -> Tree:
        tree: Tree = self._statement.tree
        return tree


def _call(what: str, kind: NodeType, name: str, instance: Any, targets: Any, args: Any, kwargs: Any) -> Node:
    if not isinstance(targets, list) or not all(isinstance(t, (ScopedValue, str)) for t in targets):
        raise TypeError(f"{what}: targets must be a list of ScopedValue or strings, not {targets!r}")
    if args is not None and (not isinstance(args, (list, tuple)) or not all(isinstance(a, ScopedValue) for a in args)):
        raise TypeError(f"{what}: args must be a list of ScopedValue, not {args!r}")
    if kwargs is not None and not all(
        isinstance(k, str) and isinstance(v, ScopedValue) for k, v in dict(kwargs).items()
    ):
        raise TypeError(f"{what}: kwargs must be a dict from names to ScopedValue, not {kwargs!r}")
    made = Statement(kind, name, targets_of(targets), args or (), kwargs, instance=instance)
    made.compose = made.call
    return Node(made)


def _node(s: Statement) -> Node:
    return s.node if s.node is not None else Node(s)


class SymbolTree:
    """The statements of a network's `construct`, which can be edited; `SymbolTree.create` makes it.

    >>> import mycel as ms
    >>> from mycel.rewrite import Node, ScopedValue, SymbolTree
    >>> class Net(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.relu = ms.nn.ReLU()
    ...     def construct(self, x):
    ...         return self.relu(x) + 1
    >>> tree = SymbolTree.create(Net())
    >>> [node.get_name() for node in tree.nodes()]
    ['input_x', 'relu', 'binop_add', 'return']
    >>> x = ScopedValue.create_naming_value("relu_var")
    >>> tanh = Node.create_call_cell(ms.nn.Tanh(), ["relu_var"], [x], name="tanh")
    >>> _ = tree.insert(tree.after("relu"), tanh)
    >>> round(float(tree.get_network()(ms.Tensor(0.5))), 4)
    1.4621
    """

    def __init__(self, handler: Tree) -> None:
        if not isinstance(handler, Tree):
            raise TypeError(f"SymbolTree: use SymbolTree.create(network), not SymbolTree({type(handler).__name__})")
        self._tree = handler

    @classmethod
    def create(cls, network: Cell) -> SymbolTree:
        """Return the tree of a network: `construct` divided into statements of one operation each.

        Calls, operators, containers and elements become nodes of their own, with variables for
        those that are operands. ``if``, ``for`` and ``while`` hold nodes. Expressions that are not
        always computed, and other statements, stay as they are written. Cells of the user's that
        are called have trees of their own. Raises TypeError for anything but a Cell, Unsupported
        for a `construct` without source or with decorators.
        """
        arguments.instance("SymbolTree.create", "network", network, Cell)
        return cls(Tree(network))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolTree) and self._tree is other._tree

    def __hash__(self) -> int:
        return id(self._tree)

    def get_handler(self) -> Tree:
        """Return the statements that the tree stands for."""
        return self._tree

    def get_origin_network(self) -> Cell:
        """Return the network that the tree was made of."""
        return self._tree.network

    # Nodes.

    def get_inputs(self) -> list[Node]:
        """Return the nodes of the network's arguments."""
        return [_node(s) for s in self._tree.block if s.kind is NodeType.Input]

    def all_nodes(self, subtree_nodes: bool = True) -> list[Node]:
        """Return all nodes: those in control flow, containers and functions follow the others.

        With `subtree_nodes` those of inner Cells come last. Raises TypeError for anything but True
        and False.
        """
        arguments.flag("all_nodes", "subtree_nodes", subtree_nodes)
        return [_node(s) for s in _listed(self._tree, True, subtree_nodes)]

    def nodes(self, all_nodes: bool = False) -> Iterator[Node]:
        """Return the nodes in order.

        With `all_nodes` those in control flow, in containers, in functions that are called, and in
        the trees of inner Cells follow. Raises TypeError for anything but True and False.
        """
        arguments.flag("nodes", "all_nodes", all_nodes)
        return iter([_node(s) for s in _listed(self._tree, all_nodes)])

    def get_node(self, node_name: str) -> Node | None:
        """Return the node of a name, also from control flow; None if there is none."""
        arguments.text("get_node", "node_name", node_name, what="the name of a node")
        found = self._tree.find(node_name)
        return None if found is None else _node(found)

    def before(self, node: Node | str) -> Position:
        """Return the place before a node, for `insert`."""
        return Position(self._tree, self._found("before", node), False)

    def after(self, node: Node | str) -> Position:
        """Return the place after a node, for `insert`."""
        return Position(self._tree, self._found("after", node), True)

    def _found(self, what: str, node: Any) -> Statement:
        arguments.instance(what, "node", node, (Node, str), "a Node or its name")
        found = self._tree.find(node) if isinstance(node, str) else node._statement
        if found is None or found.tree is not self._tree:
            name = node if isinstance(node, str) else node.get_name()
            raise RuntimeError(f"{what}: there is no node {name!r} in this tree")
        return found

    # Changes.

    def insert(self, position: Position, node: Node) -> Node:
        """Insert a new node at a place that `before` or `after` returned, and return the node.

        Raises TypeError for other arguments, ValueError for a place in another tree, RuntimeError
        for a node that is in a tree.
        """
        if not isinstance(position, Position):
            raise TypeError(f"insert: the position must come from before() or after(), not {type(position).__name__}")
        arguments.instance("insert", "node", node, Node)
        if position.tree is not self._tree or position.statement.tree is not self._tree:
            raise ValueError("insert: the position is not in this tree, or its node was erased")
        if node._statement.tree is not None:
            raise RuntimeError(
                f"insert: node {node.get_name()!r} is in a tree already; erase it first, or create another"
            )
        anchor = position.statement
        block = anchor.block
        assert block is not None
        inputs = sum(s.kind is NodeType.Input for s in block)
        place = block.index(anchor) + position.is_after
        if position.is_after and anchor.orelse is not None:
            place += 1
        if node._statement.kind is NodeType.Input and place != inputs:
            raise RuntimeError(f"insert: {node.get_name()!r} is an input, which comes after the last one")
        self._tree.enter(node._statement, anchor, block, max(place, inputs))
        return node

    def erase(self, node: Node | str) -> Node:
        """Remove a node and return it.

        The caller must change the statements that read its values. Raises TypeError for other
        arguments, RuntimeError for nodes that are not in this tree, and for inputs.
        """
        found = self._found("erase", node)
        if found.kind is NodeType.Input:
            raise RuntimeError(f"erase: {found.name!r} is an argument of the network, which stays")
        self._tree.erase(found)
        return _node(found)

    def replace(self, old_node: Node, new_nodes: list[Node]) -> Node:
        """Replace a node by new ones, in order, and return the last of them.

        Raises TypeError for other arguments.
        """
        arguments.instance("replace", "old_node", old_node, Node)
        if not isinstance(new_nodes, list) or not new_nodes or not all(isinstance(n, Node) for n in new_nodes):
            raise TypeError(f"replace: new_nodes must be a list of at least one Node, not {new_nodes!r}")
        for node in new_nodes:
            self.insert(self.before(old_node), node)
        self.erase(old_node)
        return new_nodes[-1]

    def unique_name(self, name: str = "output") -> str:
        """Return `name`, or `name` with a number, that is not used in the tree."""
        arguments.text("unique_name", "name", name)
        return self._tree.names.free(name)

    def flatten_static_if_control_flow(self) -> None:
        """Replace each ``if`` whose test depends only on the network's attributes by the statements
        of the branch that will run.
        """
        self._tree.flatten_static()

    def set_output(self, index: int, return_value: str) -> Node:
        """Let the network return the variable `return_value` as its result number `index`, and
        return the node of the ``return``.

        Raises ValueError if there is no such result, RuntimeError if nothing is returned.
        """
        arguments.integer("set_output", "index", index, numpy=False)
        arguments.text("set_output", "return_value", return_value)
        found = next((s for s in self._tree.block if s.kind is NodeType.Output), None)
        if found is None:
            raise RuntimeError("set_output: the network has no return at its end")
        _node(found).set_arg(index, return_value)
        return _node(found)

    # Results.

    def get_saved_file_name(self) -> str:
        """Return the path that `save_network_to_file` writes."""
        return self._tree.file_name

    def set_saved_file_name(self, file_name: str) -> None:
        """Set the path that `save_network_to_file` writes; ".py" is added if it is missing."""
        arguments.text("set_saved_file_name", "file_name", file_name)
        self._tree.file_name = file_name if file_name.endswith(".py") else f"{file_name}.py"

    def save_network_to_file(self) -> None:
        """Write what `get_code` returns to a file, "./network_define.py" by default."""
        with open(self._tree.file_name, "w", encoding="utf-8") as file:
            file.write(self.get_code())

    def get_code(self) -> str:
        """Return the source of the network's new class, and of classes of changed inner Cells."""
        return source_of(self._tree)

    def get_network(self) -> Cell:
        """Return a Cell that computes the tree.

        It has the parameters and inner Cells of the original, which should not be used any more.
        """
        return build(self._tree)

    def print_node_tabulate(self, all_nodes: bool = False) -> None:
        """Print the nodes with their code, the origins of operands, ``{operand: (node, target)}``,
        and the uses of targets, ``{target: [(node, operand)]}``.
        """
        arguments.flag("print_node_tabulate", "all_nodes", all_nodes)
        rows: list[Sequence[str]] = [("node type", "name", "codes", "arg providers", "target users")]
        for s in _listed(self._tree, all_nodes):
            providers = {i: (p.name, t) for i, (p, t) in s.tree.providers(s).items()}
            users = {i: [(u.name, o) for u, o in several] for i, several in s.tree.users(s).items()}
            rows.append((f"NodeType.{s.kind.name}", s.name, _text(s), str(providers), str(users)))
        widths = [max(len(r[c]) for r in rows) for c in range(5)]
        print("\n".join("  ".join(cell.ljust(w) for cell, w in zip(r, widths)).rstrip() for r in rows))


def _text(s: Statement) -> str:
    if s.compose is None and s.raw is None:
        return ", ".join(s.writes())
    names = {id(v): n for n, v in s.tree.bound.items()}
    made = python_of([s], names)
    return ast.unparse(ast.fix_missing_locations(made[0])).splitlines()[0] if made else ", ".join(s.writes())


def _listed(tree: Tree, everything: bool, subtrees: bool = True) -> list[Statement]:
    """Return statements in MindSpore's order: what the last of them holds comes first."""
    found = list(tree.block)
    if everything:
        holders = [s for s in tree.block if s.blocks]
        while holders:
            inside = [s for block in holders.pop().blocks.values() for s in block]
            found += inside
            holders += [s for s in inside if s.blocks]
    if everything and subtrees:
        calls = [s for s in tree.statements() if s.kind is NodeType.Tree]
        found += [s for call in calls for s in _listed(tree.subtree(call), True)]
    return found
