"""Every primitive with absurd numbers in its parameters: run as a program, one line on stdout
before and after each case.

Each whole number in a sample's parameters, those inside of tuples included, is replaced by each of
`ABSURD`. A case ends in an error that says what is wrong, or in the result that the reference
gives. ``python -m tests.prims.absurd FIRST STEP`` runs every STEP-th case from the FIRST on, with 4
GB of addresses; `campaign` runs it and begins again behind a case that crashed or did not end.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

ABSURD = (
    2**31 - 1,
    2**31,
    2**32,
    2**32 + 1,
    2**40,
    2**53,
    2**62,
    2**62 + 1,
    2**63 - 1,
    2**63,
    2**64,
    2**64 + 1,
    10**30,
    0,
    -1,
    -7,
    -(2**31) - 1,
    -(2**62),
    -(2**63),
    -(2**63) - 1,
)
CLEAR = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, MemoryError)
INTERNAL = re.compile(
    r"has no attribute|unsupported operand|object is not (?:callable|subscriptable|iterable)|LLVM|'NoneType'|Python "
    r"int too large|int too big|could not broadcast"
)
ADDRESSES = 4 << 30
SECONDS = 20
SMALL = 1 << 20


def places(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where whole numbers are in a parameter."""
    if type(value) is int:
        yield path
    elif type(value) is tuple:
        for i, v in enumerate(value):
            yield from places(v, (*path, i))


def replaced(value: Any, path: tuple[int, ...], number: int) -> Any:
    if not path:
        return number
    return tuple([replaced(v, path[1:], number) if i == path[0] else v for i, v in enumerate(value)])


def absurd_cases() -> list[tuple[Any, str, Mapping[str, Any]]]:
    """(case of the contract, what was changed, parameters); for each sample the first of its
    element types.
    """
    from mycel._src.compiler.prims.base import REGISTRY
    from tests.prims.cases import WITHOUT_CASES, cases

    found = []
    for name, primitive in sorted(REGISTRY.items()):
        if name in WITHOUT_CASES:
            continue
        seen = set()
        for case in cases(primitive):
            if case.number in seen:
                continue
            seen.add(case.number)
            for key, value in case.sample.params.items():
                for path in places(value):
                    for number in ABSURD:
                        changed = {**case.sample.params, key: replaced(value, path, number)}
                        found.append((case, f"{case.label} {key}{list(path)}={number}", changed))
    return found


def outcome(case: Any, params: Mapping[str, Any]) -> str:
    """Run one case: "ok", the error where it is a clear one, or "BAD" and why."""
    from mycel import Tensor
    from mycel._src.compiler.ir.types import TensorType
    from mycel._src.tensors.core import eager

    arrays = case.draw()
    try:
        kind = case.primitive.type_of(*[Tensor(a)._type for a in arrays], **params)
        result = eager.apply(case.primitive, *[Tensor(a) for a in arrays], **params)
    except CLEAR as error:
        text = str(error)
        if not text or INTERNAL.search(text) or type(error) in (RecursionError, UnicodeDecodeError):
            return f"BAD {type(error).__name__}: {text}"
        return f"{type(error).__name__}: {text}"
    except Exception as error:
        return f"BAD {type(error).__name__}: {error}"
    results = result if isinstance(result, tuple) else (result,)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if sum(int(t.nbytes) for t in kinds if isinstance(t, TensorType)) > SMALL:
        return "ok, large"
    wanted = case.primitive.reference
    if wanted is None or case.primitive.name == "positions":  # how many positions there are is the program's to say
        return "ok"
    try:
        with np.errstate(all="ignore"):
            expected = wanted(*arrays, **params)
    except Exception as error:
        return f"BAD the reference says {type(error).__name__}: {error}"
    for got, array in zip(results, expected if isinstance(expected, tuple) else (expected,)):
        array = np.asarray(array)
        found = got.asnumpy()
        if found.shape != array.shape:
            return f"BAD shape {found.shape}, the reference has {array.shape}"
        if not np.allclose(found.astype(np.complex128), array.astype(np.complex128), 2e-2, 2e-2, equal_nan=True):
            return "BAD values differ from the reference"
    return "ok"


def main(first: int, step: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import mycel  # noqa: F401

    found = absurd_cases()
    for i in range(first, len(found), step):
        case, label, params = found[i]
        print(f"{i} {label}", flush=True)
        print("= " + outcome(case, params).replace("\n", " | ")[:300], flush=True)
    print("end", flush=True)


def campaign(step: int = 1, first: int = 0, limit: float = SECONDS) -> Iterator[tuple[str, str]]:
    """(what was changed, outcome) for every `step`-th case.

    A crash is "BAD exit CODE", what does not end is "BAD hang".
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    while True:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.prims.absurd", str(first), str(step)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            text=True,
        )
        said: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(child.stdout, said), daemon=True)
        reader.start()
        current, wait, ended = "", 60.0, ""
        while True:
            try:
                line = said.get(timeout=wait)
            except queue.Empty:
                child.kill()
                ended = "BAD hang"
                break
            if not line:
                ended = f"BAD exit {child.wait()}"
                break
            wait = limit
            if line.startswith("= "):
                yield current, line[2:].rstrip("\n")
            elif line == "end\n":
                break
            else:
                number, _, current = line.rstrip("\n").partition(" ")
                first = int(number)
        child.wait()
        reader.join()
        child.stdout.close()
        if not ended:
            return
        yield current, ended
        if not current:
            return
        first += step


def _read(lines: Any, said: queue.Queue[str]) -> None:
    for line in lines:
        said.put(line)
    said.put("")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
