"""How the XLA engine is chosen, with jax and without it, in processes of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

WITH_JAX = importlib.util.find_spec("jax") is not None
# As if jax were not installed.
WITHOUT = "import sys; sys.modules['jax'] = None\n"
NEEDED = "the XLA engine needs jax, which is not installed: pip install mycel[xla]"


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "MYCEL_ENGINE": "", **environment}
    return subprocess.run([sys.executable, "-c", program], env=own, capture_output=True, text=True, timeout=300)


def printed(program: str, **environment: str) -> list[str]:
    done = run(program, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_mycel_imports_no_jax() -> None:
    program = """
import sys
import mycel as ms
from mycel._src.engines import select
x = ms.Tensor([1.0]) + 1
select.engines()["xla"].describe(), select.engines()["xla"].identity
print([m for m in sys.modules if m.partition(".")[0] in ("jax", "jaxlib")])
"""
    assert printed(program) == ["[]"]


REFUSALS = """
import mycel as ms
from mycel._src.engines import select
for choose in (
    lambda: ms.set_context(engine="xla"),
    lambda: ms.set_context(device_target="GPU"),
    lambda: ms.set_device("GPU"),
    lambda: ms.set_context(engine="abacus"),
    lambda: ms.set_context(engine="xla", mode=7),
):
    try:
        choose()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
print(ms.get_context("engine"), ms.get_context("device_target"), select.engine().name, ms.Tensor([1]) + 1)
"""


def test_without_jax_it_is_said_what_to_install() -> None:
    assert printed(WITHOUT + REFUSALS) == [
        f"ImportError: {NEEDED}",
        f"ValueError: set_context: device_target 'GPU' is not available here: {NEEDED}",
        f"RuntimeError: set_device: 'GPU' is not available here: {NEEDED}",
        "ValueError: set_context: there is no engine 'abacus'; there are native, reference, xla",
        "ValueError: set_context: mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), not 7",
        "native CPU native [2]",
    ]
    done = run(WITHOUT + "import mycel", MYCEL_ENGINE="xla")
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == f"ImportError: {NEEDED}"
    told = "import mycel; from mycel._src.engines import select; print(select.engines()['xla'].describe()['uses'])"
    assert printed(WITHOUT + told) == [NEEDED]


def test_the_engine_is_chosen_before_the_first_program() -> None:
    program = """
import mycel as ms
ms.set_context(engine="reference")
print(ms.get_context("engine"), ms.Tensor([1]) + 1)
ms.set_context(engine="reference")
try:
    ms.set_context(engine="native")
except RuntimeError as error:
    print(error)
print(ms.get_context("engine"))
"""
    first, told, last = printed(program)
    assert first == "reference [2]" and last == "reference"
    assert told == (
        "the engine 'native' is chosen before the first program; one of 'reference' has been compiled in this process: "
        "call set_context(engine='native') at its start, or set MYCEL_ENGINE=native"
    )


@pytest.mark.skipif(not WITH_JAX, reason="jax is not installed: pip install mycel[xla]")
def test_with_jax_the_context_chooses_it() -> None:
    program = """
import sys
import mycel as ms
from mycel._src.engines import select
made_before = ms.Tensor([1.0, 2.0])
ms.set_context(engine="xla")
print(ms.get_context("engine"), select.engine().name, "jax" in sys.modules)
made_before += 1
print(made_before * 2, type((made_before * 2)._buf).__name__, "jax" in sys.modules)
"""
    assert printed(program) == ["xla xla False", "[4. 6.] Held True"]


@pytest.mark.skipif(not WITH_JAX, reason="jax is not installed: pip install mycel[xla]")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    program = """
import mycel as ms
try:
    ms.set_device("GPU")
except RuntimeError as error:
    print(error)
print(ms.get_context("device_target"), ms.get_context("engine"), ms.get_current_device().device_target)
ms.set_context(engine="xla")
print(ms.Tensor([1]) + 1)
"""
    told, *rest = printed(program, JAX_PLATFORMS="cpu", CUDA_VISIBLE_DEVICES="")
    assert told.startswith("set_device: 'GPU' is not available here: ") and "jax" in told
    assert rest == ["CPU native CPU", "[2]"]
