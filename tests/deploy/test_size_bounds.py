"""Sizes as arguments of libraries: each within the bounds gives what compiled functions give."""

from __future__ import annotations

import ctypes
import itertools
import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.ir.dims import maximum, symbol
from mycel._src.engines.aot.size_arguments import Counts, Points, Size
from mycel._src.foundation.errors import Unsupported
from mycel.deploy import Library, build
from mycel.quantisation import quantise
from tests.deploy import random_graphs
from tests.deploy.boards import missing_tools, run
from tests.deploy.loaded import Loaded
from tests.deploy.networks import Attention, LeNet, Recurrent, dense, images, training_step

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs code for x86-64")
HERE = "x86-64-v2"


class Encoder(nn.Cell):
    """An encoder of words with a mask of padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.encoder, self.out = nn.TransformerEncoder(layer, 1), nn.Dense(16, 3)

    def construct(self, words: Any, padded: Any) -> Any:
        return self.out(self.encoder(self.words(words), src_key_padding_mask=padded))


class Gated(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.GRU(5, 6, batch_first=True), nn.Dense(6, 2)

    def construct(self, x: Any) -> Any:
        return self.out(self.layer(x)[0][:, -1])


def rows(height: int) -> nn.Cell:
    """Return convolutions over images of any height."""
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2)]
    return nn.SequentialCell(*layers, nn.Conv2d(4, height, 3, stride=2, pad_mode="pad", padding=1))


def averaged() -> nn.Cell:
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(4, 3))


def _rounds(x: Any) -> Any:
    """A loop over the rows of the argument, with a branch."""
    total = ops.zeros((x.shape[1],), ms.float32)
    for k in range(x.shape[0]):
        total = total * 0.5 + x[k] if total.sum() < 1 else total - x[k]
    return total


def _summed(x: Any) -> Any:
    k, total = ops.full((), 0, dtype=ms.int32), x[0] * 0
    while k < x.shape[0]:
        total = total + x[k] * (k + 1)
        k = k + 1
    return total, ops.concat([x, x * 2], 0), x.cumsum(0), x.argmax(0)


def to(most: int, least: int = 1, **kwargs: Any) -> Any:
    return ms.Symbol(max=most, min=least, unique=True, **kwargs)


def some(*shape: Any, kind: Any = ms.float32) -> ms.Tensor:
    return ms.Tensor(shape=list(shape), dtype=kind)


BATCH, LENGTH, HEIGHT = to(5), to(6), to(20, 8)
PROGRAMS: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "perceptron": (lambda: dense(12, 16, 5), (some(BATCH, 12),)),
    "lenet": (LeNet, (some(BATCH, 1, 28, 28),)),
    "height": (lambda: rows(4), (some(2, 1, HEIGHT, 16),)),
    "batch and height": (averaged, (some(BATCH, 1, HEIGHT, 16),)),
    "lstm": (Recurrent, (some(2, LENGTH, 5),)),
    "gru": (Gated, (some(BATCH, LENGTH, 5),)),
    "attention": (Attention, (some(BATCH, LENGTH, kind=ms.int32),)),
    "encoder": (Encoder, (some(BATCH, LENGTH, kind=ms.int32), some(BATCH, LENGTH, kind=ms.bool_))),
    "loop": (lambda: _rounds, (some(LENGTH, 3),)),
    "while": (lambda: _summed, (some(LENGTH, 3),)),
    "steps of two": (lambda: lambda x: (x[:-1:2] - x[1::2]).sum(1), (some(to(13, 3, divisor=2, remainder=1), 4),)),
}


def network(name: str) -> Any:
    ms.set_seed(1)
    np.random.seed(1)
    made = PROGRAMS[name][0]()
    return made.set_train(False) if isinstance(made, nn.Cell) else made


def points(library: Library) -> Iterator[dict[str, int]]:
    """Yield all sizes of a library, by symbol."""
    for values in itertools.product(*[range(s.low, s.high + 1) for s in library.sizes]):
        yield {s.symbol: v for s, v in zip(library.sizes, values)}


def arrays(library: Library, sizes: dict[str, int]) -> list[np.ndarray[Any, Any]]:
    """Return inputs of a library for some sizes."""
    draw, made = np.random.RandomState(sum(sizes.values())), []
    for argument in library.inputs:
        shape = tuple(evaluate(d, sizes) for d in argument.type.shape)
        kind = argument.type.dtype.numpy
        values = draw.randn(*shape) if kind == np.float32 else draw.randint(0, 10, shape)
        if kind == np.bool_:
            values = values < 3
            values[..., 0] = False
        made.append(values.astype(kind))
    return made


def close(found: Any, expected: Any) -> None:
    sides = [v if isinstance(v, (tuple, list)) else (v,) for v in (found, expected)]
    assert len(sides[0]) == len(sides[1])
    for one, other in zip(*sides):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other.asnumpy(), rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_gives_the_same(name: str) -> None:
    library = build(network(name), *PROGRAMS[name][1], target=HERE, name="program")
    loaded, compiled = Loaded(library), ms.jit(network(name))
    for sizes in points(library):
        given = arrays(library, sizes)
        close(loaded(*given), compiled(*map(ms.Tensor, given)))


@pytest.mark.parametrize("name", ["perceptron", "lenet", "height", "lstm", "gru", "encoder"])
def test_memory_is_that_of_the_largest_and_code_is_there_once(name: str) -> None:
    for target in (HERE, "cortex-m4"):
        library = build(network(name), *PROGRAMS[name][1], target=target, name="program")
        largest = arrays(library, {s.symbol: s.high for s in library.sizes})
        fixed = build(network(name), *map(ms.Tensor, largest), target=target, name="program", stripes=False)
        assert library.forms == 1 and library.constant_bytes == fixed.constant_bytes
        assert fixed.arena_bytes <= library.arena_bytes <= fixed.arena_bytes * 4 // 3 + 64
        if name != "encoder":
            assert library.account.products == fixed.account.products


ELSEWHERE = [("cortex-m4", ("perceptron", "height", "gru", "encoder", "loop", "while", "steps of two"))]
ELSEWHERE += [("wasm32", ("perceptron", "encoder")), ("riscv64", ("perceptron", "encoder"))]


@pytest.mark.parametrize(("target", "name"), [(t, n) for t, names in ELSEWHERE for n in names])
def test_other_machines_give_the_same(target: str, name: str, tmp_path: Path) -> None:
    tools = random_graphs.EMULATED.get(target, ("node",))
    missing = missing_tools() if target == "cortex-m4" else next((t for t in tools if shutil.which(t) is None), "")
    if missing:
        pytest.skip(f"needs {missing}")
    library = build(network(name), *PROGRAMS[name][1], target=target, name="f")
    every = [arrays(library, sizes) for sizes in points(library)]
    calls = [every[0], every[len(every) // 2], every[-1]]
    if target == "cortex-m4":
        results: list[Any] = list(run(library, calls, tmp_path).results)
    else:
        one = random_graphs.runner(target, tmp_path)
        results = [one(library, given) for given in calls]
    compiled = ms.jit(network(name))
    for found, given in zip(results, calls):
        close(found, compiled(*map(ms.Tensor, given)))


def test_a_training_step_with_batches_of_any_size() -> None:
    batch = to(4)
    example = (some(batch, 1, 28, 28), some(batch, kind=ms.int32))
    for state in ("library", "caller"):
        library = build(training_step(), *example, target=HERE, name="train", sizes={"batch": batch}, state=state)
        loaded, step = Loaded(library), ms.jit(training_step())
        random = np.random.RandomState(3)
        for n in (4, 1, 3, 2, 1, 4):
            x, y = random.randn(n, 1, 28, 28).astype("f4"), random.randint(0, 10, n).astype("i4")
            assert abs(float(loaded(x, y)) - float(step(ms.Tensor(x), ms.Tensor(y)))) < 2e-6


def _looped(form: str) -> Any:
    """Return the loss and gradient of a loop over the rows of an argument."""
    weights = ms.Parameter(ms.Tensor(np.random.RandomState(2).randn(3, 3).astype(np.float32) * 0.3), name="weights")

    def loss(x: Any) -> Any:
        h = x[0]
        if form == "for":
            for k in range(x.shape[0]):
                h = ops.tanh(ops.matmul(h, weights) + x[k])
        elif form == "steps":
            k = 1
            while k < x.shape[0] - 1:
                h = ops.tanh(ops.matmul(h, weights) + x[k])
                k = k + 2
        elif form == "early":
            k = ops.full((), 0, dtype=ms.int32)
            while k < 7 and h.sum() < 1.5:
                h = h + ops.tanh(ops.matmul(h, weights) + x[0]) ** 2
                k = k + 1
        elif form == "nested":
            for k in range(x.shape[0]):
                for j in range(k * 0 + x.shape[0]):
                    h = ops.tanh(ops.matmul(h, weights) + x[k] * x[j])
        else:
            while h.sum() < 5:
                h = h + ops.tanh(ops.matmul(h, weights)) ** 2 + 0.1
        return (h * h).sum()

    derive = ms.value_and_grad(loss, 0, [weights])
    return lambda x: (lambda found: (found[0], found[1][0], found[1][1][0]))(derive(x))


@pytest.mark.parametrize("form", ["for", "steps", "early", "nested"])
def test_gradients_of_loops_with_a_bound(form: str, tmp_path: Path) -> None:
    compiled = ms.jit(_looped(form))
    for target in (HERE, *(["cortex-m4"] if not missing_tools() else [])):
        library = build(_looped(form), some(to(6, 3 if form == "steps" else 1), 3), target=target, name="f")
        every = [arrays(library, sizes) for sizes in points(library)][:: 2 if target == HERE else 3]
        if target == HERE:
            loaded = Loaded(library)
            results: list[Any] = [loaded(*given) for given in every]
        else:
            results = list(run(library, every, tmp_path).results)
        for found, given in zip(results, every):
            close(found, compiled(*map(ms.Tensor, given)))
    fixed = Loaded(build(_looped(form), images(5, 3), target=HERE))
    close(fixed(images(5, 3)), compiled(images(5, 3)))


def test_gradients_of_loops_without_a_bound_are_refused_by_line() -> None:
    with pytest.raises(
        Unsupported, match=r"while_grad at .*test_size_bounds.py:\d+ keeps states of a loop whose rounds have"
    ):
        build(_looped("data"), some(to(6), 3), target=HERE)


@pytest.mark.parametrize("name", ["lenet", "encoder"])
def test_the_caller_divides_work_of_any_size(name: str) -> None:
    from tests.deploy.test_building import Pool

    batch, length = to(40), to(64)
    example = {"lenet": (some(batch, 1, 28, 28),)}.get(
        name, (some(batch, length, kind=ms.int32), some(batch, length, kind=ms.bool_))
    )
    library = build(network(name), *example, target=HERE, name="f", parallel=True)
    alone, several, pool = Loaded(library), Loaded(library), Pool(3)
    several.parallel = pool.given
    for sizes in [(1, 1), (2, 3), (40, 64), (39, 9)] if name == "encoder" else [(1,), (7,), (40,)]:
        given = arrays(library, {s.symbol: n for s, n in zip(library.sizes, sizes)})
        np.testing.assert_array_equal(several(*given), alone(*given))
    assert pool.counts


def test_sizes_out_of_the_bounds_touch_nothing() -> None:
    batch, odd = to(9, 2), to(13, 3, divisor=2, remainder=1)
    library = build(
        lambda x, y: (x.sum() + y, x * 2), some(batch, 3), some(odd), target=HERE, sizes={"odd": odd, "batch": batch}
    )
    assert "int model(int32_t odd, int32_t batch, const float *x, const float *y," in library.header
    for line in ("MODEL_ODD_MIN 3", "MODEL_ODD_MAX 13", "MODEL_BATCH_MIN 2", "MODEL_BATCH_MAX 9", "x[batch][3]"):
        assert line in library.header
    loaded = Loaded(library)
    memory = np.full(4096, 171, np.uint8)
    place = [ctypes.c_void_p(memory.ctypes.data + 1024 * k) for k in range(4)]
    for wrong in [(1, 4), (15, 4), (4, 4), (5, 1), (5, 10), (5, -1), (-5, 5), (0, 0), (2**31 - 1, 4), (5, -(2**31))]:
        assert loaded.function(*wrong, *place, ctypes.c_void_p(memory.ctypes.data)) == 2
        assert (memory == 171).all()
    with pytest.raises(ValueError, match=r"model takes x\[batch\]\[3\], y\[odd\]; odd from 3 to 13 in steps of 2"):
        library.shapes((2, 3), (4,))


def test_other_programs_serve_what_one_does_not() -> None:
    batch = to(7)

    def program(x: Any) -> Any:
        return x * 2 if x.shape[0] > 3 else ops.exp(x).sum(0, keepdims=True) + x

    library = build(program, some(batch, 2), target=HERE, sizes={"batch": batch})
    assert library.forms == 2 and "with 2 programs" in str(library)
    loaded, compiled = Loaded(library), ms.jit(program)
    for n in range(1, 8):
        x = images(n, 2)
        close(loaded(x), compiled(x))

    def pinned(x: Any) -> Any:
        return x.reshape(-1) * ops.arange(int(x.shape[0]) * 2 + 0 * hash(str(x.shape[0])))

    with pytest.raises(Unsupported, match="more than 8 programs for different sizes; none yet serves n="):
        build(pinned, some(wide := to(40), 2), target=HERE, sizes={"n": wide})


def test_what_cannot_be_bounded_is_refused() -> None:
    for shape in ([None, 3], [ms.Symbol(), 3]):
        with pytest.raises(Unsupported, match="x_0 is a size without a bound; .*give Symbol"):
            build(lambda x: x + 1, some(*shape), target=HERE)
    with pytest.raises(Unsupported, match="runs in NumPy"):
        build(lambda x: ops.svd(x)[0], some(to(4), 3), target=HERE)
    with pytest.raises(Unsupported, match="reduce_sum at .*; this is for n=1, which no other program serves"):
        build(lambda x: x[: x.shape[0] // 2].sum(0), some(n := to(4), 3), target=HERE, sizes={"n": n})
    with pytest.raises(ValueError, match="no input has the size batch"):
        build(lambda x: x + 1, some(to(4), 3), target=HERE, sizes={"batch": to(4)})
    with pytest.raises(ValueError, match="unique=True"):
        build(lambda x: x + 1, some(to(4), 3), target=HERE, sizes={"batch": ms.Symbol(max=4)})
    with pytest.raises(ValueError, match="'x' is the name of a size and of another argument"):
        build(lambda x: x + 1, some(n := to(4), 3), target=HERE, sizes={"x": n})
    with pytest.raises(ValueError, match="no name of a function in C"):
        build(lambda x: x + 1, some(n := to(4), 3), target=HERE, sizes={"a b": n})
    with pytest.raises(Unsupported, match="combinations of sizes"):
        build(lambda x: x + 1, some(to(5000), to(5000)), target=HERE)
    with pytest.raises(Unsupported, match="stripes are of images of known sizes"):
        build(network("lenet"), some(to(4), 1, 28, 28), target="cortex-m4", stripes=True)
    with pytest.raises(TypeError, match="sizes must be a dict"):
        build(lambda x: x + 1, some(to(4), 3), target=HERE, sizes=[4])  # type: ignore[arg-type]


def test_instructions_for_sizes_give_what_dimensions_are() -> None:
    n, m = symbol("n", 1, 40), symbol("m", 1, 9)
    values = [n * m - 3, (n - 20) // 7, (n - 20) % 7, -(-n // m), maximum(n, 3 * m) * 2, (n * n - 5 * m) // m % 6]
    values += [n // 4 * 4 - n, (7 - n) // 3 * m + 1, (n - 30) * (1 << 33) // 5 % 1000]
    counts = Counts({"n": "%n", "m": "%m"})
    results = [counts.number(v) for v in values]
    body = [*counts.lines]
    for k, value in enumerate(results):
        body += [f"  %at{k} = getelementptr i64, ptr %to, i64 {k}", f"  store i64 {value}, ptr %at{k}"]
    from mycel._src.engines.native.llvm.jit import Modules, machine

    text = "\n".join(["define void @counts(i64 %n, i64 %m, ptr %to) {", *body, "  ret void", "}\n"])
    modules = Modules()
    modules.begin(text)
    (address,) = machine().link(modules.code(text), ["counts"], {})
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
    points = Points([Size("n", "n", 1, 40), Size("m", "m", 1, 9)])
    found = np.zeros(len(values), np.int64)
    for place in range(points.count):
        sizes = points.at(place)
        function(sizes["n"], sizes["m"], found.ctypes.data)
        assert found.tolist() == [evaluate(v, sizes) for v in values]
        assert found.tolist() == [int(points.evaluate(v)[place]) for v in values]
    modules.close()


def test_a_network_of_integers_with_batches_of_any_size() -> None:
    ms.set_seed(1)
    net = quantise(LeNet().set_train(False), images(8, 1, 28, 28))
    batch = to(5)
    for target in (HERE, "cortex-m4"):
        library = build(net, some(batch, 1, 28, 28), target=target, sizes={"batch": batch})
        assert library.forms == 1
        if target == HERE:
            loaded = Loaded(library)
            for n in range(1, 6):
                np.testing.assert_array_equal(loaded(x := images(n, 1, 28, 28)), net(x).asnumpy())
