"""Mycel against PyTorch on the same work: make bench.

    python benchmarks/run.py --torch-python PATH [--rounds 15] [--threads 2] [--workloads lenet5,eager_add]

Each framework and mode is a process of its own that stays up; they take turns, a short stretch each, in an order that rotates, so
that what the machine does meanwhile falls on all alike. All are bound to the same processors. A stretch gives the median of its
repetitions; the table shows the median over the rounds with the quartiles, and `ratio` is the median over the rounds of the
peer's time over Mycel's in the same round, so above 1 Mycel is faster. `first` is the first repetition of a fresh process,
compilation included; caches on disk are used as found, and said to be warm or cold only by whoever cleared them.

Results go to benchmarks/results/latest.json and latest.md, and to the screen.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURS = "mycel"


@dataclass(frozen=True)
class Workload:
    """What is measured, with how many repetitions in a stretch, and by which unit of a second it is told."""

    title: str
    count: int
    unit: str
    scale: float
    ours: tuple[str, ...]
    torch: tuple[str, ...]


WORKLOADS = {
    "lenet5": Workload("LeNet-5 step, batch 32", 60, "ms", 1e3, ("graph", "pynative"), ("eager", "compile")),
    "eager_add": Workload("add of 32 x 32, one call", 3000, "us", 1e6, ("pynative",), ("eager",)),
}


@dataclass
class Worker:
    """A process that runs one framework in one mode."""

    framework: str
    mode: str
    process: subprocess.Popen[str]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Framework and mode."""
        return f"{self.framework} {self.mode}"

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; a process that has gone is an error answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": f"the process ended with status {self.process.wait()}"}
        return self.read()

    def read(self) -> dict[str, Any]:
        """The next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"the process ended with status {self.process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer


def start(framework: str, mode: str, python: str, threads: int) -> Worker:
    """Start a worker and read the facts that it greets with."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [python, str(HERE / f"{framework}_worker.py"), mode, str(threads)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    worker = Worker(framework, mode, process)
    worker.facts = worker.read()
    return worker


def compare(name: str, workers: list[Worker], rounds: int) -> list[dict[str, Any]]:
    """Prepare a workload everywhere, measure it in turns, and give a row for each worker."""
    workload = WORKLOADS[name]
    rows: dict[str, dict[str, Any]] = {}
    ready = []
    for worker in workers:
        first = worker.facts if "error" in worker.facts else worker.ask(prepare=name)
        if "error" not in first:
            warm = worker.ask(measure=name, count=workload.count)
            first = {**first, **warm}
        rows[worker.name] = {"workload": name, "framework": worker.framework, "mode": worker.mode, **first}
        if "error" not in first:
            ready.append(worker)
    sizes = {rows[worker.name]["parameters"] for worker in ready}
    if len(sizes) > 1:
        raise SystemExit(f"{name}: the networks differ: {sizes} parameters")
    times: dict[str, list[float]] = {worker.name: [] for worker in ready}
    for turn in range(rounds):
        for position in range(len(ready)):
            worker = ready[(turn + position) % len(ready)]
            # The last one's idle threads may still be spinning.
            time.sleep(0.05)
            answer = worker.ask(measure=name, count=workload.count)
            if "error" in answer:
                raise SystemExit(f"{worker.name}: {name}: {answer['error']}")
            times[worker.name].append(answer["seconds"])
    ours = {worker.mode: times[worker.name] for worker in ready if worker.framework == OURS}
    for worker in ready:
        row, own = rows[worker.name], times[worker.name]
        row.pop("seconds")
        quartiles = statistics.quantiles(own, n=4) if len(own) > 1 else [own[0]] * 3
        row |= {"median": statistics.median(own), "quartiles": [quartiles[0], quartiles[2]], "rounds": own}
        if worker.framework != OURS:
            row["ratio"] = {
                mode: statistics.median(theirs / mine for theirs, mine in zip(own, mine_times, strict=True))
                for mode, mine_times in ours.items()
            }
    return list(rows.values())


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| work | framework | median | quartiles | first | peer / Mycel |", "|---|---|---|---|---|---|"]
    for row in rows:
        workload = WORKLOADS[row["workload"]]
        start_of_line = f"| {workload.title} | {row['framework']} {row['mode']} |"
        if "error" in row:
            lines.append(f"{start_of_line} failed: {row['error'].replace('|', '/')} | | | |")
            continue
        low, high = (value * workload.scale for value in row["quartiles"])
        ratio = ", ".join(f"{value:.2f} ({mode})" for mode, value in row.get("ratio", {}).items())
        lines.append(
            f"{start_of_line} {row['median'] * workload.scale:.3g} {workload.unit} | {low:.3g} to {high:.3g} | "
            f"{row['first'] * 1e3:.0f} ms | {ratio} |"
        )
    return "\n".join(lines)


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def bind(threads: int) -> list[int]:
    """Bind this process, and so the workers, to as many processors as there are threads; gives their numbers."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    chosen = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, chosen)
    return chosen


def main() -> int:
    """Run the comparison; exit status 1 if Mycel failed anywhere."""
    parser = argparse.ArgumentParser(description="Mycel against PyTorch on the same work, in turns.")
    parser.add_argument("--torch-python", metavar="PATH", help="interpreter that has PyTorch (without: Mycel alone)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="default: %(default)s")
    parser.add_argument("--out", type=Path, default=HERE / "results", metavar="DIR")
    options = parser.parse_args()
    names = options.workloads.split(",")
    unknown = sorted(set(names) - set(WORKLOADS))
    if unknown or options.rounds < 1 or options.threads < 1:
        parser.error(f"no such workload: {', '.join(unknown)}" if unknown else "--rounds and --threads start at 1")

    processors = bind(options.threads)
    rows: list[dict[str, Any]] = []
    versions = {}
    for name in names:
        workers = [start(OURS, mode, sys.executable, options.threads) for mode in WORKLOADS[name].ours]
        if options.torch_python:
            workers += [start("torch", mode, options.torch_python, options.threads) for mode in WORKLOADS[name].torch]
        try:
            rows += compare(name, workers, options.rounds)
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.wait()
        versions |= {worker.framework: worker.facts.get("version", "?") for worker in workers}

    told = ", ".join(f"{framework} {version}" for framework, version in versions.items())
    heading = (
        f"{processor()}, {options.threads} threads, Python {platform.python_version()}; {told}; {options.rounds} rounds"
    )
    text = f"{heading}\n\n{table(rows)}\n"
    result = {
        "machine": {"processor": processor(), "platform": platform.platform(), "bound_to": processors},
        "threads": options.threads,
        "python": platform.python_version(),
        "versions": versions,
        "rows": rows,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "latest.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "latest.md").write_text(text)
    print(text)
    print(f"wrote {options.out / 'latest.json'} and latest.md")
    return int(any("error" in row for row in rows if row["framework"] == OURS))


if __name__ == "__main__":
    sys.exit(main())
