"""The command line: `mycel train`, `run`, `launch`, `build`, `models`, `convert`,
`profile`, `info`, `cache` and `dataset-cache`.

Without a command it shows the help. Exit status: 0 when done, 1 when a script fails, 2 for wrong
arguments, environment or files, including a full disk (the error is one line), 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mycel.cli.parsing import Parser

__all__ = ["main"]

PROGRAM = "mycel"
_ENVIRONMENT = """environment variables:
  MYCEL_CACHE      folder of compiled code (default: mycel in the user's cache folder)
  MYCEL_CACHE_SIZE how many MiB that folder may have before what was longest unused is deleted
                   (default: 2048)
  MYCEL_CPU        make code for a level of x86-64 (x86-64, x86-64-v2, -v3, -v4) instead of
                   this processor, for instance to fill a cache that several machines share
  MYCEL_ENGINE     native (default), xla: programs of jax, or reference: NumPy, one operation at a time
  MYCEL_ONEDNN     the oneDNN library to use (default: the installed one)
  MYCEL_LOG        debug, info, warning or error (default: warning)
  OMP_NUM_THREADS  how many threads compute (default: as many as there are usable cores)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: those of the process) and return its exit status.

    >>> main(["run", "no-such-script.py"])
    2
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print(f"\n{PROGRAM}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone; the interpreter must not fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="An AI framework with MindSpore's interface.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.with_version()
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_train(commands)
    run = commands.add_parser("run", help="run a script in which `import mindspore` gives mycel")
    run.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    run.set_defaults(command=_run)

    from mycel.cli import build, convert, dataset_cache, launch, models

    launch.add_options(
        commands.add_parser(
            "launch", help="run a script in several processes that communicate: mycel launch -n 4 train.py"
        )
    )

    library = commands.add_parser(
        "build",
        help="make a library of C for a machine: mycel build net:Net --input 1,28,28 --target cortex-m4 --out lib",
    )
    build.add_options(library)
    library.set_defaults(command=build.command)

    chosen = commands.add_parser("models", help="networks for microcontrollers: mycel models digits --ram 32K")
    models.add_options(chosen)
    chosen.set_defaults(command=models.command)

    other = commands.add_parser("convert", help="write a network in another format: mycel convert net.onnx net.mindir")
    convert.add_options(other)
    other.set_defaults(command=convert.command)

    profile = commands.add_parser("profile", help="run a script and show what took the time: mycel profile script.py")
    profile.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    profile.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's own arguments")
    profile.add_argument("--html", type=Path, metavar="FILE", help="write a page with pictures")
    profile.add_argument("--chrome", type=Path, metavar="FILE", help="write a trace for Perfetto or chrome://tracing")
    profile.add_argument("--rows", type=_positive, default=20, metavar="N", help="rows of each table (default: 20)")
    profile.add_argument(
        "--measure", action="store_true", help="measure the machine anew; by default its limits are those in the cache"
    )
    profile.set_defaults(command=_profile)

    info = commands.add_parser("info", help="show versions, processor, engines and caches")
    info.add_argument("--json", action="store_true", help="as JSON")
    info.set_defaults(command=_info)

    cache = commands.add_parser("cache", help="show the folder of compiled code, or empty it")
    cache.add_argument("--clear", action="store_true", help="delete all that it holds")
    cache.set_defaults(command=_cache)

    rows = commands.add_parser("dataset-cache", help="start, stop or ask a server that keeps rows of pipelines")
    dataset_cache.add_options(rows)
    rows.set_defaults(command=dataset_cache.command)
    for command in commands.choices.values():
        command.set_defaults(parser_of_command=command)
    return parser


def _add_train(commands: Any) -> None:
    train = commands.add_parser("train", help="train a bundled model: mycel train lenet5")
    train.add_argument("model", choices=["lenet5"], help="the model")
    train.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compile whole steps, or run them op by op"
    )
    train.add_argument(
        "--data", type=Path, metavar="DIR", help="folder of the MNIST IDX files (default: the bundled digits)"
    )
    train.add_argument(
        "--epochs", type=_positive, metavar="N", help="passes over the images (default: 20, with --data 2)"
    )
    train.add_argument("--seed", type=_seed, metavar="N", help="seed of weights, order and shifts (default: 1)")
    train.add_argument("--batch-size", type=_positive, metavar="N", help="images a step (default: 32)")
    train.add_argument(
        "--out", type=Path, default=Path("mycel-demo"), metavar="DIR", help="where to write (default: %(default)s)"
    )
    train.add_argument("--resume", type=Path, metavar="CKPT", help="go on from this checkpoint")
    train.set_defaults(command=_train)


def _positive(text: str) -> int:
    value = _natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return value


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _seed(text: str) -> int:
    value = _natural(text)
    if value >= 2**32:
        raise argparse.ArgumentTypeError(f"{text}: must be below 2**32")
    return value


def _train(options: argparse.Namespace) -> int:
    from rich.console import Console

    from mycel._src.engines.select import engine
    from mycel.demo import command

    try:
        engine().check_environment()
    except ValueError as error:
        print(f"{PROGRAM} train: {error}", file=sys.stderr)
        return 2
    chosen = {
        name: getattr(options, name) for name in ("mode", "data", "epochs", "seed", "batch_size", "out", "resume")
    }
    return command.run(command.Options(**chosen), Console())


def _run(options: argparse.Namespace) -> int:
    script: Path = options.script
    if not script.is_file():
        print(f"{PROGRAM} run: no such script: {script}", file=sys.stderr)
        return 2
    _run_script(script, options.arguments)
    return 0


def _run_script(script: Path, arguments: Sequence[str]) -> None:
    """Run a script as Python would, with `import mindspore` answered by Mycel."""
    from mycel import compat

    compat.install()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")


def _profile(options: argparse.Namespace) -> int:
    script: Path = options.script
    if not script.is_file():
        print(f"{PROGRAM} profile: no such script: {script}", file=sys.stderr)
        return 2
    for path in (options.html, options.chrome):
        if path is not None and not path.absolute().parent.is_dir():
            print(f"{PROGRAM} profile: there is no folder {path.absolute().parent}", file=sys.stderr)
            return 2
    from mycel.profiler import machine
    from mycel.profiler.profiled import profile
    from mycel.profiler.table import as_text

    taken = profile(machine=machine(again=options.measure))
    try:
        with taken:
            _run_script(script, options.arguments)
    finally:
        # A script that ends with an exception, or with sys.exit, has a profile as well.
        print(as_text(taken.report, options.rows, color=sys.stdout.isatty()), end="")
        for path, write in ((options.html, taken.html), (options.chrome, taken.export_chrome)):
            if path is not None:
                write(path)
                print(f"wrote {path}")
    return 0


def _info(options: argparse.Namespace) -> int:
    from mycel.cli import info

    facts = info.collect()
    print(json.dumps(facts, indent=2) if options.json else info.as_text(facts))
    return 0


def _cache(options: argparse.Namespace) -> int:
    from mycel._src.foundation.files import code_cache as cache
    from mycel._src.foundation.settings import config

    try:
        limit = cache.limit()
    except ValueError as error:
        print(f"{PROGRAM} cache: {error}", file=sys.stderr)
        return 2
    folder = config.cache_directory()
    if options.clear:
        try:
            count, size = cache.clear()
        except OSError as error:
            print(f"{PROGRAM} cache: {folder} could not be emptied: {error}", file=sys.stderr)
            return 2
        print(f"deleted {count:,} files ({size / 1e6:,.1f} MB) in {folder}")
        return 0
    kinds: dict[str, list[int]] = {}
    for entry in cache.entries():
        kinds.setdefault(entry.path.parents[1].name.rpartition("-")[0], []).append(entry.bytes)
    print(folder)
    for kind, sizes in sorted(kinds.items()):
        print(f"{kind:<10}{len(sizes):>7,} files {sum(sizes) / 1e6:>10,.1f} MB")
    total = sum(map(sum, kinds.values()))
    print(f"{total / 1e6:,.1f} MB of {limit / 1e6:,.0f} MB; `mycel cache --clear` deletes them")
    return 0
