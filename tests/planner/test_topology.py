"""Topologies: links of meshes over clusters, what collectives take, and files."""

from __future__ import annotations

import json

import pytest

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport.collective_volume import KINDS, messages, sent
from mycel._src.foundation.errors import ShapeError
from mycel._src.planner.topology import A100, Cluster, Device, Level, Link, Topology, load, save

TOY = Device("toy", {"float32": 1e12, "bfloat16": 2e12}, bandwidth=1e11, memory=1 << 30, overhead=1e-6)
MESH = Mesh((2, 4), ("data", "model"))
LINKS = {"data": Link(1e-3, 1e9), "model": Link(1e-4, 8e9, "bus")}


def test_rings():
    assert sent("all_reduce", 800, 4) == 1200 and messages("all_reduce", 4) == 6
    assert sent("reduce_scatter", 801, 4) == 601  # 600.75
    assert all(sent(k, 1 << 30, 1) == 0 == messages(k, 1) for k in KINDS)
    with pytest.raises(ValueError, match="no collective 'gossip'"):
        sent("gossip", 1, 2)


def test_devices():
    assert TOY.seconds(2e12, 0) == pytest.approx(2 + 1e-6)
    assert TOY.seconds(2e12, 0, "convolution bfloat16") == pytest.approx(1 + 1e-6)
    assert TOY.seconds(1, 1e11, "int32") == pytest.approx(1 + 1e-6)
    near = Device("toy", {"float32": 1e12}, bandwidth=1e9, memory=1 << 30, cache=1000, cached=1e10)
    assert (near.seconds(0, 1000), near.seconds(0, 2000)) == (1e-7, 2e-6)
    with pytest.raises(ValueError, match="float32"):
        Device("toy", {"bfloat16": 1.0}, bandwidth=1.0, memory=1)
    with pytest.raises(ValueError, match="bandwidth must be above 0"):
        Device("toy", {"float32": 1.0}, bandwidth=0, memory=1)


def test_collectives_along_axes():
    t = Topology(TOY, MESH, LINKS)
    assert t.seconds("all_gather", 8_000_000_000, ("model",)) == pytest.approx(2e-4 + 0.75)
    # Fast axis first; the slow one has a quarter of the bytes left.
    assert t.legs("all_reduce", 8_000_000_000, ("data", "model")) == [
        ("model", pytest.approx(4e-4 + 1.5)),
        ("data", pytest.approx(2e-3 + 2.0)),
    ]
    assert t.seconds("all_to_all", 8_000_000_000, ("model",)) == pytest.approx(3e-4 + 0.75)
    assert t.seconds("permute", 8_000_000_000, ("data", "model")) == pytest.approx(1e-3 + 8)
    assert (t.channel("data"), t.channel("model")) == ("data", "bus")
    with pytest.raises(ShapeError, match="'pipe' is none of them"):
        t.seconds("all_reduce", 1, ("pipe",))
    with pytest.raises(ShapeError, match="needs a link for each"):
        Topology(TOY, MESH, {"data": LINKS["data"]})


def test_axes_over_levels():
    c = Cluster("toy", TOY, (Level("bus", 4, 1e-6, 8e9), Level("net", 16, 1e-5, 1e9)))
    inner = c.topology(Mesh((4, 4), ("data", "model")))
    assert inner.links == {"data": Link(1e-5, 1e9, "net"), "model": Link(1e-6, 8e9, "bus")}
    # Four of a ring's ranks share a node: four rings go out side by side.
    assert c.topology(Mesh((16,), ("data",))).links == {"data": Link(1e-5, 4e9, "net")}
    assert c.topology(Mesh((2, 8), ("data", "model"))).links["model"] == Link(1e-5, 4e9, "net")
    with pytest.raises(ShapeError, match="toy has 16 devices"):
        c.topology(Mesh((17,), ("data",)))
    assert A100.topology(Mesh((512, 8), ("data", "model"))).mesh.size == 4096


def test_files(tmp_path):
    t = Topology(TOY, MESH, LINKS, "mine", "made up")
    save(t, tmp_path / "t.json")
    assert load(tmp_path / "t.json") == t
    text = json.loads((tmp_path / "t.json").read_text())
    for change, said in (
        (lambda c: c.pop("axes"), "the file lacks \\['axes'\\]"),
        (lambda c: c.update(speed=1), "the file has the unknown \\['speed'\\]"),
        (lambda c: c["axes"][0].update(size=True), "size must be an integer of at least 1, not True"),
        (lambda c: c["axes"][0].update(latency="1"), "latency must be a finite number, not '1'"),
        (lambda c: c["device"]["flops"].update(float32=float("nan")), "flops.float32 must be a finite number"),
        (lambda c: c["device"].update(flops={}), "device.flops lacks \\['float32'\\]"),
        (lambda c: c.update(axes=[]), "axes must be a list that is not empty"),
    ):
        content = json.loads(json.dumps(text))
        change(content)
        (tmp_path / "bad.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=said):
            load(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_bytes(b"{\xff")
    with pytest.raises(ValueError, match="is no JSON"):
        load(tmp_path / "bad.json")
