"""Kernels with channels last in libraries, for the processors whose code runs here."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from mycel._src.engines.aot.library import library_of
from mycel._src.engines.aot.targets import named
from mycel._src.engines.native.llvm.target import host
from mycel._src.engines.reference import evaluate
from tests.deploy import random_graphs

from ..engines.native.operations.channels_last_cases import Case, float_cases, image_cases, matrix_cases
from .loaded import Loaded

TARGETS = ("x86-64", "x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni")


def made(case: Case, target: str) -> list[np.ndarray]:
    if not host().is_family("x86_64") or not named(target).feature_set <= host().feature_set:
        pytest.skip(f"this processor does not run code for {target}")
    names = [f"x{k}" for k in range(len(case.values))]
    found = Loaded(library_of(case.graph, names, [], {}, target, "sums"))(*case.values)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("target", TARGETS)
def test_integers(target: str) -> None:
    for case in (*image_cases(6, 7), *matrix_cases(2)[::11]):
        for found, wanted in zip(made(case, target), evaluate(case.graph, case.values)):
            np.testing.assert_array_equal(found, wanted, err_msg=case.name)


@pytest.mark.parametrize("target", ("x86-64", "x86-64-v4"))
def test_floats(target: str) -> None:
    for case in float_cases(6, 3):
        for found, wanted in zip(made(case, target), evaluate(case.graph, case.values)):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=case.name)


@pytest.mark.parametrize("target", ("aarch64", "aarch64-dot", "armv7-a", "wasm32"))
def test_integers_and_floats_elsewhere(target: str, tmp_path: Path) -> None:
    needed = random_graphs.EMULATED.get(target, ("node",))
    if not all(map(shutil.which, needed)):
        pytest.skip(f"there is no {' or '.join(needed)} here")
    run = random_graphs.runner(target, tmp_path)
    for case in (*image_cases(7, 11), *matrix_cases(2)[::15], *float_cases(2, 5)):
        names = [f"x{k}" for k in range(len(case.values))]
        library = library_of(case.graph, names, [], {}, target, "f")
        for found, wanted in zip(run(library, case.values), evaluate(case.graph, case.values)):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=case.name)
