"""Training steps on up to 4096 devices, simulated: ResNet-50, and a GPT of 13 billion parameters.

    python benchmarks/simulation.py [--layers 40] [--pictures FOLDER]

The networks are staged from types alone. Data parallel ResNet-50 has 32 images a rank; the GPT has
eight ranks for each layer, and either all layers on each of them or four stages of a pipeline with
two sequences in each of 16 micro-batches. What is made for the least number of devices is scaled to
the others, as each rank's part of the work is the same.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

from mycel import compat

compat.install()

import mindspore as ms  # noqa: E402
from mindspore import nn, ops  # noqa: E402
from mindspore.common.initializer import Zero  # noqa: E402
from mindspore_networks import ResNet50, WithLoss  # noqa: E402

from mycel.parallel.simulation import (  # noqa: E402
    A100,
    WHOLE,
    Mesh,
    Pipeline,
    Stage,
    Staged,
    adam,
    partition,
    sharding,
    simulate,
    staged,
    with_gradients,
)

__all__ = ["GPT", "declared", "gpt", "gpt_pipeline", "main", "resnet", "trained"]

WIDTH, HEADS, LENGTH, WORDS = 5120, 40, 2048, 51200


class Block(nn.Cell):
    """A layer: attention, and two products with GELU between them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.q, self.k, self.v = nn.Dense(width, width), nn.Dense(width, width), nn.Dense(width, width)
        self.o, self.up, self.down = nn.Dense(width, width), nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def split(self, x: Any) -> Any:
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.width).transpose(0, 2, 1, 3)

    def construct(self, x: Any) -> Any:
        y = self.norm1(x)
        q, k, v = self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / self.width**0.5
        later = ops.triu(ops.ones(scores.shape[-2:], ms.float32), 1)
        y = ops.matmul(ops.softmax(scores - 1e9 * later), v)
        x = x + self.o(y.transpose(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(ops.gelu(self.up(self.norm2(x))))


class GPT(nn.Cell):
    """A language model with its loss."""

    def __init__(self, layers: int, width: int = WIDTH, heads: int = HEADS, words: int = WORDS) -> None:
        super().__init__()
        self.embed, self.norm, self.words = nn.Embedding(words, width), nn.LayerNorm((width,)), words
        self.blocks = nn.SequentialCell([Block(width, heads) for _ in range(layers)])
        self.out = nn.Dense(width, words, has_bias=False)

    def construct(self, words: Any, following: Any) -> Any:
        x = self.out(self.norm(self.blocks(self.embed(words))))
        return ops.cross_entropy(x.reshape(-1, self.words), following.reshape(-1))


def _layouts(found: Staged, mesh: Mesh) -> list[Any]:
    """Batches along "data", weights along "model": Megatron's rows and columns."""
    result = []
    for name, node in zip(found.names, found.graph.inputs):
        shape = node.type.shape
        rest = (None,) * (len(shape) - 1)
        if not name:
            result.append(sharding(mesh, shape, ("data", *rest)) if shape else WHOLE)
        elif "model" in mesh.names and re.search(r"\b(q|k|v|up)\.(weight|bias)|out\.weight|embedding_table", name):
            result.append(sharding(mesh, shape, ("model", *rest)))
        elif "model" in mesh.names and re.search(r"\b(o|down)\.weight", name):
            result.append(sharding(mesh, shape, (None, "model")))
        else:
            result.append(WHOLE)
    return result


def declared(shape: tuple[int, ...], kind: Any = ms.float32) -> Any:
    """Return a tensor of which there is the type and no value."""
    return ms.Tensor(shape=shape, dtype=kind, init=Zero())


def trained(net: Any, optimizer: Any, *batch: Any) -> Staged:
    """Return a training step of a network that gives its loss."""
    gradient = ms.value_and_grad(net, None, optimizer.parameters)

    def step(*batch: Any) -> Any:
        loss, gradients = gradient(*batch)
        optimizer(gradients)
        return loss

    return staged(step, *batch)


def resnet(images: int = 32) -> list[Any]:
    """Return ResNet-50, data parallel, on 8 to 4096 devices."""
    mesh = Mesh((8,), ("data",))
    with nn.no_init_parameters():
        net = WithLoss(ResNet50()).set_train()
        optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    found = trained(net, optimizer, declared((8 * images, 3, 224, 224)), declared((8 * images,), ms.int32))
    made = partition(found.graph, mesh, _layouts(found, mesh), None, found.aliases)
    return [
        simulate(
            made, A100.topology(Mesh((n,), ("data",))), found.aliases, scaled=True, name="ResNet-50, data parallel"
        )
        for n in (8, 64, 512, 4096)
    ]


def gpt(layers: int = 40) -> list[Any]:
    """Return the GPT, 8 tensor parallel ranks times data parallel, on 8 to 4096 devices."""
    mesh = Mesh((2, 8), ("data", "model"))
    with nn.no_init_parameters():
        net = GPT(layers)
        optimizer = nn.Adam(net.trainable_params(), 1e-4)
    words = declared((2, LENGTH), ms.int32)
    found = trained(net, optimizer, words, words)
    made = partition(found.graph, mesh, _layouts(found, mesh), None, found.aliases)
    title = f"GPT of {layers} layers, tensor x data parallel"
    return [
        simulate(made, A100.topology(Mesh((n, 8), mesh.names)), found.aliases, scaled=True, name=title)
        for n in (1, 8, 64, 512)
    ]


def gpt_pipeline(layers: int = 40, stages: int = 4, microbatches: int = 16) -> list[Any]:
    """Return the GPT's layers in a pipeline, on 32 to 4096 devices, by all schedules."""
    if layers % (2 * stages):
        raise ValueError(f"{layers} layers do not divide among {2 * stages} stages")
    with nn.no_init_parameters():
        nets = {n: nn.SequentialCell([Block(WIDTH, HEADS) for _ in range(layers // n)]) for n in (stages, 2 * stages)}
    results = []
    mesh = Mesh((1, 8), ("data", "model"))
    for kind, count in (("gpipe", stages), ("1f1b", stages), ("interleaved", 2 * stages)):
        found = staged(nets[count], declared((2, LENGTH, WIDTH)))
        # The parameters whose derivatives there are: all, as every input is a float.
        step = Staged(with_gradients(found.graph), (*found.names, ""), {})
        local = partition(step.graph, mesh, _layouts(step, mesh)).graph
        types = [n.type for n in local.inputs[1:-1]]
        for n in (1, 16, 128):
            whole = Mesh((stages, n, 8), ("pipe", "data", "model"))
            update, aliases = adam(types, whole, ("data",))
            stage = Stage(local, update=update, aliases=aliases)
            title = f"GPT of {layers} layers, pipeline ({kind})"
            results.append(simulate(Pipeline([stage] * count, microbatches, kind), A100.topology(whole), name=title))
    return results


def main(arguments: list[str]) -> None:
    """Print the tables, and save the pictures of the largest runs into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args(arguments)
    for make in (resnet, lambda: gpt(given.layers), lambda: gpt_pipeline(given.layers)):
        start = time.perf_counter()
        runs = make()
        print(*runs, sep="\n")
        print(f"simulated in {time.perf_counter() - start:.1f} s\n", flush=True)
        if given.pictures:
            given.pictures.mkdir(parents=True, exist_ok=True)
            runs[-1].save(given.pictures / (re.sub(r"\W+", "_", runs[-1].name) + ".svg"))


if __name__ == "__main__":
    main(sys.argv[1:])
