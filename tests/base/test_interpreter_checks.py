"""Interpreters and versions of NumPy that nobody has tried compute the same in the plain way."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mycel._src.foundation.python_runtime import interpreter_checks

ROOT = Path(__file__).parents[2]

# Runs tests with a version of NumPy that is none of the known ones.
PROGRAM = """
import sys, numpy
numpy.__version__ = "99.0.0"
import pytest
from mycel._src.foundation.python_runtime import interpreter_checks as interpreter
from mycel._src.engines.routines import array_address as addresses
from mycel._src.engines.routines import fastcall_entries as door
assert not interpreter.is_known() and door.door() is None and addresses.address is addresses._asked
sys.exit(pytest.main(sys.argv[1:]))
"""
TESTS = (
    "tests/engines/routines/test_fastcall_entries.py::test_what_was_made_for_other_arguments_is_not_called",
    "tests/engines/routines/test_fastcall_entries.py::test_numbers_that_look_like_failures",
    "tests/engines/routines/test_native_random_draws.py::test_threads_share_a_stream_without_equal_draws",
    "tests/dataset/test_kept_calls.py::test_other_arrays_are_computed_as_before",
    "tests/dataset/test_kept_calls.py::test_what_users_compute_is_not_kept",
    "tests/dataset/test_array_ownership.py::test_columns_do_not_share_memory",
    "tests/dataset/test_array_ownership.py::test_a_buffer_that_a_function_writes_again[whole-1-False]",
)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    interpreter_checks.is_known.cache_clear()
    yield
    interpreter_checks.is_known.cache_clear()


def python(**changes: Any) -> SimpleNamespace:
    names = ("implementation", "byteorder", "maxsize", "version_info")
    return SimpleNamespace(**{**{name: getattr(sys, name) for name in names}, **changes})


def test_what_is_known(monkeypatch: pytest.MonkeyPatch, asked_anew: None) -> None:
    known = [((3, 10, 0), "1.26.4"), ((3, 14, 2), "2.4.6"), ((3, 15, 0), "2.5.0rc1")]
    other = [((3, 9, 9), "2.4.6"), ((3, 16, 0), "2.4.6"), ((3, 14, 0), "1.25.0"), ((3, 14, 0), "2.6.0.dev0")]
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 0}.get)
    for version, numpy in known + other:
        interpreter_checks.is_known.cache_clear()
        monkeypatch.setattr(interpreter_checks, "sys", python(version_info=(*version, "final", 0)))
        monkeypatch.setattr(np, "__version__", numpy)
        assert interpreter_checks.is_known() is ((version, numpy) in known), (version, numpy)


@pytest.mark.parametrize(
    "changes",
    [{"implementation": SimpleNamespace(name="pypy")}, {"byteorder": "big"}, {"maxsize": (1 << 31) - 1}],
    ids=str,
)
def test_other_machines_are_not_known(monkeypatch: pytest.MonkeyPatch, asked_anew: None, changes: Any) -> None:
    monkeypatch.setattr(interpreter_checks, "sys", python(**changes))
    assert not interpreter_checks.is_known()


def test_free_threaded_interpreters_are_not_known(monkeypatch: pytest.MonkeyPatch, asked_anew: None) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    assert not interpreter_checks.is_known()


def test_what_cannot_run_compiled_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter_checks.refuse_unfit()
    monkeypatch.setattr(interpreter_checks, "sys", python(_is_gil_enabled=lambda: False))
    with pytest.raises(ImportError, match="python -X gil=1"):
        interpreter_checks.refuse_unfit()
    monkeypatch.setattr(interpreter_checks, "sys", python(implementation=SimpleNamespace(name="pypy")))
    with pytest.raises(ImportError, match="mycel runs on CPython, not on pypy"):
        interpreter_checks.refuse_unfit()


def test_the_plain_way_gives_the_same() -> None:
    command = [sys.executable, "-c", PROGRAM, "-q", "-p", "no:cacheprovider", *TESTS]
    found = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=300
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-2000:]
