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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mycel.deploy import Library

__all__ = ["add_options", "command"]

PROGRAM = "mycel build"
LINES, CLOCK = 12, 100


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file (.mindir, .mycel, .onnx, .tflite), or MODULE:NAME of a Cell or function")
    add("--target", required=True, metavar="NAME", help="the machine, as cortex-m4, aarch64 or x86-64-v3")
    add(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="where to write NAME.o and NAME.h, and for wasm32 NAME.wasm and NAME.mjs",
    )
    add("--name", default="model", metavar="NAME", help="the function in C (default: %(default)s)")
    add(
        "--input",
        action="append",
        default=[],
        metavar="1,28,28[:TYPE]",
        help="the sizes of an input, numbers or names, and its type (default: float32); once for each input, of "
        "files only where they leave sizes open",
    )
    add(
        "--size",
        action="append",
        default=[],
        metavar="NAME=1..64",
        help="the bounds of a size that --input or the file names, and perhaps its steps (8..64..8); once for each",
    )
    add("--ram", metavar="256K", help="refuse what needs more memory for arena and state")
    add("--flash", metavar="1M", help="refuse what needs more memory for code, constants and first values")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status: 2 for what cannot be built or does not fit."""
    from mycel._src.foundation.errors import CompileError, Unsupported

    try:
        return _build(options)
    except (ValueError, TypeError, OSError, ImportError, AttributeError, Unsupported, CompileError) as error:
        print(f"{PROGRAM}: {str(error).removeprefix('build: ')}", file=sys.stderr)
        return 2


def _build(options: argparse.Namespace) -> int:
    from mycel.deploy import build
    from mycel.deploy.building import of_model
    from mycel.deploy.memory_limits import bytes_of, check_fits, largest_batch

    ram, flash = (None if text is None else bytes_of(text) for text in (options.ram, options.flash))
    symbols = dict(_size(text) for text in options.size)
    if (
        options.model.endswith((".mindir", ".mycel"))
        and not options.input
        and not symbols
        and (model := _own(options.model))
    ):
        library = _fitting(lambda stripes: of_model(model, [], options.target, options.name, stripes), ram)

        def advice() -> str:
            return ""

    else:
        net, types = _network(options.model, options.input, symbols)

        def made(shapes: Sequence[Sequence[Any]], stripes: bool | None = None) -> Library:
            inputs = [_example(shape, kind, symbols) for shape, (_, kind) in zip(shapes, types)]
            return build(net, *inputs, target=options.target, name=options.name, stripes=stripes, sizes=symbols or None)

        shapes = [shape for shape, _ in types]
        library = made(shapes) if symbols else _fitting(lambda stripes: made(shapes, stripes), ram)

        def advice() -> str:
            if symbols:
                return "Lower bounds of sizes take less: the arena is that of the largest."
            return largest_batch(lambda n: made([(n, *s[1:]) for s in shapes]), shapes, ram or 0)

    print(library)
    account = library.account
    print(f"memory of the arena at its peak, in bytes\n{_listed(account.peak)}")
    print(f"operations on floats and products of integers, {account.products:,} products\n{_listed(account.work)}")
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
    if library.target == "wasm32":
        _write_web(library, options.out)
    return 0


def _write_web(library: Library, folder: Path) -> None:
    """Write what browsers take of a library, or say why they do not take it."""
    from mycel._src.foundation.errors import Unsupported
    from mycel.deploy import web

    try:
        web(library).write(folder)
    except Unsupported as error:
        print(f"{PROGRAM}: nothing for browsers is written: {error}", file=sys.stderr)
        return
    stem = folder / library.name
    print(f"wrote {stem}.wasm, {stem}.mjs and {stem}.d.mts for browsers: import {{ load }} from './{library.name}.mjs'")


def _fitting(made: Callable[[bool | None], Library], ram: int | None) -> Library:
    """Return the library that `made` makes with stripes or without: the quicker one that fits."""
    if ram is None:
        return made(None)
    whole = made(False)
    return whole if whole.ram_bytes <= ram else made(True)


def _listed(lines: Sequence[Any]) -> str:
    shown = [f"  {line}" for line in lines[:LINES]]
    rest = sum(line.amount for line in lines[LINES:])
    return "\n".join([*shown, f"  {rest:>12,}  on {len(lines) - LINES} others"] if rest else shown)


def _own(path: str) -> Any:
    """Return the graph in a file whose sizes are known; None for another file."""
    from mycel._src.compiler.ir.dim_values import symbols_in
    from mycel.formats.exporting import load_mindir
    from mycel.formats.graph_files.graph_file import GraphFileError

    try:
        model = load_mindir(path)
    except GraphFileError:
        if not Path(path).is_file():
            raise
        return None
    given = model.graph.inputs[: len(model.graph.inputs) - len(model.states)]
    return None if symbols_in(*[n.shape for n in given]) else model


def _network(
    model: str, texts: Sequence[str], symbols: Mapping[str, Any]
) -> tuple[Any, list[tuple[tuple[Any, ...], Any]]]:
    """Return a network of a file or a module, and the sizes and types of its inputs, which `texts`
    say where the file does not; `symbols` are those of --size by name.
    """
    given = [_type(text) for text in texts]
    from mycel.formats.converting import READERS

    suffix = Path(model).suffix
    if suffix not in READERS:
        return _named(model), given
    net: Any = READERS[suffix].load(model)
    net.set_train(False)
    declared = READERS[suffix].inputs(net)
    if given and len(given) != len(declared):
        raise ValueError(f"{model} has {len(declared)} inputs, and --input is there {len(given)} times")
    types = []
    for k, one in enumerate(declared):
        shape = given[k][0] if given else _opened(declared, one, symbols)
        known = one.shape
        if shape is None or None in shape:
            words = one.words or ("",) * len(known or ())
            sizes = (
                "any sizes"
                if known is None
                else ",".join((w or "?") if d is None else str(d) for d, w in zip(known, words))
            )
            raise ValueError(
                f"the input {one.name!r} of {model} has {sizes}; give --input with numbers, or with names and --size, "
                "as --input batch,1,28,28 --size batch=1..64, for each input"
            )
        if known is not None and (len(known) != len(shape) or any(d not in (None, g) for d, g in zip(known, shape))):
            sizes = ",".join("?" if d is None else str(d) for d in known)
            raise ValueError(f"--input {','.join(map(str, shape))}: the input {one.name!r} of {model} has {sizes}")
        types.append((tuple(shape), one.dtype.numpy))
    return net, types


def _opened(declared: Sequence[Any], one: Any, symbols: Mapping[str, Any]) -> Any:
    """Return the sizes of an input of a file with the names of `symbols` for open ones.

    These are the names in the file. A single symbol stands for the open size of each input, where
    none has two.
    """
    shapes = [i.shape for i in declared]
    if one.shape is None or None in shapes or not symbols:
        return one.shape
    single = len(symbols) == 1 and all(s.count(None) < 2 for s in shapes)
    (name,) = symbols if single else ("",)
    words = one.words or ("",) * len(one.shape)
    found = [(w if w in symbols else name or None) if d is None else d for d, w in zip(one.shape, words)]
    return tuple(found)


def _example(shape: Sequence[Any], kind: Any, symbols: Mapping[str, Any]) -> Any:
    """Return an example of an input whose sizes are numbers and names of `symbols`."""
    import mycel as ms
    from mycel._src.foundation.dtype import from_any

    if all(isinstance(d, int) for d in shape):
        return ms.Tensor(np.zeros(shape, kind))
    for d in shape:
        if isinstance(d, str) and d not in symbols:
            raise ValueError(f"--input has the size {d}, whose bounds are missing: give --size {d}=1..64")
    return ms.Tensor(shape=[symbols.get(d, d) for d in shape], dtype=from_any(kind))


def _size(text: str) -> tuple[str, Any]:
    """Return the name and the symbol of a size from what --size says."""
    from mycel._src.compiler.ir.symbols import Symbol

    found = re.fullmatch(r"([A-Za-z]\w*)=([0-9]{1,9})\.\.([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", text, re.ASCII)
    if found is None:
        raise ValueError(f"--size {text}: give bounds as batch=1..64, or with steps, as length=8..64..8")
    name, (least, most, step) = found[1], (int(n or 1) for n in found.groups()[1:])
    if not 0 < least < most or not step or least // step < 1 or (most - least) % step:
        raise ValueError(f"--size {text}: the first bound is at least a step, and the last some steps further")
    return name, Symbol(max=most, min=least, divisor=step, remainder=least % step, unique=True)


def _type(text: str) -> tuple[tuple[Any, ...], Any]:
    """Return the shape and the NumPy type of an input from what --input says."""
    sizes, _, name = text.partition(":")
    if not re.fullmatch(r"([0-9]{1,9}|[A-Za-z]\w*)?(,([0-9]{1,9}|[A-Za-z]\w*))*", sizes, re.ASCII) or sizes[:1] == ",":
        raise ValueError(f"--input {text}: give sizes as 1,28,28 and perhaps a type, as 1,28,28:int32")
    try:
        kind = np.dtype(name or "float32")
    except TypeError:
        raise ValueError(f"--input {text}: there is no type {name!r}") from None
    if kind.kind not in "biuf":
        raise ValueError(f"--input {text}: inputs are booleans, integers or floats")
    return tuple(int(n) if n.isdigit() else n for n in sizes.split(",") if n), kind


def _named(model: str) -> Any:
    """Return the Cell or function that MODULE:NAME names; a class of Cells is called."""
    from mycel._src.tensors.cells.cell import Cell

    module, _, name = model.partition(":")
    if not module or not name:
        raise ValueError(f"{model!r} is neither a file that ends in .mindir, .mycel, .onnx or .tflite nor MODULE:NAME")
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
