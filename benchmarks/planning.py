"""The search of plans: its time, and how plans compare with those that have names.

    python benchmarks/planning.py [--networks resnet,bert,gpt] [--devices 8,64] [--limit 0.98]

Training steps of ResNet-50, of a BERT of 12 layers and of a GPT of 24 layers are staged from types
alone, and planned for A100s in a mesh of two axes: once with all the memory that a device has, and
once with `--limit` of what the first plan holds. Seconds are those of the processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from mycel import compat

compat.install()

import mindspore as ms  # noqa: E402
from mindspore import Parameter, nn  # noqa: E402
from mindspore_networks import Encoder, ResNet50, WithLoss  # noqa: E402
from simulation import GPT, declared, trained  # noqa: E402

from mycel._src.compiler.ir.sharding.mesh import Mesh  # noqa: E402
from mycel._src.planner.planning import Plan, plan  # noqa: E402
from mycel.parallel.simulation import A100, Staged  # noqa: E402

__all__ = ["bert", "gpt", "main", "resnet"]

MESHES = {8: (2, 4), 64: (8, 8)}
MOST = {"resnet": 5.0, "bert": 10.0, "gpt": 20.0}  # seconds that a search may take


class Bert(nn.Cell):
    """An encoder with the head that names masked words."""

    def __init__(self, layers: int, width: int, heads: int, length: int, words: int) -> None:
        super().__init__()
        self.position = Parameter(declared((length, width)), name="position")
        self.embed, self.words = nn.Embedding(words, width), words
        self.layers = nn.SequentialCell([Encoder(width, heads) for _ in range(layers)])
        self.out = nn.Dense(width, words)

    def construct(self, x: Any) -> Any:
        return self.out(self.layers(self.embed(x) + self.position)).reshape(-1, self.words)


def resnet(batch: int = 1024) -> Staged:
    """Return a step of ResNet-50 with momentum."""
    with nn.no_init_parameters():
        net = WithLoss(ResNet50()).set_train()
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return trained(net, optimizer, declared((batch, 3, 224, 224)), declared((batch,), ms.int32))


def bert(batch: int = 256, layers: int = 12) -> Staged:
    """Return a step of BERT with Adam."""
    with nn.no_init_parameters():
        net = WithLoss(Bert(layers, 768, 12, 128, 30522))
        optimizer = nn.Adam(net.trainable_params(), 1e-4)
    return trained(net, optimizer, declared((batch, 128), ms.int32), declared((batch * 128,), ms.int32))


def gpt(batch: int = 64, layers: int = 24) -> Staged:
    """Return a step of a GPT with Adam."""
    with nn.no_init_parameters():
        net = GPT(layers, 1024, 16, 50257)
        optimizer = nn.Adam(net.trainable_params(), 1e-4)
    words = declared((batch, 1024), ms.int32)
    return trained(net, optimizer, words, words)


def _timed(found: Staged, devices: int, limit: float) -> tuple[Plan | None, float]:
    """Return a plan and the seconds of its search, None instead where none fits."""
    topology = A100.topology(Mesh(MESHES[devices], ("data", "model")))
    start = time.process_time()
    made: Plan | None = None
    try:
        made = plan(found.graph, topology, aliases=found.aliases, limit=limit)
    except ValueError as error:
        if "no plan holds at most" not in str(error):
            raise
    return made, time.process_time() - start


def _named(made: Plan) -> str:
    """Return the milliseconds of the plans that have names."""
    found = [f"{n} {'too large' if s is None else f'{s * 1e3:.2f}'}" for n, s in made.named.items()]
    return "named: " + ", ".join(found)


def main(arguments: list[str]) -> int:
    """Print a line for each search; return how many took longer than they may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="resnet,bert,gpt")
    parser.add_argument("--devices", default="8,64")
    parser.add_argument("--limit", type=float, default=0.98)
    given = parser.parse_args(arguments)
    late = 0
    for name in given.networks.split(","):
        found = {"resnet": resnet, "bert": bert, "gpt": gpt}[name]()
        print(f"{name}: {len(found.graph.inputs)} inputs, {len(found.graph.nodes)} nodes", flush=True)
        for devices in map(int, given.devices.split(",")):
            limit = float(A100.device.memory)
            for what in ("all memory", f"{given.limit:g} of it"):
                made, seconds = _timed(found, devices, limit)
                late += seconds > MOST[name]
                if made is None:
                    print(f"  {devices} devices, {what}: {seconds:.1f} s; nothing fits", flush=True)
                    continue
                print(
                    f"  {devices} devices, {what}: {seconds:.1f} s; a step {made.seconds * 1e3:.2f} ms, "
                    f"{made.bytes / 1e9:.2f} GB a device; {_named(made)}",
                    flush=True,
                )
                limit = given.limit * made.bytes
    return late


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
