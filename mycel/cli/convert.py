"""`mycel convert`: a network from the file of one format to that of another."""

from __future__ import annotations

import argparse
import sys

__all__ = ["add_options", "command"]

PROGRAM = "mycel convert"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add("source", metavar="IN", help="the file that is read: .onnx, .mindir or .tflite")
    add("target", metavar="OUT", help="the file that is written: .onnx or .mindir")
    add(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,?,?",
        help="the sizes of an input, ? for open ones (default: those in the file); once for each input",
    )
    add("--for-mindspore", action="store_true", help="write a .mindir file that MindSpore loads")
    add("--no-check", action="store_true", help="do not run both networks to compare their results")


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit status: 2 for what cannot be converted."""
    from mycel._src.foundation.errors import CompileError, Unsupported
    from mycel.formats.converting import convert

    try:
        shapes = dict(_shape(text) for text in options.shape)
        print(convert(options.source, options.target, shapes, not options.no_check, options.for_mindspore))
        return 0
    except (ValueError, TypeError, OSError, Unsupported, CompileError) as error:
        print(f"{PROGRAM}: {str(error).removeprefix('convert: ')}", file=sys.stderr)
        return 2


def _shape(text: str) -> tuple[str, tuple[int | None, ...]]:
    name, equals, sizes = text.partition("=")
    words = [w.strip() for w in sizes.split(",")] if sizes else []
    if not equals or not name or not all(w == "?" or w.isascii() and w.isdigit() for w in words):
        raise ValueError(f"--shape {text!r} is not NAME=1,3,?,?")
    return name, tuple(None if w == "?" else int(w) for w in words)
