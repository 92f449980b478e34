"""Third-party MindSpore programs under Mycel, compared with the real MindSpore.

    python benchmarks/third_party.py --packages FOLDER[:FOLDER...] --mindspore PYTHON
        [--cases mindcv.resnet,mindyolo] [--kept FOLDER] [--modes graph,pynative]

The packages lie in folders, as ``pip install --no-deps --target FOLDER mindcv==0.3.0`` leaves them;
their code runs as it is, with ``import mindspore`` answered by Mycel. Every case runs in the real
MindSpore too, by the interpreter given, with the same parameters and data; it says in PyNative mode
what is right. The table shows for each case the greatest difference of an array relative to that
array's greatest element, the worst array of each case. What MindSpore itself cannot run is said
with its reason. Results are kept as files in the folder of `--kept`, from which later runs take
those of MindSpore.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--packages", required=True, metavar="FOLDERS", help="where the packages are, separated by ':'")
    parser.add_argument(
        "--mindspore", metavar="PYTHON", help="interpreter that has MindSpore; without it nothing is compared"
    )
    parser.add_argument(
        "--cases", default="", help="beginnings of the names of cases, separated by commas; all by default"
    )
    parser.add_argument("--modes", default="pynative,graph", help="default: %(default)s")
    parser.add_argument("--kept", type=Path, help="folder for results; a temporary one by default")
    parser.add_argument("--again", action="store_true", help="run MindSpore again where its result is kept")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help="for a package in one mode")
    parser.add_argument("--worker", nargs=2, metavar=("SIDE", "MODE"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    sys.path[:0] = [str(HERE), *options.packages.split(":")]
    if options.worker:
        return _work(options, *options.worker)
    sys.path.insert(0, str(HERE.parent))
    with tempfile.TemporaryDirectory() as temporary:
        options.kept = (options.kept or Path(temporary)).resolve()
        options.kept.mkdir(parents=True, exist_ok=True)
        return _drive(options)


def _chosen(options: argparse.Namespace) -> list[Any]:
    from third_party_cases import CASES

    for module in sorted(HERE.glob("third_party_*.py")):
        importlib.import_module(module.stem)
    starts = tuple(s for s in options.cases.split(",") if s)
    # A whole name means that case alone.
    return [
        c
        for key, c in CASES.items()
        if not starts or key in starts or key.startswith(tuple(s for s in starts if s not in CASES))
    ]


# The driver.


def _drive(options: argparse.Namespace) -> int:
    cases = _chosen(options)
    modes = options.modes.split(",")
    for package in dict.fromkeys(c.package for c in cases):
        keys = [c.key for c in cases if c.package == package]
        if options.mindspore:
            for mode in ("pynative", "graph"):
                own = [c.key for c in cases if c.key in keys and _truth_mode(c) == mode]
                wanted = [k for k in own if options.again or not _file(options, "mindspore", mode, k, "json").exists()]
                _start(options, options.mindspore, "mindspore", mode, wanted)
        for mode in modes:
            _start(options, sys.executable, "mycel", mode, [c.key for c in cases if c.key in keys and mode in c.modes])
    rows = [_row(options, c, modes) for c in cases]
    _show(options, rows, modes)
    return int(any(cell.startswith("!") for row in rows for cell in row[2:]))


def _truth_mode(case: Any) -> str:
    return "pynative" if "pynative" in case.modes else "graph"


def _file(options: argparse.Namespace, side: str, mode: str, key: str, kind: str) -> Path:
    return options.kept / f"{side}-{mode}-{key}.{kind}"


def _start(options: argparse.Namespace, python: str, side: str, mode: str, keys: list[str]) -> None:
    """Run cases in a process of their own, and anew behind one that ends the process."""
    while keys:
        for key in keys:
            for kind in ("json", "npz"):
                _file(options, side, mode, key, kind).unlink(missing_ok=True)
        command = [
            python,
            "-W",
            "ignore",
            str(HERE / "third_party.py"),
            "--packages",
            options.packages,
            "--kept",
            str(options.kept),
            "--cases",
            ",".join(keys),
            "--worker",
            side,
            mode,
        ]
        log = options.kept / f"{side}-{mode}.log"
        ended: Any = None
        with log.open("a") as out:
            try:
                ended = subprocess.run(
                    command, stdout=out, stderr=subprocess.STDOUT, timeout=options.limit, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                ended = f"no result within {options.limit:.0f} s"
        missing = [k for k in keys if not _file(options, side, mode, k, "json").exists()]
        if missing:
            failed = {"error": f"the process ended: {ended}"}
            _file(options, side, mode, missing[0], "json").write_text(json.dumps(failed))
        keys = missing[1:]


def _row(options: argparse.Namespace, case: Any, modes: list[str]) -> list[str]:
    truth = _read(options, "mindspore", _truth_mode(case), case.key) if options.mindspore else None
    cells = []
    for mode in modes:
        own = _read(options, "mycel", mode, case.key) if mode in case.modes else "-"
        if isinstance(own, str):
            cells.append(own if own == "-" else f"neither: {own}" if isinstance(truth, str) else f"! {own}")
        elif truth is None or isinstance(truth, str):
            cells.append("runs" if all(np.isfinite(v).all() for v in own.values()) else "! not finite")
        else:
            cells.append(_apart(own, truth))
    note = truth if isinstance(truth, str) else ""
    return [case.key, case.kind, *cells, f"MindSpore: {note}" if note else ""]


def _read(options: argparse.Namespace, side: str, mode: str, key: str) -> Any:
    path = _file(options, side, mode, key, "json")
    if not path.exists():
        return "not run"
    told = json.loads(path.read_text())
    if "error" in told:
        return str(told["error"])
    with np.load(_file(options, side, mode, key, "npz")) as found:
        return {name: found[name] for name in found.files}


def _apart(own: dict[str, Any], truth: dict[str, Any]) -> str:
    if own.keys() != truth.keys():
        return f"! other results: {sorted(own.keys() ^ truth.keys())[:4]}"
    worst = 0.0
    for name, right in truth.items():
        if own[name].shape != right.shape:
            return f"! {name}: shape {own[name].shape}, not {right.shape}"
        if right.dtype.kind in "biu":
            if not np.array_equal(own[name], right):
                return f"! {name} differs"
            continue
        if not np.isfinite(right).all():
            return f"! {name} of MindSpore is not finite"
        scale = np.abs(right).max(initial=0.0)
        # Gradients that are zero but for rounding are measured by the largest gradient.
        if name.startswith("d "):
            scale = max(scale, 1e-3 * max(np.abs(v).max(initial=0.0) for k, v in truth.items() if k.startswith("d ")))
        difference = np.abs(own[name].astype(np.float64) - right).max(initial=0.0) / max(scale, 1e-30)
        worst = difference if difference != difference else max(worst, float(difference))
    return f"{worst:.0e}"


def _show(options: argparse.Namespace, rows: list[list[str]], modes: list[str]) -> None:
    heads = ["case", "what", *modes, ""]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(" ".join(cell.replace("|", "/").split())[:120] for cell in row) + " |")
    names = dict.fromkeys(row[0].partition(".")[0] for row in rows)
    print()
    for name in names:
        own = [row for row in rows if row[0].startswith(name + ".")]
        neither = [row for row in own if any(c.startswith("neither") for c in row[2:-1])]
        good = [row for row in own if row not in neither and not any(c.startswith("!") for c in row[2:-1])]
        compared = [float(c) for row in good for c in row[2:-1] if c[:1].isdigit()]
        both = [row for row in good if any(c[:1].isdigit() for c in row[2:-1])]
        text = f"{name} {_version(options, name)}: {len(good)} of {len(own)} cases run"
        text += f", {len(both)} of them in MindSpore too, at most {max(compared):.0e} from it" if compared else ""
        print(text + (f"; {len(neither)} run in neither." if neither else "."))


def _version(options: argparse.Namespace, name: str) -> str:
    for found in metadata.distributions(path=options.packages.split(":")):
        if (found.metadata["Name"] or "").replace("-", "_").lower() == name:
            return found.version
    return ""


# The worker.


def _work(options: argparse.Namespace, side: str, mode: str) -> int:
    if side == "mycel":
        sys.path.insert(0, str(HERE.parent))
        from mycel import compat

        compat.install()
    import mindspore as ms
    from third_party_steps import taken

    for case in _chosen(options):
        ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
        ms.set_seed(1)
        np.random.seed(1)
        began = time.perf_counter()
        told: dict[str, Any] = {}
        try:
            found = case.run()
            np.savez(_file(options, side, mode, case.key, "npz"), **{k: np.asarray(v) for k, v in found.items()})
        except Exception as error:
            traceback.print_exc()
            told["error"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
        told["seconds"] = round(time.perf_counter() - began, 2)
        told["step"] = taken()
        print(side, mode, case.key, told, flush=True)
        _file(options, side, mode, case.key, "json").write_text(json.dumps(told))
    # Some packages leave threads and processes behind.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
