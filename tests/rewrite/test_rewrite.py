"""Networks changed by their syntax trees: nodes are named and typed as MindSpore 2.10 does, and
what comes out computes what is written.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel.rewrite import (
    Node,
    NodeType,
    PatternEngine,
    PatternNode,
    Replacement,
    ScopedValue,
    SymbolTree,
    ValueType,
    VarNode,
    flattening,
)

CHECKED = dict.fromkeys("Node NodeType ScopedValue SymbolTree".split(), "MindSpore")
variable = ScopedValue.create_naming_value
X = np.random.default_rng(3).normal(size=(2, 1, 6, 6)).astype(np.float32)


def act(x: Any) -> Any:
    return ops.relu(x)


class Sub(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def construct(self, x: Any) -> Any:
        x = self.relu(x)
        return x


class Net(nn.Cell):
    def __init__(self, flag: bool = True) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3)
        self.relu = nn.ReLU()
        self.seq = nn.SequentialCell(nn.ReLU(), nn.Flatten())
        self.fc = nn.Dense(72, 3)
        self.sub = Sub()
        self.flag = flag
        self.add = ops.Add()

    def construct(self, x: Any, scale: Any = 2) -> Any:
        """Some of everything."""
        x = self.relu(self.conv1(x))
        x = self.sub(x)
        if not self.flag:
            x = x + 1
        else:
            x = x * scale - 1
        y, z = x, x.abs()
        x = self.add(y, z)
        x = self.seq(act(x))
        a = (x, [1, 2])
        x = a[0]
        for _ in range(2):
            x = self.relu(x)
        return self.fc(x), x.shape


# Names, types and targets that MindSpore gives to this network's statements.
EXPECTED = """input_x Input x
input_scale Input scale
conv1 CallCell conv1_var
relu CallCell x
sub Tree x
unaryop_not MathOps not_var
if_node ControlFlow
else_node ControlFlow
abs CallFunction abs_var
tuple CallMethod y, z
add CallPrimitive x
act CallFunction act_var
seq CellContainer x
list CallMethod list_var
tuple_1 CallMethod a
subscript_var CallMethod x
range CallFunction range_var
for_node ControlFlow
fc CallCell fc_var
tuple_2 CallMethod tuple_var
return_1 Output"""


def names(tree: SymbolTree, everything: bool = False) -> list[str]:
    return [n.get_name() for n in tree.nodes(everything)]


def text(node: Node) -> str:
    targets = ", ".join(map(str, node.get_targets()))
    return f"{node.get_name()} {node.get_node_type().name} {targets}".strip()


def run(net: Any, *args: Any) -> np.ndarray[Any, Any]:
    """The first result, eagerly and compiled."""
    eager = net(*args)
    first = eager[0] if isinstance(eager, tuple) else eager
    compiled = ms.jit(net)(*args)
    second = compiled[0] if isinstance(compiled, tuple) else compiled
    np.testing.assert_allclose(first.asnumpy(), second.asnumpy(), rtol=1e-5, atol=1e-6)
    return first.asnumpy()


def test_statements_are_named_and_typed_as_in_the_reference() -> None:
    tree = SymbolTree.create(Net())
    assert [text(n) for n in tree.nodes()] == EXPECTED.splitlines()
    assert " ".join([n.get_name() for n in tree.nodes(True)][21:]) == (
        "relu_2 ReLU Flatten input_x_1 relu_1 return binop_mult binop_sub binop_add input_x relu return"
    )
    conv = tree.get_node("conv1")
    assert conv is not None and conv.get_args() == [variable("x")] and conv.get_instance_type() is nn.Conv2d
    assert [n.get_name() for n in conv.get_inputs()] == ["input_x"] and [n.get_name() for n in conv.get_users()] == [
        "relu"
    ]
    add = tree.get_node("add")
    assert add is not None and [n.get_name() for n in add.get_inputs()] == ["tuple", "tuple"]
    condition = tree.get_node("unaryop_not")
    assert condition is not None and str(condition.get_args()[0]) == "self.flag"
    assert condition.get_instance_type() is type(None)
    assert tree.get_node("nothing") is None and conv.get_symbol_tree() == tree


def test_an_unchanged_network_computes_the_same() -> None:
    for flag in (True, False):
        net = Net(flag)
        made = SymbolTree.create(net).get_network()
        assert isinstance(made, Net) and type(made).__name__ == "NetOpt" and made is not net and made.conv1 is net.conv1
        np.testing.assert_allclose(run(made, Tensor(X)), run(net, Tensor(X)), rtol=1e-6)
        np.testing.assert_allclose(run(made, Tensor(X), Tensor(3.0)), run(net, Tensor(X), Tensor(3.0)), rtol=1e-6)
        assert [p.name for p in made.get_parameters()] == [p.name for p in net.get_parameters()]


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.sin = ops.Sin()
        self.sub = Sub()

    def construct(self, x: Any, *, shift: Any = 1.0) -> Any:
        return self.sub(self.sin(x) * 2) + shift


V = np.linspace(-2, 2, 7).astype(np.float32)
WITHOUT = np.maximum(np.sin(V) * 2, 0) + 1


def test_nodes_are_inserted_erased_and_replaced() -> None:
    tree = SymbolTree.create(Small())
    assert names(tree) == ["input_x", "input_shift", "sin", "binop_mult", "sub", "binop_add", "return"]
    tanh = Node.create_call_cell(nn.Tanh(), ["mult_var"], [variable("mult_var")], name="new_tanh")
    assert tanh.get_symbol_tree() is None and tree.insert(tree.after("binop_mult"), tanh) is tanh
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), np.maximum(np.tanh(np.sin(V) * 2), 0) + 1, rtol=1e-5)
    magnitude = Node.create_call_function(ops.abs, ["x"], [variable("x")])
    tree.insert(tree.before("sin"), magnitude)
    np.testing.assert_allclose(
        run(tree.get_network(), Tensor(V)), np.maximum(np.tanh(np.sin(abs(V)) * 2), 0) + 1, rtol=1e-5
    )
    assert tree.erase("new_tanh") is tanh and tree.erase(magnitude) is magnitude and tree.get_node("new_tanh") is None
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), WITHOUT, rtol=1e-5)
    old = tree.get_node("sin")
    assert old is not None
    new = [
        Node.create_call_cell(c, [t], [variable(a)])
        for c, t, a in ((nn.Tanh(), "t", "x"), (nn.Sigmoid(), "sin_var", "t"))
    ]
    assert tree.replace(old, new) is new[1]
    assert names(tree)[2:4] == ["Tanh", "Sigmoid"]
    want = np.maximum(2 / (1 + np.exp(-np.tanh(V))), 0) + 1
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), want, rtol=1e-5)


def test_operands_are_changed() -> None:
    tree = SymbolTree.create(Small())
    add, sub, sin = (tree.get_node(n) for n in ("binop_add", "sub", "sin"))
    assert add is not None and sub is not None and sin is not None
    sub.set_arg_by_node(0, sin)
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), np.maximum(np.sin(V), 0) + 1, rtol=1e-5)
    add.set_arg(1, "x")
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), np.maximum(np.sin(V), 0) + V, rtol=1e-5, atol=1e-6)
    add.set_arg(1, ScopedValue.create_variable_value(5))
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), np.maximum(np.sin(V), 0) + 5, rtol=1e-5)
    add.set_arg(1, ScopedValue.create_variable_value(Tensor(V)))
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), np.maximum(np.sin(V), 0) + V, rtol=1e-5, atol=1e-6)
    for args, error in (((9, "x"), ValueError), (("0", "x"), TypeError), ((0, 3), TypeError)):
        with pytest.raises(error):
            add.set_arg(*args)
    with pytest.raises(ValueError, match="0 targets"):
        last = tree.get_node("return")
        assert last is not None
        add.set_arg_by_node(0, last)


def test_inner_networks_have_trees_of_their_own() -> None:
    net = Small()
    tree = SymbolTree.create(net)
    inner = tree.get_node("sub")
    assert inner is not None
    below = inner.get_sub_tree()
    below.insert(
        below.after("relu"),
        Node.create_call_cell(nn.Dense(7, 7, weight_init="ones", has_bias=False), ["x"], [variable("x")], name="more"),
    )
    made = tree.get_network()
    np.testing.assert_allclose(
        run(made, Tensor(V[None])), np.full((1, 7), np.maximum(np.sin(V) * 2, 0).sum() + 1), rtol=1e-5
    )
    assert [p.name for p in made.trainable_params()] == ["sub.more.weight"] and not net.trainable_params()
    gradient = ms.grad(lambda x: made(x).sum(), None, made.trainable_params())(Tensor(V[None]))
    np.testing.assert_allclose(gradient[0].asnumpy(), np.tile(np.maximum(np.sin(V) * 2, 0), (7, 1)), rtol=1e-5)
    assert "class SubOpt(Sub):" in tree.get_code() and "x = self.more(x)" in tree.get_code()
    with pytest.raises(TypeError, match="not Tree"):
        sin = tree.get_node("sin")
        assert sin is not None
        sin.get_sub_tree()
    tree = SymbolTree.create(Small())
    whole = Node.create_call_cell(Small(), ["x"], [variable("x")], name="small", is_sub_net=True)
    tree.insert(tree.before("sin"), whole)
    assert whole.get_node_type() is NodeType.Tree
    below = whole.get_sub_tree()
    below.erase("binop_mult")
    relu = below.get_node("sub")
    assert relu is not None
    relu.set_arg(0, "sin_var")
    want = np.maximum(np.sin(np.maximum(np.sin(V), 0) + 1) * 2, 0) + 1
    np.testing.assert_allclose(run(tree.get_network(), Tensor(V)), want, rtol=1e-5)


def test_what_the_network_decides_is_flattened() -> None:
    for flag in (True, False):
        net = Net(flag)
        tree = SymbolTree.create(net)
        tree.flatten_static_if_control_flow()
        kinds = [n.get_name() for n in tree.nodes()]
        assert ("binop_mult" in kinds) is flag and ("binop_add" in kinds) is not flag and "if_node" not in kinds
        np.testing.assert_allclose(run(tree.get_network(), Tensor(X)), run(net, Tensor(X)), rtol=1e-6)


class Ordered(nn.Cell):
    """What must happen in Python's order, once, or not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.count = 1
        self.__secret = 10

    def note(self, name: str, value: Any) -> Any:
        self.calls.append(name)
        self.count += 1
        return value

    def construct(self, x: Any, flag: bool) -> Any:
        a = self.count + self.note("a", 1) + self.count * self.note("b", 2)
        b = flag and self.note("c", 3)
        c = self.note("d", 4) if flag else self.note("e", 5)
        d = [self.note("f", i) for i in range(2)][1]
        n = 0
        while n < self.note("g", 2):
            n += 1
        else:
            n = n + 1
        if (m := n + 1) > 3:
            d = d + m
        e = {"k": self.note("h", 6)}["k"]
        f, *rest = (lambda *v: v)(*[self.note("i", 7), 8, 9])
        return x * (a + int(b) + c + d + n + e + f + sum(rest)) + self.__secret


@pytest.mark.parametrize("flag", [True, False])
def test_order_and_conditions_stay(flag: bool) -> None:
    net, other = Ordered(), Ordered()
    want = net(Tensor(V), flag)
    got = SymbolTree.create(other).get_network()(Tensor(V), flag)
    assert got.tolist() == want.tolist() and other.calls == net.calls


class Below(Sub):
    def construct(self, x: Any) -> Any:
        return super().construct(x) + 1


def test_super_is_found() -> None:
    np.testing.assert_allclose(run(SymbolTree.create(Below()).get_network(), Tensor(V)), np.maximum(V, 0) + 1)


def twice(x: Any, power: Any = 2) -> Any:
    """A function of the user's, called from two places."""
    return ops.pow(x, power) + 1


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


class Calling(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.seq = nn.SequentialCell(nn.Sigmoid(), nn.SequentialCell(nn.ReLU()))
        self.bias = 3.0

    def shifted(self, x: Any) -> Any:
        return x + self.bias

    def construct(self, x: Any) -> Any:
        x = twice(x)
        x = self.shifted(x)
        x = twice(x, power=1)
        return self.shifted(self.seq(x))


def test_one_call_of_a_function_is_changed_and_the_others_stay() -> None:
    net = Calling()
    tree = SymbolTree.create(net)
    power = tree.get_node("pow")
    shift = next(n for n in tree.nodes(True) if n.get_name() == "binop_add_3")
    assert power is not None and power.get_symbol_tree() == tree and str(shift.get_args()[1]) == "self.bias"
    tree.replace(power, [Node.create_call_function(ops.exp, power.get_targets(), [variable("x")])])
    shift.set_arg(1, ScopedValue.create_variable_value(Tensor(10.0)))
    want = logistic(np.exp(V) + 1 + 3 + 1) + 10
    made = tree.get_network()
    for _ in range(2):
        np.testing.assert_allclose(run(made, Tensor(V)), want, rtol=1e-4)
        made = tree.get_network()
    np.testing.assert_allclose(run(net, Tensor(V)), logistic(V**2 + 1 + 3 + 1) + 3, rtol=1e-4, atol=1e-5)
    code = tree.get_code()
    assert "def twice_opt(x: Any, power: Any=2):" in code and "    def shifted_1_opt(self, x: Any)" in code
    assert "x = twice(x, power=1)" in code and "x = self.shifted(x)" in code and code == tree.get_code()


def test_members_of_inner_containers_are_replaced() -> None:
    tree = SymbolTree.create(Calling())
    inner = next(n for n in tree.nodes(True) if n.get_name() == "ReLU")
    tree.replace(inner, [Node.create_call_cell(nn.Tanh(), ["x"], [variable("x")])])
    made = tree.get_network()
    np.testing.assert_allclose(run(made, Tensor(V)), np.tanh(logistic(V**2 + 5)) + 3, rtol=1e-4, atol=1e-5)
    assert isinstance(made.seq[1][0], nn.Tanh)
    with pytest.raises(TypeError, match="a container holds Cells"):
        tree.insert(tree.after("Sigmoid"), Node.create_call_function(ops.relu, ["x"], [variable("x")]))


def test_inputs_are_added_with_and_without_defaults() -> None:
    tree = SymbolTree.create(Sub())
    two = ScopedValue.create_variable_value(2)
    tree.insert(tree.after("input_x"), Node.create_input("y"))
    tree.insert(tree.after("input_y"), Node.create_input("z", two))
    total = Node.create_call_function(max, ["w"], [variable("y"), variable("z")])
    tree.insert(tree.after("relu"), total)
    tree.set_output(0, "w")
    made = tree.get_network()
    assert [made(Tensor(V), 1), made(Tensor(V), 5), made(Tensor(V), 5, 7), made(Tensor(V), y=1, z=0)] == [2, 5, 7, 1]
    for wrong, error in (
        (lambda: Node.create_input("a b"), ValueError),
        (lambda: Node.create_input("a", 3), TypeError),
    ):
        with pytest.raises(error):
            wrong()
    with pytest.raises(RuntimeError, match="comes after the last one"):
        tree.insert(tree.after("relu"), Node.create_input("late"))


def test_classes_of_cells_can_be_kept_whole() -> None:
    flattening.WHOLE.append(Sub)
    try:
        node = SymbolTree.create(Small()).get_node("sub")
        assert node is not None and node.get_node_type() is NodeType.CallCell
    finally:
        flattening.WHOLE.remove(Sub)


def test_networks_are_saved_as_source(tmp_path: Any) -> None:
    tree = SymbolTree.create(Small())
    tree.set_saved_file_name(str(tmp_path / "made"))
    tree.save_network_to_file()
    assert tree.get_saved_file_name().endswith("made.py") and (tmp_path / "made.py").read_text() == tree.get_code()


def test_patterns_refuse_what_is_none() -> None:
    class Nothing(Replacement):
        def build(self, pattern: Any, is_chain_pattern: bool, matched: Any) -> list[Node]:
            return []

    wrong: list[Any] = [
        lambda: PatternEngine([nn.ReLU]),
        lambda: PatternEngine([3], Nothing()),
        lambda: PatternEngine([int], Nothing()),
        lambda: PatternEngine(nn.ReLU, Nothing()),
        lambda: PatternEngine([nn.ReLU], lambda *a: []),
        lambda: PatternEngine([nn.ReLU], Nothing()).apply(3),
        lambda: PatternNode(3),
        lambda: PatternNode("a", nn.ReLU, [3]),
        lambda: PatternNode("a").add_input(3),
        lambda: PatternNode("a").set_inputs(3),
        lambda: PatternNode("a").match(3),
        lambda: PatternNode.from_node(3),
        lambda: PatternNode.create_pattern_from_list(3),
        lambda: Replacement(),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call()
    node = SymbolTree.create(Small()).get_node("sub")
    assert node is not None and PatternEngine([], Nothing()).apply(SymbolTree.create(Small())) is False
    pattern = PatternNode.create_pattern_from_node(node)
    assert (pattern.name(), [n.name() for n in pattern.get_inputs()]) == ("sub_var", ["mult_var"])
    assert VarNode().match(node) and VarNode().type() is nn.Cell and not VarNode().match(None)


def test_names_are_unique(capsys: Any) -> None:
    tree = SymbolTree.create(Small())
    assert (
        tree.unique_name("new") == "new" and tree.unique_name("new") == "new_1" and tree.unique_name("sin") == "sin_1"
    )
    assert tree.unique_name() == "output" and tree.unique_name("x") == "x_1"
    first, second = (Node.create_call_cell(nn.ReLU(), ["x"], [variable("x")], name="sub") for _ in range(2))
    tree.insert(tree.before("sin"), first)
    tree.insert(tree.before("sin"), second)
    assert [first.get_name(), second.get_name()] == ["sub_1", "sub_2"]
    tree.print_node_tabulate()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["node", "type", "name", "codes"] and len(lines) == 1 + len(names(tree))
    assert "x = self.sub_1(x)" in lines[3] and "{0: ('input_x', 0)}" in lines[3]


def test_values() -> None:
    kinds = {2: "Constant", "a": "Constant", 2.5: "Constant", None: "Constant", True: "Constant"}
    for value, kind in kinds.items():
        made = ScopedValue.create_variable_value(value)
        assert made is not None and made.type is ValueType[f"{kind}Value"] and str(made) == repr(value)
    for value, kind in (([1], "List"), ((1, 2), "Tuple"), ({"a": 1}, "Dict"), (nn.ReLU(), "CustomObj")):
        made = ScopedValue.create_variable_value(value)
        assert made is not None and made.type is ValueType[f"{kind}Value"]
    assert str(ScopedValue.create_name_values(["z", "z_1"], ["self", "self"])) == "[self.z, self.z_1]"
    assert variable("a") == variable("a") != variable("a", "self") and variable("a", "self").scope == "self"
    with pytest.raises(ValueError, match="1 scopes"):
        ScopedValue.create_name_values(["a", "b"], ["self"])
    for call in (lambda: variable(3), lambda: ScopedValue.create_name_values("ab"), lambda: ScopedValue(3)):
        with pytest.raises(TypeError):
            call()


def test_errors() -> None:
    tree, other = SymbolTree.create(Small()), SymbolTree.create(Small())
    new = Node.create_call_cell(nn.ReLU(), ["x"], [variable("x")])
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: SymbolTree.create(3), TypeError),
        (lambda: tree.insert(3, new), TypeError),
        (lambda: tree.insert(tree.after("sin"), 3), TypeError),
        (lambda: tree.insert(other.after("sin"), new), ValueError),
        (lambda: tree.after(3), TypeError),
        (lambda: tree.after("nothing"), RuntimeError),
        (lambda: tree.erase("nothing"), RuntimeError),
        (lambda: tree.erase("input_x"), RuntimeError),
        (lambda: tree.insert(tree.after("sin"), tree.get_node("sub")), RuntimeError),
        (lambda: tree.replace(tree.get_node("sin"), []), TypeError),
        (lambda: tree.unique_name(3), TypeError),
        (lambda: tree.nodes(3), TypeError),
        (lambda: Node.create_call_cell(3, ["x"]), TypeError),
        (lambda: Node.create_call_cell(nn.ReLU(), "x"), TypeError),
        (lambda: Node.create_call_cell(nn.ReLU(), ["x"], ["x"]), TypeError),
        (lambda: Node.create_call_cell(nn.ReLU(), ["x"], [variable("x")], {"a": 3}), TypeError),
        (lambda: Node.create_call_function(3, ["x"]), TypeError),
        (lambda: Node(3), TypeError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()

    class Decorated(nn.Cell):
        @ms.jit
        def construct(self, x: Any) -> Any:
            return x

    with pytest.raises(Unsupported, match="plain function"):
        SymbolTree.create(Decorated())


def test_attributes_of_what_is_called() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 3, 3, has_bias=True)
            self.softmax = ops.Softmax(axis=1)

        def construct(self, x: Any) -> Any:
            return self.softmax(self.conv(x)) + 1

    tree = SymbolTree.create(Net())
    conv, softmax, add = (tree.get_node(name) for name in ("conv", "softmax", "binop_add"))
    assert conv is not None and softmax is not None and add is not None
    names = ("in_channels", "out_channels", "kernel_size", "pad_mode", "has_bias", "cls", "none")
    assert [conv.get_attribute(name) for name in names] == [2, 3, (3, 3), "same", True, nn.Conv2d, None]
    assert "weight" not in conv.get_attributes() and softmax.get_attribute("name") == "Softmax"
    assert add.get_attributes() == {}
    conv.set_attribute("in_channels", "kept")
    assert conv.get_attribute("in_channels") == "kept" and conv.get_instance().in_channels == 2
    assert SymbolTree(conv.get_handler().get_belong_symbol_tree()) == tree
    assert Node.create_call_cell(nn.ReLU(), ["x"]).get_handler().get_belong_symbol_tree() is None


def test_matches_that_others_read_into() -> None:
    """A match is whole where only its root is read from outside; the class answers by itself."""

    class Branching(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()

        def construct(self, x: Any) -> Any:
            y = self.a(x)
            z = self.b(y)
            w = self.c(y)
            return z + w

    nodes = {node.get_name(): node for node in SymbolTree.create(Branching()).nodes()}
    root, inner = PatternNode("root", nn.Tanh), PatternNode("inner", nn.ReLU)
    root.set_inputs([inner])
    assert not PatternEngine._check_match(root, OrderedDict(root=nodes["b"], inner=nodes["a"]))
    assert PatternEngine._check_match(root, OrderedDict(root=nodes["b"]))


def test_each_call_of_one_cell_has_its_own_nodes() -> None:
    class Inner(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.tanh = nn.Tanh()

        def construct(self, x: Any) -> Any:
            return self.tanh(x)

    class Twice(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def construct(self, x: Any) -> Any:
            x = self.inner(x)
            return self.inner(x)

    for which, expected in (
        (slice(None), 2.0 * np.tanh(2.0 * np.tanh(1.0))),
        (slice(1, 2), 2.0 * np.tanh(2.0 * np.tanh(1.0))),
        (slice(0, 0), np.tanh(np.tanh(1.0))),
    ):
        tree = SymbolTree.create(Twice())
        found = [n for n in tree.nodes(all_nodes=True) if n.get_name() == "tanh"]
        assert len(found) == 2
        for node in found[which]:
            value = node.get_targets()[0]
            inside = node.get_symbol_tree()
            assert inside is not None
            two = ScopedValue.create_variable_value(2.0)
            inside.insert(inside.after(node), Node.create_call_cell(ops.Mul(), [value], [value, two]))
        np.testing.assert_allclose(tree.get_network()(ms.Tensor(1.0)).asnumpy(), expected, rtol=1e-6)


def test_names_of_assignments_and_of_python() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.width = 3

        def construct(self, x: Any) -> Any:
            a = b = x
            c = 1
            d = self.width
            c += d
            return a + b * c

    tree = SymbolTree.create(Net())
    assert [n.get_name() for n in tree.nodes()][1:6] == [
        "name_assign",
        "name_assign_1",
        "constant_assign",
        "attribute_assign",
        "AugAssign",
    ]
    assert tree.get_network()(ms.Tensor(2.0)).item() == 10
