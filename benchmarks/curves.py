"""Loss curves: whether training goes the same way in Mycel and in PyTorch from the same weights,
and bit for bit the same way twice.

Every run is a process of its own. Mycel's float32 is compared with PyTorch's, and both with
PyTorch's in float64 from the same numbers, which tells who is nearer where training amplifies
rounding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from cases import CASES
from compare import OURS, Plan, start
from report import simple_table

__all__ = ["curves", "farthest"]


def farthest(a: Sequence[float], b: Sequence[float]) -> tuple[float, int]:
    """Return the greatest difference of two curves, relative to the second, and the step (from 1)
    where it is.
    """
    apart = [abs(x - y) / max(abs(y), 1e-30) for x, y in zip(a, b)]
    # NaN counts as farthest.
    worst = max(range(len(apart)), key=lambda k: (apart[k] != apart[k], apart[k]))
    return apart[worst], worst + 1


def curves(plan: Plan, names: Sequence[str], steps: int) -> tuple[list[dict[str, Any]], str]:
    """Return the curves of the networks over this many steps, and what they say of each other."""
    os.environ["MYCEL_BENCH_STEPS"] = str(steps)
    rows: list[dict[str, Any]] = []
    for name in names:
        runs: list[tuple[str, str]] = [(OURS, "graph"), (OURS, "graph")]
        if "pynative" in plan.extra:
            runs += [(OURS, "pynative"), (OURS, "pynative")]
        if "torch" in plan.pythons:
            runs += [("torch", "eager"), ("torch", "eager-f64")]
        found: dict[tuple[str, str], list[list[float]]] = {}
        for framework, mode in runs:
            losses, wrong = _losses(plan, name, framework, mode)
            if wrong:
                rows.append({"case": name, "framework": framework, "mode": mode, "error": wrong})
            else:
                found.setdefault((framework, mode), []).append(losses)
        single, double = found.get(("torch", "eager"), [[]])[0], found.get(("torch", "eager-f64"), [[]])[0]
        for (framework, mode), own in found.items():
            row: dict[str, Any] = {"case": name, "framework": framework, "mode": mode, "losses": own[0]}
            if framework == OURS and len(own) > 1:
                row["same"] = all(other == own[0] for other in own[1:])
            for other, losses in (("torch", single), ("float64", double)):
                if losses and losses is not own[0]:
                    row[other] = farthest(own[0], losses)
            rows.append(row)
    lines = [
        [CASES[r["case"]].title, f"{r['framework']} {r['mode']}", *_described(r), r.get("error", "")] for r in rows
    ]
    heads = ["work", "framework", f"loss 1, loss {steps}", "two processes", "from PyTorch float32", "from float64", ""]
    return rows, simple_table(f"Losses over {steps} steps", heads, lines)


def _losses(plan: Plan, name: str, framework: str, mode: str) -> tuple[list[float], str | None]:
    """Return the losses of the steps, or what went wrong."""
    worker = start(plan, framework, mode)
    try:
        answer = worker.facts if "error" in worker.facts else worker.ask(prepare=name, **{"pass": "step"})
    finally:
        worker.end()
    return answer.get("check", []), answer.get("error")


def _described(row: dict[str, Any]) -> list[str]:
    if "error" in row:
        return ["", "", "", ""]
    same = {True: "same bits", False: "differ"}.get(row.get("same"), "")
    shown = [f"{row[o][0]:.2g} at step {row[o][1]}" if o in row else "" for o in ("torch", "float64")]
    return [f"{row['losses'][0]:.5f}, {row['losses'][-1]:.5f}", same, *shown]
