"""The comparison with other frameworks: that cases are the same everywhere, that wrong numbers are
seen, and what the tables say. Nothing is timed.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
NAMES = ("cases", "compare", "report", "protocol", "curves")


@pytest.fixture(scope="module")
def bench():
    """The benchmark's modules, which are scripts beside each other."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


def plan(bench, folder, **pythons):
    return bench["compare"].Plan({"mycel": sys.executable, **pythons}, 1, 2, 0.0, folder)


def test_inputs_depend_on_the_case_alone(bench):
    cases = bench["cases"]
    for name in ("layer_norm", "embedding", "sort", "power"):
        first, again = cases.inputs_of(cases.CASES[name]), cases.inputs_of(cases.CASES[name])
        for a, b, spec in zip(first, again, cases.CASES[name].inputs):
            np.testing.assert_array_equal(a, b)
            assert a.shape == spec.shape and a.dtype == (np.int32 if spec.high else np.float32)
    rows = cases.inputs_of(cases.CASES["sort"])[0]
    assert all(len(set(row)) == len(row) for row in rows[:8])
    narrow = zip(cases.inputs_of(cases.CASES["lenet5"]), cases.inputs_of(cases.CASES["lenet5"]))
    assert all(np.array_equal(a, b) for a, b in narrow)


def test_initial_weights_follow_the_kind_of_parameter(bench):
    weight = bench["cases"].initial_weight
    assert np.all(weight("blocks.0.bn1.weight", (4,)) == 1) and np.all(weight("blocks.0.down.1.bias", (4,)) == 0)
    assert np.all(weight("layers.0.norm1.weight", (4,)) == 1) and np.all(weight("fc.bias", (4,)) == 0)
    assert weight("fc.weight", (400, 100)).std() == pytest.approx(0.1, rel=0.02)
    assert not np.array_equal(weight("conv1.weight", (4, 4)), weight("conv2.weight", (4, 4)))


def test_every_operator_has_a_program_in_every_framework(bench):
    others = ("network", "optimizer", "eager", "workloads")
    named = {c.name for c in bench["cases"].CASES.values() if c.group not in others}
    for file in ("mindspore_operators.py", "torch_side.py", "jax_side.py"):
        text = (FOLDER / file).read_text()
        assert all(f'"{name}":' in text for name in named), file


def test_differences_are_seen(bench):
    cases, difference = bench["cases"], bench["compare"].difference
    case = cases.CASES["add"]
    x = np.random.default_rng(0).normal(size=(8, 8))
    same = cases.digest(x)
    assert difference(case, [same], [cases.digest(x * (1 + 1e-6))]) is None
    changed = x.copy()
    changed[3, 3] += 0.1
    swapped = x[::-1]
    for wrong, text in (
        (changed, "of its size"),
        (swapped, "of its size"),
        (x[:4], "shape"),
        (x * np.nan, "of its size"),
    ):
        assert text in difference(case, [same], [cases.digest(wrong)])
    assert "1 results where" in difference(case, [same, same], [same])
    net = cases.CASES["bert_small"]
    assert difference(net, [2.0, 1.0], [2.00001, 1.0]) is None
    assert "loss of step 2" in difference(net, [2.0, 1.0], [2.0, 1.1])
    random = cases.CASES["dropout"]
    drop = np.where(np.arange(1000) % 10 == 0, 0.0, 1.0)
    assert difference(random, [cases.digest(drop)], [cases.digest(np.roll(drop, 1))]) is None
    assert "zero" in difference(random, [cases.digest(drop)], [cases.digest(np.ones(1000))])


def row(framework, mode, rounds, case="add"):
    times = {"rounds": rounds, "median": sorted(rounds)[len(rounds) // 2], "best": min(rounds)}
    return {"case": case, "pass": "forward", "framework": framework, "mode": mode, "first": 1.0, **times}


def test_ratios_are_of_the_best_peer_and_tables_show_them(bench):
    report = bench["report"]
    rows = [
        row("torch", "eager", [4.0, 4.0, 40.0]),
        row("torch", "compile", [3.0, 3.0, 3.0]),
        row("mycel", "graph", [2.0, 2.0, 1.0]),
        {"case": "add", "pass": "forward", "framework": "jax", "mode": "jit", "error": "TypeError: a|b"},
    ]
    found = report.ratios(rows)
    assert found["add:forward"]["ratio"] == 1.5 and found["add:forward"]["peer"] == "torch compile"
    assert report.ratios(rows, by_best=True)["add:forward"]["ratio"] == 3.0
    text = report.markdown(rows, found, {"add:forward": 1.4})
    assert "**1.50** (torch compile)" in text and "| 1.40 |" in text and "jax jit failed (TypeError: a/b)" in text
    assert report.geometric_mean([1.0, 4.0]) == 2.0 and report.geometric_mean([]) == 1.0


def test_stored_ratios_show_regressions(bench, tmp_path):
    report = bench["report"]
    path = tmp_path / "ratios.json"
    report.store(path, {"a": {"ratio": 2.0}, "b": {"ratio": 1.0}}, 2)
    report.store(path, {"b": {"ratio": 1.5}}, 2)
    stored = report.load(path)
    assert stored == {"a": 2.0, "b": 1.5}
    lost = report.regressions({"a": {"ratio": 1.6}, "b": {"ratio": 1.45}}, stored, 0.15)
    assert lost == {"a": "2.00 before, 1.60 now"}


def test_tolerances_are_stored_with_ratios(bench, tmp_path):
    report = bench["report"]
    path = tmp_path / "ratios.json"
    report.store(path, {"wl_a:step": {"ratio": 2.0}, "b": {"ratio": 2.0}}, 2)
    report.store(path, {"c": {"ratio": 2.0}}, 2, 0.5)
    stored, allowed = report.load(path), report.tolerances(path)
    assert allowed == {"c": 0.5}
    now = {name: {"ratio": 1.8} for name in stored}
    assert set(report.regressions(now, stored, None, allowed)) == {"wl_a:step"}
    assert set(report.regressions(now, stored, 0.05, allowed)) == {"wl_a:step", "b", "c"}
    report.store(path, {"c": {"ratio": 2.0}}, 2)
    assert report.tolerances(path) == {}


def test_every_workload_has_its_program(bench, tmp_path):
    workloads = [c for c in bench["cases"].CASES.values() if c.kind]
    assert len(workloads) >= 50 and all(c.group == "workloads" for c in workloads)
    text = "".join((FOLDER / f"workload_{kind}.py").read_text() for kind in ("functions", "networks", "steps"))
    assert all(f'"{c.name}":' in text for c in workloads)
    assert {c.passes for c in workloads} == {("backward",), ("forward",), ("step",)}
    full, modes_of = plan(bench, tmp_path, torch="t", jax="j", mindspore="m"), bench["compare"].modes_of
    assert modes_of(full, bench["cases"].CASES["wl_gcn"]) == [
        ("torch", "eager"),
        ("torch", "compile"),
        ("mycel", "graph"),
        ("mycel", "pynative"),
        ("jax", "jit"),
    ]
    assert ("jax", "jit") not in modes_of(full, bench["cases"].CASES["wl_tiny"])


def test_modes_put_the_reference_first(bench, tmp_path):
    cases, modes_of = bench["cases"].CASES, bench["compare"].modes_of
    full = plan(bench, tmp_path, torch="t", jax="j", mindspore="m")
    assert modes_of(full, cases["add"])[0] == ("torch", "eager")
    assert ("torch", "compile-cl") in modes_of(full, cases["conv3x3"])
    assert ("jax", "jit-cl") in modes_of(full, cases["resnet50"])
    assert modes_of(full, cases["eager_add"])[1] == ("mycel", "pynative")
    assert modes_of(plan(bench, tmp_path), cases["add"]) == [("mycel", "graph"), ("mycel", "pynative")]


def test_workers_compute_the_same_numbers_in_both_modes(bench, tmp_path):
    compare, cases = bench["compare"], bench["cases"].CASES
    alone = plan(bench, tmp_path)
    workers = [compare.start(alone, "mycel", mode) for mode in ("graph", "pynative")]
    try:
        small = (("wl_ppo", "backward"), ("wl_lovasz", "backward"), ("wl_tiny", "step"), ("wl_detector", "forward"))
        plain = (("matmul_small", "backward"), ("embedding", "forward"), ("lenet5", "step"), ("wl_nms", "step"))
        for name, kind in (*plain, *small):
            rows = compare.compare(alone, cases[name], kind, workers)
            assert [r.get("error") for r in rows] == [None, None]
            assert all(len(r["rounds"]) == 2 for r in rows)
        assert workers[0].ask(prepare="no such case", **{"pass": "step"})["error"].startswith("KeyError")
        assert workers[0].ask(memory=True)["bytes"] > 0
    finally:
        for worker in workers:
            worker.end()


def test_the_farthest_step_of_two_curves_is_found(bench):
    farthest = bench["curves"].farthest
    assert farthest([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == (0.0, 1)
    assert farthest([1.0, 2.2, 3.0], [1.0, 2.0, 3.1]) == (pytest.approx(0.1), 2)
    distance, step = farthest([1.0, float("nan"), 9.0], [1.0, 1.0, 1.0])
    assert distance != distance and step == 2


def test_curves_say_what_differs_and_what_failed(bench, tmp_path, monkeypatch):
    curves = bench["curves"]
    told = {
        ("mycel", "graph"): [[2.0, 1.0], [2.0, 1.0]],
        ("torch", "eager"): [[2.0, 1.001]],
        ("torch", "eager-f64"): [[2.0, 1.0001]],
    }

    def losses(_, name, framework, mode):
        return told[framework, mode].pop(0), None

    monkeypatch.setattr(curves, "_losses", losses)
    rows, text = curves.curves(plan(bench, tmp_path, torch="python"), ["lenet5"], 2)
    ours, single, double = rows
    assert ours["same"] and ours["torch"] == (pytest.approx(0.001 / 1.001), 2)
    assert ours["float64"][0] == pytest.approx(1e-4, rel=1e-2) and single["float64"][0] == pytest.approx(9e-4, rel=1e-2)
    assert "float64" not in double and "same bits" in text
    monkeypatch.setattr(curves, "_losses", lambda *_: ([], "it broke"))
    rows, text = curves.curves(plan(bench, tmp_path), ["lenet5"], 2)
    assert all(row["error"] == "it broke" for row in rows) and "it broke" in text
