"""Small programs of every kind that asks an engine for something.

`python -m tests.engines.interface_programs` runs them in the engine in force and prints what they
give.

A program gives a tree of numbers, texts and lists that no engine may change: values to the
precision of float32, what was refused, and of reports what all engines must agree on.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.errors import NonFiniteError
from mycel._src.staging.compiled.repeated_execution import Repeater
from mycel.profiler import Machine
from mycel.profiler.limits import measure

LIMITS = Machine("a test", 1, (1 << 16, 1 << 24), {1: (1e10, 1e9)}, {1: 1e10}, 100.0, 1000.0)
PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function


def values(found: Any) -> Any:
    """A tree of plain numbers."""
    if isinstance(found, ms.Tensor):
        return values(found.asnumpy())
    if isinstance(found, np.ndarray):
        return found.astype(np.float64).tolist() if found.dtype.kind not in "biu" else found.tolist()
    if isinstance(found, (list, tuple)):
        return [values(f) for f in found]
    return found


def draw(*shape: int, seed: int = 0) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


class Net(nn.Cell):
    """A convolution, a normalisation, a product."""

    def __init__(self) -> None:
        super().__init__()
        source = np.random.default_rng(1)
        self.conv = nn.Conv2d(1, 3, 3, pad_mode="same")
        self.norm = nn.BatchNorm2d(3)
        self.dense = nn.Dense(3 * 4 * 4, 5)
        for p in self.trainable_params():
            p.set_data(ms.Tensor(source.normal(size=p.shape).astype(np.float32) * 0.3))

    def construct(self, x: Any) -> Any:
        x = ops.relu(self.norm(self.conv(x)))
        return self.dense(x.reshape(x.shape[0], -1))


@program
def eager_operations() -> Any:
    x, y = draw(3, 4), draw(4, 2, seed=1)
    whole = ms.Tensor(np.arange(6).reshape(2, 3))
    return values(
        [
            x + 1,
            x * x - x,
            ops.matmul(x, y),
            ops.softmax(x, -1),
            x[1:, ::2],
            x[[2, 0]],
            whole // 2,
            whole % 4,
            whole > 2,
            ops.sort(x)[1],
            ops.cumsum(x, 0),
            x.astype(ms.float16) * 3,
            ops.concat((x, x), 1),
            x.max(axis=1),
            ops.argmax(x, 0),
            ops.inverse(x[:3, :3]),
        ]
    )


@program
def compiled_functions() -> Any:
    @ms.jit
    def f(x: Any, y: Any) -> Any:
        total = ops.exp(-x).sum()
        while total > 1:
            total = total / 3
        if y.sum() > 0:
            y = y * total
        return y, {"total": total, "both": [x + y, x]}

    x, y = draw(3, 3), draw(3, 3, seed=2)
    first, rest = f(x, y)
    again = f(-x, -y)
    return values([first, rest["total"], *rest["both"], again[0]])


@program
def recursions() -> Any:
    @ms.jit
    def power(x: Any, n: Any) -> Any:
        if n == 0:
            return ops.ones_like(x)
        return x * power(x, n - 1)

    return values(power(draw(4), ms.Tensor(3)))


@program
def symbolic_sizes() -> Any:
    @ms.jit
    def f(x: Any) -> Any:
        return (x / x.shape[0]).sum(0), ops.softmax(x, -1), x.shape[0] * 2

    return [values(f(draw(n, 3))) for n in (2, 3, 5, 1, 5, 7)]


@program
def gradients_of_symbolic_sizes() -> Any:
    f = ms.jit(lambda x: (ops.tanh(x) * x).sum() / x.shape[0])
    return [values(ms.grad(f)(draw(n, 2))) for n in (2, 3, 6)]


@program
def sizes_that_data_decide() -> Any:
    @ms.jit
    def f(x: Any) -> Any:
        chosen = x[x > 0]
        return chosen * 2, ops.nonzero(x < 0), chosen.sum()

    return [values(f(draw(n, seed=n))) for n in (4, 9)]


@program
def segments() -> Any:
    seen = []

    @ms.jit
    def f(x: Any) -> Any:
        total = x.sum()
        seen.append(float(total))
        return ops.exp(x) * total.item()

    return [values(f(draw(3))), values(f(draw(3, seed=4))), [round(s, 4) for s in seen]]


@program
def writes() -> Any:
    weight = ms.Parameter(draw(4), name="weight")

    @ms.jit
    def f(x: Any) -> Any:
        before = weight + 0
        weight[1:3] = x
        ops.assign_add(weight, before)
        x[0] = 7.0
        return before, weight * 2

    x = draw(2, seed=3)
    view = x.view(1, 2)
    return values([f(x), f(x), weight, x, view])


@program
def writes_through_views() -> Any:
    t = draw(4, 6)
    row, turned, flat = t[1], t.T, t.reshape(-1)
    t[1, 2] = 7.0
    row[0] = 1.0
    flat[3] = 2.0  # whose value was dropped by the write before
    turned[4, 1] = 3.0
    flat[5:7] = row[:2]
    return values([t, row, turned, flat])


@program
def swapped_parameters() -> Any:
    a, b = ms.Parameter(draw(3), name="a"), ms.Parameter(draw(3, seed=1), name="b")

    @ms.jit
    def swap() -> Any:
        old = a + 0
        ops.assign(a, b)
        ops.assign(b, old)
        return a - b

    return values([swap(), a, b, swap(), a, b])


@program
def many_batches() -> Any:
    total = ms.Parameter(ms.Tensor([0.0, 0.0]), name="total")
    last = ms.Parameter(ms.Tensor([0.0]), name="last")

    @ms.jit
    def step(x: Any) -> Any:
        before = last * 1
        ops.assign_add(total, x)
        ops.assign(last, x[:1])
        return total * 2, before

    found = []
    for keep in (False, True):
        results = Repeater(step)([(draw(2, seed=k),) for k in range(5)], keep=keep)
        found.append([values(results[-1]), values(results[1]) if keep else None, values(total), values(last)])
    return found


@program
def a_batch_that_fails() -> Any:
    table = ms.Parameter(ms.Tensor(np.arange(4, dtype=np.float32)), name="table")

    @ms.jit
    def step(index: Any) -> Any:
        ops.assign_add(table, ms.Tensor([1.0, 1.0, 1.0, 1.0]))
        return table[index]

    good, bad = ms.Tensor([1, 3]), ms.Tensor([1, 9])
    try:
        Repeater(step)([(good,), (good,), (bad,), (good,)])
    except IndexError as error:
        told = str(error).partition("is out of")[2][:30]
    return [told, values(table) in ([2.0, 3.0, 4.0, 5.0], [3.0, 4.0, 5.0, 6.0])]


@program
def sunk_data() -> Any:
    net = Net()
    images = np.random.default_rng(5).normal(size=(16, 1, 4, 4)).astype(np.float32)
    labels = (np.arange(16) % 5).astype(np.int32)
    data = ms.dataset.NumpySlicesDataset((images, labels), shuffle=False).batch(4)
    model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.05, 0.9))
    model.train(2, data, dataset_sink_mode=True)
    return values([p for p in net.get_parameters()])


@program
def training_steps() -> Any:
    net = Net()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), learning_rate=0.01)
    )
    losses = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        for k in range(3):
            losses.append(float(step(draw(5, 1, 4, 4, seed=k), ms.Tensor(np.arange(5).astype(np.int32)))))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return [losses, values(net.dense.bias)]


@program
def gradients() -> Any:
    def f(x: Any, y: Any) -> Any:
        for _ in range(3):
            x = ops.sin(x) * y
        return ops.logsumexp(x, 0).sum()

    @ms.jit
    def loop(x: Any) -> Any:
        while x.sum() < 20:
            x = x * 1.5
        return (x * x).sum()

    x, y = draw(3, 2), draw(3, 2, seed=8)
    batched = ms.vmap(ms.grad(lambda row: (row**3).sum()))(x)
    return values(
        [
            ms.value_and_grad(f, (0, 1))(x, y),
            ms.jit(ms.grad(f))(x, y),
            ms.grad(ms.grad(lambda t: (t**3).sum()))(y),
            ms.grad(loop)(ops.abs(x)),
            batched,
            ms.jvp(f, (x, y), (y, x)),
        ]
    )


@program
def random_numbers() -> Any:
    ms.set_seed(3)
    return values([ops.randn(4), ops.dropout(ops.ones((8,)), 0.5), ms.jit(lambda: ops.rand(3))()])


@program
def explanations() -> Any:
    net = Net()
    x = draw(2, 1, 4, 4)
    net.set_train(False)
    found = ms.explain(ms.jit(net), x)
    (memory,), (steps,) = found.memory, found.steps
    names = {name for step in steps.steps for name in step.operations}
    return [
        len(found.graphs),
        len(found.breaks),
        sum(memory.inputs),
        memory.results,
        {"conv", "matmul"} <= names,
        steps.total.flops > 0,
        steps.total.bytes > 0,
        memory.total == sum(memory.inputs) + memory.results + memory.constants + memory.arena,
        memory.own > 0,
        f"{memory.name} at its peak" in found.costs,
        "memory of Net at its peak" in found.text,
        len(found.host_steps),
    ]


@program
def explanations_of_segments() -> Any:
    found = ms.explain(lambda x: x * x.sum().item(), draw(3))
    return [len(found.segments), len(found.breaks), len(found.memory), len(found.steps)]


@program
def estimates() -> Any:
    found = ms.estimate(lambda x: ops.matmul(x.T, ops.exp(x)), draw(64, 32))
    return [found.arguments, found.captured, found.present, found.fits, found.total >= (2 * 64 * 32 + 32 * 32) * 4]


@program
def flops_of_a_step() -> Any:
    from mycel.train.callback.flops import step_flops

    net = nn.Dense(10, 5)
    return [step_flops(net, ops.ones((32, 10)))]


@program
def profiles() -> Any:
    net = Net()
    compiled = ms.jit(net)
    x = draw(2, 1, 4, 4)
    compiled(x)
    with ms.profile(machine=LIMITS) as p:
        compiled(x)
        x + x
    names = {name for k in p.kernels for name in k.primitives}
    cells = {c.name for c in p.cells}
    products = [k for k in p.kernels if "matmul" in k.primitives]
    return [
        {"conv", "matmul", "add"} <= names,
        {"Net.conv", "Net.dense"} <= cells,
        sum(k.flops for k in products),
        sum(k.count for k in products),
        all(k.seconds >= 0 and k.bytes > 0 for k in products),
        {"run", "Python between"} <= {phase.name for phase in p.phases},
        p.report.missed,
        p.report.memory.peak > 0,
        len(p.report.recording.trace.runs),
        "matmul" in str(p),
        any("interface_programs.py" in line for k in products for line in k.lines),
    ]


@program
def a_profile_as_files() -> Any:
    import tempfile
    from pathlib import Path

    with ms.profile(machine=LIMITS) as p:
        draw(3, 3) * 2
    with tempfile.TemporaryDirectory() as folder:
        from mycel.profiler import chrome

        chrome.write(p.report, Path(folder) / "trace.json")
        found = json.loads((Path(folder) / "trace.json").read_text())["traceEvents"]
    return sorted({e["name"] for e in found if e.get("cat") == "program"})


@program
def a_measured_machine() -> Any:
    found = measure((1 << 10, 1 << 14), 16)
    return [
        all(r > 0 for row in found.bandwidth.values() for r in row),
        found.peak[max(found.peak)] > 0,
        found.overhead > 0,
    ]


@program
def values_that_are_not_finite() -> Any:
    told = []
    ms.set_context(check_nan=True)
    try:
        for run in (
            lambda x: ops.log(x) + 1,
            ms.jit(lambda x: ops.sqrt(x * 2).sum()),
            ms.grad(lambda x: ops.sqrt(x).sum()),
        ):
            try:
                run(ms.Tensor([1.0, -1.0, 0.0]))
            except NonFiniteError as error:
                told.append([error.operation, error.kind, error.gradient_of])
    finally:
        ms.set_context(check_nan=False)
    return told


@program
def indices_out_of_range() -> Any:
    told = []
    for run in (lambda x, i: x[i], ms.jit(lambda x, i: ops.gather(x, i, 0))):
        try:
            run(draw(4), ms.Tensor([5]))
        except IndexError as error:
            told.append([str(error).splitlines()[0], "interface_programs.py" in str(error)])
    return told


@program
def modes_compared() -> Any:
    return [str(ms.compare_modes(lambda x: ops.tanh(x).sum(), draw(3)))[:36]]


@program
def memory_in_use() -> Any:
    before = ms.runtime.memory_allocated()
    x = ops.zeros((1024, 256), ms.float32)
    grown = ms.runtime.memory_allocated() - before
    ms.runtime.reset_peak_memory_stats()
    same = ms.runtime.max_memory_allocated() == ms.runtime.memory_allocated()
    del x
    ms.runtime.empty_cache()
    stats = ms.runtime.memory_stats()
    return [
        grown,
        same,
        ms.runtime.memory_allocated() <= before,
        stats["total_reserved_memory"] >= stats["total_allocated_memory"],
    ]


@program
def more_memory_than_there_is() -> Any:
    try:
        ops.ones((1 << 20, 1 << 20), ms.float64)
    except MemoryError as error:
        return [type(error).__name__, "available" in str(error)]
    return []


def main() -> None:
    warnings.simplefilter("error")
    found: dict[str, Any] = {}
    for name, run in PROGRAMS.items():
        try:
            found[name] = run()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
