"""Programs of several meshes of devices that send each other messages, and pipelines of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed: pip install mycel[xla]")

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant, outputs_of
from mycel._src.compiler.prims.distributed import collectives
from mycel._src.compiler.prims.distributed.point_to_point import messages
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.linear_algebra.spectral import eig
from mycel._src.engines import select
from mycel._src.engines.xla.stage_programs import DeviceStages
from mycel._src.foundation.dtype import float32, int32, int64
from mycel._src.foundation.errors import Unsupported

ENGINE = select.engines()["xla"]
FIRST, SECOND = Mesh((2,), ("x",), (0, 1)), Mesh((2,), ("x",), (2, 3))
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    ENGINE.device_count() < 8, reason="jax started before this folder's tests, with fewer than 8 devices"
)


def tensor(shape: tuple[int, ...], dtype: Any = float32) -> Node:
    return input_node(tensor_type(shape, dtype))


def stages(rounds: int = 3, taken: bool = False) -> list[tuple[Graph, Mesh, dict[int, int]]]:
    """A stage that scales rows and one that adds them up over its ranks and sends the sums back.

    The first one's factor `w` and the second one's state are written over.
    """
    x, w = tensor((rounds, 4)), tensor((4,))
    token = constant(0, int32)
    sums: list[Node] = []
    for k in range(rounds):
        row = S.reshape(S.slice_axis(x, 0, k, k + 1), (4,))
        sent = E.mul(E.sin(E.mul(row, w)), 2.0)
        received = ((SECOND, 100 + k, (4,), float32),)
        arrived, token = messages.outputs(sent, token, mesh=FIRST, sent=((SECOND, k),), received=received)
        sums.append(arrived)
    first = Graph([x, w], [E.add(w, reduce(E.add, sums)), token], "first")
    state, place = tensor((4,)), tensor((), int64)
    token, sums = constant(0, int32), []
    for k in range(rounds):
        received = ((FIRST, k, (4,), float32),)
        arrived, token = messages.outputs(token, mesh=SECOND, sent=(), received=received)
        found = collectives.all_reduce(arrived, mesh=SECOND, axes=("x",), op="sum")
        found = E.add(found, I.take(state, place, axis=0)) if taken and k == 1 else found
        token = messages.outputs(found, token, mesh=SECOND, sent=((FIRST, 100 + k),), received=())[-1]
        sums.append(found)
    last = E.add(state, reduce(E.add, sums))
    inputs = [state, place] if taken else [state]
    return [(first, FIRST, {0: 1}), (Graph(inputs, [last, token], "second"), SECOND, {0: 0})]


def given(rounds: int = 3) -> tuple[list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((rounds, 4)).astype(np.float32) for _ in range(2)]
    ws = [rng.standard_normal(4).astype(np.float32) for _ in range(2)]
    sums = sum(2 * np.sin(x * w) for x, w in zip(xs, ws))
    return xs, ws, sums


def test_stages_exchange_values_and_write_over_their_inputs() -> None:
    xs, ws, sums = given()
    programs = ENGINE.stages(stages())
    x, w = ENGINE.spread(FIRST, xs), ENGINE.spread(FIRST, ws)
    state = ENGINE.spread(SECOND, [np.ones(4, np.float32)] * 2)
    before = [w.found, state.found]  # type: ignore[attr-defined]
    (new, _), (last, _) = programs.entry([x, w], [state])
    assert new is w and last is state and [b.is_deleted() for b in before] == [True, True]
    for part, own in zip(new.parts(), ws):
        np.testing.assert_allclose(part, own + sums.sum(0), rtol=1e-5)
    for part in last.parts():
        np.testing.assert_allclose(part, 1 + sums.sum(0), rtol=1e-5)
    again = programs.entry([x, w], [state])
    assert again[0][0] is w and np.isfinite(again[1][0].part(2)).all()
    with pytest.raises(TypeError, match="first takes 2 inputs, 1 were given"):
        programs.entry([x], [state])


def test_equal_segments_of_a_mesh_are_one_program() -> None:
    programs = DeviceStages(stages(6))
    segments = [[s for s in programs.steps if s.segment is not None and s.group == k] for k in range(2)]
    assert [len(s) for s in segments] == [6, 6]
    assert [len({id(s.segment.program) for s in own if s.segment}) for own in segments] == [3, 3]


def test_what_stops_one_stage_leaves_the_values_of_all() -> None:
    xs, ws, sums = given()
    programs = ENGINE.stages(stages(taken=True))
    x, w = ENGINE.spread(FIRST, xs), ENGINE.spread(FIRST, ws)
    state = ENGINE.spread(SECOND, [np.zeros(4, np.float32)] * 2)
    wrong = ENGINE.spread(SECOND, [np.int64(1), np.int64(4)])
    with pytest.raises(IndexError, match="index 4 is out of range for axis 0 of size 4"):
        programs.entry([x, w], [state, wrong])
    assert [p.tolist() for p in w.parts()] == [own.tolist() for own in ws]
    assert {p.tobytes() for p in state.parts()} == {bytes(16)}
    right = ENGINE.spread(SECOND, [np.int64(1)] * 2)
    programs.entry([x, w], [state, right])
    np.testing.assert_allclose(state.part(3), sums.sum(0), rtol=1e-5)


def test_refusals() -> None:
    x = tensor((2, 2))
    with pytest.raises(Unsupported, match="eig in a program for several devices"):
        ENGINE.stages([(Graph([x], outputs_of(eig.node(x))), FIRST, {})])
    with pytest.raises(Unsupported, match="the native engine has one device"):
        select.engines()["native"].stages([])


PIPELINES = """
import json
import numpy as np
import mycel as ms
from mycel._src.staging.distributed import Layouts, Pipeline, distribute
from mycel._src.compiler.ir.sharding.mesh import Mesh
from tests.distributed.test_pipeline_parallelism import BATCHES, Net, Tied, TOKENS, trained

layouts = Layouts(Mesh((2,), ("dp",)), [("dp",)] * 2)
cuts = ["layers.0", "layers.1", "head"]
found = {}
def run(name, make, pipeline, batches=BATCHES):
    losses, values = trained(make, (lambda s: distribute(s, layouts, pipeline)) if pipeline else ms.jit, batches)
    found[name] = [losses, {k: v.tolist() for k, v in values.items()}]
run("one device", Net, None)
run("1f1b", Net, Pipeline(4, 8, "1f1b", cuts))
run("interleaved", Net, Pipeline(2, 4, "interleaved", cuts, 2))
run("one table", Tied, None, TOKENS)
run("tied", Tied, Pipeline(3, 4, "gpipe"), TOKENS)
print(json.dumps(found))
"""


def test_pipelines_on_the_devices_of_a_process() -> None:
    quickly = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    flags = f"--xla_force_host_platform_device_count=8 {quickly}"
    environment = {**os.environ, "MYCEL_ENGINE": "xla", "PYTHONPATH": str(ROOT), "XLA_FLAGS": flags}
    done = subprocess.run(
        [sys.executable, "-c", PIPELINES], env=environment, capture_output=True, text=True, timeout=500, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for name, (losses, values) in found.items():
        wanted = found["one table" if name in ("tied", "one table") else "one device"]
        np.testing.assert_allclose(losses, wanted[0], rtol=1e-5, err_msg=name)
        for key, value in wanted[1].items():
            np.testing.assert_allclose(values[key], value, atol=5e-5, err_msg=f"{name} {key}")
