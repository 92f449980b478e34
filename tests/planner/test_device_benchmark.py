"""What is measured of this machine has the form of a topology; no test measures time."""

from __future__ import annotations

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.planner.device_benchmark import measured_topology
from mycel._src.planner.topology import load, save


def test_this_machine_as_a_topology(tmp_path) -> None:
    found = measured_topology(Mesh((2,), ("data",)))
    assert {"float32", "conv float32", "elementwise float32"} <= set(found.device.flops)
    assert all(r > 0 for r in found.device.flops.values()) and found.device.cached > 0
    assert found.links["data"].bandwidth > 0 and found.device.memory > 0
    save(found, tmp_path / "here.json")
    assert load(tmp_path / "here.json") == found
