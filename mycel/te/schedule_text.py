"""Prints schedules as a user would write them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar, cast

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim, same
from mycel._src.compiler.loops.programs import For, Program, called, index_of, statements

__all__ = ["Spelled", "as_function", "word"]

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z_][\w.~']*")


class Spelled(Protocol):
    """A schedule whose words are written down.

    `words` are those applied so far, `given` what they returned, by name, `count` numbers new
    names, and `speaking` says whether one of them is being applied.
    """

    program: Program
    words: list[str]
    given: set[str]
    count: int
    speaking: bool


def word(method: F) -> F:
    """Write down each use of a method of schedules, unless another such method uses it."""
    signature = inspect.signature(method)
    title = method.__name__

    @functools.wraps(method)
    def apply(self: Spelled, *args: Any, **kwargs: Any) -> Any:
        if self.speaking:
            return method(self, *args, **kwargs)
        before = self.program, self.count
        self.speaking = True
        try:
            said = _arguments(self, signature, args, kwargs)
            found = method(self, *args, **kwargs)
        except BaseException:
            # What is refused leaves nothing behind, so that the words say all that was done.
            self.program, self.count = before
            raise
        finally:
            self.speaking = False
        results = [str(r) for r in (found if isinstance(found, tuple) else () if found is None else (found,))]
        self.given.update(results)
        left = f"{', '.join(results)}{',' if isinstance(found, tuple) and len(results) == 1 else ''} = "
        self.words.append(f"{left if results else ''}s.{title}({', '.join(said)})")
        return found

    return cast(F, apply)


def _arguments(
    schedule: Spelled, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[str]:
    """Return the arguments of a word as text; `signature` is that of the word."""
    try:
        bound = signature.bind(schedule, *args, **kwargs)
    except TypeError:
        return []
    said: list[str] = []
    positional = True
    for name, p in list(signature.parameters.items())[1:]:
        if p.kind is p.VAR_POSITIONAL:
            said += [_shown(schedule, v) for v in bound.arguments.get(name, ())]
        elif name not in bound.arguments or bound.arguments[name] == p.default:
            positional = False
        else:
            text = _shown(schedule, bound.arguments[name])
            said.append(text if positional else f"{name}={text}")
    return said


def _shown(schedule: Spelled, value: Any) -> str:
    if isinstance(value, Dim):
        names = symbols_in(value)
        if len(names) == 1 and same(value, index_of(next(iter(names)))):
            return _loop(schedule, next(iter(names)))
        texts = {n: n if n in schedule.given else _found(schedule, n) for n in names}
        return _NAME.sub(lambda m: texts.get(m.group(), m.group()), str(value))
    if isinstance(value, str):
        return value if value in schedule.given else f'"{value}"'
    return repr(value)


def _loop(schedule: Spelled, index: str) -> str:
    """Return how a word names a loop, by what a word returned or as the user called it."""
    if index in schedule.given:
        return index
    found = _found(schedule, index)
    return f'"{called(index)}"' if found == f's["{called(index)}"]' and _count(schedule, index) == 1 else found


def _found(schedule: Spelled, index: str) -> str:
    """Return an expression whose value is the index of a loop."""
    name = called(index)
    mine = _named(schedule, name)
    if index not in mine:
        return index
    return f's["{name}"]' if mine[0] == index else f's.loops("{name}")[{mine.index(index)}]'


def _named(schedule: Spelled, name: str) -> list[str]:
    loops = [x.index for x in statements(schedule.program.body) if isinstance(x, For) and called(x.index) == name]
    return list(dict.fromkeys(loops))


def _count(schedule: Spelled, index: str) -> int:
    return len(_named(schedule, called(index)))


def as_function(title: str, words: tuple[str, ...], reassociate: bool) -> str:
    """Return words as the source of a schedule of the operator called `title`."""
    options = "(reassociate=True)" if reassociate else ""
    lines = [f"@{title}.schedule{options}", "def _(s):", *[f"    {w}" for w in words or ("pass",)]]
    return "\n".join(lines)
