"""Pattern matching of TensorFlow Lite operators that together are one operation.

Lists of tensors become tensors when a file is made, and an entry is set by joining what lies before
it, the entry and what lies behind it. The sizes of the parts depend on the place, so that they have
none while a network is staged; together they are an update in place (`updates`).
"""

from __future__ import annotations

from dataclasses import replace

from mycel.formats.tflite.schema import Graph, Operator

__all__ = ["updates"]

_CONCATENATION, _SLICE, _UPDATE = 2, 65, 151


def updates(graph: Graph) -> Graph:
    """Return a graph in which entries that are set are updates."""
    makers = {n: o for o in graph.operators for n in o.outputs}
    users: dict[int, int] = {}
    for n in [n for o in graph.operators for n in o.inputs] + graph.outputs:
        users[n] = users.get(n, 0) + 1
    dropped: set[int] = set()
    made = []
    for o in graph.operators:
        parts = _parts(graph, o, makers)
        if parts is None:
            made.append(o)
            continue
        front, entry, back = parts
        dropped |= {id(p) for p in (front, back) if users[p.outputs[0]] == 1}
        made.append(Operator(_UPDATE, "", [front.inputs[0], entry, front.inputs[2]], o.outputs, None, None, o.kinds))
    return replace(graph, operators=[o for o in made if id(o) not in dropped]) if dropped else graph


def _parts(graph: Graph, o: Operator, makers: dict[int, Operator]) -> tuple[Operator, int, Operator] | None:
    """Return what is before an entry, the entry and what is behind it, where they are joined.

    The whole is as long as before and the entry is one, so the parts lie around it.
    """
    if o.code != _CONCATENATION or len(o.inputs) != 3 or o.option(0, "<i") or o.option(1):
        return None
    front, back = (makers.get(n) for n in (o.inputs[0], o.inputs[2]))
    if front is None or back is None or front.code != _SLICE or back.code != _SLICE:
        return None
    if any(len(p.inputs) != 3 or min(p.inputs) < 0 for p in (front, back)) or front.inputs[0] != back.inputs[0]:
        return None
    source, entry, whole = (graph.tensors[n].shape for n in (front.inputs[0], o.inputs[1], o.outputs[0]))
    fits = source == whole and min(whole, default=-1) >= 0 and entry == (1, *whole[1:])
    begins, sizes = graph.tensors[front.inputs[1]], graph.tensors[back.inputs[2]]
    if not fits or begins.content is None or sizes.content is None:
        return None
    if begins.array().any() or (sizes.array() != -1).any() or graph.tensors[front.inputs[2]].content is not None:
        return None
    return front, o.inputs[1], back
