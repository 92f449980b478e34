"""Workers, and how they take turns.

Each framework and mode is a process of its own that stays up for a group of cases. For every case
all prepare it and tell what they computed; who differs from the reference is not timed. Then they
are timed in rounds, a short stretch each, in an order that rotates, so that what the machine does
meanwhile falls on all alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cases import Case

__all__ = ["OURS", "Plan", "Worker", "compare", "difference", "modes_of", "start"]

HERE = Path(__file__).resolve().parent
OURS = "mycel"


@dataclass(frozen=True)
class Plan:
    """How to measure: interpreters by framework, threads, rounds, seconds a stretch, and where what
    workers print goes.
    """

    pythons: Mapping[str, str]
    threads: int
    rounds: int
    budget: float
    logs: Path
    extra: tuple[str, ...] = ()  # further modes of ours
    only: tuple[str, ...] = ()  # modes of peers to keep, if not all
    limit: float = 1800.0  # seconds until a worker that does not answer is given up


@dataclass
class Worker:
    """A process that runs one framework in one mode."""

    framework: str
    mode: str
    process: subprocess.Popen[str]
    log: IO[str]
    limit: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Framework and mode."""
        return f"{self.framework} {self.mode}"

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        A process that has gone, or is ended for its silence, is an error answer.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"the process ended with status {self.process.wait()}; see {self.log.name}"}
        return self.read()

    def read(self) -> dict[str, Any]:
        """Return the next answer."""
        assert self.process.stdout is not None
        timer = threading.Timer(self.limit, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            return {"error": f"the process ended with status {self.process.wait()}; see {self.log.name}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                stream.close()


def start(
    plan: Plan, framework: str, mode: str, threads: int | None = None, settings: Mapping[str, str] | None = None
) -> Worker:
    """Start a worker and read the facts that it greets with."""
    threads = threads or plan.threads
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), **(settings or {})}
    environment.pop("PYTHONPATH", None)
    if framework == OURS:
        # This checkout, whatever is installed.
        environment["PYTHONPATH"] = str(HERE.parent)
    plan.logs.mkdir(parents=True, exist_ok=True)
    log = open(plan.logs / f"{framework}_{mode}.txt", "a")
    command = [plan.pythons[framework], str(HERE / "worker.py"), framework, mode, str(threads)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
    )
    worker = Worker(framework, mode, process, log, plan.limit)
    worker.facts = worker.read()
    return worker


def modes_of(plan: Plan, case: Case) -> list[tuple[str, str]]:
    """Return the frameworks and modes that a case is run in, the reference first where PyTorch is
    there.
    """
    found: list[tuple[str, str]] = []
    layouts = ("", "-cl") if case.layouts else ("",)
    if "torch" in plan.pythons:
        kinds = ("eager",) if case.group == "eager" else ("eager", "compile")
        found += [("torch", kind + layout) for layout in layouts for kind in kinds]
    ours = (
        ("pynative",)
        if case.group == "eager"
        else ("graph", "pynative")
        if case.name == "lenet5" or case.kind
        else ("graph",)
    )
    found += [(OURS, mode) for mode in dict.fromkeys((*ours, *plan.extra))]
    # JAX records by tracing and writes nothing in place: of its operations at a time the plainest
    # are compared.
    if (
        "jax" in plan.pythons
        and case.kind in ("", "function")
        and (case.group != "eager" or case.name in ("eager_add", "eager_matmul"))
    ):
        found += [("jax", "jit" + layout) for layout in (layouts if case.group == "network" else ("",))]
    if "mindspore" in plan.pythons and not case.kind:
        found.append(("mindspore", "pynative" if case.group == "eager" else "graph"))
    if plan.only:
        found = [(framework, mode) for framework, mode in found if framework == OURS or mode in plan.only]
    if len(found) == 1:
        found.append((OURS, "pynative"))
    return found


def difference(case: Case, expected: Sequence[Any], found: Sequence[Any]) -> str | None:
    """Return how what was computed differs from the reference, if it does."""
    if len(expected) != len(found):
        return f"{len(found)} results where the reference has {len(expected)}"
    for i, (a, b) in enumerate(zip(expected, found)):
        if isinstance(a, float):
            if not abs(a - b) <= case.tolerance * abs(a):
                return f"the loss of step {i + 1} is {b:.7g}, the reference's {a:.7g}"
            continue
        if a[0] != b[0]:
            return f"result {i} has the shape {b[0]}, the reference's {a[0]}"
        if case.random:
            if abs(a[4] - b[4]) > 0.01:
                return f"{b[4]:.1%} of result {i} are zero, of the reference's {a[4]:.1%}"
            continue
        worst = max(abs(p - q) for p, q in zip(a[1:4], b[1:4])) / max(a[1], 1e-30)
        # Written so that NaN counts as different.
        if not worst <= case.tolerance:
            return f"result {i} differs from the reference's by {worst:.2g} of its size"
    return None


def compare(plan: Plan, case: Case, kind: str, workers: Sequence[Worker]) -> list[dict[str, Any]]:
    """Prepare a case everywhere, check it, measure it in turns, and give a row for each worker."""
    rows: dict[str, dict[str, Any]] = {}
    ready: list[Worker] = []
    reference: tuple[str, Any] | None = None
    sizes: dict[str, int] = {}
    for worker in workers:
        answer = worker.facts if "error" in worker.facts else worker.ask(prepare=case.name, **{"pass": kind})
        row = {"case": case.name, "pass": kind, "framework": worker.framework, "mode": worker.mode}
        rows[worker.name] = row
        if "error" in answer:
            row["error"] = answer["error"]
            continue
        row["first"] = answer["built"] + answer["first"]
        sizes[worker.name] = answer["parameters"]
        if reference is None:
            reference = worker.name, answer["check"]
        elif wrong := difference(case, reference[1], answer["check"]):
            row["error"] = f"differs from {reference[0]}: {wrong}"
            continue
        if answer["parameters"] != sizes[reference[0]]:
            row["error"] = f"{answer['parameters']} parameters, {reference[0]} has {sizes[reference[0]]}"
            continue
        ready.append(worker)
    times: dict[str, list[float]] = {worker.name: [] for worker in ready}
    best: dict[str, float] = {}
    for turn in range(plan.rounds):
        for position in range(len(ready)):
            worker = ready[(turn + position) % len(ready)]
            if "error" in rows[worker.name]:
                continue
            # The last one's idle threads may still be spinning.
            time.sleep(0.02)
            answer = worker.ask(measure=case.name, budget=plan.budget, **{"pass": kind})
            if "error" in answer:
                rows[worker.name]["error"] = answer["error"]
                continue
            times[worker.name].append(answer["seconds"])
            best[worker.name] = min(answer["best"], best.get(worker.name, answer["best"]))
    for name, own in times.items():
        if "error" in rows[name]:
            continue
        quartiles = statistics.quantiles(own, n=4) if len(own) > 1 else [own[0]] * 3
        rows[name] |= {
            "median": statistics.median(own),
            "quartiles": [quartiles[0], quartiles[2]],
            "best": best[name],
            "rounds": own,
        }
    return list(rows.values())
