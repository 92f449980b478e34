"""Libraries compute what compiled functions compute: linked into this process, and run."""

from __future__ import annotations

import ctypes
import platform
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.engines import buffers
from mycel._src.engines.aot.targets import named
from mycel._src.engines.native.llvm.target import host
from mycel._src.foundation.errors import CompileError, Unsupported
from mycel.deploy import build, cpp, targets, web
from mycel.quantisation import quantise
from tests.deploy import random_graphs
from tests.deploy.loaded import Loaded
from tests.deploy.networks import PROGRAMS, LeNet, dense, images, training_step

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
HERE = "x86-64-v2"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_the_same(name: str) -> None:
    make, inputs = PROGRAMS[name]
    ms.set_seed(1)
    program = make()
    if isinstance(program, nn.Cell):
        program.set_train(False)
    expected = ms.jit(program)(*inputs)
    loaded = Loaded(build(program, *inputs, target=HERE, name="program"))
    for _ in range(2):
        found = loaded(*inputs)
        sides = [v if isinstance(v, tuple) else (v,) for v in (found, expected)]
        assert len(sides[0]) == len(sides[1])
        for one, other in zip(*sides):
            np.testing.assert_allclose(one, other.asnumpy(), rtol=2e-5, atol=2e-6)


def test_a_training_step_trains() -> None:
    random = np.random.RandomState(3)
    batches = [(random.randn(4, 1, 28, 28).astype("f4"), random.randint(0, 10, 4).astype("i4")) for _ in range(6)]
    library = build(training_step(), *map(ms.Tensor, batches[0]), target=HERE, name="train")
    assert library.state_bytes > 2 * 4 * 44_000 > library.constant_bytes
    assert library.arena_bytes <= 256 * 1024
    step, loaded = ms.jit(training_step()), Loaded(library)
    for x, y in batches:
        assert abs(float(loaded(x, y)) - float(step(ms.Tensor(x), ms.Tensor(y)))) < 1e-6


def test_training_takes_little_memory() -> None:
    x, y = images(4, 1, 28, 28), ops.zeros((4,), ms.int32)
    library = build(training_step(), x, y, target="cortex-m4", name="train")
    # The first convolution's result with its mask, the pooled maxima and their places: no less.
    assert library.arena_bytes <= 98_304


def test_layers_alike_share_their_code() -> None:
    for target in ("x86-64-v2", "cortex-m4"):
        few, many = (build(dense(*[16] * n), images(1, 16), target=target, name="alike").code_bytes for n in (4, 12))
        assert many - few < 8 * 60
    # Where sizes differ as well, small processors still have one function.
    sizes = range(8, 8 + 3 * 12, 3)
    code = [build(dense(*sizes[:n]), images(1, 8), target="cortex-m4", name="widths").code_bytes for n in (6, 12)]
    assert code[1] - code[0] < 6 * 120


def test_random_numbers_go_on_from_call_to_call() -> None:
    drop = nn.Dropout(p=0.5).set_train()
    x = ops.ones((4, 50))
    ms.set_seed(5)
    loaded = Loaded(build(drop, x, target=HERE, name="drop"))
    ms.set_seed(5)
    compiled = ms.jit(drop)
    for _ in range(3):
        np.testing.assert_array_equal(loaded(x), compiled(x).asnumpy())


def test_an_index_out_of_range_is_told() -> None:
    table = ms.Parameter(ops.ones((5, 2)), name="table")
    x = ms.Tensor([1, 4], ms.int32)
    loaded = Loaded(build(lambda k: table[k] * 2, x, target=HERE, name="look"))
    assert loaded(x).sum() == 8
    with pytest.raises(IndexError):
        loaded(np.array([1, 5], np.int32))
    assert loaded(x).sum() == 8


# What object files begin with, where they are not ELF.
FORMATS = {
    "wasm32": b"\0asm",
    "ios-arm64": b"\xcf\xfa\xed\xfe",
    "macos-arm64": b"\xcf\xfa\xed\xfe",
    "windows-arm64": b"\x64\xaa",
    "windows-x86-64": b"\x64\x86",
}


@pytest.mark.parametrize("target", targets())
def test_every_target_has_an_object(target: str, tmp_path: Path) -> None:
    library = build(nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU()), images(1, 1, 6, 6), target=target, name="small")
    library.write(tmp_path / "lib")
    raw = (tmp_path / "lib" / "small.o").read_bytes()
    assert raw == library.object and raw.startswith(FORMATS.get(target, b"\x7fELF"))
    header = (tmp_path / "lib" / "small.h").read_text()
    assert f"#define SMALL_ARENA_BYTES {library.arena_bytes}\n" in header
    assert "int small(const float *" in header and "float *result, void *arena);" in header
    assert library.constant_bytes == 2 * 9 * 4 and 0 < library.code_bytes < 1 << 14


def test_what_cannot_be_is_refused() -> None:
    x = images(3, 3)
    with pytest.raises(Unsupported, match="no target 'pdp-11'; there are x86-64,"):
        build(ops.relu, x, target="pdp-11")
    with pytest.raises(ValueError, match="no name of a function in C"):
        build(lambda x: x + 1, x, target=HERE, name="a-b")
    with pytest.raises(Unsupported, match=r"runs in NumPy.*without a runtime"):
        build(lambda x: ops.svd(x)[0], x, target=HERE)
    with pytest.raises(Unsupported, match="known sizes"):
        build(lambda x: x + 1, ms.Tensor(shape=(None, 3), dtype=ms.float32), target=HERE)
    with pytest.raises(Unsupported, match="returns an argument as it is"):
        build(lambda x: (x, x + 1), x, target=HERE)
    with pytest.raises(CompileError, match="not one graph"):
        build(lambda x: x + float(x.asnumpy().sum()), x, target=HERE)


def test_parameters_are_as_they_were() -> None:
    step = training_step()
    before = {id(p): buffers.to_array(p._buf, p._type).copy() for p in step.__closure__[1].cell_contents.parameters}
    build(step, images(4, 1, 28, 28), ops.zeros((4,), ms.int32), target=HERE)
    for p in step.__closure__[1].cell_contents.parameters:
        np.testing.assert_array_equal(p.asnumpy(), before[id(p)])


@pytest.mark.parametrize("target", ["x86-64", HERE, "wasm32"])
def test_random_graphs(target: str, tmp_path: Path) -> None:
    if target == "wasm32" and shutil.which("node") is None:
        pytest.skip("Node is not installed")
    run = random_graphs.runner(target, tmp_path)
    # These sort, draw from several types of floats, and loop.
    for seed in (5, 10, 12):
        assert not random_graphs.check_seed(seed, target, run)


def test_arrays_of_no_elements() -> None:
    kept = ms.Parameter(np.zeros((0, 4), "f4"), name="kept")
    count = ms.Parameter(np.zeros(3, "f4"), name="count")

    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.kept, self.count = nn.Dense(4, 3), kept, count

        def construct(self, x: ms.Tensor) -> tuple[ms.Tensor, ms.Tensor, ms.Tensor]:
            self.kept += x
            self.count += 1.0
            return self.layer(x), self.kept * 2, self.count + 1.0

    nothing = ms.Tensor(np.zeros((0, 4), "f4"))
    made = Loaded(build(Step(), nothing, target=HERE))(nothing)
    assert [v.shape for v in made] == [(0, 3), (0, 4), (3,)]
    np.testing.assert_array_equal(made[2], np.full(3, 2.0, "f4"))
    assert len(build(Step(), nothing, target="cortex-m4").outputs) == 3


def test_state_in_memory_of_the_caller() -> None:
    x, y = images(4, 1, 28, 28), ms.Tensor([1, 2, 3, 0], ms.int32)
    own, lent = (build(training_step(), x, y, target="x86-64", name="train", state=s) for s in ("library", "caller"))
    assert lent.lends and not own.lends and own.state_bytes <= lent.state_bytes < own.state_bytes + 16 * 32
    assert lent.initial_bytes == 0 and f"#define TRAIN_STATE_BYTES {lent.state_bytes}" in lent.header
    assert "void *arena, void *state);" in lent.header and "train_save" not in lent.header
    one, two, reference = Loaded(lent), Loaded(lent), Loaded(own)
    losses = [float(reference(x, y)) for _ in range(3)]
    assert [float(one(x, y)) for _ in range(3)] == losses
    # Another state of the same library has not moved, and begins again where it is asked to.
    assert [float(two(x, y)) for _ in range(2)] == losses[:2]
    two.begin(two.state[1])
    assert float(two(x, y)) == losses[0] and losses[2] < losses[0]
    plain = build(nn.Dense(2, 2), ops.ones((1, 2)), target="x86-64", state="caller")
    assert not plain.lends and "state" not in plain.header
    with pytest.raises(ValueError, match="build: state must be"):
        build(nn.Dense(2, 2), ops.ones((1, 2)), target="x86-64", state="mine")


def test_parameters_that_are_not_trained_take_no_memory_and_no_code() -> None:
    x, y = images(4, 1, 28, 28), ms.Tensor([1, 2, 3, 0], ms.int32)

    def step_of(chosen: str) -> Any:
        net = LeNet()
        parameters = [p for p in net.trainable_params() if chosen in p.name]
        update = nn.Momentum(parameters, 0.05, 0.9)
        derive = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, update.parameters)

        def step(x: Any, y: Any) -> Any:
            loss, gradients = derive(x, y)
            update(gradients)
            return loss

        return build(step, x, y, target="cortex-m4", name="step")

    whole, last, biases = step_of(""), step_of("fc3"), step_of("fc3.bias")
    for less, more in ((last, whole), (biases, last)):
        assert less.state_bytes < more.state_bytes / 10 and less.code_bytes < more.code_bytes
    assert last.arena_bytes < whole.arena_bytes / 2 and biases.arena_bytes <= last.arena_bytes
    assert last.account.products < whole.account.products / 2


def test_headers_of_cpp_and_pages_have_the_state_in_the_library() -> None:
    x, y = images(4, 1, 28, 28), ms.Tensor([1, 2, 3, 0], ms.int32)
    made = build(training_step(), x, y, target="wasm32", state="caller")
    for other in (lambda: web(made), lambda: cpp(made, "nowhere")):
        with pytest.raises(Unsupported, match="build it with state='library'"):
            other()


class Pool:
    """What a library divides its work with: parts on threads, of which the last begins first."""

    def __init__(self, parts: int) -> None:
        self.parts, self.counts, pointer, wide = parts, list[int](), ctypes.c_void_p, ctypes.c_int64
        part = ctypes.CFUNCTYPE(None, pointer, wide, wide)
        self.run = ctypes.CFUNCTYPE(None, pointer, wide, part, pointer)(self._run)

        class Parallel(ctypes.Structure):
            _fields_ = (("pool", pointer), ("run", type(self.run)))

        self.given = Parallel(None, self.run)

    def _run(self, pool: Any, count: int, part: Any, given: Any) -> None:
        self.counts.append(count)
        ends = [count * k // self.parts for k in range(self.parts + 1)]
        threads = [threading.Thread(target=part, args=(given, a, b)) for a, b in zip(ends, ends[1:])][::-1]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("kind", ["floats", "bytes", "training", "state"])
def test_the_caller_divides_the_work(kind: str) -> None:
    ms.set_seed(5)
    more: dict[str, Any] = {}
    x = images(32, 1, 28, 28)
    given: tuple[Any, ...] = (x,)
    if kind in ("training", "state"):
        net, given = training_step(), (x, ms.Tensor([1, 2, 3, 0] * 8, ms.int32))
        more = {"state": "caller" if kind == "state" else "library"}
    else:
        net = LeNet()
        net.set_train(False)
        net = quantise(net, x) if kind == "bytes" else net
    library = build(net, *given, target="x86-64-v2", parallel=True, **more)
    assert "const struct mycel_parallel *parallel);" in library.header and library.divides
    with pytest.raises(Unsupported, match="build it with"):
        cpp(library, "nowhere")
    alone, results = Loaded(library), []
    results.append([np.asarray(alone(*given)) for _ in range(2)])
    for parts in (1, 2, 7):
        several = Loaded(library)
        pool = Pool(parts)
        several.parallel = pool.given
        results.append([np.asarray(several(*given)) for _ in range(2)])
        assert pool.counts and min(pool.counts) > 1
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    for target in ("cortex-m4", "wasm32"):
        with pytest.raises(Unsupported, match="has one thread"):
            build(net, *given, target=target, parallel=True)


def test_one_lane_of_bytes_is_written_alone() -> None:
    values = np.arange(17, dtype=np.int32) - 8
    x = ms.Tensor(values)
    library = build(lambda x: (ops.relu(x).astype(ms.int8), x + 1), x, target="x86-64-v4")
    if not named("x86-64-v4").feature_set <= host().feature_set:
        pytest.skip("this processor has no vectors of 64 bytes")
    small, large = Loaded(library)(x)
    np.testing.assert_array_equal(small, np.maximum(values, 0))
    np.testing.assert_array_equal(large, values + 1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_rounded_without_a_mathematical_library(kind: Any) -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.0, -0.0, np.inf, np.nan, 1e-40, 2**23 - 1, 8388607.5, -4194303.5])
    with np.errstate(all="ignore"):
        x = values.astype(kind)
    for target in ("x86-64", HERE):
        assert Loaded(build(ops.round, ms.Tensor(x), target=target))(x).tobytes() == np.rint(x).tobytes()
    for target in ("cortex-m0plus", "cortex-m4", "armv7-a"):
        assert b"rint" not in build(ops.round, ms.Tensor(x), target=target).object


@pytest.mark.parametrize("kind", [ms.float32, ms.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_memory_need_not_begin_at_vectors(target: str, kind: Any) -> None:
    """Panels of a factor lie in the arena, which begins at a multiple of 16 bytes only."""
    if not named(target).feature_set <= host().feature_set:
        pytest.skip("this processor does not have the instructions")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 17)).astype(kind.numpy), np.array(2.7, kind.numpy)

    def product(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
        return x @ ops.broadcast_to(ops.floor(y), (17, 4))

    loaded = Loaded(build(product, ms.Tensor(x), ms.Tensor(y), target=target, name="product"))
    np.testing.assert_allclose(loaded(x, y), x @ np.full((17, 4), 2.0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum"])
def test_the_first_of_equal_values_beside_padding(name: str) -> None:
    """What is beyond an image is read before what is in it, but not where the order counts."""
    x = np.ones((1, 15), np.float32)
    fill = 0.5 if name == "argmin" else 2.0

    def program(x: ms.Tensor) -> ms.Tensor:
        padded = ops.pad(x, (0, 1, 0, 1), value=fill)
        return getattr(ops, name)(padded, 1)

    wide = np.pad(x, ((0, 1), (0, 1)), constant_values=fill)
    found = Loaded(build(program, ms.Tensor(x), target=HERE, name="beside"))(x)
    np.testing.assert_array_equal(found, getattr(np, name)(wide, 1))


def test_one_lane_of_halves_is_written_alone_backwards() -> None:
    if not named("x86-64-v4").feature_set <= host().feature_set:
        pytest.skip("this processor has no vectors of 64 bytes")
    values = np.where(np.arange(130).reshape(2, 65) % 3, 1, -1).astype(np.float32)
    x = ms.Tensor(values, ms.bfloat16)
    library = build(lambda x: ops.flip(ops.cumprod(ops.flip(x, (1,)), 1), (1,)), x, target="x86-64-v4")
    wanted = np.cumprod(values[:, ::-1], 1)[:, ::-1]
    np.testing.assert_array_equal(np.asarray(Loaded(library)(x)).astype(np.float32), wanted)
