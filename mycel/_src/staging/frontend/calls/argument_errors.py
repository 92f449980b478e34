"""TypeErrors for arguments that do not fit a function's signature, in Python's words."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["missing", "too_many"]


def too_many(name: str, takes: int, optional: int, given: int, by_keyword: int) -> TypeError:
    """Return the error for too many positional arguments of the function `name`.

    It `takes` so many, of which `optional` have defaults; `given` were given, and `by_keyword`
    keyword-only arguments beside them.
    """
    count = f"from {takes - optional} to {takes}" if optional else str(takes)
    several = "s" if optional or takes != 1 else ""
    beside = ""
    if by_keyword:
        beside = f" positional argument{_s(given)} (and {by_keyword} keyword-only argument{_s(by_keyword)})"
    verb = "was" if given == 1 and not by_keyword else "were"
    return TypeError(f"{name}() takes {count} positional argument{several} but {given}{beside} {verb} given")


def missing(name: str, kind: str, names: Sequence[str]) -> TypeError:
    """Return the error for arguments without a value; `kind` is "positional" or "keyword-only"."""
    words = [repr(n) for n in names]
    if len(words) > 2:
        text = f"{', '.join(words[:-1])}, and {words[-1]}"
    else:
        text = " and ".join(words)
    return TypeError(f"{name}() missing {len(words)} required {kind} argument{_s(len(words))}: {text}")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
