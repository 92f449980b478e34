"""Nothing of the library keeps an object of the program's alive: Cells, functions, classes and data
go with their last use by the program.

Each case makes objects, has the library compile, record, train, save or read with them, and gives
back what must be gone afterwards.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, nn, ops
from mycel._src.foundation.python_runtime import finalization
from mycel._src.staging.compiled.recursion_limit import deep_stack

x = Tensor(np.ones((2, 3), np.float32))
cases = {}


def case(function):
    cases[function.__name__] = function
    return function


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3)
        self.history = []
        self.scale = 2
        self.blocks = [nn.Dense(3, 3)]
        self.function = lambda y: self.scale * y
        self.options = {"a": 1}
        self.table = {"w": Tensor([1.0, 2.0, 3.0]), "of": [self]}
        self.array = np.ones(3, np.float32)

    @property
    def doubled(self):
        return self.scale * 2

    @ms.jit
    def containers(self, y):
        return self.dense(y) + self.blocks[0](y) * self.options["a"] + self.table["w"] + len(self.table["of"])

    @ms.jit
    def closure(self, y):
        return self.function(self.dense(y)) * self.doubled

    @ms.jit
    def effects(self, y):
        self.history.append(1)
        self.scale = 3
        return self.dense(y)

    @ms.jit
    def itself(self, y):
        return self, self.dense(y), self.dense.weight, self.blocks

    @ms.jit
    def broken(self, y):
        z = self.dense(y)
        return z * 2 if float(z.sum()) > 1 else z

    @ms.jit
    def natively(self, y):
        return self.dense(y) + Tensor(self.array) + sum(vars(self)["options"].values())

    @ms.jit
    def loop(self, y):
        while y.sum() < 100:
            y = y * 2 + self.dense(y) * 0
        return y

    def construct(self, y):
        return self.dense(y)


class Plain:
    def __init__(self):
        self.weight = ms.Parameter(np.ones(3, np.float32))
        self.shift = Tensor([1.0, 2.0, 3.0])
        self.items = []

    @ms.jit
    def run(self, y):
        return y * self.weight + self.shift + len(self.items)


class Slotted:
    __slots__ = ("weight", "__weakref__")

    def __init__(self):
        self.weight = Tensor([1.0, 2.0, 3.0])

    @ms.jit
    def run(self, y):
        return y * self.weight


def _method(name):
    def run():
        net = Net()
        getattr(net, name)(x)
        getattr(net, name)(x)
        return net, net.dense, net.dense.weight, net.blocks[0], net.function, net.table["w"]

    return run


for _name in ("containers", "closure", "effects", "itself", "broken", "natively", "loop", "construct"):
    cases[f"method_{_name}"] = _method(_name)


@case
def method_of_plain_objects():
    plain, slotted = Plain(), Slotted()
    for _ in range(2):
        plain.run(x)
        slotted.run(x)
    return plain, plain.weight, plain.shift, slotted, slotted.weight


@case
def method_with_sizes():
    net = Net()
    for n in (2, 3, 4, 5):
        net.containers(Tensor(np.ones((n, 3), np.float32)))
    return net, net.dense


@case
def compiled_closure():
    net = Net()
    function = ms.jit(lambda y: net(y) * 2)
    function(x)
    return net, function


@case
def compiled_cell():
    net = Net()
    function, method = ms.jit(net), ms.jit(net.construct)
    function(x)
    method(x)
    return net, function, method


@ms.jit
def call(function, y):
    return function(y)


@ms.jit
def call_both(first, second, y):
    return first(y) + second(y)


kept = Net()


@case
def argument():
    cell, bound, partial, closure = Net(), Net(), Net(), Net()
    for _ in range(2):
        call(cell, x)
        call(bound.construct, x)
        call(functools.partial(partial.construct), x)
        call(lambda y: closure(y), x)
    return cell, cell.dense.weight, bound, partial, closure


@case
def argument_beside_one_that_stays():
    net = Net()
    call_both(kept, net, x)
    call_both(net, kept, x)
    return net, net.dense.weight


current = None


@ms.jit
def call_current(y):
    return current(y)


@case
def global_name():
    global current
    current = net = Net()
    call_current(x)
    current = None
    return net, net.dense.weight


@case
def gradients():
    net = Net()
    weights = net.trainable_params()
    function = ms.value_and_grad(lambda y: net(y).sum(), None, weights)
    function(x)
    ms.jit(function)(x)
    ms.grad(lambda y: net(y).sum())(x)
    compiled = ms.jit(ms.grad(lambda y: net(y).sum()))
    compiled(x)
    return net, function, compiled


@case
def directional():
    net = Net()
    function = lambda y: net(y)
    ms.jvp(function, x, x)
    ms.vjp(function, x)
    ms.vjp(net, x)
    ms.jacfwd(function)(x)
    ms.vmap(net)(x)
    return net, function


@case
def directional_in_graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return (*directional(), *gradients())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


class Own(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, 3)

    def construct(self, y):
        return self.dense(y)

    def bprop(self, y, out, dout):
        return (dout * 2,)


@case
def rules_and_hooks():
    own, net, again = Own(), Net(), Net()
    net.dense.register_forward_hook(lambda cell, given, out: out)
    net.dense.register_backward_hook(lambda cell, given, out: None)
    again.recompute()

    def hooked(y):
        z = net(y)
        z.register_hook(lambda g: g * net.scale)
        return z.sum()

    for function in (hooked, lambda y: own(y).sum(), lambda y: again(y).sum()):
        ms.grad(function)(x)
        ms.jit(ms.grad(function))(x)
    return own, net, net.dense, again, hooked


@case
def units_of_segments():
    net = Net()

    def heavy(y):
        for i in range(60):
            y = y * 1.01 + i
        return y + net.scale

    @ms.jit
    def function(y):
        z = heavy(y)
        if float(z.sum()) > 0:
            z = heavy(z)
        return heavy(z)

    for _ in range(3):
        function(x)
    return net, heavy, function


def _train():
    net = Net()
    optimizer = nn.Adam(net.trainable_params())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    step(x, x)
    return net, optimizer, step, optimizer.moment1[0]


@case
def training_step():
    return _train()


@case
def training_step_in_graph_mode():
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        return _train()
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@case
def functional_step():
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = ms.value_and_grad(lambda y: net(y).sum(), None, net.trainable_params())

    @ms.jit
    def step(y):
        loss, grads = gradient(y)
        optimizer(grads)
        return loss

    step(x)
    step(x)
    return net, optimizer, step, optimizer.moments[0]


class Source:
    def __getitem__(self, i):
        return np.ones(3, np.float32), np.ones(3, np.float32)

    def __len__(self):
        return 4


@case
def model():
    net, source, callback = Net(), Source(), ms.Callback()
    data = ms.dataset.GeneratorDataset(source, ["a", "b"]).batch(2)
    optimizer = nn.Adam(net.trainable_params())
    trained = ms.Model(net, nn.MSELoss(), optimizer, metrics={"loss": nn.Loss()})
    trained.train(1, data, callbacks=[callback])
    trained.train(2, data, dataset_sink_mode=True)
    trained.eval(data)
    trained.predict(x)
    return net, optimizer, trained, data, callback, source


@case
def pipelines():
    source, net = Source(), Net()
    function = lambda a: a * net.scale
    data = ms.dataset.GeneratorDataset(source, ["a", "b"]).map(function, "a").batch(2)
    whole, begun = data.create_dict_iterator(), iter(data.create_tuple_iterator())
    list(whole)
    next(begun)
    return source, net, function, data, whole, begun


@case
def classes():
    class Local(nn.Cell):
        __slots__ = ()
        rate = 2

        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, 3)

        @property
        def double(self):
            return self.rate * 2

        @staticmethod
        def add(y):
            return y + 1

        @classmethod
        @ms.jit
        def of_class(cls, y):
            return y * cls.rate

        @ms.jit
        def method(self, y):
            return self.add(self.dense(y)) * self.double

        def construct(self, y):
            return super().__call__ is not None and self.dense(y)

    net = Local()
    net.method(x)
    Local.of_class(x)
    ms.jit(net)(x)
    call(net, x)
    return Local, net


class Result:
    def __init__(self, owner, value):
        self.owner, self.value = owner, value


class Giving(nn.Cell):
    @ms.jit
    def run(self, y):
        return Result(self, y * 2)


@case
def objects_that_results_name():
    net = Giving()
    net.run(x)
    assert net.run(x).owner is net
    return (net,)


@case
def views_and_fused_functions():
    weight = ms.Parameter(np.ones((3, 4), np.float32))
    row, turned, part = weight[0], weight.T, weight.reshape(4, 3)[1]
    part[0] = 3.0
    ops.softmax(weight)
    ms.grad(lambda y: ops.gelu(y * weight).sum())(weight)
    return weight, row, turned, part


@case
def watching():
    net = Net()
    with ms.profile():
        net(x)
    str(ms.explain(net, x))
    ms.compare_modes(net, x)
    return (net,)


@case
def saving(folder):
    net = Net()
    path = os.path.join(folder, "net.ckpt")
    ms.save_checkpoint(net, path)
    ms.load_param_into_net(net, ms.load_checkpoint(path))
    with ms.saved_tensors_hooks(lambda t: t, lambda t: t):
        ms.grad(lambda y: net(y).sum())(x)
    return net, net.dense.weight


@pytest.fixture(autouse=True)
def only_what_is_new():
    """Let the collector look at what a test makes, not at all that earlier ones left."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", sorted(cases))
def test_what_the_program_drops_is_gone(name, tmp_path):
    function = cases[name]
    given = (str(tmp_path),) if "folder" in function.__code__.co_varnames[: function.__code__.co_argcount] else ()
    known = [(type(v).__name__, weakref.ref(v)) for v in function(*given)]
    limit = time.monotonic() + 10
    while True:
        gc.collect()
        left = [kind for kind, ref in known if ref() is not None]
        # The thread of an iterator that was dropped in the middle ends when it has put its row.
        if not left or time.monotonic() > limit:
            break
        time.sleep(0.01)
    assert left == []


def test_what_was_compiled_for_an_argument_is_forgotten_with_it():
    compiled = ms.jit(lambda net, y: net(y) * 2)
    for _ in range(20):
        compiled(Net(), x)
        gc.collect()
    finalization.settle()
    assert len(compiled.versions) == 0
    assert len(compiled.dimensions.calls) == 0


def test_a_name_that_is_bound_anew_gives_the_new_object():
    global current
    for scale in (1.0, 2.0, 3.0):
        current = Net()
        current.dense.weight.set_data(ops.full((3, 3), scale))
        current.dense.bias.set_data(ops.zeros(3))
        np.testing.assert_array_equal(call_current(x).asnumpy(), np.full((2, 3), 3 * scale))
    current = None


def test_a_bound_method_is_one_argument():
    net = Net()
    compiled = ms.jit(lambda function, y: function(y))
    for _ in range(3):
        compiled(net.construct, x)
    assert len(compiled.versions) == 1


def test_values_that_only_compiled_code_has_are_kept():
    _, pull = ms.vjp(lambda y: y * y * y, Tensor([1.0, 2.0]))
    compiled = ms.jit(lambda c: pull(c)[0])
    for _ in range(3):
        assert compiled(Tensor([1.0, 10.0])).asnumpy().tolist() == [3, 120]
        gc.collect()
    assert sum(map(len, compiled.versions.values())) == 1


def test_types_of_symbolic_sizes_go_with_their_function():
    from mycel._src.compiler.ir.types import _SYMBOLIC

    def compiled():
        f = ms.jit(lambda x: x * 2 + x.sum())
        for n in (3, 5, 8):
            f(Tensor(np.ones(n, np.float32)))

    compiled()
    gc.collect()
    before = len(_SYMBOLIC)
    for _ in range(5):
        compiled()
    gc.collect()
    assert len(_SYMBOLIC) <= before


def test_the_limit_of_recursion_is_what_it_was_after_threads_compile_at_once():
    # Each took the other's limit for the one before, and a million was left: then deep recursion
    # ends the process.
    before = sys.getrecursionlimit()
    entered, left = threading.Barrier(2), threading.Event()

    def first():
        with deep_stack():
            entered.wait()
        left.set()

    thread = threading.Thread(target=first)
    thread.start()
    while sys.getrecursionlimit() == before:
        time.sleep(0.001)
    with deep_stack():
        entered.wait()
        left.wait()
        assert sys.getrecursionlimit() > before
    thread.join()
    assert sys.getrecursionlimit() == before
    with deep_stack():
        pid = os.fork() if hasattr(os, "fork") else 0
        if pid == 0 and hasattr(os, "fork"):
            os._exit(0 if sys.getrecursionlimit() > before else 1)
    assert pid == 0 or os.waitpid(pid, 0)[1] == 0
    assert sys.getrecursionlimit() == before
