"""Measures what operators and networks cost on a device: built for it, and counted there.

Networks are made of integers of 8 bits at both ends, built, and run on the emulated board of the
device, which counts instructions exactly. On the host (``"host"``) an instruction is a nanosecond
of the compiled network, the least of several runs.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mycel import nn
from mycel._src.staging.compiled.jit import jit
from mycel._src.tensors.core.tensor import Tensor
from mycel.deploy import Library, build
from mycel.deploy.boards import BOARDS, run
from mycel.quantisation import quantise
from mycel.search.architecture import GlobalMean
from mycel.search.operators import Operator

__all__ = ["HOST", "Cost", "device_named", "measure", "measure_operator"]

HOST = "host"
RUNS, CALLS = 5, 20
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cost:
    """What a network costs on a device.

    Args:
        instructions (int): Instructions of one call (on the host: nanoseconds).
        flash (int): Bytes of flash.
        ram (int): Bytes of RAM.
        code (int): Those of the flash that are code.
        stack (int): Those of the RAM that are stack.
        macs (int): The products of one call.
    """

    instructions: int
    flash: int
    ram: int
    code: int
    stack: int
    macs: int

    def record(self) -> dict[str, int]:
        """Return the figures as a dictionary."""
        return asdict(self)


def device_named(owner: str, device: str) -> str:
    """Return a device's name if its costs can be measured.

    Raises ValueError, in the name of `owner`, for another one.
    """
    if device not in (*BOARDS, HOST):
        known = ", ".join([*BOARDS, HOST])
        raise ValueError(f"{owner}: device must be one of {known}, not {device!r}")
    return device


def measure(net: Any, examples: Array, device: str, macs: int = 0) -> Cost:
    """Return what a network costs on a device, as integers of 8 bits.

    Args:
        net (Cell): A Cell with one input and one output, or what `quantise` made of it with
            ``integer_ends=True``.
        examples (numpy.ndarray[Any, Any]): Inputs by which ranges are known, and of which the first
            is run.
        device (str): A target with a board in `mycel.deploy.boards`, or ``"host"``.
        macs (int): Its products, if known, for the record. Default: 0.

    Returns:
        Cost: The cost.

    Raises:
        ValueError: For another device.
        FileNotFoundError: If the emulator or the compiler of C is not installed.
        Unsupported: For a network that cannot be quantised or built.
    """
    device_named("measure", device)
    small = net if hasattr(net, "quantised_input") else quantise(net, examples, integer_ends=True)
    first = small.quantised_input(examples[:1])
    if device == HOST:
        size = small.report.bytes
        return Cost(_nanoseconds(small, first), size, 0, 0, 0, macs)
    library = build(small, Tensor(first), target=device, name="network")
    return counted(library, first, macs)


def counted(library: Library, given: Array, macs: int) -> Cost:
    """Return the cost of a library of one input that is called with `given`, of so many `macs`."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(library, [[np.asarray(given)]], Path(folder))
    ram = library.ram_bytes + done.stack_bytes
    return Cost(done.instructions[0], library.flash_bytes, ram, library.code_bytes, done.stack_bytes, macs)


def _nanoseconds(net: Any, given: Array) -> int:
    call: Any = jit(net)
    x = Tensor(given)
    call(x).asnumpy()
    best = float("inf")
    for _ in range(RUNS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call(x).asnumpy()
        best = min(best, (time.perf_counter() - begin) / CALLS)
    return round(best * 1e9)


class _Sum(nn.Cell):
    """A product of each position, and perhaps the sum with what it read."""

    def __init__(self, channels: int, adds: bool) -> None:
        super().__init__()
        self.product, self.adds = nn.Conv2d(channels, channels, 1), adds

    def construct(self, x: Any) -> Any:
        y = self.product(x)
        return x + y if self.adds else y


def _network(operator: Operator, adds: bool = True) -> nn.Cell:
    kind, kernel = operator.kind, operator.kernel
    if kind == "dense":
        return nn.Dense(operator.given, operator.out)
    if kind == "mean":
        return GlobalMean()
    if kind == "add":
        return _Sum(operator.given, adds)
    rims = (kernel[0] // 2, kernel[0] // 2, kernel[1] // 2, kernel[1] // 2)
    group = operator.given if kind == "depthwise" else 1
    layer = nn.Conv2d(
        operator.given, operator.out, kernel, operator.stride, pad_mode="pad", padding=rims, group=group, has_bias=True
    )
    return nn.SequentialCell(layer, nn.ReLU())


def measure_operator(operator: Operator, device: str) -> Cost:
    """Return what an operator costs on a device, alone.

    A sum is the difference of two networks, with it and without. Raises as `measure` does.
    """
    random = np.random.RandomState(0)
    shape = (operator.given,) if operator.kind == "dense" else (operator.given, operator.height, operator.width)
    examples = random.randn(8, *shape).astype(np.float32)
    cost = measure(_weighted(_network(operator), random), examples, device, operator.macs)
    if operator.kind != "add":
        return cost
    without = measure(_weighted(_network(operator, adds=False), random), examples, device)
    rest = {k: max(0, v - without.record()[k]) for k, v in cost.record().items()}
    return Cost(**{**rest, "stack": cost.stack, "macs": 0})


def _weighted(net: nn.Cell, random: np.random.RandomState) -> nn.Cell:
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(random.randn(*parameter.shape).astype(np.float32)))
    net.set_train(False)
    return net
