"""`mycel models`: the library of networks for microcontrollers, the choice from it, and its files.

Without a task all entries are listed. With one the most accurate that fits the limits is chosen,
and written as a library of C where `--out` says so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["add_options", "command"]

PROGRAM = "mycel models"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add("task", nargs="?", metavar="TASK", help="choose a network for this task; without it all are listed")
    add("--device", default="cortex-m4", metavar="NAME", help="the processor (default: %(default)s)")
    add("--ram", metavar="256K", help="memory that there is for stack, arena and state")
    add("--flash", metavar="1M", help="memory that there is for code and constants")
    add("--latency", type=_seconds, metavar="SECONDS", help="of a call at most, at one instruction a cycle")
    add("--clock", type=_seconds, default=100e6, metavar="HERTZ", help="cycles a second (default: 100e6)")
    add("--accuracy", type=_seconds, metavar="0.95", help="what it has to reach; the quickest that does is chosen")
    add("--out", type=Path, metavar="DIR", help="write the library of C there")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be at least 0, and finite")
    return value


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status: 2 where nothing fits, or for wrong arguments."""
    from mycel._src.foundation.errors import Unsupported

    try:
        return _chosen(options) if options.task else _listed(options)
    except (ValueError, OSError, Unsupported) as error:
        print(f"{PROGRAM}: {str(error).removeprefix('choose: ')}", file=sys.stderr)
        return 2


def _listed(options: argparse.Namespace) -> int:
    from mycel.models import entries

    given = [name for name in ("ram", "flash", "latency", "accuracy", "out") if getattr(options, name) is not None]
    if given:
        raise ValueError(f"--{given[0]} is for the choice of a network; name its task")
    there = entries()
    devices = sorted({device for entry in there for device in entry.costs})
    if options.device not in devices:
        raise ValueError(f"--device must be one of {', '.join(devices)}, not {options.device}")
    print(f"on {options.device}, as measured\n{'network':<20}{'measure':>9}{'flash':>10}{'RAM':>9}{'instructions':>15}")
    for entry in there:
        cost = entry.costs[options.device]
        figures = f"{cost.flash:>10,}{cost.ram:>9,}{cost.instructions:>15,}"
        print(f"{entry.name:<20}{entry.accuracy:>9.1%}{figures}")
    return 0


def _chosen(options: argparse.Namespace) -> int:
    from mycel.deploy.memory_limits import bytes_of
    from mycel.models import choose

    ram, flash = (None if text is None else bytes_of(text) for text in (options.ram, options.flash))
    entry = choose(
        options.task,
        ram,
        flash,
        device=options.device,
        latency=options.latency,
        accuracy=options.accuracy,
        clock=options.clock,
    )
    print(entry)
    print(f"  made by {entry.command}")
    if options.out is not None:
        name = entry.task
        entry.build(options.device, name).write(options.out)
        print(f"wrote {options.out / name}.o and {options.out / name}.h")
    return 0
