"""Interprets patterns of `match`, as closures that test a value and bind names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.staging.frontend.ast_interpreter.expressions import ExpressionBuilder
from mycel._src.staging.frontend.calls.frames import Frame

__all__ = ["PatternBuilder"]

Matches = Callable[[Frame, Any], Any]
_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


class PatternBuilder(ExpressionBuilder):
    """The builder of the closures of patterns."""

    def pattern(self, node: Any) -> Matches:
        matches: Matches = getattr(self, f"_{type(node).__name__}")(node)
        return matches

    def _MatchValue(self, node: ast.MatchValue) -> Matches:
        value = self.expression(node.value)
        return lambda f, v: v == value(f)

    def _MatchSingleton(self, node: ast.MatchSingleton) -> Matches:
        value = node.value
        return lambda f, v: v is value

    def _MatchAs(self, node: ast.MatchAs) -> Matches:
        inner = self.pattern(node.pattern) if node.pattern is not None else None
        store = self.store_name(node.name, self.scope) if node.name else None

        def run(f: Frame, v: Any) -> Any:
            if inner is not None:
                found = inner(f, v)
                if found is not True:
                    return found
            if store is not None:
                store(f, v)
            return True

        return run

    def _MatchOr(self, node: ast.MatchOr) -> Matches:
        choices = [self.pattern(p) for p in node.patterns]

        def run(f: Frame, v: Any) -> Any:
            for c in choices:
                found = c(f, v)
                if found is not False:
                    return found
            return False

        return run

    def _MatchSequence(self, node: ast.MatchSequence) -> Matches:
        star = next((i for i, p in enumerate(node.patterns) if isinstance(p, ast.MatchStar)), None)
        parts = [self.pattern(p) for p in node.patterns]
        count = len(parts)

        def run(f: Frame, v: Any) -> Any:
            if not isinstance(v, Sequence) or isinstance(v, (str, bytes, bytearray)):
                return False
            if len(v) < count - 1 or (star is None and len(v) != count):
                return False
            items = list(v)
            if star is not None:
                behind = count - star - 1
                items = [*items[:star], items[star : len(items) - behind], *items[len(items) - behind :]]
            return _all(f, parts, items)

        return run

    def _MatchStar(self, node: ast.MatchStar) -> Matches:
        store = self.store_name(node.name, self.scope) if node.name else None

        def run(f: Frame, v: Any) -> bool:
            if store is not None:
                store(f, v)
            return True

        return run

    def _MatchMapping(self, node: ast.MatchMapping) -> Matches:
        keys = [self.expression(k) for k in node.keys]
        parts = [self.pattern(p) for p in node.patterns]
        rest = self.store_name(node.rest, self.scope) if node.rest else None

        def run(f: Frame, v: Any) -> Any:
            if not isinstance(v, Mapping):
                return False
            wanted = [k(f) for k in keys]
            if any(k not in v for k in wanted):
                return False
            found = _all(f, parts, [v[k] for k in wanted])
            if found is True and rest is not None:
                rest(f, {k: item for k, item in v.items() if k not in wanted})
            return found

        return run

    def _MatchClass(self, node: ast.MatchClass) -> Matches:
        kind = self.expression(node.cls)
        parts = [self.pattern(p) for p in [*node.patterns, *node.kwd_patterns]]
        given, named = len(node.patterns), node.kwd_attrs

        def run(f: Frame, v: Any) -> Any:
            wanted = kind(f)
            if not isinstance(v, wanted):
                return False
            if given == 1 and wanted in _SELF_MATCHING:
                names: list[Any] = [None, *named]
            else:
                names = [*getattr(wanted, "__match_args__", ())[:given], *named]
                if len(names) < len(parts):
                    raise TypeError(
                        f"{wanted.__name__}() accepts {len(names) - len(named)} positional sub-patterns ({given} given)"
                    )
            if any(n is not None and not hasattr(v, n) for n in names):
                return False
            return _all(f, parts, [v if n is None else getattr(v, n) for n in names])

        return run


def _all(f: Frame, parts: list[Matches], values: list[Any]) -> Any:
    for part, value in zip(parts, values):
        found = part(f, value)
        if found is not True:
            return bool(found) if isinstance(found, bool) else found
    return True
