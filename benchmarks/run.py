"""Mycel against PyTorch, JAX and MindSpore on the same work: make bench.

    python benchmarks/run.py --torch PYTHON [--jax PYTHON] [--mindspore PYTHON]
        [--groups convolution,matmul] [--cases lenet5] [--rounds 11]

Every peer runs in an environment of its own, told by the path of its interpreter, here or in
MYCEL_BENCH_TORCH, MYCEL_BENCH_JAX and MYCEL_BENCH_MINDSPORE; those not told are left out. All
processes are bound to the same processors. Before anything is timed, all must compute the same
numbers from the same inputs and weights. The table shows medians over rounds that take turns; a
ratio is the best peer's time over Mycel's, so above 1 Mycel is faster.

`--compare` shows what became slower than the ratios in benchmarks/ratios.json, and fails for it;
`--store` writes them there, with what is tolerated of each. `--first` and `--scaling` measure first
steps with memory, and threads, of the networks in fresh processes (`--first --groups workloads`
those of workloads; PyTorch's compiled modes only where `--modes` names them); `--memory` measures
the peaks of five steps of fresh processes, with and without the compiler, as ratios to PyTorch's
(of the networks and workloads, or of those named); `--disturbed` their steps while another program
keeps one core busy; `--curves STEPS` compares the networks' losses with PyTorch's in float32 and in
float64, and those of two processes. Results go to benchmarks/results/latest.json and latest.md, and
to the screen.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cases import CASES, Case
from compare import OURS, Plan, Worker, compare, modes_of, start
from curves import curves
from extras import disturbed, memory, scaling
from first import first_steps
from report import geometric_mean, load, markdown, processor, ratios, regressions, shown, store, tolerances

HERE = Path(__file__).resolve().parent
PEERS = ("torch", "jax", "mindspore")
NETWORKS = ("lenet5", "bert_small", "resnet50")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, checked."""
    parser = argparse.ArgumentParser(description="Mycel against its peers on the same work, in turns.")
    for peer in PEERS:
        variable = f"MYCEL_BENCH_{peer.upper()}"
        parser.add_argument(
            f"--{peer}", metavar="PYTHON", default=os.environ.get(variable), help=f"interpreter that has {peer}"
        )
    groups = list(dict.fromkeys(case.group for case in CASES.values()))
    parser.add_argument("--groups", help=f"groups of cases, of {', '.join(groups)}; all if neither is given")
    parser.add_argument("--cases", help="names of cases")
    parser.add_argument("--passes", default="forward,backward,step", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--budget", type=float, default=0.2, metavar="SECONDS", help="length of a stretch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--modes", help="modes of peers to keep, of eager, compile, eager-cl, compile-cl, jit, jit-cl, graph"
    )
    parser.add_argument("--steps", type=int, default=3, help="training steps whose losses must agree")
    parser.add_argument("--pynative", action="store_true", help="measure Mycel op by op as well")
    parser.add_argument("--best", action="store_true", help="ratios of least times, for a busy machine")
    parser.add_argument("--first", action="store_true", help="first steps and memory of the networks, and nothing else")
    parser.add_argument("--memory", action="store_true", help="memory at the peak, and nothing else")
    parser.add_argument("--scaling", action="store_true", help="one thread against --threads, and nothing else")
    parser.add_argument(
        "--disturbed", action="store_true", help="steps with and without another program on a core, and nothing else"
    )
    parser.add_argument(
        "--curves", type=int, default=0, metavar="STEPS", help="loss curves over so many steps, and nothing else"
    )
    parser.add_argument("--compare", action="store_true", help="fail for ratios below the stored ones")
    parser.add_argument("--store", action="store_true", help="store the ratios")
    parser.add_argument(
        "--tolerance",
        type=float,
        help="how far below a stored ratio is a regression, with --store of these (0.15, of workloads 0.05)",
    )
    parser.add_argument("--ratios", type=Path, default=HERE / "ratios.json", metavar="FILE")
    parser.add_argument("--out", type=Path, default=HERE / "results", metavar="DIR")
    options = parser.parse_args(arguments)
    wanted = (options.groups or "").split(",") if options.groups else []
    named = (options.cases or "").split(",") if options.cases else []
    for unknown in [g for g in wanted if g not in groups] + [c for c in named if c not in CASES]:
        parser.error(f"no such group or case: {unknown}")
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads start at 1")
    options.chosen = [c for c in CASES.values() if (not wanted and not named) or c.group in wanted or c.name in named]
    for peer in PEERS:
        path = getattr(options, peer)
        if path and shutil.which(path) is None:
            parser.error(f"--{peer}: {path} is no interpreter that can be run")
        if not path:
            print(f"{peer} is left out: tell its interpreter by --{peer} or MYCEL_BENCH_{peer.upper()}")
    if options.compare and not options.ratios.is_file():
        parser.error(f"there are no ratios to compare with in {options.ratios}; store some with --store")
    return options


def bind(threads: int) -> list[int]:
    """Bind this process, and so the workers, to as many processors as there are threads.

    Gives their numbers.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    chosen = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, chosen)
    return chosen


def measure(
    plan: Plan, cases: Sequence[Case], passes: Sequence[str], versions: dict[str, str], best: bool
) -> list[dict[str, Any]]:
    """Return the rows of all cases, group by group: the workers of a group stay up."""
    rows: list[dict[str, Any]] = []
    workers: dict[tuple[str, str], Worker] = {}
    group = ""
    try:
        for case in cases:
            if case.group != group:
                for worker in workers.values():
                    worker.end()
                workers, group = {}, case.group
            modes = modes_of(plan, case)
            for framework, mode in modes:
                if (framework, mode) not in workers or workers[framework, mode].process.poll() is not None:
                    workers[framework, mode] = start(plan, framework, mode)
                    versions[framework] = workers[framework, mode].facts.get("version", "?")
            taking_part = [workers[key] for key in modes]
            for kind in (k for k in case.passes if k in passes):
                new = compare(plan, case, kind, taking_part)
                rows += new
                field = "best" if best else "median"
                print(f"{case.name} {kind}: {'; '.join(shown(row, field) for row in new)}", file=sys.stderr, flush=True)
            for worker in taking_part:
                if worker.process.poll() is None:
                    worker.ask(release=case.name)
    finally:
        for worker in workers.values():
            worker.end()
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; exit status 1 if Mycel failed anywhere, or regressed with --compare."""
    options = options_of(arguments)
    pythons = {OURS: sys.executable, **{p: getattr(options, p) for p in PEERS if getattr(options, p)}}
    shutil.rmtree(options.out / "logs", ignore_errors=True)
    plan = Plan(
        pythons,
        options.threads,
        options.rounds,
        options.budget,
        options.out / "logs",
        ("pynative",) if options.pynative else (),
        tuple(options.modes.split(",")) if options.modes else (),
    )
    os.environ["MYCEL_BENCH_STEPS"] = str(options.steps)
    processors = bind(options.threads)
    result: dict[str, Any] = {
        "machine": {"processor": processor(), "platform": platform.platform(), "bound_to": processors},
        "threads": options.threads,
        "rounds": options.rounds,
        "python": platform.python_version(),
        "versions": {},
    }
    stored = load(options.ratios) if options.ratios.is_file() else {}
    lost: dict[str, str] = {}
    named = [c.name for c in options.chosen if c.name in NETWORKS or options.first and c.kind]
    chosen = named if options.groups or options.cases else []
    chosen = chosen or list(NETWORKS)
    if options.memory:
        named = [c.name for c in options.chosen if c.name in NETWORKS or c.kind]
        result["memory"], text = memory(plan, named)
        rows = result["memory"]
    elif options.first:
        result["first"], text = first_steps(plan, chosen)
        rows = result["first"]
    elif options.scaling:
        result["scaling"], text = scaling(plan, chosen)
        rows = result["scaling"]
    elif options.disturbed:
        result["disturbed"], text = disturbed(plan, chosen)
        rows = result["disturbed"]
    elif options.curves:
        result["curves"], text = curves(plan, chosen, options.curves)
        rows = result["curves"]
    else:
        rows = measure(plan, options.chosen, options.passes.split(","), result["versions"], options.best)
        found = ratios(rows, options.best)
        result |= {"rows": rows, "ratios": found}
        text = markdown(rows, found, stored, options.best)
        if found:
            text += f"\n\nGeometric mean of all ratios {geometric_mean(r['ratio'] for r in found.values()):.2f}."
        if options.compare:
            lost = regressions(found, stored, options.tolerance, tolerances(options.ratios))
        if options.store:
            store(options.ratios, found, options.threads, options.tolerance)
    told = ", ".join(f"{framework} {version}" for framework, version in result["versions"].items())
    statistic = f"{'least times' if options.best else 'medians'} of {options.rounds} rounds"
    parts = [f"{processor()}, {options.threads} threads, Python {platform.python_version()}", told]
    heading = "; ".join(filter(None, [*parts, "" if options.first or options.memory or options.curves else statistic]))
    text = f"{heading}\n\n{text}\n"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "latest.json").write_text(json.dumps(result, indent=2) + "\n")
    (options.out / "latest.md").write_text(text)
    print(text)
    for name, how in lost.items():
        print(f"slower than stored: {name}: {how}")
    print(f"wrote {options.out / 'latest.json'} and latest.md")
    return int(bool(lost) or any("error" in row for row in rows if row["framework"] == OURS))


if __name__ == "__main__":
    sys.exit(main())
