"""Which recordings are compiled as a whole, and which are taken operation by operation.

A recording that is compiled costs thousands of times its run and gains it back only if it comes
again. So a structure is taken operation by operation when it comes first (`mycel.core.piecewise`),
and is compiled when it comes again. Where most structures are new that is a chance meeting, as of
two sentences of a length, and it is compiled only when it came `OFTEN` times. What is decided here
depends on the recordings of the process alone and not on time, so that results are the same from
run to run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from mycel.base import config
from mycel.base.remembered import MANY, Remembered, RememberedOf
from mycel.ir.graph import Graph, Node
from mycel.prims.custom import all_nodes, kept_call

__all__ = ["LONG", "OFTEN", "has_new_length", "is_new", "key_of"]

_settings = config._context
# How often recordings of a structure were taken operation by operation, and of the last of them
# whether they were new.
_seen = Remembered[int, int]("structures of recordings", MANY)
_news: deque[bool] = deque(maxlen=256)
_lengths = Remembered[int, bool]("numbers of nodes of long recordings", MANY)
_extents = RememberedOf[int]("extents of called graphs", MANY)
OFTEN = 8  # times from which on a structure is compiled in any case
USUAL = 8  # new structures among the last ones, up to which one is compiled at its second time
LONG = 4096  # nodes from which on a recording is taken for new by their number
LARGE = 64  # nodes of a called graph whose derivative is compiled once only, with what is around it


def is_new(key: tuple[Any, ...], order: Sequence[Node]) -> bool:
    """Return whether a recording is better taken operation by operation than compiled.

    It is when it comes for the first time, and up to its `OFTEN`th time while many that came lately
    were new.
    """
    if _settings["check_nan"] is not False:
        return False
    known = hash(key)
    count = _seen.get(known) or 0
    if count and (count + 1 >= OFTEN or sum(_news) <= USUAL):
        return False
    if any([n.prim is kept_call and _extent(n.params["graph"]) > LARGE for n in order]):
        return False
    _seen.replace(known, count + 1)
    _news.append(not count)
    return True


def has_new_length(order: Sequence[Node]) -> bool:
    """Return whether no recording had as many nodes so far; then none had this structure."""
    if _settings["check_nan"] is not False or _lengths.get(len(order)):
        return False
    _lengths.replace(len(order), True)
    _news.append(True)
    return True


def key_of(node: Node) -> Any:
    """Return the parameters of a node as a key."""
    params = node.params
    if not params or node.prim is None:
        return None
    return params["link"] if node.prim is kept_call else tuple(params.items())


def _extent(graph: Graph) -> int:
    """Return the number of nodes of a graph and of those in it."""
    return _extents.of(graph, lambda: sum([1 for _ in all_nodes(graph)]))
