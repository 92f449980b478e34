"""Hardware model: devices, the links between them, and the time of computation and collectives.

A topology has one kind of device and a link for each axis of a mesh. A message of b bytes over a
link takes latency + b / bandwidth, where `bandwidth` is what one rank sends in a second while all
its peers along the axis do the same. A collective among n ranks along one axis sends the bytes of
a ring (`transport.collective_volume`), 2 (n - 1) / n of the value in an all-reduce. Its latency
comes as often as there are rounds in recursive halving and doubling, which sends as much (Thakur et
al., 2005): log2 n, twice that for an all-reduce, n - 1 for an all-to-all. Along several axes
collectives go axis by axis: the fast ones first, and the slow ones have what is left to each rank.
So an all-reduce among nodes of 8 devices reduces and scatters within the node, and sends an eighth
between nodes.

A `Cluster` has nested levels instead (devices of a node, nodes of the whole), and gives the
topology of any mesh that is laid over it, ranks in their order. Where k of a ring's ranks share a
unit of one level, k rings go out of it side by side, so that each has k times its link's bandwidth.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport.collective_volume import messages, sent
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.files import atomic_files

__all__ = ["A100", "H100", "HOST", "Cluster", "Device", "Level", "Link", "Topology", "load", "save"]

Path_ = str | os.PathLike[str]


@dataclass(frozen=True)
class Device:
    """One device: what it does in a second, and how much it holds.

    `flops` has floating-point operations a second by kind of work: an element type ("float32") for
    products of matrices, or a word before it ("convolution float32") for work that differs. What
    has no entry goes at the rate of the element type, and that at the rate of "float32".
    `bandwidth` is bytes of memory moved in a second, `memory` the bytes that it has, `overhead` the
    seconds that each kernel takes besides. Where the figures are a maker's peaks, `efficiency` is
    the share of them that kernels attain. What fits into `cache` bytes is moved at the rate
    `cached`, where these are given.

    >>> device = Device("toy", {"float32": 1e12, "bfloat16": 2e12}, bandwidth=1e11, memory=2**30)
    >>> device.seconds(2e12, 1e9, "float32"), device.seconds(2e9, 1e11, "convolution bfloat16")
    (2.0, 1.0)
    """

    name: str
    flops: Mapping[str, float]
    bandwidth: float
    memory: int
    overhead: float = 0.0
    efficiency: float = 1.0
    cache: int = 0
    cached: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "flops", dict(self.flops))
        if "float32" not in self.flops:
            raise ValueError(f"Device {self.name}: flops needs the rate of 'float32', not only {sorted(self.flops)}")
        for what, rate in [*self.flops.items(), ("bandwidth", self.bandwidth), ("memory", self.memory)]:
            arguments.number("Device", what, rate, above=0)
        arguments.number("Device", "overhead", self.overhead, at_least=0)
        arguments.number("Device", "efficiency", self.efficiency, above=0, at_most=1)
        arguments.integer("Device", "cache", self.cache, 0)
        arguments.number("Device", "cached", self.cached, at_least=0)

    def rate(self, kind: str) -> float:
        """Return the floating-point operations a second of a kind of work."""
        found = self.flops.get(kind) or self.flops.get(kind.rpartition(" ")[2])
        return self.flops["float32"] if found is None else found

    def seconds(self, flops: float, nbytes: float, kind: str = "float32") -> float:
        """Return what one kernel takes: the longer of computing and moving, and its overhead."""
        bandwidth = self.cached if self.cached and nbytes <= self.cache else self.bandwidth
        return self.overhead + max(flops / self.rate(kind), nbytes / bandwidth) / self.efficiency


@dataclass(frozen=True)
class Link:
    """The way between neighbours along an axis: seconds a message, and bytes a second of a rank.

    Links with the same `channel` share it: what goes over one waits for the other. Without a name
    each axis has a channel of its own.
    """

    latency: float
    bandwidth: float
    channel: str = ""

    def __post_init__(self) -> None:
        arguments.number("Link", "latency", self.latency, at_least=0)
        arguments.number("Link", "bandwidth", self.bandwidth, above=0)


@dataclass(frozen=True)
class Topology:
    """Devices in a mesh, and the link along each of its axes.

    >>> toy = Device("toy", {"float32": 1e12}, bandwidth=1e11, memory=2**30)
    >>> links = {"data": Link(0, 1e9), "model": Link(0, 8e9)}
    >>> two = Topology(toy, Mesh((2, 4), ("data", "model")), links)
    >>> two.seconds("all_reduce", 8 * 10**9, ("model",))
    1.5
    >>> two.seconds("all_reduce", 8 * 10**9, ("data", "model"))
    3.5
    """

    device: Device
    mesh: Mesh
    links: Mapping[str, Link]
    name: str = "topology"
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", dict(self.links))
        if set(self.links) != set(self.mesh.names):
            raise ShapeError(
                f"{self.name}: a mesh with the axes {self.mesh.names} needs a link for each of them, not "
                f"for {tuple(self.links)}"
            )

    def link(self, axis: str) -> Link:
        """Return the link along one axis."""
        if axis not in self.links:
            raise ShapeError(f"{self.name} has links along {', '.join(self.links)}; {axis!r} is none of them")
        return self.links[axis]

    def channel(self, axis: str) -> str:
        """Return the name of what messages along an axis go over."""
        return self.link(axis).channel or axis

    def seconds(self, kind: str, nbytes: int, axes: Sequence[str]) -> float:
        """Return what a collective takes from its start to its end.

        `kind` is one of `transport.collective_volume.KINDS`, `nbytes` those of its larger side,
        `axes` those that it goes along.
        """
        return sum(s for _, s in self.legs(kind, nbytes, axes))

    def legs(self, kind: str, nbytes: int, axes: Sequence[str]) -> list[tuple[str, float]]:
        """Return the axes that a collective goes along, in their order, and the seconds on each."""
        ways = [(a, self.mesh.count((a,)), self.link(a)) for a in axes]
        ways = [w for w in ways if w[1] > 1]
        if not ways:
            return []
        if kind in ("permute", "send"):
            # Messages between neighbours on several axes go over the slowest of them.
            axis, _, link = max(ways, key=lambda w: w[2].latency + nbytes / w[2].bandwidth)
            return [(axis, link.latency + nbytes / link.bandwidth)]
        ways.sort(key=lambda w: -w[2].bandwidth)
        result, left = [], float(nbytes)
        for axis, count, link in ways:
            moved = sent(kind, 1 << 40, count) / (1 << 40) * left
            result.append((axis, _rounds(kind, count) * link.latency + moved / link.bandwidth))
            if kind != "all_to_all":
                left /= count
        return result


def _rounds(kind: str, count: int) -> int:
    """Return how many messages of a collective follow each other."""
    found = messages(kind, count)
    return found if kind == "all_to_all" else found // (count - 1) * math.ceil(math.log2(count))


@dataclass(frozen=True)
class Level:
    """Units of one level: how many devices each has in all, and how a rank in it reaches others.

    `latency` and `bandwidth` are those of the link between the units of the level below.
    """

    name: str
    devices: int
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Cluster:
    """Devices in nested levels, from the innermost to the outermost, each with its link.

    `source` says where the figures are from.

    >>> found = A100.topology(Mesh((4, 8), ("data", "model")))
    >>> found.links["model"].bandwidth, found.links["data"].bandwidth
    (300000000000.0, 25000000000.0)
    """

    name: str
    device: Device
    levels: tuple[Level, ...]
    source: str = ""

    def __post_init__(self) -> None:
        sizes = [level.devices for level in self.levels]
        if not sizes or any(b % a or b <= a for a, b in zip(sizes, sizes[1:])):
            raise ValueError(f"Cluster {self.name}: each level must have a multiple of the devices below, not {sizes}")

    def topology(self, mesh: Mesh) -> Topology:
        """Return the links of a mesh whose ranks are this cluster's devices in their order."""
        most = self.levels[-1].devices
        if max(mesh.devices) >= most:
            raise ShapeError(f"{self.name} has {most} devices; a mesh of {mesh.sizes} does not fit")
        return Topology(self.device, mesh, {a: self._link(mesh, a) for a in mesh.names}, self.name, self.source)

    def _link(self, mesh: Mesh, axis: str) -> Link:
        ranks = mesh.peers(mesh.devices[0], (axis,))
        latency, bandwidth, channel, inside = 0.0, math.inf, "", 1
        for level in self.levels:
            first = [r for r in ranks if r // level.devices == ranks[0] // level.devices]
            if len(first) > inside:
                latency, channel = max(latency, level.latency), level.name
                bandwidth = min(bandwidth, level.bandwidth * inside)
                inside = len(first)
        if not channel:
            level = self.levels[0]
            return Link(level.latency, level.bandwidth, level.name)
        return Link(latency, bandwidth, channel)


# Figures that makers publish. What kernels attain of them, and latencies, are assumptions.

A100 = Cluster(
    "A100, 8 a node by NVLink, InfiniBand between nodes",
    Device(
        "A100 SXM 80 GB",
        {"float32": 19.5e12, "bfloat16": 312e12, "float16": 312e12, "float64": 9.7e12, "int8": 624e12},
        bandwidth=2.039e12,
        memory=80 << 30,
        overhead=3e-6,
        efficiency=0.7,
    ),
    (Level("NVLink", 8, 3e-6, 300e9), Level("InfiniBand", 1 << 16, 8e-6, 25e9)),
    "NVIDIA's data sheets of A100 SXM (dense peaks; NVLink 600 GB/s in both directions together) and of DGX A100 (one "
    "200 Gb/s HDR adapter for each GPU); efficiency 0.7 and latencies assumed",
)
H100 = Cluster(
    "H100, 8 a node by NVLink, InfiniBand between nodes",
    Device(
        "H100 SXM 80 GB",
        {"float32": 67e12, "bfloat16": 989e12, "float16": 989e12, "float64": 34e12, "int8": 1979e12},
        bandwidth=3.35e12,
        memory=80 << 30,
        overhead=3e-6,
        efficiency=0.6,
    ),
    (Level("NVLink", 8, 3e-6, 450e9), Level("InfiniBand", 1 << 16, 8e-6, 50e9)),
    "NVIDIA's data sheets of H100 SXM (dense peaks; NVLink 900 GB/s in both directions together) and of DGX H100 (one "
    "400 Gb/s NDR adapter for each GPU); efficiency 0.6 and latencies assumed",
)


# Files.


def save(topology: Topology, path: Path_) -> None:
    """Write a topology as JSON; the file appears whole or not at all."""
    device, mesh = topology.device, topology.mesh
    text = {
        "name": topology.name,
        "source": topology.source,
        "device": {
            "name": device.name,
            "flops": dict(device.flops),
            "bandwidth": device.bandwidth,
            "memory": device.memory,
            "overhead": device.overhead,
            "efficiency": device.efficiency,
            "cache": device.cache,
            "cached": device.cached,
        },
        "axes": [
            {"name": a, "size": n, "latency": k.latency, "bandwidth": k.bandwidth, "channel": k.channel}
            for a, n in zip(mesh.names, mesh.sizes)
            for k in [topology.links[a]]
        ],
    }
    atomic_files.write(path, (json.dumps(text, indent=2) + "\n").encode(), "topology")


def load(path: Path_) -> Topology:
    """Read a topology from a file that `save` or a person wrote.

    Raises ValueError, with the file and the entry, for what is missing, unknown or of another type.

    >>> import tempfile
    >>> toy = Device("toy", {"float32": 1e12}, bandwidth=1e11, memory=2**30)
    >>> file = Path(tempfile.mkdtemp()) / "toy.json"
    >>> save(Topology(toy, Mesh((2,), ("data",)), {"data": Link(1e-6, 1e9)}), file)
    >>> load(file).links
    {'data': Link(latency=1e-06, bandwidth=1000000000.0, channel='')}
    """
    try:
        content = json.loads(Path(path).read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"topology {os.fspath(path)!r} is no JSON: {error}") from error
    read = _Reader(f"topology {os.fspath(path)!r}")
    whole = read.entries("the file", content, {"device", "axes"}, {"name", "source"})
    device = read.entries(
        "device",
        whole["device"],
        {"flops", "bandwidth", "memory"},
        {"name", "overhead", "efficiency", "cache", "cached"},
    )
    flops = read.entries("device.flops", device["flops"], {"float32"}, None)
    axes = read.list("axes", whole["axes"])
    found = [
        read.entries(f"axes[{k}]", a, {"name", "size", "latency", "bandwidth"}, {"channel"}) for k, a in enumerate(axes)
    ]
    links = {
        read.text("name", a["name"]): Link(
            read.number("latency", a["latency"]),
            read.number("bandwidth", a["bandwidth"]),
            read.text("channel", a.get("channel", "")),
        )
        for a in found
    }
    return Topology(
        Device(
            read.text("device.name", device.get("name", "device")),
            {k: read.number(f"device.flops.{k}", v) for k, v in flops.items()},
            read.number("device.bandwidth", device["bandwidth"]),
            read.integer("device.memory", device["memory"]),
            read.number("device.overhead", device.get("overhead", 0.0)),
            read.number("device.efficiency", device.get("efficiency", 1.0)),
            read.integer("device.cache", device.get("cache", 0), 0),
            read.number("device.cached", device.get("cached", 0.0)),
        ),
        Mesh(tuple(read.integer("size", a["size"]) for a in found), tuple(a["name"] for a in found)),
        links,
        read.text("name", whole.get("name", "topology")),
        read.text("source", whole.get("source", "")),
    )


class _Reader:
    """Checks of entries of a file, whose name is in front of each error."""

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def entries(self, what: str, found: Any, needed: set[str], others: set[str] | None) -> dict[str, Any]:
        """Return `found` if it is an object with the entries `needed`, and of `others` any number.

        `what` names it; None as `others` allows any.
        """
        if not isinstance(found, dict):
            raise arguments.wrong_type(self.owner, what, "an object", found, ValueError)
        missing, unknown = needed - set(found), set() if others is None else set(found) - needed - others
        if missing or unknown:
            wrong = f"lacks {sorted(missing)}" if missing else f"has the unknown {sorted(unknown)}"
            raise ValueError(f"{self.owner}: {what} {wrong}")
        return found

    def list(self, what: str, found: Any) -> list[Any]:
        if not isinstance(found, list) or not found:
            raise arguments.wrong_type(self.owner, what, "a list that is not empty", found, ValueError)
        return found

    def text(self, what: str, found: Any) -> str:
        if not isinstance(found, str):
            raise arguments.wrong_type(self.owner, what, "a string", found, ValueError)
        return found

    def number(self, what: str, found: Any) -> float:
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
            raise arguments.wrong_value(self.owner, what, "a finite number", found)
        return found

    def integer(self, what: str, found: Any, least: int = 1) -> int:
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found < 1 << 62:
            raise arguments.wrong_value(self.owner, what, f"an integer of at least {least}", found)
        return found


HOST = Cluster(
    "processes of one machine",
    Device("a core", {"float32": 5e10, "float64": 2.5e10}, bandwidth=8e9, memory=16 << 30, overhead=5e-6),
    (Level("memory", 1 << 16, 4e-5, 1e9),),
    "figures of the order of a shared server's core, and of exchanges by its loopback; `measured` has better ones",
)
