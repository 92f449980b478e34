"""Programs whose results are compared with MindSpore's: gradients of every kind of input, function
and option.

A case is the source of a module that defines `run`. It finds `ms`, `ops`, `nn`, `np`, `Tensor`,
`Parameter` and `ParameterTuple`, and a list `log` for what happens on the way. `show` writes a
result as text: containers, element types, shapes and rounded values. ``ask_gradients.py`` asks
MindSpore and writes ``expected_gradients.json``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

MODES = {"eager": 1, "graph": 0}

COMMON = """
x = Tensor(np.array([1., 2.], np.float32)); y = Tensor(np.array([3., 4.], np.float32))
s = Tensor(np.array([10., 100.], np.float32)); i = Tensor(np.array([1, 2], np.int32))
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([5., 6.], np.float32)), name='w')
        self.b = Parameter(Tensor(np.array([7., 8.], np.float32)), name='b')
    def construct(self, x, y=None):
        if y is None:
            return x * self.w + self.b
        return x * self.w * y + self.b
class Net0(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([5., 6.], np.float32)), name='w')
    def construct(self):
        return self.w * self.w
net = Net()
net0 = Net0()
def f(x):
    return x * x
def f2(x, y):
    return x * x * y
"""


def show(value: Any, tensor: type) -> str:
    """Return a result as text; `tensor` is the class of tensors."""
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(show(v, tensor) for v in value)})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{k}:{show(v, tensor)}' for k, v in value.items())})"
    if isinstance(value, tensor):
        array = value.asnumpy()  # type: ignore[attr-defined]
        if array.dtype.kind == "f":
            array = np.round(array.astype(float), 3) + 0.0
        return f"{str(value.dtype).lower()}{array.shape}{array.tolist()}".replace(" ", "")  # type: ignore[attr-defined]
    return repr(value) if isinstance(value, (int, float, str)) or value is None else type(value).__name__


def _returning(expression: str, before: str = "") -> str:
    return f"{COMMON}{before}\ndef run():\n    return {expression}\n"


def _body(before: str, body: str) -> str:
    return before + "\ndef run():\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def _functions() -> dict[str, str]:
    """Return gradients of functions of all kinds at inputs of all element types."""
    found = {}
    expressions = {
        "times": "x * 2",
        "square": "x * x",
        "sum": "(x * x).sum()",
        "cast": "x.astype(ms.float32) * 2",
        "plus": "x + 1.5",
        "identity": "x",
        "negative": "-x",
        "logical": "ops.logical_and(x, x)",
        "exponential": "ops.exp(x.astype(ms.float32))",
        "floor_div": "x // 2",
        "mixed": "y * x",
        "where": "ops.where(x > 1, y, y * 2)",
        "index": "y[x.astype(ms.int64) - 1]",
        "unused": "y * 2",
        "compared": "x > 1",
        "to_integers": "(x.astype(ms.float32) * y).astype(ms.int32)",
        "sliced": "x[1:] * 2",
        "power": "x ** 3",
        "largest": "ops.maximum(x, x * 2)",
        "concat": "ops.concat((x, x * 2))",
        "gathered": "ops.gather(x, Tensor([0, 0]), 0)",
        "running": "ops.cumsum(x, 0)",
        "broadcast": "x.reshape(3, 1) * x",
    }
    for dtype, (name, text) in itertools.product(("int32", "int64", "uint8", "bool_", "float16"), expressions.items()):
        if dtype == "bool_" and name in _NOT_OF_BOOLEANS:
            continue
        before = f"\ny = Tensor(np.array([1., 2., 3.], np.float32))\ndef g(x):\n    return {text}\n"
        found[f"{name} of {dtype}"] = _returning(f"ms.grad(g)(Tensor(np.array([1, 2, 3]), ms.{dtype}))", before)
    for name, text in {
        "straight through": "a.astype(ms.int32).astype(ms.float32) * 3",
        "straight through booleans": "(a - 1).astype(ms.bool_).astype(ms.float32) * 3",
        "a mask": "(a > 1).astype(ms.float32) * a",
    }.items():
        found[name] = _returning("ms.grad(g)(x + 0.5)", f"\ndef g(a):\n    return {text}\n")
    loop = "\n@ms.jit\ndef g(a):\n    while a < 100:\n        a = a * 2\n    return a\n"
    found["a loop of int32"] = _returning("ms.grad(g)(Tensor(3, ms.int32))", loop)
    found["second of int32"] = _returning("ms.grad(ms.grad(g))(i)", "\ndef g(a):\n    return a * a * a\n")
    return found


_NOT_OF_BOOLEANS = (
    "square",
    "sum",
    "negative",
    "sliced",
    "power",
    "largest",
    "concat",
    "gathered",
    "running",
    "broadcast",
)


def _grad_operation() -> dict[str, str]:
    """Return `GradOperation` in all forms, of networks and functions with inputs of all kinds."""
    found = {}
    weights = {
        "a ParameterTuple": "ParameterTuple(net.trainable_params())",
        "a list": "net.trainable_params()",
        "a parameter": "net.w",
        "one in a list": "[net.w]",
        "none in a list": "[]",
    }
    for every, by_list, sens in itertools.product((False, True), repeat=3):
        made = f"ops.GradOperation(get_all={every}, get_by_list={by_list}, sens_param={sens})"
        given = ", s" if sens else ""
        calls = {
            "net": f"(net)(x{given})",
            "net of two": f"(net)(x, y{given})",
            "net of none": f"(net0)({'s' if sens else ''})",
            "function": f"(f)(x{given})",
            "function of two": f"(f2)(x, y{given})",
            "by name": f"(net)(x, y=y{', sens=s' if sens else ''})",
            "all by name": f"(net)(x=x, y=y{', sens=s' if sens else ''})",
            "int32": f"(f)(i{', i' if sens else ''})",
            "too few": f"(f2)(x{given})",
            "a list": f"(g)([x, y]{given})",
            "constants": f"(h)(x, 3, None, y{given})",
        }
        before = "\ndef g(l):\n    return l[0] * l[1]\ndef h(a, n, z, b):\n    return a * n * b\n"
        for name, text in calls.items():
            found[f"GradOperation {every:d}{by_list:d}{sens:d} {name}"] = _returning(made + text, before)
        for name, text in weights.items() if by_list else ():
            found[f"GradOperation {every:d}1{sens:d} {name}"] = _returning(f"{made}(net, {text})(x{given})")
    return found


def _grad() -> dict[str, str]:
    """Return `grad` and `value_and_grad` with positions, weights and options of all kinds."""
    found = {}
    positions = ("0", "1", "(0, 1)", "(1, 0)", "(0,)", "None", "()", "2", "(0, 2)", "-1", "(0, 0)", "[0, 1]", "1.0")
    weights = ("None", "net.trainable_params()", "ParameterTuple([net.w])", "net.w", "[]")
    for position, weight in itertools.product(positions, weights):
        found[f"grad {position} {weight}"] = _returning(f"ms.grad(net, {position}, {weight})(x, y)")
        if weight == "net.w":
            found[f"value_and_grad {position}"] = _returning(f"ms.value_and_grad(net, {position}, net.w)(x, y)")
        if position in ("0", "None", "(0, 1)") and weight not in ("[]", "net.w"):
            found[f"ids {position} {weight}"] = _returning(f"ms.grad(net, {position}, {weight}, return_ids=True)(x, y)")
    arguments = ("3", "3.0", "True", "None", "'a'", "np.float32(2.0)", "[x, y]", "(x, (y, 3), None)", "dict(a=x)")
    for argument, position in itertools.product(arguments, ("0", "(0, 1)")):
        text = f"ms.value_and_grad(g, {position})({argument}, x)"
        found[f"constant {argument} {position}"] = _returning(text, "\ndef g(a, x):\n    return x * x\n")
    outputs = (
        "a * a, a * 3",
        "[a * a, a * 3]",
        "a * a, 3",
        "None",
        "3.0",
        "{'a': a * a}",
        "(a * a, (a, a * 2))",
        "a > 1",
    )
    for output in (*outputs, "a.astype(ms.int32)", "(a * a,)", "y", "i", "a", "'s'", "a * a, None"):
        before = f"\ndef g(a):\n    return {output}\n"
        found[f"output {output}"] = _returning("ms.value_and_grad(g)(x)", before)
    before = "\ndef g(a):\n    return net(a), a * 3, a * 4\n"
    found["extras"] = _returning("ms.grad(g, 0, net.w, has_aux=True)(x)", before)
    found["value and extras"] = _returning("ms.value_and_grad(g, 0, has_aux=True)(x)", before)
    for name, text in {
        "0": "ms.get_grad(ms.grad(net, (0, 1), net.trainable_params(), return_ids=True)(x, y), 0)",
        "w": "ms.get_grad(ms.grad(net, (0, 1), net.trainable_params(), return_ids=True)(x, y), net.w)",
        "single": "ms.get_grad(ms.grad(net, 0, return_ids=True)(x, y), 0)",
        "missing": "ms.get_grad(ms.grad(net, 0, return_ids=True)(x, y), 1)",
        "of a wrong type": "ms.get_grad(ms.grad(net, 0, return_ids=True)(x, y), 'w')",
    }.items():
        found[f"get_grad {name}"] = _returning(text)
    for kind in ("list", "tuple"):
        text = f"ms.grad(g)(ms.mutable({kind}([x, y])))"
        found[f"mutable {kind}"] = _returning(text, "\ndef g(l):\n    return l[0] * l[1]\n")
    return found


def _directions() -> dict[str, str]:
    """Return push-forwards, pull-backs and Jacobians, and cotangents of all shapes and types."""
    found = {}
    shapes = ("()", "(1,)", "(2,)", "(1, 2)", "(2, 1)", "(3,)")
    for own, given in itertools.product(("()", "(1,)", "(2,)"), shapes):
        at, seed = f"Tensor(np.full({own}, 3.0, np.float32))", f"Tensor(np.full({given}, 2.0, np.float32))"
        found[f"sens {own} {given}"] = _returning(f"ops.GradOperation(sens_param=True)(f)({at}, {seed})")
        found[f"vjp {own} {given}"] = _returning(f"ms.vjp(f, {at})[1]({seed})")
        found[f"jvp {own} {given}"] = _returning(f"ms.jvp(f, {at}, {seed})")
    for value in ("2.0", "2", "Tensor([1., 2.], ms.float16)", "Tensor([1, 2], ms.int32)", "None", "np.ones(2)", "'a'"):
        found[f"sens {value}"] = _returning(f"ops.GradOperation(sens_param=True)(f)(x, {value})")
        found[f"vjp {value}"] = _returning(f"ms.vjp(f, x)[1]({value})")
        found[f"jvp {value}"] = _returning(f"ms.jvp(f, x, {value})")
    two = "\ndef g(a, b):\n    return a * b, a + b\n"
    cube = "\ndef g(a):\n    return (a * a * a).sum()\n"
    for api in ("jacfwd", "jacrev"):
        for name, text in {
            "one": "(f)(x)",
            "int32": "(f)(i)",
            "two": "(g, (0, 1))(x, y)",
            "first": "(g, 0)(x, y)",
            "extras": "(g, 0, has_aux=True)(x, y)",
            "no position": "(f2, None)(x, y)",
            "negative": "(f2, -1)(x, y)",
            "far": "(f2, 2)(x, y)",
            "number": "(f)(3.0)",
            "net": "(net)(x)",
            "flag": "(f, 0, 1)(x)",
        }.items():
            found[f"{api} {name}"] = _returning(f"ms.{api}{text}", two)
        for other in ("jacfwd", "jacrev"):
            found[f"{api} {other}"] = _returning(f"ms.{api}(ms.{other}(g))(x)", cube)
    for name, text in {
        "jvp of int32": "ms.jvp(f, i, i)",
        "jvp int32 float32": "ms.jvp(f, i, s)",
        "jvp of two": "ms.jvp(g, (x, y), (s, s))",
        "jvp few": "ms.jvp(f2, (x, y), (s,))",
        "jvp with extras": "ms.jvp(g, (x, y), (s, s), has_aux=True)",
        "jvp flag": "ms.jvp(f, x, x, 1)",
        "vjp of int32": "ms.vjp(f, i)[1](i)",
        "vjp weights": "ms.vjp(net, x, weights=net.trainable_params())[1](s)",
        "vjp weight": "ms.vjp(net, x, weights=net.w)[1](s)",
        "vjp with extras": "ms.vjp(g, x, y, has_aux=True)[1](s)",
        "vjp of two": "ms.vjp(g, x, y)[1](s, s)",
        "vjp few": "ms.vjp(g, x, y)[1](s)",
        "vjp many": "ms.vjp(f, x)[1](s, s)",
        "vjp flag": "ms.vjp(f, x, has_aux=1)",
        "stop_gradient 3": "ops.stop_gradient(3)",
        "stop_gradient list": "ops.stop_gradient([x])",
    }.items():
        found[name] = _returning(text, two)
    return found


_STEP = """
x = Tensor(np.array([[1., 2.], [3., 5.]], np.float32)); x2 = Tensor(np.array([[2., 2.], [3., 7.]], np.float32))
s = Tensor(np.ones((2, 2), np.float32))
class Net(nn.Cell):
    def __init__(self, name='n'):
        super().__init__()
        self.w = Parameter(Tensor(np.array([5., 6.], np.float32)), name=name + 'w')
        self.c = Parameter(Tensor(np.zeros(1, np.float32)), name=name + 'c', requires_grad=False)
        self.bn = nn.BatchNorm1d(2)
        self.one = Tensor(np.ones(1, np.float32))
    def construct(self, x):
        ops.assign_add(self.c, self.one)
        return self.bn(x) * self.w
net = Net(); net.set_train()
net2 = Net('m'); net2.set_train()
ws = ParameterTuple(net.trainable_params())
grad = ops.GradOperation(get_by_list=True)
grads = ops.GradOperation(get_by_list=True, sens_param=True)
every = ops.GradOperation(get_all=True)
class Step(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.grad, self.grads = net, grad, grads
        self.ws = ParameterTuple(net.trainable_params())
        self.s = s
    def construct(self, x):
        %s
"""


def _counts() -> dict[str, str]:
    """Return calls of a network and of its gradient, which count how often the network runs."""
    found = {}
    state = "net.c, net.bn.moving_mean"
    outside = {
        "call, grad": "l = net(x)\ng = grad(net, ws)(x)",
        "call, grad with sens": "l = net(x)\ng = grads(net, ws)(x, s)",
        "grad": "l = 0\ng = grad(net, ws)(x)",
        "call, value_and_grad": "l = net(x)\ng = ms.value_and_grad(net, None, ws)(x)",
        "call, grad of another": "l = net(x)\ng = grad(net, ws)(x2)",
        "call, grad of an equal": "l = net(x)\ng = grad(net, ws)(Tensor(x.asnumpy()))",
        "call, grad, grad": "l = net(x)\ng = grad(net, ws)(x), every(net)(x)",
        "call, call, grad": "l = net(x)\nl = net(x)\ng = grad(net, ws)(x)",
        "two nets": "l = net(x), net2(x)\ng = every(net)(x), every(net2)(x), net2.c",
        "three steps": "for _ in range(3):\n    l = net(x)\n    g = grad(net, ws)(x)",
        "by name": "l = net(x=x)\ng = every(net)(x=x)",
        "within a function": "def fn(a):\n    return net(a).sum()\nl = net(x)\ng = ms.grad(fn)(x)",
        "a view": "v = Tensor(np.ones((3, 2, 2), np.float32))[1]\nl = net(v)\ng = every(net)(v)",
        "call, step": "step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))\nl = net(x)\ng = step(x)",
        "a part": "net.bn.set_grad()\nl = net.bn(x)\ng = every(net.bn)(x)",
    }
    inside = {
        "call, grad": "l = self.net(x)\ng = self.grad(self.net, self.ws)(x)",
        "call, grad with sens": "l = self.net(x)\ng = self.grads(self.net, self.ws)(x, self.s)",
        "call, grad with sens of it": "l = self.net(x)\n"
        "g = self.grads(self.net, self.ws)(x, ops.fill(l.dtype, l.shape, 1.0))",
        "grad": "g = self.grad(self.net, self.ws)(x)\nl = g",
        "call, grad of another": "l = self.net(x)\ng = self.grad(self.net, self.ws)(x * 2)",
        "update": "l = self.net(x)\ng = self.grads(self.net, self.ws)(x, self.s)\nops.assign_add(self.net.w, g[0])",
        "call, value_and_grad": "m = self.net(x)\nl, g = ms.value_and_grad(self.net, None, self.ws)(x)",
        "value_and_grad": "l, g = ms.value_and_grad(self.net, None, self.ws)(x)",
    }
    for announced in (False, True):
        before = "net.set_grad()\nnet2.set_grad()\n" if announced else ""
        word = "announced" if announced else "not announced"
        for name, text in outside.items():
            found[f"{name}, {word}"] = _body(_STEP % "return x" + before, f"{text}\nreturn l, g, {state}")
        for name, text in inside.items():
            lines = (text + "\nreturn l, g").replace("\n", "\n        ")
            run = "step = Step(net)\nl, g = step(x)\nl, g = step(x)\nreturn l, g, net.w, " + state
            found[f"{name}, in a Cell, {word}"] = _body(_STEP % lines + before, run)
        text = "@ms.jit\ndef step(x):\n    l = net(x)\n    g = grad(net, ws)(x)\n    return l, g\n"
        found[f"call, grad, in jit, {word}"] = _body(
            _STEP % "return x" + before, f"{text}l, g = step(x)\nreturn l, g, {state}"
        )
    return found


_HOOKS = (
    COMMON
    + """
class N(nn.Cell):
    def construct(self, x):
        return x * x
class M(nn.Cell):
    def construct(self, x, y):
        return x * y, x + y
class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n = n
    def construct(self, x):
        return self.n(x * 3) * 5
n = N(); m = M(); o = Outer()
def told(cell, gi, go):
    log.append('after ' + show(gi) + ' ' + show(go))
def before(cell, go):
    log.append('before ' + show(go))
%s
"""
)


def _hooks() -> dict[str, str]:
    """Return combinations of hooks of Cells and tensors, and Cells with a `bprop`."""
    found = {}
    hooks = {
        "forward": "n.register_forward_hook(lambda c, i, o: o + o)",
        "forward none": "n.register_forward_hook(lambda c, i, o: None)",
        "input": "n.register_forward_pre_hook(lambda c, i: (i[0] * 2,))",
        "input none": "n.register_forward_pre_hook(lambda c, i: None)",
        "told": "n.register_backward_hook(told)",
        "backward": "n.register_backward_hook(lambda c, gi, go: (gi[0] * 10,))",
        "backward bare": "n.register_backward_hook(lambda c, gi, go: gi[0] * 10)",
        "told before": "n.register_backward_pre_hook(before)",
        "before": "n.register_backward_pre_hook(lambda c, go: (go[0] * 7,))",
        "before bare": "n.register_backward_pre_hook(lambda c, go: go[0] * 7)",
    }
    for a, b in itertools.permutations(hooks, 2):
        found[f"hooks {a}, {b}"] = _body(_HOOKS % "", f"{hooks[a]}\n{hooks[b]}\nreturn ms.grad(o)(x)")
    for name, text in hooks.items():
        again = "\na = ms.grad(n)(x)\nh.remove()\nreturn a, ms.grad(n)(x)"
        found[f"hook {name} removed"] = _body(_HOOKS % "", f"h = {text}{again}")
        found[f"hook {name} twice"] = _body(_HOOKS % "", f"{text}\n{text}\nreturn ms.grad(o)(x)")
    for name, text in {
        "two": "m.register_backward_hook(told)\nm.register_backward_pre_hook(before)\nreturn ms.grad(m, (0, 1))(x, y)",
        "two changed": "m.register_forward_hook(lambda c, i, o: (o[0] + o[0], o[1] * 3))\n"
        "m.register_backward_hook(told)\nreturn ms.grad(m, (0, 1))(x, y)",
        "two by one": "m.register_backward_hook(told)\nreturn ms.grad(m)(x, y)",
        "few": "m.register_backward_hook(lambda c, gi, go: (gi[0],))\nreturn ms.grad(m, (0, 1))(x, y)",
        "few before": "m.register_backward_pre_hook(lambda c, go: (go[0],))\nreturn ms.grad(m, (0, 1))(x, y)",
        "of a wrong type": "n.register_backward_hook(lambda c, gi, go: 'a')\nreturn ms.grad(n)(x)",
        "of a number": "n.register_backward_hook(lambda c, gi, go: 3.0)\nreturn ms.grad(n)(x)",
        "no function": "n.register_backward_hook(3)",
        "of a wrong shape": "n.register_backward_hook(lambda c, gi, go: (gi[0][0],))\nreturn ms.grad(n)(x)",
        "of another type": "n.register_backward_hook(lambda c, gi, go: (gi[0].half(),))\nreturn ms.grad(n)(x)",
        "of an input": "x.register_hook(lambda g: g * 10)\nreturn ms.grad(f)(x)",
        "of an int32 input": "i.register_hook(lambda g: g * 10)\nreturn ms.grad(f)(i)",
        "of a parameter": "net.w.register_hook(lambda g: g * 10)\nreturn ms.grad(net, 0, net.w)(x)",
    }.items():
        found[f"hook {name}"] = _body(_HOOKS % "", text)
    for returned in ("None", "g * 10", "3.0", "g.sum()", "g.astype(ms.float16)", "(g * 2,)"):
        before = f"def h(x):\n    z = x * x\n    z.register_hook(lambda g: {returned})\n    return z * 3\n"
        found[f"hook of a tensor, {returned}"] = _body(_HOOKS % before, "return ms.grad(h)(x)")
    cell = (
        "class B(nn.Cell):\n    def construct(self, {}):\n        return {}\n"
        "    def bprop(self, {}):\n        return {}\nb = B()\n"
    )
    for name, (given, value, takes, returns, call) in {
        "a tuple": ("x", "x * x", "x, out, dout", "(dout * 100,)", "ms.grad(b)(x)"),
        "a tensor": ("x", "x * x", "x, out, dout", "dout * 100", "ms.grad(b)(x)"),
        "two": ("x, y", "x * y", "x, y, out, dout", "dout * 100, dout * 200", "ms.grad(b, (0, 1))(x, y)"),
        "few": ("x, y", "x * y", "x, y, out, dout", "(dout * 100,)", "ms.grad(b, (0, 1))(x, y)"),
        "many": ("x, y", "x * y", "x, y, out, dout", "dout, dout * 2, dout", "ms.grad(b, (0, 1))(x, y)"),
        "one none": ("x, y", "x * y", "x, y, out, dout", "(None, dout)", "ms.grad(b, (0, 1))(x, y)"),
        "a number": ("x", "x * x", "x, out, dout", "3.0", "ms.grad(b)(x)"),
        "a wrong shape": ("x", "x * x", "x, out, dout", "(dout.sum(),)", "ms.grad(b)(x)"),
        "another type": ("x", "x * x", "x, out, dout", "(dout.astype(ms.float16),)", "ms.grad(b)(x)"),
        "too few parameters": ("x", "x * x", "x, dout", "(dout,)", "ms.grad(b)(x)"),
        "any parameters": ("x", "x * x", "*a", "(a[-1] * 100,)", "ms.grad(b)(x)"),
        "several outputs": ("x", "(x * x, x + 1)", "x, out, dout", "(dout[0] * 100 + dout[1],)", "ms.grad(b)(x)"),
        "int32": ("x", "x * 2", "x, out, dout", "(dout * 100,)", "ms.grad(b)(i)"),
        "mixed": ("x, i", "x * i", "x, i, out, dout", "(dout * 100, i * 3)", "ms.grad(b, (0, 1))(x, i)"),
        "a constant": ("x, k", "x * k", "x, k, out, dout", "(dout * 100, 0)", "ms.grad(b)(x, 3)"),
        "a default": ("x, k=2.0", "x * k", "x, k, out, dout", "(dout * 100, 0)", "ms.grad(b)(x)"),
        "a name": ("x, k=2.0", "x * k", "x, k, out, dout", "(dout * 100, 0)", "ms.grad(b)(x, k=3.0)"),
    }.items():
        found[f"bprop {name}"] = _body(_HOOKS % cell.format(given, value, takes, returns), f"return {call}")
    return found


def _class(forward: str, backward: str, takes: str = "x", given: str = "dout") -> str:
    lines = [forward.replace("\n", "\n        "), backward.replace("\n", "\n        ")]
    return (
        f"{COMMON}\nclass F(ms._Function):\n    @staticmethod\n    def forward(ctx, {takes}):\n        {lines[0]}\n"
        f"    @staticmethod\n    def backward(ctx, {given}):\n        {lines[1]}\n"
    )


def _custom_functions() -> dict[str, str]:
    """Return functions defined by a class, and blocks without gradients."""
    found = {}
    one, both = "return ms.grad(lambda x: F.apply(x))(x)", "return ms.grad(lambda x, y: F.apply(x, y), (0, 1))(x, y)"
    square = _class("ctx.save_for_backward(x)\nreturn x * x", "x, = ctx.saved_tensors\nreturn dout * x * 20")
    for returned in ("dout * 5", "(dout * 5,)", "[dout]", "None", "(dout, dout)", "3.0", "dout.sum()", "dout.half()"):
        found[f"function returns {returned}"] = _body(_class("return x * x", f"return {returned}"), one)
    for returned in ("(dout, dout * 2)", "dout", "(None, dout)", "(dout, dout, None)"):
        found[f"function of two returns {returned}"] = _body(_class("return x * y", f"return {returned}", "x, y"), both)
    extra = "log.append(show((a, b)))\nreturn a * 100"
    logged = "log.append(show(ctx.needs_input_grad))\nreturn x * y"
    saved = "log.append(show(ctx.saved_tensors))\nreturn dout"
    for name, (text, body) in {
        "called": (square, "return F.apply(x)"),
        "and value": (square, "return ms.value_and_grad(lambda x: F.apply(x))(x)"),
        "twice": (square, "return ms.grad(lambda x: F.apply(F.apply(x)))(x)"),
        "second": (square, "return ms.grad(ms.grad(lambda x: F.apply(x)))(x)"),
        "constant": (
            _class("ctx.k = k\nreturn x * k", "return dout * ctx.k * 10, None", "x, k"),
            "return ms.grad(lambda x: F.apply(x, 3))(x)",
        ),
        "by name": (_class("return x * k", "return dout, None", "x, k=2"), "return F.apply(x, k=3)"),
        "default": (_class("return x * k", "return dout * 7", "x, k=2"), one),
        "outputs": (_class("return x * x, x + 1", "return a * 100 + b", given="a, b"), one),
        "one output": (
            _class("return x * x, x + 1", extra, given="a, b"),
            "return ms.grad(lambda x: F.apply(x)[0])(x)",
        ),
        "one output or None": (
            _class("ctx.set_materialize_grads(False)\nreturn x * x, x + 1", extra, given="a, b"),
            "return ms.grad(lambda x: F.apply(x)[0])(x)",
        ),
        "output without": (
            _class("z = x + 1\nctx.mark_non_differentiable(z)\nreturn x * x, z", extra, given="a, b"),
            "return ms.grad(lambda x: sum(F.apply(x)))(x)",
        ),
        "needs": (_class(logged, "return dout, dout", "x, y"), both),
        "needs no constant": (
            _class(logged, "return dout, None", "x, y"),
            "return ms.grad(lambda x: F.apply(x, 3))(x)",
        ),
        "needs nothing": (_class(logged, "return dout, None", "x, y"), "return F.apply(x, 3)"),
        "identity": (_class("return x", "return dout * 9"), one),
        "int32": (_class("return x * 2", "return dout * 30"), "return ms.grad(lambda x: F.apply(x))(i)"),
        "to int32": (_class("return x.astype(ms.int32)", "return dout.astype(ms.float32) * 3"), one),
        "saves twice": (_class("ctx.save_for_backward(x)\nctx.save_for_backward(x * 2)\nreturn x", saved), one),
        "saves nothing": (_class("return x", saved), one),
        "saves a number": (_class("ctx.save_for_backward(3, x)\nreturn x", saved), one),
        "saves None": (_class("ctx.save_for_backward(None, x)\nreturn x", saved), one),
        "without backward": (
            f"{COMMON}\nclass F(ms._Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x\n",
            one,
        ),
        "without forward": (
            f"{COMMON}\nclass F(ms._Function):\n    @staticmethod\n    def backward(ctx, x):\n        return x\n",
            one,
        ),
        "in a Cell": (
            square + "class C(nn.Cell):\n    def construct(self, x):\n        return F.apply(x) * 2\n",
            "return ms.grad(C())(x)",
        ),
        "parameter": (
            _class("return x * w", "return dout * 3, dout * 4", "x, w"),
            "return ms.grad(lambda x: F.apply(x, net.w), 0, net.w)(x)",
        ),
    }.items():
        found[f"function {name}"] = _body(text, body)
    block = "def g(x):\n    with ms._no_grad():\n        z = x * x\n    return z * x\n"
    found["no gradients"] = _body(COMMON, block + "return ms.grad(g)(x)")
    found["no gradients around"] = _body(COMMON, block + "with ms._no_grad():\n    return ms.grad(g)(x)")
    marked = "@ms._no_grad()\ndef h(x):\n    return x * x\n"
    found["no gradients decorator"] = _body(COMMON, marked + "return ms.grad(lambda x: h(x) * x)(x)")
    return found


def cases() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the sources by name, with the modes in which they are compared."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for sources, modes in (
        (_functions(), ("eager", "graph")),
        (_grad_operation(), ("eager", "graph")),
        (_grad(), ("eager", "graph")),
        (_directions(), ("eager", "graph")),
        (_counts(), ("eager", "graph")),
        (_hooks(), ("eager",)),
        (_custom_functions(), ("eager",)),
    ):
        for name, source in sources.items():
            assert name not in found, name
            found[name] = source, modes
    return found
