"""The library of networks by task: what each costs on which device, as measured, and the choice.

Every figure of an entry was measured: the network of integers was built for the device, run on its
emulated board with instructions counted, and scored on rows held out. RAM has the stack in it. The
record and the weights are files of the package; `tools/model_library.py` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mycel import nn
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.tensor import Tensor
from mycel.deploy import Library, build
from mycel.models.data_of_tasks import Data, Task, task_named
from mycel.models.networks import Autoencoder, architecture_of, prepared, read_weights
from mycel.quantisation import quantise
from mycel.search import Architecture, Cost

__all__ = ["CALIBRATION", "FILES", "Entry", "NoModel", "choose", "entries", "score", "score_of_integers"]

FILES = Path(__file__).resolve().parent / "files"
FORMAT = "mycel-models-1"
CALIBRATION = 256


class NoModel(Unsupported):
    """An error: no network of the library fits what was asked; the message has what would."""


@dataclass(frozen=True)
class Entry:
    """A network of the library, with what was measured of it.

    Args:
        name (str): Its name.
        task (str): The name of its task.
        accuracy (float): What the network of integers reaches on rows held out, from 0 to 1; of
            ``vibration`` the area under the curve.
        float_accuracy (float): What the network of floats reaches.
        parameters (int): The number of elements of its parameters.
        macs (int): The products of a call.
        architecture (Architecture | Autoencoder): What it is made of.
        costs (dict[str, Cost]): By device what it costs there: instructions, flash, RAM, code,
            stack.
        seed (int): The seed that made it.
        command (str): The command that made it.
    """

    name: str
    task: str
    accuracy: float
    float_accuracy: float
    parameters: int
    macs: int
    architecture: Architecture | Autoencoder
    costs: dict[str, Cost]
    seed: int
    command: str

    @property
    def data(self) -> Task:
        """The task; its `make()` gives the data."""
        return task_named("Entry", self.task)

    def network(self) -> nn.Cell:
        """Return the trained network of floats."""
        net = self.architecture.cell()
        read_weights(net, FILES / f"{self.name}.safetensors")
        net.set_train(False)
        return net

    def quantised(self, data: Data | None = None) -> Any:
        """Return the network as integers of 8 bits, as it was measured.

        `data` are the task's, if they are there; ranges are those of its first rows for training.
        """
        rows = prepared(self.architecture, (data or self.data.make()).x[:CALIBRATION])
        return quantise(self.network(), rows, integer_ends=True)

    def build(self, target: str, name: str = "model", data: Data | None = None) -> Library:
        """Return the library of the network of integers for a target, as `mycel.deploy.build`.

        * `target`: the machine, also one that was not measured.
        * `name`: that of the function in C.
        * `data`: the task's, if they are there.
        """
        small = self.quantised(data)
        first = small.quantised_input(np.zeros((1, *self.architecture.shape), np.float32))
        return build(small, Tensor(first), target=target, name=name)

    def record(self) -> dict[str, Any]:
        """Return the entry as numbers, words, lists and dictionaries."""
        values = dict(self.__dict__)
        values["architecture"] = self.architecture.record()
        values["costs"] = {device: cost.record() for device, cost in self.costs.items()}
        return values

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.data.text}"]
        lines.append(
            f"  {self.data.measure} {self.accuracy:.1%} ({self.float_accuracy:.1%} in floats), "
            f"{self.parameters:,} parameters, {self.macs:,} products"
        )
        for device, cost in self.costs.items():
            lines.append(f"  {device:<12}{_shown(cost)}")
        return "\n".join(lines)


def _shown(cost: Cost) -> str:
    return f"flash {cost.flash:,}, RAM {cost.ram:,}, {cost.instructions:,} instructions"


def score(task: Task, net: Callable[[Any], Any], data: Data) -> float:
    """Return how good a network is on the held-out rows of a task.

    * `task`: says what is measured. Of classes it is the share that is right. Of ``vibration`` it
      is the area under the receiver operating characteristic of the mean square of what the
      network does not reproduce.
    * `net`: takes rows of NumPy's and gives results, tensors or NumPy's.
    * `data`: the task's.
    """
    results = net(data.held_x)
    values = np.asarray(getattr(results, "asnumpy", lambda: results)(), np.float64)
    if task.classes:
        return float((values.argmax(1) == data.held_y).mean())
    errors = ((values - data.held_x) ** 2).mean(1)
    faulty, sound = errors[data.held_y == 1], errors[data.held_y == 0]
    wins = (faulty[:, None] > sound).mean() + (faulty[:, None] == sound).mean() / 2
    return float(wins)


def score_of_integers(task: Task, small: Any, data: Data) -> float:
    """Return how good a network of integers is on the held-out rows of a task, as `score`.

    `small` is what `quantise` gave with integer ends, `data` have rows as it takes them.
    """
    return score(task, lambda x: small.real_output(small(Tensor(small.quantised_input(x)))), data)


def entries(task: str | None = None) -> list[Entry]:
    """Return the entries of the library, or those of one task, each task's best first.

    Raises ValueError for a task that there is not.

    >>> from mycel import models
    >>> [entry.task for entry in models.entries("digits")][0]
    'digits'
    """
    if task is not None:
        task_named("entries", task)
    found = json.loads((FILES / "library.json").read_bytes())
    if found.get("format") != FORMAT:
        raise ValueError(f"entries: the format of library.json is {found.get('format')!r}, not {FORMAT}")
    made = []
    for values in found["entries"]:
        values["architecture"] = architecture_of(values["architecture"])
        values["costs"] = {device: Cost(**cost) for device, cost in values["costs"].items()}
        if task in (None, values["task"]):
            made.append(Entry(**values))
    return sorted(made, key=lambda e: (e.task, -e.accuracy))


def choose(
    task: str,
    ram: int | None = None,
    flash: int | None = None,
    device: str = "cortex-m4",
    latency: float | None = None,
    instructions: int | None = None,
    accuracy: float | None = None,
    clock: float = 100e6,
) -> Entry:
    """Return the most accurate network for a task that fits a device.

    Args:
        task (str): One of `mycel.models.tasks()`.
        ram (int | None): Bytes of RAM that there are: stack, arena and state; None for no limit.
            Default: None.
        flash (int | None): Bytes of flash that there are: code and constants; None for no limit.
            Default: None.
        device (str): The processor, for which entries were measured. Default: "cortex-m4".
        latency (float | None): Seconds of a call at most, at `clock` hertz and one instruction a
            cycle. Default: None.
        instructions (int | None): Instructions of a call at most. Default: None.
        accuracy (float | None): What it has to reach at least, from 0 to 1. Then the fittest with
            the fewest instructions is returned. Default: None.
        clock (float): Hertz, for `latency`. Default: 100000000.0.

    Returns:
        Entry: The network, with what was measured of it.

    Raises:
        NoModel: If none fits; it says what comes nearest, and what would fit.
        ValueError, TypeError: For a task, a device or limits that there cannot be.

    Examples:
        >>> from mycel import models
        >>> entry = models.choose("digits", ram=256_000, flash=1_000_000)
        >>> entry.task, entry.costs["cortex-m4"].flash < 1_000_000
        ('digits', True)
    """
    for name, value in (("ram", ram), ("flash", flash), ("instructions", instructions)):
        if value is not None:
            arguments.integer("choose", name, value, at_least=0)
    for name, number in (("latency", latency), ("accuracy", accuracy), ("clock", clock)):
        if number is not None:
            arguments.number("choose", name, number, at_least=0)
    task_named("choose", task)
    there = entries(task)
    devices = sorted({name for entry in there for name in entry.costs})
    if device not in devices:
        raise ValueError(
            f"choose: device must be one of {', '.join(devices)}, on which entries were measured, not {device!r}; "
            "Entry.build makes a library for any target"
        )
    allowed: dict[str, float] = {}
    if ram is not None:
        allowed["ram"] = ram
    if flash is not None:
        allowed["flash"] = flash
    if instructions is not None:
        allowed["instructions"] = instructions
    if latency is not None:
        # A quotient of instructions and the clock, times the clock, may be a rounding below them.
        cycles = latency * clock * (1 + 1e-9)
        allowed["instructions"] = min(cycles, allowed.get("instructions", cycles))

    def excess(entry: Entry) -> float:
        cost = entry.costs[device].record()
        over = [(cost[name] - limit) / max(1.0, limit) for name, limit in allowed.items()]
        if accuracy is not None:
            over.append((accuracy - entry.accuracy) / max(accuracy, 1e-9))
        return max([0.0, *over])

    fit = [entry for entry in there if excess(entry) == 0]
    if not fit:
        raise NoModel(_advice(task, device, allowed, accuracy, min(there, key=excess), there))
    if accuracy is not None:
        return min(fit, key=lambda e: e.costs[device].instructions)
    return max(fit, key=lambda e: (e.accuracy, -e.costs[device].instructions))


def _advice(
    task: str, device: str, allowed: dict[str, float], accuracy: float | None, nearest: Entry, there: list[Entry]
) -> str:
    """Return what comes nearest to what was asked of a task, and what would fit."""
    asked = [f"{name} {limit:,.0f}" for name, limit in allowed.items()]
    if accuracy is not None:
        asked.append(f"accuracy {accuracy:.1%}")
    cost = nearest.costs[device]
    lines = [f"choose: no network for {task} fits {', '.join(asked)} on {device}."]
    lines.append(f"The nearest is {nearest.name}: accuracy {nearest.accuracy:.1%}, {_shown(cost)}.")
    figures = cost.record()
    mends = [f"{name} of {figures[name]:,}" for name, limit in allowed.items() if figures[name] > limit]
    if accuracy is not None and nearest.accuracy < accuracy:
        mends.append(f"accuracy of {nearest.accuracy:.1%}")
    lines.append(f"It would fit with {' and '.join(mends)}.")
    best = max(there, key=lambda e: e.accuracy)
    if best.name != nearest.name:
        lines.append(f"The best, {best.name} with {best.accuracy:.1%}, takes {_shown(best.costs[device])}.")
    return "\n".join(lines)
