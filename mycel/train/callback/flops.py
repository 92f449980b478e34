"""FlopsUtilizationCollector: the arithmetic of a step, relative to the peak of a machine.

The multiplications and additions of matrix products and convolutions are counted, forward and
backward, in the optimised graph of the step. *Model* flops are those that the mathematics asks for;
*hardware* flops those that run, which include what `recompute` computes twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.control_flow.control import call, cond
from mycel._src.compiler.prims.control_flow.recompute import after, recompute
from mycel._src.engines.reports import work
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.staging.compiled.explain import explain
from mycel.train.callback.base import Callback, RunContext

__all__ = ["FlopsUtilizationCollector", "step_flops"]


def step_flops(network: Any, *inputs: Any) -> tuple[int, int]:
    """Return the model flops and the hardware flops of a call of a Cell or function.

    Raises ValueError if the call is not one graph of known sizes.

    >>> import mycel as ms
    >>> step_flops(ms.nn.Dense(10, 5), ms.ops.ones((32, 10)))
    (3200, 3200)
    """
    found = explain(network, *inputs)
    if len(found.graphs) != 1:
        raise ValueError(
            "FlopsUtilizationCollector: flops are counted where a step is one graph, and this one goes back to Python "
            "on the way"
        )
    graph = found.graphs[0]
    hardware = _flops(engine().prepared(graph))
    return hardware - _twice(graph), hardware


def _inner(node: Node) -> Iterator[Graph]:
    for value in node.params.values():
        if isinstance(value, Graph):
            yield value


def _flops(graph: Graph) -> int:
    """Return the flops of a graph: of a branch the larger side, of a loop one round."""
    total = 0
    for node in graph.nodes:
        total += work(node)
        inner = [_flops(g) for g in _inner(node)]
        total += max(inner, default=0) if node.prim is cond else sum(inner)
    return total


def _twice(graph: Graph) -> int:
    """Return the flops of regions that are computed again for their gradient.

    These are the graphs of `recompute` nodes beside a call that waits for a cotangent.
    """
    waits = any(node.prim is call and any(x.prim is after for x in node.inputs) for node in graph.nodes)
    total = 0
    for node in graph.nodes:
        for inner in _inner(node):
            if waits and node.prim is recompute:
                total += _flops(inner)
            total += _twice(inner)
    return total


class FlopsUtilizationCollector(Callback):
    """A callback that prints the flops of a training or evaluation step once, and then the time of
    steps and the parts of the machine's flops that they used.

    The parts are those of the model's and the hardware's flops (MFU and HFU), in percent. Only
    matrix products and convolutions are counted, as in MindSpore.

    Args:
        data_size (int): After how many training steps the time is printed.
        computility (float): The machine's flops per second. Default: 1.
        full_flops (bool): Changes the printed text but not the numbers, as one process runs the
            whole model. Default: True.
        enable_ma_collector (bool): Whether the flops and the last step's time are written to
            flops_rank_0.txt and time_step_rank_0.txt in the folder that the environment variable
            MA_LOG_DIR names, and nothing is printed where `computility` is 1. Default: False.

    Raises:
        TypeError, ValueError: For other arguments.
        ValueError: At the first step if the step is not one graph.

    Examples:
        >>> FlopsUtilizationCollector(10, computility=1e11).data_size
        10
    """

    def __init__(
        self, data_size: int, computility: float = 1, full_flops: bool = True, enable_ma_collector: bool = False
    ) -> None:
        super().__init__()
        arguments.integer("FlopsUtilizationCollector", "data_size", data_size, 1, numpy=False)
        for name, flag in (("full_flops", full_flops), ("enable_ma_collector", enable_ma_collector)):
            arguments.flag("FlopsUtilizationCollector", name, flag)
        if not isinstance(computility, (int, float)) or isinstance(computility, bool) or computility <= 0:
            raise ValueError(f"FlopsUtilizationCollector: computility must be a positive number, not {computility!r}")
        self.data_size = data_size
        self.computility = computility
        self.full_flops = full_flops
        self.enable_ma_collector = enable_ma_collector
        self.verbose = not (computility == 1 and enable_ma_collector)
        self.model_flops: int | None = None
        self.hardware_flops: int | None = None
        self._begun = time.perf_counter()

    def begin(self, run_context: RunContext) -> None:
        """Reset the counts for this run."""
        self.model_flops = self.hardware_flops = None

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Reset the counts, unless this is a validation within a training."""
        if "train_network" not in run_context.original_args():
            self.begin(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Start the clock, unless this is a validation within a training."""
        if "train_network" not in run_context.original_args():
            self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Do what `step_end` does, unless this is a validation within a training."""
        if "train_network" not in run_context.original_args():
            self.step_end(run_context)

    def step_begin(self, run_context: RunContext) -> None:
        """Start the clock."""
        self._begun = time.perf_counter()

    def step_end(self, run_context: RunContext) -> None:
        """Count at the first step, and print at every `data_size`-th."""
        seconds = time.perf_counter() - self._begun
        params = run_context.original_args()
        steps = len(params.get("sink_outputs") or [None])
        seconds /= steps
        if self.model_flops is None:
            self._count(params)
        assert self.model_flops is not None and self.hardware_flops is not None
        stamp = round(time.time() * 1000)
        if self.enable_ma_collector:
            self._write(
                "time_step_rank_0.txt", f'time_monitor{{type="per_step_time", rank_id="0"}} {seconds * 1000} {stamp}\n'
            )
        turns = params.cur_step_num // self.data_size > (params.cur_step_num - steps) // self.data_size
        if self.verbose and turns:
            shares = [100 * flops / self.computility / seconds for flops in (self.model_flops, self.hardware_flops)]
            text = (
                f"{params.mode.title()} per step time: {seconds * 1000:5.3f} ms mfu:{shares[0]:.2f}% "
                f"hfu:{shares[1]:.2f}%"
            )
            print(text, flush=True)

    def _count(self, params: Any) -> None:
        network = params.train_network if params.mode == "train" else params.eval_network
        batch = params.train_dataset_element if params.mode == "train" else params.eval_dataset_element
        self.model_flops, self.hardware_flops = step_flops(network, *batch)
        model, hardware = self.model_flops, self.hardware_flops
        if self.verbose:
            full = f"Full model flops is {model}, Full hardware flops is {hardware}, " if self.full_flops else ""
            print(f"{full}Shard model flops is {model}, Shard hardware flops is {hardware}.", flush=True)
        if self.enable_ma_collector:
            stamp = round(time.time() * 1000)
            lines = [
                f'flops{{type="{kind}_flops", rank_id="0"}} {flops} {stamp}\n'
                for kind, flops in (("model", model), ("hardware", hardware))
            ]
            self._write("flops_rank_0.txt", "".join(lines))

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(os.environ.get("MA_LOG_DIR", "."), name), "w", encoding="utf-8") as file:
            file.write(text)
