"""What a profile writes: traces, pages and tables in files."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel.profiler import Machine, machine, mstx
from mycel.profiler.limits import measure
from mycel.profiler.names import composed, label
from mycel.profiler.output import OUTPUT, write_all

LIMITS = Machine("a <test> & more", 2, (1 << 16, 1 << 24), {1: (1e10, 1e9), 2: (2e10, 2e9)}, {1: 1e10, 2: 2e10})


@pytest.fixture(scope="module")
def taken() -> Any:
    """A profile with compiled and eager code, a live function, a mark and a Cell."""
    net = nn.SequentialCell([nn.Dense(8, 8), nn.ReLU()])
    compiled = ms.jit(lambda x: ops.exp(ops.matmul(x, x)).sum())
    live = ms.jit(lambda x: x * float(x.sum()))
    x = ms.Tensor(np.ones((8, 8), np.float32))
    with ms.profile(machine=LIMITS) as p:
        number = mstx.range_start("a <range>")
        net(x)
        compiled(x)
        live(x)
        mstx.range_end(number)
        mstx.mark("here", domain="mine")
    return p


def test_the_chrome_trace_follows_the_format(taken: Any, tmp_path: Path) -> None:
    taken.export_chrome(tmp_path / "trace.json")
    data = json.loads((tmp_path / "trace.json").read_text())
    events = data["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X", "s", "f", "C"}
    for e in events:
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and isinstance(e["name"], str)
        if e["ph"] != "M":
            assert isinstance(e["ts"], float)
        if e["ph"] == "X":
            assert e["dur"] >= 0 and isinstance(e["args"], dict)
    names = {(e["pid"], e["args"]["name"]) for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert names == {(1, "Python"), (2, "native engine")}
    named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] == "X"} <= named
    assert any(e["ph"] == "X" and e["name"] == "a <range>" for e in events)
    assert any(e["ph"] == "X" and e["name"] == "mine: here" for e in events)
    assert any(e["ph"] == "X" and e["cat"] == "dense" and e["args"]["flops"] == 2 * 8**3 for e in events)


def test_arrows_lead_from_python_to_runs(taken: Any) -> None:
    from mycel.profiler.chrome import events

    found = events(taken.report)
    starts = {e["id"]: e for e in found if e["ph"] == "s"}
    ends = {e["id"]: e for e in found if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == len(taken.report.recording.trace.runs)
    spans = [e for e in found if e["ph"] == "X"]
    for number, start in starts.items():
        end = ends[number]
        assert start["pid"] == 1 and end["pid"] == 2 and start["ts"] <= end["ts"]
        for e in (start, end):
            assert any(
                s["pid"] == e["pid"] and s["tid"] == e["tid"] and s["ts"] <= e["ts"] <= s["ts"] + s["dur"]
                for s in spans
            )


def test_steps_lie_inside_their_programs(taken: Any) -> None:
    from mycel.profiler.chrome import events

    spans = [e for e in events(taken.report) if e["ph"] == "X" and e["pid"] == 2]
    programs = [e for e in spans if e["cat"] == "program"]
    for e in spans:
        if e["cat"] in ("kernel", "dense", "copy"):
            assert any(p["ts"] <= e["ts"] + 1e-3 and e["ts"] + e["dur"] <= p["ts"] + p["dur"] + 1e-3 for p in programs)


def test_the_page_is_well_formed_and_needs_nothing_else(taken: Any, tmp_path: Path) -> None:
    taken.html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    tree = ElementTree.fromstring(text.partition("\n")[2])
    assert tree.tag == "html"
    pictures = tree.findall(".//{http://www.w3.org/2000/svg}svg")
    assert [p.get("aria-label") for p in pictures] == ["roofline", "time line", "memory over time"]
    titles = [h.text for h in tree.iter("h2")]
    assert {
        "Roofline",
        "Time line",
        "Memory",
        "Kernels",
        "Source lines",
        "Cells",
        "Phases",
        "In use at the peak",
    } <= set(titles)
    # Nothing is loaded from elsewhere.
    assert not list(tree.iter("script")) and not list(tree.iter("link")) and not list(tree.iter("img"))
    assert set(re.findall(r"https?://[^\"' <]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme: dark" in text and "a &lt;test&gt; &amp; more" in text
    rows = [r for r in tree.iter("tr") if len(list(r)) == 12]
    assert len(rows) == 1 + len(taken.kernels)


def test_a_page_of_nothing_is_well_formed(tmp_path: Path) -> None:
    with ms.profile(machine=LIMITS) as p:
        sum(range(10))
    p.html(tmp_path / "page.html")
    p.export_chrome(tmp_path / "trace.json")
    ElementTree.fromstring((tmp_path / "page.html").read_text().partition("\n")[2])
    assert p.kernels == [] and [phase.name for phase in p.phases] == ["Python between"]
    assert "0 steps of 0 kernels" in p.table()


def test_files_for_other_tools(taken: Any, tmp_path: Path) -> None:
    made = write_all(taken.report, tmp_path, "worker1", {"a": 1}, pretty=True)
    assert made.parent == tmp_path and re.fullmatch(r"worker1_\d+_ascend_ms", made.name)
    inside = made / OUTPUT
    assert {f.name for f in inside.iterdir()} == {
        "trace_view.json",
        "kernel_details.csv",
        "op_statistic.csv",
        "step_trace_time.csv",
        "memory_record.csv",
    }
    assert json.loads((made / "profiler_metadata.json").read_text()) == {"a": 1}
    with open(inside / "kernel_details.csv", encoding="utf-8") as file:
        details = list(csv.DictReader(file))
    assert len(details) == len(taken.report.slices) and {d["Name"] for d in details} == {k.name for k in taken.kernels}
    with open(inside / "op_statistic.csv", encoding="utf-8") as file:
        statistics = list(csv.DictReader(file))
    assert [int(s["op_occurrences"]) for s in statistics] == [k.count for k in taken.kernels]
    assert json.loads((inside / "trace_view.json").read_text())["traceEvents"]
    assert write_all(taken.report, tmp_path, "worker1") != made
    with pytest.raises(ValueError, match="worker's name"):
        write_all(taken.report, tmp_path, "a/b")


# The machine.


def test_limits_are_interpolated_and_bounded() -> None:
    assert LIMITS.bytes_per_second(1, 1) == 1e10 and LIMITS.bytes_per_second(1 << 30, 2) == 2e9
    assert LIMITS.bytes_per_second(1 << 20, 1) == pytest.approx(5.5e9)
    assert LIMITS.flops_per_second(2) == LIMITS.flops_per_second(7) == 2e10
    assert LIMITS.least_seconds(1 << 16, 10**6, 1) == pytest.approx(1e-4)
    assert Machine.from_json(LIMITS.as_json()) == LIMITS


def test_a_machine_is_measured_once_and_kept(tmp_path: Path, monkeypatch: Any) -> None:
    calls: list[int] = []

    def short() -> Machine:
        calls.append(1)
        return LIMITS

    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path))
    monkeypatch.setattr("mycel.profiler.limits.measure", short)
    assert machine() == machine() == LIMITS and len(calls) == 1
    (kept,) = tmp_path.glob("machine-*.json")
    assert machine(again=True) == LIMITS and len(calls) == 2
    kept.write_text("{")
    assert machine() == LIMITS and len(calls) == 3 and Machine.from_json(kept.read_text()) == LIMITS


def test_measuring_gives_sensible_numbers(monkeypatch: Any) -> None:
    from mycel._src.engines.native.runtime.runtime import runtime

    monkeypatch.setattr("mycel.profiler.limits._LEAST", 1e-5)
    monkeypatch.setattr("mycel.profiler.limits._TRIES", 1)
    before = runtime().threads
    found = measure((12 << 10, 48 << 10), 64)
    assert runtime().threads == before and found.sizes == (12 << 10, 48 << 10)
    assert set(found.bandwidth) == set(found.peak) and 1 in found.peak and found.threads in found.peak
    assert all(rate > 1e6 for row in found.bandwidth.values() for rate in row) and all(
        p > 1e6 for p in found.peak.values()
    )
    counts = sorted(found.peak)
    assert all(found.peak[a] <= found.peak[b] for a, b in zip(counts, counts[1:]))
    assert 0 < found.overhead <= found.shared_overhead


# Names.


def test_compositions() -> None:
    assert composed(["a"]) == "a" and composed(["a", "b", "c", "d"]) == "d(c(b(a)))"
    assert composed(list("abcde")) == "e(d(... 1 more ...(b(a))))"


def test_labels_are_what_the_user_wrote() -> None:
    found: dict[str, set[str]] = {}

    @ms.jit
    def fn(x: Any) -> Any:
        a = x + x
        b = -ops.tanh(a)
        c = b[1:] * 2.0
        return ops.softmax(
            c,
            axis=-1,
        )

    version = fn.compile(ms.Tensor(np.ones((3, 4), np.float32)))
    for node in version.graph.nodes:
        if node.where is not None:
            found.setdefault(label(node), set()).add(node.prim.name)
    assert {"add", "neg", "tanh", "index", "mul", "softmax"} <= set(found)
    assert found["add"] == {"add"} and found["tanh"] == {"tanh"} and found["index"] == {"slice"}


def test_pipelines_are_shown(tmp_path: Path) -> None:
    import mycel.dataset as ds

    rows = ds.NumpySlicesDataset({"x": np.arange(6, dtype=np.float32)}, shuffle=False)
    data = rows.map(lambda x: x + 1, "x", num_parallel_workers=2).batch(2)
    before = iter(data)
    next(before)
    with ms.profile(machine=LIMITS) as p:
        assert len(list(data)) == 3
    next(before)
    assert len(list(data)) == 3
    found = p.report.pipelines
    assert [[node.name for node in pipeline.nodes] for pipeline in found] == [["batch", "map", "NumpySlices"]]
    assert [node.rows for node in found[0].nodes] == [3, 6, 6]
    text = str(p)
    assert "pipeline 1: " in text and "threads x2" in text
    p.html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Pipeline 1</h2>" in page and "threads x2" in page
