"""`mycel build`: a library of C for a machine, of a file of a network or of a function of a module.

The library is made, what it takes is printed, and only if that fits the limits asked for it is
written.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

if TYPE_CHECKING:
    from mycel.deploy import Library

__all__ = ["add_options", "command"]

PROGRAM = "mycel build"
LINES, CLOCK = 12, 100


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file of ms.export (.mindir), or MODULE:NAME of a Cell or function")
    add("--target", required=True, metavar="NAME", help="the machine, as cortex-m4, aarch64 or x86-64-v3")
    add("--out", type=Path, required=True, metavar="DIR", help="where to write NAME.o and NAME.h")
    add("--name", default="model", metavar="NAME", help="the function in C (default: %(default)s)")
    add(
        "--input",
        action="append",
        default=[],
        metavar="1,28,28[:TYPE]",
        help="the sizes of an input of MODULE:NAME, and its type (default: float32); once for each input",
    )
    add("--ram", metavar="256K", help="refuse what needs more memory for arena and state")
    add("--flash", metavar="1M", help="refuse what needs more memory for code, constants and first values")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status: 2 for what cannot be built or does not fit."""
    from mycel.base.errors import CompileError, Unsupported

    try:
        return _build(options)
    except (ValueError, TypeError, OSError, ImportError, AttributeError, Unsupported, CompileError) as error:
        print(f"{PROGRAM}: {str(error).removeprefix('build: ')}", file=sys.stderr)
        return 2


def _build(options: argparse.Namespace) -> int:
    import mycel as ms
    from mycel.deploy import build
    from mycel.deploy.building import of_model
    from mycel.deploy.fitting import bytes_of, check_fits, largest_batch

    ram, flash = (None if text is None else bytes_of(text) for text in (options.ram, options.flash))
    if options.model.endswith(".mindir"):
        if options.input:
            raise ValueError("--input is for MODULE:NAME; a file has the sizes of its inputs")
        model = ms.load_mindir(options.model)
        library = _fitting(lambda stripes: of_model(model, [], options.target, options.name, stripes), ram)

        def advice() -> str:
            return ""

    else:
        net, types = _named(options.model), [_type(text) for text in options.input]

        def made(shapes: Sequence[Sequence[int]], stripes: Optional[bool] = None) -> Library:
            inputs = [ms.Tensor(np.zeros(shape, kind)) for shape, (_, kind) in zip(shapes, types)]
            return build(net, *inputs, target=options.target, name=options.name, stripes=stripes)

        shapes = [shape for shape, _ in types]
        library = _fitting(lambda stripes: made(shapes, stripes), ram)

        def advice() -> str:
            return largest_batch(lambda n: made([(n, *s[1:]) for s in shapes]), shapes, ram or 0)

    print(library)
    account = library.account
    print(f"memory of the arena at its peak, in bytes\n{_listed(account.peak)}")
    print(f"operations on floats, {account.products:,} products\n{_listed(account.work)}")
    if account.stripes:
        print(
            f"{account.stripes} stripes of rows for a smaller arena, which copy {account.copied_bytes:,} bytes a call"
        )
    if account.instructions is not None:
        seconds = account.instructions / (CLOCK * 1e6)
        print(f"about {account.instructions:,} instructions: {seconds * 1e3:,.1f} ms at {CLOCK} MHz, one a cycle")
    check_fits(library, ram, flash, advice)
    library.write(options.out)
    print(f"wrote {options.out / options.name}.o and {options.out / options.name}.h")
    return 0


def _fitting(made: Callable[[Optional[bool]], Library], ram: Optional[int]) -> Library:
    """Return the library that `made` makes with stripes or without: the quicker one that fits."""
    if ram is None:
        return made(None)
    whole = made(False)
    return whole if whole.ram_bytes <= ram else made(True)


def _listed(lines: Sequence[Any]) -> str:
    shown = [f"  {line}" for line in lines[:LINES]]
    rest = sum(line.amount for line in lines[LINES:])
    return "\n".join([*shown, f"  {rest:>12,}  on {len(lines) - LINES} others"] if rest else shown)


def _type(text: str) -> tuple[tuple[int, ...], Any]:
    """Return the shape and the NumPy type of an input from what --input says."""
    sizes, _, name = text.partition(":")
    if not re.fullmatch(r"([0-9]{1,9}(,[0-9]{1,9})*)?", sizes):
        raise ValueError(f"--input {text}: give sizes as 1,28,28 and perhaps a type, as 1,28,28:int32")
    try:
        kind = np.dtype(name or "float32")
    except TypeError:
        raise ValueError(f"--input {text}: there is no type {name!r}") from None
    if kind.kind not in "biuf":
        raise ValueError(f"--input {text}: inputs are booleans, integers or floats")
    return tuple(int(n) for n in sizes.split(",") if n), kind


def _named(model: str) -> Any:
    """Return the Cell or function that MODULE:NAME names; a class of Cells is called."""
    from mycel.cells.cell import Cell

    module, _, name = model.partition(":")
    if not module or not name:
        raise ValueError(f"{model!r} is neither a file that ends in .mindir nor MODULE:NAME")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    finally:
        sys.path.pop(0)
    for part in name.split("."):
        if not hasattr(found, part):
            raise ValueError(f"{module} has no {name}")
        found = getattr(found, part)
    if isinstance(found, type) and issubclass(found, Cell):
        found = found()
        found.set_train(False)
    if not callable(found):
        raise ValueError(f"{model} is {type(found).__name__}, which is no Cell and no function")
    return found
