"""TensorFlow Lite's branches, loops and calls, whose bodies are other graphs of the file.

`SPECIAL` has what computes them: of the operator, its inputs, and a function that gives the results
of a graph by its number. Graphs that call each other in a circle are refused before anything runs,
as are those that unfold to more operators than any network has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.foundation.errors import Unsupported
from mycel.formats.control_flow import either, repeated
from mycel.formats.tflite.schema import Graph, Operator, TFLiteError

__all__ = ["SPECIAL", "check_calls"]

Values = Callable[[int, Sequence[Any]], list[Any]]
_MOST_OPERATORS, _MOST_DEEP = 1 << 20, 32


def _if(o: Operator, inputs: list[Any], values: Values) -> Any:
    condition, *given = inputs
    true, false = [lambda k=k: tuple(values(k, given)) for k in _parts(o)]
    return either(condition.reshape(()), true, false)


def _while(o: Operator, inputs: list[Any], values: Values) -> Any:
    test, body = _parts(o)

    def going(state: Sequence[Any]) -> Any:
        found = values(test, state)
        if len(found) != 1:
            raise TFLiteError(f"the condition of {o.name} has {len(found)} results")
        return found[0].reshape(())

    def step(state: Any) -> Any:
        new = tuple(values(body, state))
        if len(new) != len(state):
            raise TFLiteError(f"the body of {o.name} takes {len(state)} values and gives {len(new)}")
        return new

    return repeated(going, step, tuple(inputs))


def _composite(o: Operator, inputs: list[Any], values: Values) -> Any:
    return tuple(values(_parts(o)[0], inputs))


def _parts(o: Operator) -> list[int]:
    """Return the numbers of the graphs that an operator calls."""
    if o.code == _COMPOSITE:
        return [-1 if o.more is None else o.more.number(1, "<i")]
    return [o.option(0, "<i"), o.option(1, "<i")]


_COMPOSITE = 206
SPECIAL: Mapping[int, Callable[[Operator, list[Any], Values], Any]] = {118: _if, 119: _while, _COMPOSITE: _composite}


def check_calls(graphs: Sequence[Graph]) -> None:
    """Raise TFLiteError for calls of graphs that are not there, and Unsupported for recursion and
    for graphs that unfold to too many operators.
    """
    counts: dict[int, int] = {}
    open_: list[int] = []

    def count(place: int) -> int:
        if place in counts:
            return counts[place]
        if place in open_ or len(open_) > _MOST_DEEP:
            raise Unsupported(f"load: graph {place} of the file calls itself, or calls are too deep")
        open_.append(place)
        total = 0
        for o in graphs[place].operators:
            total += 1
            for part in _parts(o) if o.code in SPECIAL else ():
                if not 0 <= part < len(graphs):
                    raise TFLiteError(f"the operator {o.name} calls the graph {part} of {len(graphs)}")
                total += count(part)
        open_.pop()
        if total > _MOST_OPERATORS:
            raise Unsupported(f"load: graph {place} of the file unfolds to more than {_MOST_OPERATORS} operators")
        counts[place] = total
        return total

    for place in range(len(graphs)):
        count(place)
