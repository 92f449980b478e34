"""LeNet on emulated Cortex-M boards: inference and training, with counted instructions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.deploy import build
from tests.deploy.boards import BOARDS, missing_tools, run
from tests.deploy.networks import PROGRAMS, LeNet, images, training_step

pytestmark = pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")


# One processor runs all, the one with vectors those that use them in several ways.
ON_BOARDS = [("cortex-m4", name) for name in PROGRAMS]
ON_BOARDS += [("cortex-m55", name) for name in ("padded", "attention", "recurrent", "orders")]


@pytest.mark.parametrize(("target", "name"), ON_BOARDS)
def test_a_program_computes_the_same(name: str, target: str, tmp_path: Path) -> None:
    make, inputs = PROGRAMS[name]
    ms.set_seed(1)
    program = make()
    if isinstance(program, nn.Cell):
        program.set_train(False)
    expected = ms.jit(program)(*inputs)
    done = run(build(program, *inputs, target=target, name="program"), [[x.asnumpy() for x in inputs]] * 2, tmp_path)
    for found in done.results:
        for one, other in zip(found, expected if isinstance(expected, tuple) else (expected,)):
            np.testing.assert_allclose(one, other.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("target", BOARDS)
def test_inference(target: str, tmp_path: Path) -> None:
    ms.set_seed(1)
    net, x = LeNet().set_train(False), images(1, 1, 28, 28).asnumpy()
    library = build(net, ms.Tensor(x), target=target, name="lenet")
    done = run(library, [[x], [x[:, :, ::-1].copy()]], tmp_path)
    for found, given in zip(done.results, (x, x[:, :, ::-1].copy())):
        np.testing.assert_allclose(found[0], net(ms.Tensor(given)).asnumpy(), rtol=2e-5, atol=2e-6)
    assert done.stack_bytes < 1024 and library.code_bytes < 16 * 1024
    if target != "cortex-m3":
        # 281,640 products; a processor without floats takes a hundred instructions for each.
        assert max(done.instructions) < 4 * 281_640


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_training(target: str, tmp_path: Path) -> None:
    random = np.random.RandomState(3)
    batches = [(random.randn(4, 1, 28, 28).astype("f4"), random.randint(0, 10, 4).astype("i4")) for _ in range(4)]
    library = build(training_step(), *map(ms.Tensor, batches[0]), target=target, name="train")
    done = run(library, batches, tmp_path)
    step = ms.jit(training_step())
    for found, (x, y) in zip(done.results, batches):
        assert abs(float(found[0]) - float(step(ms.Tensor(x), ms.Tensor(y)))) < 1e-6
    assert library.arena_bytes < 128 * 1024 and done.stack_bytes < 2048


@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4"])
def test_floats_are_rounded_without_an_instruction_for_it(target: str, tmp_path: Path) -> None:
    ends = [0.0, 0.3, 0.5, 0.7, 1.5, 2.5, 0.49999997, 4194304.5, 8388607.5, 8388608.5, 8388609.0, 1e20, np.inf, np.nan]
    x = np.array([*ends, *[-v for v in ends], *np.random.RandomState(0).randn(40) * 1000], "f4")
    kinds = (ms.ops.round, ms.ops.floor, ms.ops.ceil, ms.ops.trunc)
    done = run(
        build(lambda x: tuple([kind(x) for kind in kinds]), ms.Tensor(x), target=target, name="nearest"),
        [[x]],
        tmp_path,
    )
    for found, wanted in zip(done.results[0], (np.rint, np.floor, np.ceil, np.trunc)):
        assert found.tobytes() == wanted(x).tobytes()


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_numbers_that_are_none_are_compared_as_such(target: str, tmp_path: Path) -> None:
    x = np.array([np.nan, 1, -1, 0, -0.0, np.inf, -np.inf, 2] * 4, "f4")

    def compared(x: ms.Tensor) -> tuple[ms.Tensor, ...]:
        zero = ms.ops.isnan(x), x < 0, x <= 0, x > 0, x >= 0, x == 0, x != 0, (x < 0) | (x > 0), ~(x < 0), ~(x >= 0)
        return (*[c.astype(ms.int8) for c in zero], ms.ops.relu(x), ms.ops.where(x <= 0, x * 2, x))

    wanted = [v.asnumpy() for v in compared(ms.Tensor(x))]
    done = run(build(compared, ms.Tensor(x), target=target, name="compared"), [[x]], tmp_path)
    for one, other in zip(done.results[0], wanted):
        np.testing.assert_array_equal(one, other)
