"""What a profile says ran: counts, bytes, operations, lines, Cells, phases and memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.foundation.spans import sinks
from mycel._src.staging.compiled.jit import Jit
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.autograd.recorded_node import Recorded
from mycel.profiler import Machine
from mycel.profiler.report import exclusive

CHECKED = {
    "profile": "counts, bytes and operations of programs by hand",
    "Profiler": "steps by hand",
    "EnvProfiler": "steps by hand",
}
HERE = Path(__file__).name
LIMITS = Machine("a test", 2, (1 << 16, 1 << 24), {1: (1e10, 1e9), 2: (2e10, 2e9)}, {1: 1e10, 2: 2e10}, 100.0, 1000.0)


def profile(**options: Any) -> Any:
    return ms.profile(machine=LIMITS, **options)


def line_of(text: str) -> int:
    """The line of this file that ends with a mark."""
    lines = Path(__file__).read_text().splitlines()
    (found,) = [k for k, line in enumerate(lines, 1) if line.endswith(f"# {text}")]
    return found


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """A profile takes away what it put in place."""
    before = (Jit.__call__, Cell.__call__, Recorded.__init__, list(sinks))
    yield
    assert before == (Jit.__call__, Cell.__call__, Recorded.__init__, list(sinks))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell([nn.Dense(8, 16), nn.ReLU()])
        self.layers = nn.CellList([nn.Dense(16, 16) for _ in range(2)])

    def construct(self, x: Any) -> Any:
        x = self.features(x)  # the features
        for layer in self.layers:
            x = layer(x)  # the layers
        return ops.exp(x).sum()


def test_an_eager_operation_has_its_line_bytes_and_operations() -> None:
    x = ms.Tensor(np.ones((100, 10), np.float32))
    x + x
    with profile() as p:
        for _ in range(3):
            x + x  # the sum
    (kernel,) = p.kernels
    assert (kernel.name, kernel.kind, kernel.count) == ("add", "kernel", 3)
    assert (kernel.bytes, kernel.flops) == (3 * 12000, 3 * 1000)
    assert [line.rpartition("/")[2] for line in kernel.lines] == [f"{HERE}:{line_of('the sum')}"]
    assert kernel.share == 1.0 and kernel.seconds > 0 and kernel.mean == kernel.seconds / 3
    assert kernel.least == pytest.approx(3 * 12000 / 1e10) and kernel.primitives == ("add",)
    (place,) = p.lines
    assert place.count == 3 and place.bytes == 36000 and set(place.names) == {"add"}


def test_compiled_kernels_have_the_users_names_lines_and_cells() -> None:
    net = Net()
    compiled = ms.jit(net)
    x = ms.Tensor(np.ones((4, 8), np.float32))
    compiled(x)
    with profile() as p:
        compiled(x)
    products = [k for k in p.kernels if "matmul" in k.primitives]
    assert sum(k.count for k in products) == 3
    assert sum(k.flops for k in products) == 2 * 4 * (8 * 16 + 16 * 16 + 16 * 16)
    assert {k.name for k in products} == {"Dense: matmul"}
    assert {k.cell for k in products} == {"Net.features.0:Dense", "Net.layers.0:Dense", "Net.layers.1:Dense"}
    (relu,) = [k for k in p.kernels if k.name.startswith("ReLU")]
    assert relu.name == "ReLU(Dense)"
    lines = {int(line.rpartition(":")[2]) for k in p.kernels for line in k.lines}
    assert {line_of("the features"), line_of("the layers")} <= lines
    assert {c.name for c in p.cells} >= {"Net.features.0", "Net.layers.0", "Net.layers.1"}
    assert sum(c.seconds for c in p.cells) == pytest.approx(sum(k.seconds for k in p.kernels))
    assert sum(line.share for line in p.lines) == pytest.approx(1.0)


def test_derivatives_name_what_they_are_of() -> None:
    net = Net()
    x = ms.Tensor(np.ones((4, 8), np.float32))
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    gradient(x)
    for step in (gradient, ms.jit(lambda x: gradient(x))):
        step(x)
        with profile() as p:
            step(x)
        derived = [k for k in p.kernels if k.name.startswith("grad Dense")]
        assert derived and all(k.lines for k in derived)
        assert {line_of("the features"), line_of("the layers")} <= {
            int(line.rpartition(":")[2]) for k in derived for line in k.lines
        }


def test_eager_cells_are_told_apart() -> None:
    net = Net()
    x = ms.Tensor(np.ones((4, 8), np.float32))
    net(x)
    with profile() as p:
        net(x)
    assert {c.name for c in p.cells} >= {"Net.features.0", "Net.features.1", "Net.layers.0", "Net.layers.1", "Net"}
    assert {a.kind for a in p.report.recording.asked} == {"operation", "cell"}


def test_phases_share_the_wall_time() -> None:
    x = ms.Tensor(np.ones(1000, np.float32))
    with profile() as p:
        ms.jit(lambda x: ops.tanh(x) * 3.7 + x)(x)
    names = {phase.name for phase in p.phases}
    assert {"staging", "passes", "lowering", "code generation", "run", "Python between"} <= names
    assert sum(phase.seconds for phase in p.phases) == pytest.approx(p.report.seconds)
    assert sum(phase.share for phase in p.phases) == pytest.approx(1.0)
    assert all(phase.seconds >= 0 for phase in p.phases)


def test_waiting_for_data_is_a_phase() -> None:
    rows = ms.dataset.NumpySlicesDataset(np.arange(6, dtype=np.float32)).batch(2)
    with profile() as p:
        for (x,) in rows.create_tuple_iterator(num_epochs=1):
            x + x
    (found,) = [phase for phase in p.phases if phase.name == "dataset"]
    assert found.count == 4


def test_instants_belong_to_the_innermost_interval() -> None:
    nested = [(0, 100, "a"), (10, 40, "b"), (20, 30, "a"), (60, 150, "c")]
    seconds, counts = exclusive(nested, 0, 120)
    assert seconds == {"a": 40, "b": 20, "c": 40} and counts == {"a": 2, "b": 1, "c": 1}


def test_memory_knows_what_is_alive_at_the_peak() -> None:
    x = ms.Tensor(np.ones((256, 256), np.float32))
    x + x, x * x
    with profile() as p:
        a = x + x  # the long one
        b = x * x
        del b
        c = x * x
        del c
    memory = p.memory
    assert (memory.allocations, memory.frees, memory.allocated) == (3, 2, 3 * 4 * 256 * 256)
    assert memory.peak - memory.baseline == 2 * 4 * 256 * 256
    assert [(b.name, b.nbytes) for b in memory.alive] == [("add", 4 * 256 * 256), ("mul", 4 * 256 * 256)]
    assert memory.alive[0].line.endswith(f":{line_of('the long one')}") and memory.alive[0].end is None
    assert memory.timeline[0][1] == memory.baseline and memory.timeline[-1][1] == memory.baseline + 4 * 256 * 256
    assert any(nbytes == 4 * 256 * 256 for _, nbytes in memory.before)
    del a


def test_the_arena_is_opened() -> None:
    fn = ms.jit(lambda x: (ops.matmul(ops.exp(x), ops.exp(x)) + 1).sum())
    x = ms.Tensor(np.ones((64, 64), np.float32))
    fn(x)
    with profile() as p:
        fn(x)
    contents = p.memory.arena
    assert contents and contents == sorted(contents, key=lambda c: -c.nbytes)
    assert {c.name for c in contents} >= {"exp"} and sum(c.nbytes for c in contents) >= 2 * 4 * 64 * 64


def test_loops_and_branches_do_not_count_twice() -> None:
    @ms.jit
    def fn(x: Any) -> Any:
        while x.sum() < 1000:
            x = x * 2
        return x

    x = ms.Tensor(np.ones(8, np.float32))
    fn(x)
    with profile() as p:
        fn(x)
    kinds = {k.kind: k for k in p.kernels}
    assert kinds["while"].count == 1 and kinds["while"].bytes == 0
    run = [phase.seconds for phase in p.phases if phase.name == "run"]
    assert sum(k.seconds for k in p.kernels) <= run[0]
    (double,) = [k for k in p.kernels if "mul" in k.primitives]
    assert double.count == 7


def test_segments_and_breaks_are_told() -> None:
    @ms.jit
    def fn(x: Any) -> Any:
        y = ops.exp(x)
        if float(y.sum()) > 1:
            y = y + 1
        return y

    x = ms.Tensor([1.0, 2.0])
    fn(x)
    with profile() as p:
        fn(x)
        fn(x)
    (found,) = p.segments
    assert found.function.endswith("fn") and found.calls == 2 and found.segments == 2
    assert "float()" in found.breaks[0] or "needs the value" in found.breaks[0]
    assert any(phase.name == "live" for phase in p.phases)
    assert "ran 2 times as 2 compiled segments" in p.table()


def test_host_steps_are_told() -> None:
    x = ms.Tensor(np.eye(3, dtype=np.float32) * 4)
    fn = ms.jit(lambda x: ops.cholesky(x) + 1)
    fn(x)
    with profile() as p:
        fn(x)
    host = p.host_steps
    if host:
        assert host[0].kind == "host" and host[0].bytes == 2 * 4 * 9 and "NumPy" in p.table()
    assert all(k.kind != "host" for k in p.kernels if k not in host)


def test_all_threads_are_seen() -> None:
    x = ms.Tensor([1.0, 2.0])
    x * x
    barrier = threading.Barrier(3)

    def work() -> None:
        for _ in range(20):
            x * x
        barrier.wait()

    with profile() as p:
        workers = [threading.Thread(target=work, name=f"worker {k}") for k in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert sum(k.count for k in p.kernels) == 60
    threads = {s.thread for s in p.report.slices}
    assert {p.report.recording.thread_names[t] for t in threads} == {"worker 0", "worker 1", "worker 2"}


def test_a_decorated_function_keeps_its_last_profile() -> None:
    @profile()
    def double(x: Any) -> Any:
        return x + x

    assert double(ms.Tensor([1.0])).tolist() == [2.0] and double.__name__ == "double"
    assert [k.name for k in double.profile.kernels] == ["add"]


def test_one_profile_at_a_time() -> None:
    with profile(), pytest.raises(RuntimeError, match="another profile is being taken"):
        profile().start()
    made = profile()
    with pytest.raises(RuntimeError, match="has not begun"):
        made.stop()
    with pytest.raises(RuntimeError, match="before it has ended"):
        made.table()


def test_an_error_ends_the_profile() -> None:
    made = profile()
    with pytest.raises(ZeroDivisionError), made:
        ms.Tensor([1.0]) + 1
        1 / 0
    assert [k.name for k in made.kernels] == ["add"]


def test_results_are_the_same_while_profiled() -> None:
    net = Net()
    x = ms.Tensor(np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32))
    step = ms.value_and_grad(net, None, net.trainable_params())
    plain = step(x)
    with profile():
        seen = step(x)
    assert plain[0].asnumpy() == seen[0].asnumpy()
    for a, b in zip(plain[1], seen[1]):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_the_bound_is_what_takes_longer() -> None:
    x = ms.Tensor(np.ones((256, 256), np.float32))
    big = ms.Tensor(np.ones(1 << 20, np.float32))
    ops.matmul(x, x), big + big, big[:2] + big[:2]
    with profile() as p:
        ops.matmul(x, x)
        big + big
    bounds = {k.primitives[-1]: k for k in p.kernels if k.flops}
    assert bounds["matmul"].bound == "compute" and bounds["add"].bound == "memory"
    assert all(0 < k.efficiency <= 1 for k in bounds.values())


def test_tables_show_everything() -> None:
    net = Net()
    x = ms.Tensor(np.ones((4, 8), np.float32))
    net(x)
    with profile() as p:
        net(x)
    text = p.table(rows=3)
    for part in ("wall time", "a test: 2 threads", "kernels", "source lines", "Cells", "phases", "memory", "and "):
        assert part in text
    assert str(p) == p.table()


def test_a_machine_that_was_measured_too_slow_is_told() -> None:
    slow = Machine("slow", 1, (1 << 16, 1 << 24), {1: (1e3, 1e3)}, {1: 1e3})
    x = ms.Tensor(np.ones(1000, np.float32))
    for limits, outrun in ((slow, True), (Machine("fast", 1, (1, 2), {1: (1e15, 1e15)}, {1: 1e18}), False)):
        with ms.profile(machine=limits) as p:
            x + x
        assert p.report.outrun is outrun and ("measure it anew" in p.table()) is outrun
        assert p.kernels[0].efficiency <= 1


def test_steps_inside_recursions_are_told_to_have_no_place() -> None:
    def factorial(n: Any) -> Any:
        return n if n < 2 else n * factorial(n - 1)

    fn = ms.jit(lambda n: factorial(n))
    assert int(fn(ms.Tensor(5))) == 120
    with profile() as p:
        fn(ms.Tensor(5))
    (called,) = [k for k in p.kernels if k.kind == "call"]
    assert called.count == 1 and "factorial" in called.name
    assert p.report.missed and "inside of recursive functions" in p.table()


def test_operations_of_several_kernels_say_whose_they_are() -> None:
    x = ms.Tensor(np.ones((4, 64, 64), np.float32))
    ops.cumsum(ops.matmul(x, x), 0)
    with profile() as p:
        ops.matmul(x, x)
        ops.softmax(x, axis=-1)
    names = {k.name for k in p.kernels}
    assert "matmul" in names and any(name == "softmax" or name.startswith("softmax: ") for name in names)
