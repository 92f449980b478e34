"""The factors of attention and of its derivative.

Both are divided by the axes in front, as examples and heads, and by queries. Attention is also
divided by columns of values, and its derivative by keys: it has the statistics of whole rows, while
attention itself would have to join those of parts. A head that several queries share sums the
cotangents of its keys and values.

The band and dropout go by positions among all scores. So where queries or keys are divided, the
band of a part is a mask; and dropout draws from a state that is further where the part's scores lie
together, else the mask of just these elements. Both give the scores that the whole has.

A row that fills up has the sum 1, as the derivative divides by it. Keys do not fill up: the score
of a missing key would be 0, against largest scores that may be far below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.factors import Factor, named, starts_by_axis
from mycel._src.compiler.prims.random import bernoulli_of_part, state_of_part
from mycel._src.foundation.dtype import int64

if TYPE_CHECKING:
    from mycel._src.compiler.ir.graph import Node

__all__ = ["attention_factors", "attention_grad_factors", "attention_grad_part", "attention_part"]

Starts = Sequence[Optional["Node"]]


def _scores_labels(node: Node, first: int, scores: Sequence[Any]) -> list[Any]:
    """Return the labels of the operands from number `first` on, which broadcast to scores."""
    words = node.params["operands"]
    return [
        () if word == "state" else scores[len(scores) - mask.type.rank :]
        for word, mask in zip(words, node.inputs[first:])
    ]


def attention_factors(node: Node) -> tuple[Factor, ...]:
    """Return the axes in front, the queries, and the columns of values."""
    lead = range(node.inputs[0].type.rank - 2)
    masks = _scores_labels(node, 3, (*lead, "query", None))
    operands = [(*lead, "query"), lead, (*lead, None, "column"), *masks]
    return named(node, operands, [(*lead, "query", "column"), (*lead, "query"), (*lead, "query")])


def attention_grad_factors(node: Node) -> tuple[Factor, ...]:
    """Return the axes in front, the queries and the keys."""
    lead = range(node.inputs[1].type.rank - 2)
    queries, keys = (*lead, "query"), (*lead, "key")
    masks = _scores_labels(node, 7, (*lead, "query", "key"))
    labels = (*lead, "query", "key")
    return named(
        node,
        [queries, queries, keys, keys, queries, queries, queries, *masks],
        [queries, keys, keys],
        dict.fromkeys(labels, "sum"),
        padding=dict.fromkeys(labels, (None,) * 5 + (1,) + (None,) * (1 + len(masks))),
        even=("key",),
    )


def attention_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> tuple[Node, ...]:
    """Return the attention of a part of the queries, or of the axes in front.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    return _part(whole, inputs, params, starts, 0)


def attention_grad_part(whole: Node, inputs: Any, params: Any, starts: Starts) -> tuple[Node, ...]:
    """Return the share of a part of the queries, keys or axes in front.

    `whole`, `inputs`, `params` and `starts` are those of `Primitive.part`.
    """
    return _part(whole, inputs, params, starts, 1)


def _part(whole: Node, inputs: Any, params: Any, starts: Starts, first: int) -> tuple[Node, ...]:
    """Return the results of a part; queries are operand `first`, keys the next."""
    rank, params = whole.inputs[first].type.rank, dict(params)
    by_query, by_key = (starts_by_axis(whole, starts, k) for k in (first, first + 1))
    offsets = [by_query.get(a) for a in range(rank - 1)] + [by_key.get(rank - 2)]
    count = len(inputs) - len(params["operands"])
    given = dict(zip(params["operands"], inputs[count:]))
    shape = _scores(inputs, first)
    if params["band"] is not None and any(o is not None for o in offsets[-2:]):
        outside = _outside(params["band"], shape[-2:], offsets[-2:])
        params["band"] = None
        if outside is not None:
            given["drop"] = E.logical_or(given["drop"], outside) if "drop" in given else outside
    if "state" in given and any(o is not None for o in offsets):
        state, scores = given["state"], _scores(whole.inputs, first)
        further = state_of_part(state, scores, shape, offsets)
        if further is not None:
            given["state"] = further
        else:
            del given["state"]
            given["kept"] = bernoulli_of_part(state, scores, shape, offsets, params["keep"])
    words = tuple([w for w in ("bias", "drop", "kept", "state") if w in given])
    assert whole.prim is not None
    return whole.prim.outputs(*inputs[:count], *[given[w] for w in words], **{**params, "operands": words})


def _scores(operands: Sequence[Node], first: int) -> Any:
    return (*operands[first].shape[:-1], operands[first + 1].shape[-2])


def _outside(band: Any, shape: Any, offsets: Starts) -> Node | None:
    """Return where the scores of a part, which begins at `offsets`, are outside of the band."""
    query, key = (
        position if start is None else E.add(position, E.cast(start, dtype=int64))
        for position, start in zip((S.iota(shape=shape, axis=a, dtype=int64) for a in (0, 1)), offsets)
    )
    ahead, (low, high) = E.sub(key, query), band
    found = None if low is None else E.lt(ahead, constant(low, int64))
    if high is not None:
        above = E.gt(ahead, constant(high, int64))
        found = above if found is None else E.logical_or(found, above)
    return found
