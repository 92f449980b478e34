"""LeNet and other programs in emulators of AArch64, ARMv7 and RISC-V."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.deploy import build
from mycel.deploy.boards import BoardError
from mycel.deploy.emulated import MACHINES, missing_tools, run
from mycel.quantisation import quantise
from tests.deploy.networks import PROGRAMS, LeNet, images, training_step
from tests.deploy.test_learning import _batches, _library, _losses

ALL = [
    pytest.param(t, marks=pytest.mark.skipif(bool(missing_tools(t)), reason=f"needs {missing_tools(t)}"))
    for t in MACHINES
]


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("name", ["padded", "recurrent", "branches and loops"])
def test_a_program_computes_the_same(name: str, target: str, tmp_path: Path) -> None:
    make, inputs = PROGRAMS[name]
    ms.set_seed(1)
    program = make()
    if isinstance(program, nn.Cell):
        program.set_train(False)
    wanted = ms.jit(program)(*inputs)
    found = run(build(program, *inputs, target=target, name="program"), [[x.asnumpy() for x in inputs]] * 2, tmp_path)
    for results in found:
        for one, other in zip(results, wanted if isinstance(wanted, tuple) else (wanted,)):
            np.testing.assert_allclose(one, other.asnumpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("target", ALL)
def test_integers_are_the_same(target: str, tmp_path: Path) -> None:
    ms.set_seed(1)
    x = images(8, 1, 28, 28)
    small = quantise(LeNet().set_train(False), x, integer_ends=True)
    given = small.quantised_input(x.asnumpy()[:1])
    (found,) = run(build(small, ms.Tensor(given), target=target, name="small"), [[given]], tmp_path)
    np.testing.assert_array_equal(found[0], small(ms.Tensor(given)).asnumpy())


@pytest.mark.parametrize("target", ALL)
def test_training(target: str, tmp_path: Path) -> None:
    random = np.random.RandomState(3)
    batches: list[list[Any]] = [
        [random.randn(4, 1, 28, 28).astype("f4"), random.randint(0, 10, 4).astype("i4")] for _ in range(3)
    ]
    found = run(build(training_step(), *map(ms.Tensor, batches[0]), target=target, name="train"), batches, tmp_path)
    step = ms.jit(training_step())
    for results, batch in zip(found, batches):
        assert abs(float(results[0]) - float(step(*map(ms.Tensor, batch)))) < 1e-6


@pytest.mark.parametrize("target", ALL)
def test_training_with_integers(target: str, tmp_path: Path) -> None:
    library = _library("rounded", target)
    try:
        found = run(library, _batches(), tmp_path)
    except BoardError as error:
        # Emulators of version 7 end where vectors of floats become integers of another width.
        if target != "riscv64-v" or "decode_save_opc" not in str(error):
            raise
        pytest.skip("the emulator ends at an instruction that it does not know")
    np.testing.assert_allclose([float(r[0]) for r in found], _losses("rounded"), rtol=0, atol=1e-6)


def test_what_has_no_emulator_is_refused(tmp_path: Path) -> None:
    library = build(nn.Dense(2, 2), ms.ops.ones((1, 2)), target="wasm32", name="dense")
    with pytest.raises(ValueError, match="there is no emulator for wasm32; there are aarch64"):
        run(library, [], tmp_path)
