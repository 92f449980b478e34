"""Programs that change networks by their trees, whose answers MindSpore 2.10 gave: `expected.json`
has what each returns.

``python -m tests.rewrite.programs`` with an interpreter that has MindSpore writes them anew.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    import mindspore as ms
else:
    import mycel as ms

nn, ops, rewrite = ms.nn, ms.ops, ms.rewrite
variable = rewrite.ScopedValue.create_naming_value

__all__ = ["PROGRAMS", "Programs"]

IMAGE = np.linspace(-1, 1, 2 * 2 * 5 * 5).reshape(2, 2, 5, 5).astype(np.float32)
LINE = np.linspace(-2, 2, 7).astype(np.float32)


def double(x: Any, times: Any = 2) -> Any:
    for _ in range(times):
        x = x * 2
    return x + 1


def outer(x: Any) -> Any:
    return double(x)


def listed(tree: Any, everything: bool = True) -> list[str]:
    """The nodes: name, kind, targets, and the names of those that use them."""
    found = []
    for n in tree.nodes(everything):
        targets, users = (
            " ".join(map(str, several)) for several in (n.get_targets(), [u.get_name() for u in n.get_users()])
        )
        found.append(f"{n.get_name()} {n.get_node_type().name} [{targets}] -> [{users}]")
    return found


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, weight_init="ones")
        self.bn = nn.BatchNorm2d(2)
        self.relu = nn.ReLU()

    def construct(self, x: Any) -> Any:
        y = self.conv(x)
        y = self.bn(y)
        return self.relu(y)


class Images(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, weight_init="ones")
        self.bn = nn.BatchNorm2d(2)
        self.relu = nn.ReLU()
        self.blk = Block()
        self.seq = nn.SequentialCell([nn.Conv2d(2, 2, 3, weight_init="ones"), nn.BatchNorm2d(2), nn.ReLU(), Block()])
        self.last = nn.ReLU()

    def construct(self, x: Any) -> Any:
        x = self.conv(x)
        x = self.bn(x)
        x = self.relu(x)
        x = self.blk(x)
        x = self.seq(x)
        x = self.last(x)
        return x


class Inner(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.tanh = nn.Tanh()

    def construct(self, x: Any) -> Any:
        return self.tanh(x)


class Mixed(nn.Cell):
    """Functions, methods, control flow and containers."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.inner = Inner()
        self.layers = nn.CellList([nn.Sigmoid(), Inner()])
        self.flag = True
        self.add = ops.Add()

    def scaled(self, x: Any, k: Any) -> Any:
        z = self.relu(x)
        return z * k

    def construct(self, x: Any) -> Any:
        x = double(x)
        x = self.scaled(x, 2)
        x = outer(x)
        x = self.inner(x)
        if self.flag:
            x = self.add(x, 1)
            for i in range(2):
                x = x + i
        else:
            x = self.relu(x)
        for layer in self.layers:
            x = layer(x)
        y = x.shape[0]
        w = x > y
        return (x, w)


class Joined(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.mul = ops.Mul()
        self.add = ops.Add()
        self.relu = nn.ReLU()

    def construct(self, x: Any, y: Any) -> Any:
        a = self.mul(x, y)
        b = self.relu(x)
        return self.add(a, b)


class Shared(nn.Cell):
    """A value that is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.tanh = nn.Tanh()

    def construct(self, x: Any) -> Any:
        a = self.relu(x)
        b = self.tanh(a)
        return a + b


class Programs:
    """The programs; each returns what can be written as JSON."""

    def cell(self, cell: Any, target: Any, *args: str, name: str = "") -> Any:
        return rewrite.Node.create_call_cell(cell, [target], [variable(a) for a in args], name=name)

    def run(self, tree: Any, *arrays: Any) -> list[Any]:
        """The results, and the names of the parameters."""
        net = tree.get_network()
        net.set_train(False)
        found = net(*[ms.Tensor(a) for a in arrays or (LINE,)])
        first = found[0] if isinstance(found, tuple) else found
        return [np.round(first.asnumpy(), 4).ravel().tolist(), [p.name for p in net.get_parameters()]]

    def member(self, tree: Any, name: str) -> Any:
        return next(n for n in tree.nodes(True) if n.get_name() == name)

    def nodes_of_images(self) -> Any:
        return listed(rewrite.SymbolTree.create(Images()))

    def nodes_of_functions(self) -> Any:
        tree = rewrite.SymbolTree.create(Mixed())
        kinds = [str(getattr(n.get_instance_type(), "__name__", n)) for n in tree.nodes(True)]
        return [listed(tree, False), listed(tree), kinds, self.run(tree)]

    def into_a_container(self) -> Any:
        tree = rewrite.SymbolTree.create(Images())
        node = self.member(tree, "BatchNorm2d")
        tree.insert(tree.after(node), self.cell(nn.Tanh(), "x", "x", name="more"))
        tree.insert(tree.before(node), self.cell(nn.BatchNorm2d(2), "x", "x", name="norm"))
        return [listed(tree), self.run(tree, IMAGE)]

    def out_of_a_container(self) -> Any:
        tree = rewrite.SymbolTree.create(Images())
        tree.erase(self.member(tree, "BatchNorm2d"))
        new = self.cell(nn.Tanh(), "x", "x", name="new")
        tree.replace(self.member(tree, "ReLU"), [new])
        return [listed(tree), self.run(tree, IMAGE)]

    def inside_functions(self) -> Any:
        tree = rewrite.SymbolTree.create(Mixed())
        relu = next(n for n in tree.nodes(True) if list(map(str, n.get_targets())) == ["z"])
        tree.insert(tree.after(relu), self.cell(nn.Tanh(), "z", "z", name="squash"))
        layer = self.member(tree, "layer")
        tree.insert(tree.after(layer), self.cell(nn.Tanh(), "x", "x", name="each"))
        added = self.member(tree, "add")
        tree.replace(added, [self.cell(nn.Sigmoid(), "x", "x", name="instead")])
        return self.run(tree)

    def operations(self) -> Any:
        tree = rewrite.SymbolTree.create(Joined())
        old = tree.get_node("add")
        tree.replace(old, [self.cell(ops.Sub(), old.get_targets()[0], "a", "b", name="sub")])
        return [listed(tree), self.run(tree, LINE, LINE * LINE)]

    def attributes(self) -> Any:
        tree = rewrite.SymbolTree.create(Joined())
        node = tree.get_node("add")
        node.set_attribute("bits", 8)
        providers = {i: (n.get_name(), k) for i, (n, k) in node.get_arg_providers().items()}
        users = {
            i: [(n.get_name(), k) for n, k in found] for i, found in tree.get_node("input_x").get_target_users().items()
        }
        last = tree.set_output(0, "b")
        inputs = [n.get_name() for n in tree.get_inputs()]
        return [
            node.get_attribute("bits"),
            node.get_attributes()["bits"],
            node.get_attribute("x"),
            list(map(list, providers.items())),
            list(map(list, users.items())),
            inputs,
            tree.get_saved_file_name(),
            last.get_name(),
            self.run(tree, LINE, LINE),
            [type(tree.get_origin_network()).__name__, type(node.get_instance()).__name__],
        ]

    def an_input_more(self) -> Any:
        tree = rewrite.SymbolTree.create(Joined())
        tree.insert(tree.after("input_y"), rewrite.Node.create_input("z"))
        tree.get_node("add").set_arg(1, "z")
        return [listed(tree), self.run(tree, LINE, LINE, LINE)]

    def replaced(self, net: Any, pattern: Any, build: Callable[..., Any], *arrays: Any) -> Any:
        """What a pattern matched, and the network after its replacement."""
        seen: list[Any] = []

        class Made(rewrite.Replacement):  # type: ignore[name-defined, misc]
            def build(self, pattern: Any, is_chain_pattern: bool, matched: Any) -> Any:
                seen.append([is_chain_pattern, [(k.rpartition(".")[2], n.get_name()) for k, n in matched.items()]])
                return build(matched, matched[pattern.name()])

        tree = rewrite.SymbolTree.create(net)
        changed = rewrite.PatternEngine(pattern, Made()).apply(tree)
        return [seen, changed, listed(tree), self.run(tree, *arrays)]

    def fused(self) -> Any:
        def build(matched: Any, root: Any) -> Any:
            conv = nn.Conv2d(2, 2, 3, weight_init="ones", has_bias=True, bias_init="zeros")
            node = rewrite.Node.create_call_cell(conv, root.get_targets(), next(iter(matched.values())).get_args())
            return [node]

        return self.replaced(Images(), [nn.Conv2d, nn.BatchNorm2d], build, IMAGE)

    def one_by_two(self) -> Any:
        def build(matched: Any, root: Any) -> Any:
            made = rewrite.Node.create_call_cell
            first = made(nn.Tanh(), ["q"], root.get_args(), name="tanh")
            return [first, made(nn.Sigmoid(), root.get_targets(), [variable("q")], name="sigm")]

        return self.replaced(Images(), [nn.ReLU], build, IMAGE)

    def joined(self) -> Any:
        product = rewrite.PatternNode("mul", ops.Mul, [rewrite.VarNode(), rewrite.VarNode()])
        pattern = rewrite.PatternNode("add", ops.Add, [product, rewrite.PatternNode("relu", nn.ReLU)])

        def build(matched: Any, root: Any) -> Any:
            return [rewrite.Node.create_call_cell(ops.Sub(), root.get_targets(), matched["mul"].get_args(), name="sub")]

        return self.replaced(Joined(), pattern, build, LINE, LINE * LINE)

    def read_outside(self) -> Any:
        def build(matched: Any, root: Any) -> Any:
            raise AssertionError("a value inside is read outside")

        return self.replaced(Shared(), [nn.ReLU, nn.Tanh], build)

    def nothing_built(self) -> Any:
        return self.replaced(Shared(), [nn.ReLU], lambda matched, root: [])


PROGRAMS = [
    name
    for name, f in vars(Programs).items()
    if not name.startswith("_") and name not in ("create", "cell", "run", "member", "replaced") and callable(f)
]

if __name__ == "__main__":
    here = Path(__file__).parent / "expected.json"
    os.chdir(tempfile.mkdtemp())
    answers = {name: getattr(Programs(), name)() for name in sys.argv[1:] or PROGRAMS}
    here.write_text(json.dumps(answers, indent=1) + "\n")
