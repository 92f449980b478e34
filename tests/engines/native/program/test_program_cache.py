"""Programs that are kept from one process to the next: what is found, what is not, and that it
computes the same.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.graph import Graph, at, input_node
from mycel._src.compiler.ir.printer import to_text
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import REGISTRY, Primitive, get_item
from mycel._src.compiler.prims.loops import loops
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.engines import buffers
from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.native.program import program_cache
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.program.program import Program
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.report.costs import cost
from mycel._src.foundation.files import code_cache as files
from mycel._src.foundation.python_runtime import garbage_collection
from tests.te.random_programs import drawn


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that the test alone uses."""
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(program_cache, "LEAST", 16)
    return tmp_path / "cache"


def kept(folder: Path) -> list[Path]:
    """The files of programs."""
    return [p for p in folder.glob("programs-*/*/*") if p.is_file()]


def chain(factor: float = 1.5, name: str = "x", length: int = 20, dtype: Any = ms.float32) -> Graph:
    """A graph that is large enough to be kept."""
    x = input_node(tensor_type((3, 5), dtype), name)
    y = x
    for k in range(length):
        y = E.tanh(y * factor) + float(k)
    return Graph([x], [y], f"chain_{name}")


def run(program: Program, *arrays: np.ndarray) -> list[np.ndarray]:
    made = program.entry(*[buffers.from_array(a) for a in arrays])
    values = made if isinstance(made, tuple) else (made,)
    return [buffers.to_array(v, t).copy() for v, t in zip(values, program.outputs)]


class Counted:
    """How many programs a block found and lowered."""

    def __enter__(self) -> Counted:
        self.found, self.lowered = program_cache.counts["found"], Template.lowerings
        return self

    def __exit__(self, *_: Any) -> None:
        self.found, self.lowered = program_cache.counts["found"] - self.found, Template.lowerings - self.lowered


X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)


def test_a_graph_of_one_structure_is_lowered_once(folder: Path) -> None:
    with Counted() as count:
        first, second = compile_native(chain()), compile_native(chain(name="another"))
    assert (count.found, count.lowered) == (1, 1)
    assert len(kept(folder)) == 1
    np.testing.assert_array_equal(run(first, X)[0], run(second, X)[0])
    expected = X.astype(np.float64)
    for k in range(20):
        expected = np.tanh(expected * 1.5) + k
    np.testing.assert_allclose(run(second, X)[0], expected, rtol=1e-5)


def test_graphs_with_operators_of_users_are_kept(folder: Path) -> None:
    def graph(seed: int) -> Graph:
        program = drawn(seed)
        inputs = [input_node(tensor_type((4,) * len(a.shape), a.dtype), a.name) for a in program.inputs]
        whole = loops.node(*inputs, program=program)
        return Graph(inputs, [get_item(whole, k) for k in range(len(program.outputs))], "operator")

    arrays = [np.linspace(-1, 1, 16).reshape(4, 4), np.linspace(0, 1, 4)]
    with Counted() as count:
        first, second, other = compile_native(graph(3)), compile_native(graph(3)), compile_native(graph(5))
    assert (count.found, count.lowered) == (1, 2) and len(kept(folder)) == 2
    for a, b in zip(run(first, *arrays), run(second, *arrays)):
        np.testing.assert_array_equal(a, b)
    assert other is not first


def test_names_are_those_of_the_graph_at_hand() -> None:
    compile_native(chain(name="one"))
    graph = chain(name="other")
    program = compile_native(graph)
    assert program.graph.name == "chain_other"
    assert program.graph.inputs == graph.inputs


def test_every_primitive_of_mycel_is_known_as_such() -> None:
    assert [name for name, prim in REGISTRY.items() if not program_cache._is_own(prim)] == []


def test_primitives_that_a_program_defines_are_not_kept(folder: Path) -> None:
    theirs = Primitive("of_a_program", lambda x: x, expand=lambda x: E.exp(x))
    graph = chain()
    compile_native(Graph(graph.inputs, [theirs(graph.outputs[0])], "theirs"))
    assert kept(folder) == []


def test_small_graphs_are_not_kept(folder: Path) -> None:
    compile_native(chain(length=2))
    assert kept(folder) == []


DIFFERENT: dict[str, Callable[[], Graph]] = {
    "constant": lambda: chain(1.25),
    "length": lambda: chain(length=21),
    "type": lambda: chain(dtype=ms.float64),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_graph_is_another_program(what: str, folder: Path) -> None:
    compile_native(chain())
    with Counted() as count:
        compile_native(DIFFERENT[what]())
    assert (count.found, count.lowered) == (0, 1)
    assert len(kept(folder)) == 2


def test_outputs_over_inputs_are_another_program() -> None:
    plain = compile_native(chain())
    with Counted() as count:
        over = compile_native(chain(), {0: 0})
    assert count.found == 0
    with Counted() as count:
        again = compile_native(chain(), {0: 0})
    assert count.found == 1 and again.template.aliases == {0: 0}
    np.testing.assert_array_equal(run(plain, X)[0], run(over, X)[0])
    np.testing.assert_array_equal(run(plain, X)[0], run(again, X)[0])


def _settings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(program_cache, "settings", [lambda: "tuned otherwise"])


SURROUNDINGS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "Mycel's source": lambda patch: patch.setattr(program_cache, "_source", lambda: "another"),
    "oneDNN": lambda patch: patch.setattr(program_cache.dense, "version", lambda: "9.9.9"),
    "oneDNN's instructions": lambda patch: patch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2"),
    "NumPy": lambda patch: patch.setattr(np, "__version__", "9.9.9"),
    "Python": lambda patch: patch.setattr("platform.python_version", lambda: "3.99"),
    "the machine": lambda patch: patch.setattr(
        program_cache, "host", lambda: replace(host(), cpu="another", features="")
    ),
    "the threads": lambda patch: patch.setattr(program_cache.runtime(), "threads", 17),
    "a setting": _settings,
}


@pytest.mark.parametrize("what", SURROUNDINGS)
def test_other_surroundings_make_another_program(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_native(chain())
    with monkeypatch.context() as patch:
        SURROUNDINGS[what](patch)
        with Counted() as count:
            compile_native(chain())
    assert (count.found, count.lowered) == (0, 1)
    with Counted() as count:
        compile_native(chain())
    assert (count.found, count.lowered) == (1, 0)


def test_the_source_of_the_compiler_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("engines", "compiler/ir", "compiler/loops", "compiler/prims", "compiler/transforms"):
        (tmp_path / "_src" / part).mkdir(parents=True)
        (tmp_path / "_src" / part / "some.py").write_text("A = 1\n")
    (tmp_path / "_src/foundation/settings").mkdir(parents=True)
    for name in ("__init__.py", "_src/foundation/settings/config.py", "_src/foundation/dtype.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(program_cache, "ROOT", tmp_path)
    digest = program_cache._source.__wrapped__
    seen = {digest()}
    (tmp_path / "_src/compiler/prims/some.py").write_text("A = 2\n")
    seen.add(digest())
    (tmp_path / "_src/compiler/ir/other.py").write_text("")
    seen.add(digest())
    assert len(seen) == 3 and None not in seen
    last = digest()
    for path in tmp_path.rglob("*.py"):
        os.utime(path, (path.stat().st_mtime - 60,) * 2)
    monkeypatch.setattr(program_cache, "_SETTLED", -1.0)
    assert digest() == last
    monkeypatch.setattr(program_cache, "open", None, raising=False)
    assert digest() == last
    (tmp_path / "_src/foundation/settings/config.py").unlink()
    assert digest() is None


def test_nothing_is_kept_where_the_source_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "_source", lambda: None)
    (result,) = run(compile_native(chain()), X)
    assert result.shape == (3, 5) and kept(folder) == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-7],
    "cut in half": lambda data: data[: len(data) // 2],
    "a bit turned": lambda data: data[:300] + bytes([data[300] ^ 4]) + data[301:],
    "longer": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_made_anew(damage: str, folder: Path) -> None:
    (good,) = run(compile_native(chain()), X)
    (path,) = kept(folder)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    with Counted() as count:
        (again,) = run(compile_native(chain()), X)
    assert (count.found, count.lowered) == (0, 1)
    np.testing.assert_array_equal(again, good)
    with Counted() as count:
        compile_native(chain())
    assert (count.found, count.lowered) == (1, 0)


def test_a_file_under_another_name_is_not_taken(folder: Path) -> None:
    compile_native(chain())
    (mine,) = kept(folder)
    compile_native(chain(1.25))
    (theirs,) = set(kept(folder)) - {mine}
    theirs.write_bytes(mine.read_bytes())
    with Counted() as count:
        (result,) = run(compile_native(chain(1.25)), X)
    assert count.found == 0
    expected = X.astype(np.float64)
    for k in range(20):
        expected = np.tanh(expected * 1.25) + k
    np.testing.assert_allclose(result, expected, rtol=1e-5)


class _Harmful:
    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


class _Function:
    """Names a function of the engine, which is no class."""

    def __reduce__(self) -> Any:
        return compile_native, (None,)


@pytest.mark.parametrize("content", [_Harmful(), _Function(), subprocess.Popen])
def test_a_file_cannot_call_anything(content: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_native(chain())
    (path,) = kept(folder)
    monkeypatch.chdir(folder)
    files.write(path.parent.parent.name, path.name, pickle.dumps((None, content), protocol=5))
    with Counted() as count:
        (result,) = run(compile_native(chain()), X)
    assert (count.found, count.lowered) == (0, 1)
    assert result.shape == (3, 5) and not (folder / "harm").exists()


def test_no_file_is_made_where_the_cache_is_off(folder: Path) -> None:
    ms.set_context(enable_compile_cache=False)
    try:
        with Counted() as count:
            compile_native(chain())
            compile_native(chain())
    finally:
        ms.set_context(enable_compile_cache=True)
    assert (count.found, count.lowered) == (0, 2)
    assert not folder.exists()


# Programs of all kinds


class Small(nn.Cell):
    """Convolution, normalisation, pooling and a product."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 4, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(4)
        self.pool, self.flat, self.fc = nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(36, 5)

    def construct(self, x: Any) -> Any:
        return self.fc(self.flat(self.pool(ops.relu(self.bn(self.conv(x))))))


def _training() -> Any:
    ms.set_seed(3)
    net = Small()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
    train.set_train()
    x = ms.Tensor(np.sin(np.arange(4 * 2 * 36.0)).reshape(4, 2, 6, 6).astype(np.float32))
    y = ms.Tensor(np.array([0, 1, 2, 4], np.int32))
    run = ms.jit(train)
    losses = [run(x, y).asnumpy() for _ in range(3)]
    return [*losses, *[p.asnumpy() for p in net.get_parameters()]]


def _gradient(f: Callable[..., Any], *arrays: np.ndarray) -> Any:
    function = ms.jit(lambda *given: ms.value_and_grad(f, tuple(range(len(given))))(*given))
    value, grads = function(*[ms.Tensor(a) for a in arrays])
    return [value.asnumpy(), *[g.asnumpy() for g in (grads if isinstance(grads, tuple) else (grads,))]]


def _branches() -> Any:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            y = ops.exp(x) * 2 + ops.sin(x)
        else:
            y = ops.cos(x) - 1
        for _ in range(6):
            y = ops.tanh(y * 1.25) + x
        return y.sum()

    return _gradient(f, X) + _gradient(f, -X - 1)


def _loop() -> Any:
    def f(x: Any) -> Any:
        while x.sum() < 40:
            x = x * 1.5 + ops.sigmoid(x) + 0.1
        for _ in range(6):
            x = ops.tanh(x * 1.25) + 0.5
        return x.sum()

    return _gradient(f, np.abs(X))


def _constants() -> Any:
    table = np.arange(1000.0, dtype=np.float32).reshape(200, 5)

    def f(x: Any) -> Any:
        y = x + ms.Tensor(table)[37:40]
        for k in range(8):
            y = ops.sin(y * 1.25) + ops.cumsum(y, k % 2) - ops.flip(y, (1,))
        return ops.concat((y, y.astype(ms.bfloat16).astype(ms.float32), ops.sort(y)[0]), 1)

    return [ms.jit(f)(ms.Tensor(X)).asnumpy()]


def _empty() -> Any:
    def f(x: Any) -> Any:
        y = x
        for _ in range(8):
            y = ops.exp(y) - 0.5
        return y, y[:, :0] * 2, (y > 0).any()

    return [t.asnumpy() for t in ms.jit(f)(ms.Tensor(X))]


KINDS: dict[str, Callable[[], Any]] = {
    "training": _training,
    "branches": _branches,
    "loop": _loop,
    "constants": _constants,
    "empty": _empty,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_as_when_it_was_made(kind: str, folder: Path) -> None:
    work = KINDS[kind]
    ms.set_context(enable_compile_cache=False)
    try:
        expected = work()
    finally:
        ms.set_context(enable_compile_cache=True)
    made = work()
    assert kept(folder)
    with Counted() as count:
        found = work()
    assert count.found >= 1
    for a, b, c in zip(expected, made, found):
        assert a.tobytes() == b.tobytes() == c.tobytes()


def test_a_recursion_is_made_in_each_process(folder: Path) -> None:
    def power(x: Any, n: Any) -> Any:
        if n <= 0:
            return x * 0 + 1
        return x * power(x, n - 1)

    def f(x: Any, n: Any) -> Any:
        y = power(x, n)
        for _ in range(8):
            y = ops.tanh(y) + 1
        return y

    for _ in range(2):
        result = ms.jit(f)(ms.Tensor(X), ms.Tensor(3)).asnumpy()
        expected = X.astype(np.float64) ** 3
        for _ in range(8):
            expected = np.tanh(expected) + 1
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert kept(folder) == []


def test_steps_tell_where_the_program_at_hand_has_them() -> None:
    from mycel._src.compiler.ir.graph import Where

    def staged(first: int) -> Graph:
        x = input_node(tensor_type((3, 5), ms.float32), "x")
        y = x
        for k in range(20):
            with at(Where("model.py", first + k)):
                y = E.tanh(y * 2.0)
        return Graph([x], [y], "placed")

    lines = []
    for first in (10, 100):
        program = compile_native(staged(first))
        places = [n.where for n in program.graph.nodes]
        lines.append([p.line - first for p in places if p is not None])
        assert program.all_steps[0].node is not None and program.all_steps[0].node.where is not None
        assert program.all_steps[0].node.where.line >= first
    assert lines[0] == lines[1] and len(set(lines[0])) == 20


def test_the_account_of_its_steps_is_the_same() -> None:
    def staged() -> Graph:
        x, w = input_node(tensor_type((64, 96), ms.float32), "x"), input_node(tensor_type((96, 32), ms.float32), "w")
        y = matmul(x, w)
        for k in range(8):
            y = E.tanh(y * (k + 0.5)) + y
        total = reduce_sum(y, axes=(1,), keepdims=True)
        return Graph([x, w], [y - total, total])

    made = compile_native(staged())
    with Counted() as count:
        found = compile_native(staged())
    assert count.found == 1
    assert [s.kind for s in found.all_steps] == [s.kind for s in made.all_steps]
    assert [s.node and s.node.prim for s in found.all_steps] == [s.node and s.node.prim for s in made.all_steps]
    assert [cost(s) for s in found.all_steps] == [cost(s) for s in made.all_steps]
    assert cost(found.all_steps[0]).flops > 0
    assert (found.arena_bytes, found.output_bytes) == (made.arena_bytes, made.output_bytes)
    assert to_text(found.graph) == to_text(made.graph)


# Processes

PROGRAM = """
import numpy as np, mycel as ms
from mycel import ops
from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.native.program import program_cache as stored
from mycel._src.engines.native.program.template import Template
def f(x):
    for _ in range(10):
        x = ops.tanh(x * 1.5) + ops.sin(x)
    return (x * x).sum()
before = Template.lowerings
x = ms.Tensor(np.linspace(0, 1, 300).astype(np.float32))
value, grad = ms.jit(lambda x: ms.value_and_grad(f)(x))(x)
print(value.asnumpy().tobytes().hex(), hash(grad.asnumpy().tobytes()), stored.counts["found"])
"""


def process(folder: Path) -> subprocess.Popen[str]:
    program = folder.parent / "program.py"
    program.write_text(PROGRAM)
    root = str(Path(ms.__file__).parent.parent)
    environment = {**os.environ, "MYCEL_CACHE": str(folder), "PYTHONHASHSEED": "0", "PYTHONPATH": root}
    return subprocess.Popen(
        [sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_processes_at_once_and_one_after_them(folder: Path) -> None:
    running = [process(folder) for _ in range(3)]
    results = [p.communicate(timeout=100) for p in running]
    results.append(process(folder).communicate(timeout=100))
    assert all(errors == "" for _, errors in results)
    values = [out.split() for out, _ in results]
    assert len({(v[0], v[1]) for v in values}) == 1
    assert int(values[-1][2]) >= 1
    assert kept(folder) and not [p for p in folder.rglob("*") if p.name.startswith(".new")]


def test_threads_at_once() -> None:
    results: list[np.ndarray] = []

    def work() -> None:
        results.extend(run(compile_native(chain()), X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and len({r.tobytes() for r in results}) == 1


# Garbage


@pytest.fixture
def collecting() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    if not was_on:
        gc.disable()


def test_garbage_is_collected_again_after_the_last_block(collecting: None) -> None:
    with garbage_collection.left_alone():
        with garbage_collection.left_alone():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), garbage_collection.left_alone():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off(collecting: None) -> None:
    gc.disable()
    with garbage_collection.left_alone():
        pass
    assert not gc.isenabled()
