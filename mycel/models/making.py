"""How the networks of the library are made: trained, searched for, quantised and measured.

For classes a once-for-all network is trained on four fifths of the rows, and its sub-networks are
searched by evolution for those of the highest score on the other fifth and of the fewest
instructions on a Cortex-M4. Of the front the best is taken, and the best with 40 and with 15
hundredths of its instructions. They are trained on with all rows, and scored once on those that are
held out.
Autoencoders are searched in the same way, each trained by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mycel import nn, ops
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.seed import set_seed
from mycel.models.data_of_tasks import Data, Task, task_named, validation
from mycel.models.library import CALIBRATION, Entry, score, score_of_integers
from mycel.models.networks import Autoencoder, prepared, weights_of
from mycel.quantisation import quantise
from mycel.search import (
    Architecture,
    Cost,
    ElasticNetwork,
    Found,
    Limits,
    Space,
    Stage,
    fit,
    measure,
    operators_of,
    recalibrate,
    search,
    table_of,
    train_elastic,
)
from mycel.search.bundled_tables import DEVICES
from mycel.search.search_space import Point

__all__ = ["make", "measured", "train_autoencoder"]

DEVICE = "cortex-m4"
SHARES = (1.0, 0.4, 0.15)
SIZES = ("large", "medium", "small")
LIMITS = Limits(ram=64_000, flash=128_000)
Told = Callable[[str], None]


@dataclass(frozen=True)
class _Plan:
    """How the network of a task is made: the largest of all, and passes over the rows."""

    stages: tuple[Stage, ...]
    stem_stride: int
    kernels: tuple[int, ...]
    epochs: int
    resolutions: tuple[int, ...] = ()


PLANS = {
    "digits": _Plan((Stage(12, 2), Stage(24, 2, 2)), 1, (3, 5), 40),
    "keywords": _Plan((Stage(8, 2), Stage(16, 2, 2), Stage(24, 1, 2)), 2, (3, 5), 20),
    "textures": _Plan((Stage(12, 2), Stage(16, 2, 2), Stage(24, 1, 2)), 2, (3, 5), 8, (24, 32)),
    "gestures": _Plan((Stage(8, 2, 2), Stage(16, 2, 2)), 2, (3, 5, 7), 30),
}


def make(
    task: str, seed: int = 0, path: Path | None = None, told: Told = lambda line: None
) -> list[tuple[Entry, bytes]]:
    """Return entries for a task, each with its file of weights.

    * `task`: the task's name.
    * `seed`: of weights, orders and what the search draws.
    * `path`: a file from which an interrupted search goes on.
    * `told`: is called with a line about each step.

    It takes minutes. Raises as `mycel.search.search` and `mycel.search.measure` do.
    """
    which = task_named("make", task)
    data = which.make()
    set_seed(seed)
    made: Sequence[tuple[nn.Cell, Architecture | Autoencoder]]
    if which.classes:
        made = _classifiers(which, data, seed, path, told)
    else:
        made = _autoencoders(which, data, seed, path)
    both = [
        _entry(which, data, f"{task}-{size}", net, architecture, seed, told)
        for size, (net, architecture) in zip(SIZES, made)
    ]
    # One that is no better than a smaller one is of no use.
    return [one for k, one in enumerate(both) if all(one[0].accuracy > other[0].accuracy for other in both[k + 1 :])]


def _spread(found: Sequence[Found]) -> list[Found]:
    """Return the best of a front, and the best with shares of its instructions, if there are."""
    best, made = found[0], []
    for share in SHARES:
        below = [one for one in found if one.cost.instructions <= share * best.cost.instructions]
        if below and below[0] not in made:
            made.append(below[0])
    return made


def _classifiers(
    task: Task, data: Data, seed: int, path: Path | None, told: Told
) -> Sequence[tuple[nn.Cell, Architecture]]:
    plan, chosen = PLANS[task.name], validation(task, data)
    channels, height, width = task.shape
    net = ElasticNetwork(
        (channels, height, width),
        task.classes,
        plan.stages,
        stem=8,
        stem_stride=plan.stem_stride,
        widths=(0.5, 1.0),
        expands=(1, 2, 4),
        kernels=plan.kernels,
        resolutions=plan.resolutions,
    )
    losses = train_elastic(net, chosen.x, chosen.y, epochs=plan.epochs, samples=2, seed=seed)
    told(f"{task.name}: {net.space.size:,} sub-networks are trained, the largest to a loss of {losses[-1]:.3f}")
    table, calibration = table_of(DEVICE), chosen.x[:CALIBRATION]

    def active(point: Point) -> None:
        net.choose(point)
        recalibrate(net, [net.resized(calibration)])

    def score_of(point: Point) -> float:
        active(point)
        return score(task, lambda x: net(Tensor(net.resized(x))), chosen)

    def predict(point: Point) -> dict[str, float]:
        architecture = net.architecture(point)
        return table.figures(operators_of(architecture.cell(), architecture.shape))

    def cost_of(point: Point) -> Cost:
        active(point)
        return measure(net.extract(), net.resized(calibration), DEVICE)

    found = search(
        net.space, score_of, cost_of, LIMITS, predict, population=24, generations=7, margin=0.3, seed=seed, path=path
    )
    for one in found:
        told(f"{task.name}: {one.score:.1%} with {one.cost.instructions:,} instructions")
    made = []
    for one in _spread(found):
        active(one.point)
        small = net.extract()
        fit(small, net.resized(data.x), data.y, epochs=2 * plan.epochs, rate=2e-3, seed=seed)
        recalibrate(small, [net.resized(data.x)[:1024]])
        made.append((small, small.architecture))
    return made


def _cost_of(net: nn.Cell, x: Any, device: str) -> Cost:
    macs = sum(operator.macs for operator in operators_of(net, x.shape[1:]))
    return measure(net, x, device, macs)


def train_autoencoder(architecture: Autoencoder, x: Any, seed: int = 0) -> nn.Cell:
    """Return a trained network that gives rows `x` again; equal seeds give equal networks."""
    set_seed(seed)
    net = architecture.cell()
    fit(net, x, x, loss=ops.mse_loss, epochs=20, seed=seed)
    return net


def _autoencoders(task: Task, data: Data, seed: int, path: Path | None) -> list[tuple[nn.Cell, Autoencoder]]:
    space = Space({"hidden": (8, 16, 24, 32, 48, 64), "narrow": (2, 4, 6, 8, 12)})
    chosen = validation(task, data)

    def architecture(point: Point) -> Autoencoder:
        hidden, narrow, ends = int(point["hidden"]), int(point["narrow"]), task.shape[0]
        return Autoencoder((ends, hidden, narrow, hidden, ends))

    def net_of(point: Point) -> nn.Cell:
        return train_autoencoder(architecture(point), data.x, seed)

    found = search(
        space,
        lambda point: score(task, lambda x: net_of(point)(Tensor(x)), chosen),
        lambda point: _cost_of(architecture(point).cell(), data.x[:CALIBRATION], DEVICE),
        LIMITS,
        population=8,
        generations=2,
        seed=seed,
        path=path,
    )
    return [(net_of(one.point), architecture(one.point)) for one in _spread(found)]


def _entry(
    task: Task, data: Data, name: str, net: nn.Cell, architecture: Any, seed: int, told: Told
) -> tuple[Entry, bytes]:
    weights = weights_of(net)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(parameter.asnumpy().astype(np.float16).astype(np.float32)))
    rows = replace(data, x=prepared(architecture, data.x), held_x=prepared(architecture, data.held_x))
    small = quantise(net, rows.x[:CALIBRATION], integer_ends=True)
    macs = sum(operator.macs for operator in operators_of(net, architecture.shape))
    entry = Entry(
        name,
        task.name,
        round(score_of_integers(task, small, rows), 4),
        round(score(task, lambda x: net(Tensor(x)), rows), 4),
        sum(int(parameter.size) for parameter in net.trainable_params()),
        macs,
        architecture,
        {device: measure(small, rows.x[:CALIBRATION], device, macs) for device in DEVICES},
        seed,
        f"python tools/model_library.py --tasks {task.name} --seed {seed}",
    )
    told(str(entry))
    return entry, weights


def measured(entry: Entry, data: Data | None = None, devices: Sequence[str] = DEVICES) -> Entry:
    """Return an entry with what is measured of its bundled weights now.

    * `entry`: the entry.
    * `data`: the task's, if they are there.
    * `devices`: those on which it is measured.

    Raises as `mycel.search.measure` does.
    """
    data = data or entry.data.make()
    rows = replace(data, x=prepared(entry.architecture, data.x), held_x=prepared(entry.architecture, data.held_x))
    net, small = entry.network(), entry.quantised(data)
    return replace(
        entry,
        accuracy=round(score_of_integers(entry.data, small, rows), 4),
        float_accuracy=round(score(entry.data, lambda x: net(Tensor(x)), rows), 4),
        costs={device: measure(small, rows.x[:CALIBRATION], device, entry.macs) for device in devices},
    )
