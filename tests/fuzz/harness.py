"""The harness of fuzz drivers: runs their cases in child processes with limits of memory and time,
and reports the cases that fail.

A driver is a module of `tests/fuzz/drivers`. It holds

    case(random) -> case    makes a case from a `random.Random`, and from nothing else, so that a
                            seed is all that a replay needs
    run(case)               runs it; a result is good, and so is an exception that the driver allows

and may hold

    ALLOWED = (ValueError, ...)  exceptions that are good answers if they have a message, and their
                                 subclasses (default: `ALLOWED` below)
    judge(error, case) -> str    instead of ALLOWED: what is wrong with this exception, or ""
    describe(case) -> str        the case as a line of Python or a description (default: its repr,
                                 cut)
    setup()                      called once in each child, before the limits hold, in an empty
                                 current folder
    KEPT = (case, ...)           cases that failed once, which run before all others with the seeds
                                 -1, -2, ...
    CORPUS = 100                 the number of seeds, from 0 on, that `make test` runs: keep all
                                 drivers together below 15 seconds
    MEMORY = 2 << 30             the limit of memory: bytes of address space beyond those that the
                                 child has after `setup`
    SECONDS = 20                 the limit of time for one case

A finding is a case that ends the process ("crash"), takes longer than its time ("hang"), or raises
what the driver does not allow ("error": a MemoryError too, unless it is among ALLOWED). A child
runs many cases, since a process costs a second; the one that was running when it died is run again
in a process of its own, and the report says whether it fails there too. Findings with the same
exception, place and message are one.

    python -m tests.fuzz --minutes 10               all drivers in turn, seeds drawn anew
    python -m tests.fuzz NAME --minutes 10          one driver
    python -m tests.fuzz NAME --seed 7              one case, in this process, with its traceback
    python -m tests.fuzz NAME --seed 7 --cases 500  a run of seeds, in children
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import pkgutil
import random
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.fuzz import drivers

__all__ = ["ALLOWED", "Finding", "campaign", "corpus", "load", "names", "replay", "report", "run_seeds"]

ALLOWED: tuple[type[BaseException], ...] = (ValueError, TypeError, IndexError, RuntimeError, OSError)
MEMORY, SECONDS = 2 << 30, 20.0
# A busy machine takes minutes to begin a process of low priority.
START = 900.0
BATCH = 2000
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Finding:
    """A case that did what no case may do; `signature` is the same for those that fail alike."""

    driver: str
    seed: int
    kind: str
    signature: str
    case: str
    detail: str
    alone: bool = True

    def __str__(self) -> str:
        note = "" if self.alone else "   (not when it runs alone: start some hundred seeds earlier, with --cases)\n"
        return (
            f"{self.kind}: {self.signature}\n   {self.case}\n"
            f"   python -m tests.fuzz {self.driver} --seed {self.seed}\n{note}{self.detail}"
        )


def names() -> list[str]:
    """The drivers there are."""
    return sorted(module.name for module in pkgutil.iter_modules(drivers.__path__) if not module.name.startswith("_"))


def load(name: str) -> ModuleType:
    """The module of a driver."""
    return importlib.import_module(f"tests.fuzz.drivers.{name}")


def corpus(driver: ModuleType) -> range:
    """The seeds that `make test` runs."""
    return range(-len(getattr(driver, "KEPT", ())), getattr(driver, "CORPUS", 100))


def make(driver: ModuleType, seed: int) -> Any:
    return driver.case(random.Random(seed)) if seed >= 0 else driver.KEPT[-1 - seed]


def describe(driver: ModuleType, case: Any) -> str:
    text = driver.describe(case) if hasattr(driver, "describe") else repr(case)
    return text if len(text) <= 2000 else text[:2000] + " ..."


def judge(driver: ModuleType, error: BaseException, case: Any) -> str:
    """What is wrong with `error` as the answer to `case`; empty if nothing is."""
    if hasattr(driver, "judge"):
        return str(driver.judge(error, case))
    if not isinstance(error, getattr(driver, "ALLOWED", ALLOWED)):
        return "not an error that may be raised"
    return "" if str(error).strip() else "no words"


def signature(error: BaseException) -> str:
    """Exception, innermost place in the package, and message without numbers."""
    place = ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "/mycel/" in frame.filename.rsplit("/tests/", 1)[-1]:
            place = f"{frame.filename.rsplit('/mycel/', 1)[-1]}:{frame.name}"
            break
    words = re.sub(r"\d+", "N", str(error).splitlines()[0] if str(error) else "")
    return f"{type(error).__name__} in {place or 'the driver'}: {words[:120]}"


# The child.


def _child(name: str, first: int, count: int, pipe: int) -> None:
    """Run seeds and tell the parent of the beginning of each and of the errors."""

    def tell(*message: Any) -> None:
        os.write(pipe, (json.dumps(message) + "\n").encode())

    # PR_SET_PDEATHSIG: end with the parent, also in the middle of a case
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    driver = load(name)
    if hasattr(driver, "setup"):
        driver.setup()
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = now + getattr(driver, "MEMORY", MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for seed in range(first, first + count):
        case = make(driver, seed)
        tell("begin", seed)
        try:
            driver.run(case)
        except BaseException as error:
            wrong = judge(driver, error, case)
            if wrong:
                tail = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-6))
                tell("error", seed, signature(error), describe(driver, case), f"{wrong}\n{tail[-4000:]}")
    tell("end", first + count)


# The parent.


def _place(dump: str) -> str:
    """The innermost frame of the package in what faulthandler wrote."""
    for line in dump.splitlines():
        found = re.search(r'File ".*?/(mycel/[^"]+)", line \d+ in (.*)', line)
        if found:
            return f"{found[1].removeprefix('mycel/')}:{found[2]}"
    return "unknown place"


def _batch(name: str, first: int, count: int, seconds: float, cache: str, until: float) -> tuple[int, list[Finding]]:
    """Run seeds in one child, up to the first that kills it or the time `until`.

    Gives the seed to go on with.
    """
    findings: list[Finding] = []
    read, write = os.pipe()
    environment = {"MYCEL_CACHE": cache, **os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="mycel-fuzz-") as folder, tempfile.TemporaryFile() as errors:
        command = [
            sys.executable,
            "-c",
            f"from tests.fuzz import harness; harness._child({name!r}, {first}, {count}, {write})",
        ]
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            pass_fds=(write,),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        os.close(write)
        at, kind, rest, started = None, "", b"", time.monotonic()
        try:
            while True:
                waited = time.monotonic() - started
                allowed = seconds if at is not None else START
                if waited > allowed:
                    kind = "hang"
                    child.send_signal(signal.SIGUSR1)
                    time.sleep(1)
                    break
                if at is not None and time.monotonic() > until + seconds:
                    return at, findings
                if not select.select([read], [], [], min(1.0, allowed - waited + 0.01))[0]:
                    continue
                block = os.read(read, 1 << 16)
                if not block:
                    break
                *lines, rest = (rest + block).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    if message[0] == "end":
                        return message[1], findings
                    if message[0] == "error":
                        findings.append(Finding(name, message[1], "error", *message[2:]))
                    else:
                        at, started = message[1], time.monotonic()
                        if started > until:
                            return at, findings
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            status = child.wait()
            os.close(read)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        if at is None:
            raise RuntimeError(f"the driver {name} cannot make its cases:\n{said}")
        if kind != "hang":
            kind = "crash"
        end = (
            "killed by the harness"
            if kind == "hang"
            else signal.Signals(-status).name
            if status < 0
            else f"exit {status}"
        )
        driver = load(name)
        case = describe(driver, make(driver, at))
        findings.append(Finding(name, at, kind, f"{end} in {_place(said)}", case, said[-4000:]))
        return at + 1, findings


def run_seeds(name: str, seeds: range, *, cache: str = "", until: float = float("inf")) -> tuple[int, list[Finding]]:
    """Run `seeds` in children, and those that kill one again alone.

    Gives the number run and the findings.
    """
    seconds = getattr(load(name), "SECONDS", SECONDS)
    findings: list[Finding] = []
    with contextlib.ExitStack() as stack:
        cache = cache or stack.enter_context(tempfile.TemporaryDirectory(prefix="mycel-fuzz-cache-"))
        at = seeds.start
        while at < seeds.stop and time.monotonic() < until:
            first = at
            at, found = _batch(name, first, min(BATCH, seeds.stop - first), seconds, cache, until)
            for finding in found:
                if finding.kind != "error" and finding.seed != first:
                    again = _batch(name, finding.seed, 1, seconds, cache, float("inf"))[1]
                    finding = again[-1] if again else Finding(**{**asdict(finding), "alone": False})
                findings.append(finding)
    return at - seeds.start, findings


def campaign(
    wanted: list[str], minutes: float, start: int | None = None, log: Path | None = None
) -> tuple[dict[str, int], list[Finding]]:
    """Run drivers in turn, a batch each, until the time is over.

    Seeds count up from `start`, which is drawn if it is None.
    """
    until = time.monotonic() + 60 * minutes
    start = random.SystemRandom().randrange(1 << 40) if start is None else start
    ran, findings, at = {name: 0 for name in wanted}, [], {name: start for name in wanted}
    with tempfile.TemporaryDirectory(prefix="mycel-fuzz-cache-") as cache:
        while time.monotonic() < until:
            for name in wanted:
                done, found = run_seeds(name, range(at[name], at[name] + BATCH), cache=cache, until=until)
                at[name] += done
                ran[name] += done
                findings += found
                if log is not None:
                    with log.open("a") as out:
                        out.writelines(json.dumps(asdict(finding)) + "\n" for finding in found)
    return ran, findings


def replay(name: str, seed: int) -> None:
    """Run one case here, without limits: what it raises is raised."""
    driver = load(name)
    if hasattr(driver, "setup"):
        driver.setup()
    case = make(driver, seed)
    print(describe(driver, case), flush=True)
    print("result:", driver.run(case))


def _groups(findings: list[Finding]) -> Iterator[list[Finding]]:
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.driver, finding.kind, finding.signature), []).append(finding)
    order = {"crash": 0, "hang": 1, "error": 2}
    return iter(sorted(alike.values(), key=lambda group: (order[group[0].kind], -len(group))))


def report(findings: list[Finding]) -> str:
    """Findings that fail alike as one, crashes first, each with its shortest case."""
    parts = []
    for group in _groups(findings):
        parts.append(f"[{len(group)}x] {min(group, key=lambda finding: len(finding.case))}")
    return "\n\n".join(parts)
