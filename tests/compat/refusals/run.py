"""Run the cases of tables of answers in Mycel and tell where it answers otherwise.

``python run.py TABLE...`` prints the differences as JSON; ``python run.py --write`` writes those of
all tables to `different.json`, the list that the test compares with.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

# Threads for matrices of three rows cost more than they compute.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.compat.refusals import cases, values  # noqa: E402

SECONDS = 10  # of the processor: a busy machine does not make a case slow
MEMORY = 24 << 30
# Why an answer may differ; `reason` says where. All other differences are listed one by one.
REASONS = {
    "types": "MindSpore has no kernel for an element type, or refuses it, with which Mycel computes",
    "earlier": "MindSpore refuses an argument of a constructor at the first call (one of an initializer when values "
    "are drawn), Mycel when the object is made",
    "insides": "MindSpore fails on its own insides (AttributeError and the like); Mycel says what is wrong",
    "unread": "MindSpore takes a word or a dictionary for an option that it never reads; Mycel refuses it",
    "flags": "MindSpore takes a bool for a number",
    "truth": "MindSpore asks for the truth of a tensor of two elements (ValueError); Mycel refuses the type",
    "numbers": "MindSpore makes a tensor of a number and refuses its shape (ValueError); Mycel refuses the type",
    "printed": "MindSpore took an activation or a format in the place of has_bias once, and printed programs give it",
    "arrays": "mycel.numpy takes lists and numbers as arrays, as NumPy does",
}


def reason(path: str, name: str, real: str, mine: str, kind: str = "") -> str:
    """Return why an answer of Mycel's differs; "" if that is not one of `REASONS`.

    `path` and `name` are those of the call and of the case, `real` and `mine` the two answers, and
    `kind` is the kind of the argument that the case changes.
    """
    letter = name[-1:]
    if kind == "tensor" and letter in "bfe" and real in "Vv" and mine[0] in "Tt":
        return "numbers"
    if letter == "t" and real in "Vv" and mine[0] in "Tt":
        return "truth"
    if name == "has_bias=s" and path.startswith(("nn.Dense", "nn.Conv2d")):
        return "printed"
    arrays = path.startswith("numpy.") and name[:1].isdigit() and letter in "bdeEfil"
    if arrays and real in "TAR" and mine in (".", "V"):
        return "arrays"
    if letter in "JFQPK" and mine == "." and real in "TRVtrv" or letter in "IBC" and mine == "." and real in "trv":
        return "types"
    if real.islower() and real.upper() in mine:
        return "earlier"
    if path.startswith("common.initializer.") and letter in "nlteib" and real == "." and mine[0] in "TV":
        return "earlier"
    if real.upper() in "ASKZE" and mine.upper()[0] in "TVI":
        return "insides"
    if real == "." and letter in "sd" and mine[0] in "TVtv":
        return "unread"
    if real in ".Vv" and letter == "b" and mine[0] in "Tt":
        return "flags"
    return ""


def _kind(entry: dict[str, Any], name: str) -> str:
    """Return the kind of the argument that a case changes; "" where it changes none."""
    place = name.lstrip(">")[:-1].rstrip("=")
    args = entry["then" if name.startswith(">") else "args"]
    named = {**entry["optional"], **entry["then_kwargs" if name.startswith(">") else "kwargs"]}
    given = dict(zip(map(str, range(len(args))), args))
    text = {**given, **named}.get(place)
    return "" if text is None else cases.kind_of(text)


class _Slow(BaseException):
    """Raised where a case takes too long."""


def _stop(*_: Any) -> None:
    raise _Slow


def differences(runner: cases.Runner, path: str, entry: dict[str, Any], count: Counter[str]) -> list[str]:
    """Return the cases of an entry that Mycel answers otherwise, as "case:real>mine"."""
    entry = {"args": [], "kwargs": {}, "optional": {}, "then_kwargs": {}, **entry}
    known = {("" if n == "valid" else n): k for k, names in entry["answers"].items() for n in names.split()}
    found = []
    for name, call, then, method in cases.entry_cases(path, entry):
        real = known.get(name)
        if real is None:
            continue
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            mine = runner.run(path, call, then, method)
        except _Slow:
            mine = "slow"
        except BaseException as error:
            mine = type(error).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if mine is None:
            continue
        count["cases"] += 1
        if mine == real or mine != "." and real != "." and real in mine:
            count["equal"] += 1
        elif why := reason(path, name, real, mine, _kind(entry, name)):
            count[why] += 1
        else:
            count["listed"] += 1
            found.append(f"{name or 'valid'}:{real}>{mine}")
    return found


def run(table: Path, count: Counter[str]) -> dict[str, str]:
    """Return the differences of a table, by the names and numbers of its calls."""
    import mycel as ms

    gc.freeze()
    gc.set_threshold(100_000)
    runner = cases.Runner(ms, values.space(ms))
    result = {}
    for number, (path, entry) in enumerate(json.loads(table.read_text())):
        found = differences(runner, path, entry, count)
        if found:
            result[f"{path} {number}"] = " ".join(found)
    return result


def write() -> None:
    """Write the differences of all tables, each of which runs in a process of its own."""
    found, count = {}, Counter[str]()
    for table in sorted((HERE / "answers").glob("*.json")):
        done = subprocess.run([sys.executable, __file__, table.name], capture_output=True, text=True, check=True)
        result = json.loads(done.stdout)
        found.update(result["found"])
        count.update(result["count"])
    (HERE / "different.json").write_text(json.dumps(found, indent=0) + "\n")
    print(dict(count))


def main() -> None:
    if sys.argv[1:] == ["--write"]:
        write()
        return
    os.environ["MYCEL_ENGINE"] = "reference"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    screen = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = {name: run(HERE / "answers" / name, count) for name in sys.argv[1:]}
        os.chdir("/")
    with os.fdopen(screen, "w") as out:
        json.dump({"count": count, "found": found}, out)


if __name__ == "__main__":
    main()
