"""Parsers of command lines that say which command or option was meant."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["Parser", "version"]


def version() -> str:
    """Return the line that ``--version`` prints."""
    import mycel

    return f"mycel {mycel.__version__} (Python {sys.version.partition(' ')[0]})"


class _Version(argparse.Action):
    """``--version``, which imports the package only where it is asked for."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="show the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(version())
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose errors name what is close to a word that it does not know.

    >>> parser = Parser(prog="program")
    >>> _ = parser.add_argument("--epochs")
    >>> parser.close_to("unrecognized arguments: --epoch=3")
    '; did you mean --epochs?'
    """

    given: Sequence[str] = ()

    def with_version(self) -> None:
        """Add ``--version``."""
        self.add_argument("--version", action=_Version)

    def close_to(self, message: str) -> str:
        """Return the question for the first unknown option or choice in a message, or "".

        Where an option is missing, one that was given may be that with another spelling.
        """
        options = [name for action in self._actions for name in action.option_strings]
        choice = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if choice is not None:
            word, known = choice[1], re.findall(r"[^\s,']+", choice[2])
        elif message.startswith("unrecognized arguments: "):
            word = message.partition(": ")[2].split()[0].partition("=")[0]
            known = options
        elif "are required: " in message:
            given = [word.partition("=")[0] for word in Parser.given if word.startswith("--")]
            word, known = next((word for word in given if word not in options), ""), options
        else:
            return ""
        found = difflib.get_close_matches(word.lower(), known, n=1)
        return f"; did you mean {found[0]}?" if found else ""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error with what was meant, and exit with status 2."""
        super().error(message + self.close_to(message))

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the parsed arguments; an error about further ones is that of their command."""
        Parser.given = sys.argv[1:] if args is None else list(args)
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            parser = getattr(options, "parser_of_command", self)
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return options
