"""When an eager backward graph is compiled as a whole, and when it runs operation by operation.

A recording that is compiled costs thousands of times its run and gains it back only if it comes
again. So a structure is taken operation by operation when it comes first
(`core.autograd.per_operation_gradient`), and is compiled when it comes again. Where most
structures are new that is a chance meeting, as of two sentences of a length, and it is
compiled only when it came `OFTEN` times. What is decided here depends on what was recorded and
not on time. While a profile runs, recordings are compiled, as pieces have no lines. Gradients
by parameters have a history of their own, so that a network that is trained again in the
same process gives the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import ref

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.custom_derivatives import all_nodes, kept_call
from mycel._src.foundation.bounded_caches import MANY, SOME, Remembered, RememberedOf
from mycel._src.foundation.settings import config
from mycel._src.foundation.spans import sinks

__all__ = ["LONG", "OFTEN", "History", "history_of", "key_of", "usual"]

_settings = config._context
OFTEN = 8  # times from which on a structure is compiled in any case
USUAL = 8  # new structures among the last ones, up to which one is compiled at its second time
LONG = 4096  # nodes from which on a recording is taken for new by their number
LARGE = 64  # nodes of a called graph whose derivative is compiled once only, with what is around it


class History:
    """What was recorded so far, and the programs of structures that are compiled.

    `seen` says how often recordings of a structure were taken operation by operation, `news` of the
    last of them whether they were new, and `lengths` has the numbers of nodes of long ones.
    """

    def __init__(self) -> None:
        self.ready = Remembered[Any, Any]("derivatives in use", SOME, config.COMPILED_ANEW)
        self.seen = Remembered[int, int]("structures of recordings", SOME)
        self.lengths = Remembered[int, bool]("numbers of nodes of long recordings", SOME)
        self.news: deque[bool] = deque(maxlen=256)

    def is_new(self, key: tuple[Any, ...], order: Sequence[Node]) -> bool:
        """Return whether a recording is better taken operation by operation than compiled.

        It is when it comes for the first time, and up to its `OFTEN`th time while many that came
        lately were new.
        """
        if _settings["check_nan"] is not False or sinks:
            return False
        known = hash(key)
        count = self.seen.get(known) or 0
        if count and (count + 1 >= OFTEN or sum(self.news) <= USUAL):
            return False
        if any([n.prim is kept_call and _extent(n.params["graph"]) > LARGE for n in order]):
            return False
        self.seen.replace(known, count + 1)
        self.news.append(not count)
        return True

    def has_new_length(self, order: Sequence[Node]) -> bool:
        """Return whether no recording had as many nodes so far; then none had this structure."""
        if _settings["check_nan"] is not False or sinks or self.lengths.get(len(order)):
            return False
        self.lengths.replace(len(order), True)
        self.news.append(True)
        return True


usual = History()
# By the number of the parameter, as tensors cannot be compared.
_histories = Remembered[int, tuple[ref[Any], History]]("histories of parameters", SOME)
_extents = RememberedOf[int]("extents of called graphs", MANY)


def history_of(owner: Any | None) -> History:
    """Return the history of the gradients by a parameter; that of all others for None."""
    if owner is None:
        return usual
    known = _histories.get(id(owner))
    if known is None or known[0]() is not owner:
        known = ref(owner), History()
        _histories.replace(id(owner), known)
        _histories.leaves_with(id(owner), owner)
    return known[1]


def key_of(node: Node) -> Any:
    """Return the parameters of a node as a key."""
    params = node.params
    if not params or node.prim is None:
        return None
    return params["link"] if node.prim is kept_call else tuple(params.items())


def _extent(graph: Graph) -> int:
    """Return the number of nodes of a graph and of those in it."""
    return _extents.of(graph, lambda: sum([1 for _ in all_nodes(graph)]))
