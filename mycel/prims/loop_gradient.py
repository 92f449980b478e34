"""The derivative of `while_loop` for any number of rounds, in memory that does not grow with it.

The loop is run again with a tape of `SLOTS` states: the state before every `stride`-th round is kept, and when the tape is full every second entry is dropped
and the stride doubles (Stumm and Walther, "New algorithms for optimal online checkpointing", SIAM J. Sci. Comput. 2010, describe this
family). Then the rounds are gone through backwards: the state before round k is computed anew from the nearest entry before it, and the
derivative of the body there takes the cotangents from behind the round to before it,

    ct_state <- ct_state * d body / d state,        ct_fixed <- ct_fixed + ct_state * d body / d fixed.

Up to SLOTS rounds each costs one further run of the body; n rounds cost about n * n / (2 * SLOTS) of them. The result consists of `while_loop`s
and `cond`s again, so that it can be differentiated in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from mycel.dtype import bool_, int8, int64
from mycel.errors import Unsupported
from mycel.ir.graph import Graph, Node, input_node
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import shape as S
from mycel.prims.base import constant, outputs_of

__all__ = ["SLOTS", "loop_vjp"]

SLOTS = 64


def loop_vjp(
    ct: Sequence[Optional[Node]], out: Any, *operands: Node, test: Graph, body: Graph, carried: int
) -> tuple[Optional[Node], ...]:
    """The cotangents of a loop's operands."""
    from mycel.prims.control import inner_gradient

    values, fixed = operands[:carried], operands[carried:]
    if any(v.dtype.kind == "c" for v in values):
        raise Unsupported(
            "while_loop: the gradient of a loop that carries complex values is not available; carry real and imaginary parts"
        )
    smooth = [i for i, v in enumerate(values) if v.dtype.is_differentiable]
    free = [i for i, v in enumerate(fixed) if v.dtype.is_differentiable]
    count, stride, tape = _record(values, fixed, test, body)
    seeds = [input_node(v.type, "cotangent") if i in smooth else None for i, v in enumerate(values)]
    grads = inner_gradient(body, seeds)
    wanted = [*smooth, *[carried + i for i in free]]
    results = [S.zeros_like(body.inputs[i]) if grads[i] is None else grads[i] for i in wanted]
    backward = Graph((*body.inputs, *[s for s in seeds if s is not None]), results, f"grad_{body.name}")  # type: ignore[arg-type]
    start = [S.zeros_like(values[i]) if ct[i] is None else ct[i] for i in smooth]
    start += [S.zeros_like(fixed[i]) for i in free]
    found = _sweep(count, stride, tape, start, len(smooth), fixed, body, backward)  # type: ignore[arg-type]
    result: list[Optional[Node]] = [None] * len(operands)
    for i, g in zip(wanted, found):
        result[i] = g
    return tuple(result)


def _loop(state: Sequence[Node], fixed: Sequence[Node], test: Any, step: Any) -> tuple[Node, ...]:
    """A `while_loop` from functions of nodes."""
    from mycel.prims.control import while_loop

    graphs = []
    for name, build in (("test", test), ("body", step)):
        inputs = [input_node(n.type, "carried") for n in state] + [input_node(n.type, "fixed") for n in fixed]
        built = build(inputs[: len(state)], inputs[len(state) :])
        graphs.append(Graph(inputs, built if isinstance(built, (list, tuple)) else [built], name))
    found: tuple[Node, ...] = outputs_of(
        while_loop.node(*state, *fixed, test=graphs[0], body=graphs[1], carried=len(state))
    )
    return found


def _choose(pred: Node, state: Sequence[Node], true: Any, false: Any) -> tuple[Node, ...]:
    """A `cond` from functions of nodes."""
    from mycel.prims.control import cond

    graphs = []
    for name, build in (("true", true), ("false", false)):
        inputs = [input_node(n.type, "operand") for n in state]
        graphs.append(Graph(inputs, build(inputs), name))
    found: tuple[Node, ...] = outputs_of(cond.node(pred, *state, true=graphs[0], false=graphs[1]))
    return found


def _storable(value: Node) -> Node:
    return E.cast(value, dtype=int8) if value.dtype is bool_ else value


def _put(entries: Node, slot: Node, value: Node) -> Node:
    update = S.reshape(_storable(value), (1, *value.shape))
    return I.scatter_nd(entries, S.reshape(slot, (1, 1)), update, mode="set")  # type: ignore[no-any-return]


def _get(entries: Node, slot: Node, like: Node) -> Node:
    value = I.take(entries, slot, axis=0)
    return E.ne(value, 0) if like.dtype is bool_ else value  # type: ignore[no-any-return]


def _thinned(entries: Node) -> Node:
    """Every second entry, in the first half of the tape."""
    kept = S.slice_axis(entries, 0, 0, SLOTS, 2)
    return S.concat([kept, kept], 0)


def _record(values: Sequence[Node], fixed: Sequence[Node], test: Graph, body: Graph) -> tuple[Node, Node, list[Node]]:
    """The number of rounds, the stride, and the tape."""
    from mycel.prims.control import inline

    size = len(values)
    empty = [S.zeros_like(S.broadcast_to(S.reshape(_storable(v), (1, *v.shape)), (SLOTS, *v.shape))) for v in values]

    def keep(operands: Sequence[Node]) -> list[Node]:
        now, count, stride, tape = operands[:size], operands[size], operands[size + 1], operands[size + 2 :]
        full = E.eq(E.floor_div(count, stride), SLOTS)
        thin = lambda s: [E.mul(s[0], 2), *[_thinned(t) for t in s[1:]]]
        stride, *tape = _choose(full, [stride, *tape], thin, list)
        slot = E.floor_div(count, stride)
        return [stride, *[_put(t, slot, v) for t, v in zip(tape, now)]]

    def step(state: Sequence[Node], given: Sequence[Node]) -> list[Node]:
        now, count, stride = state[:size], state[size], state[size + 1]
        hit = E.eq(E.mod(count, stride), 0)
        stride, *tape = _choose(hit, state, keep, lambda s: list(s[size + 1 :]))
        return [*inline(body, [*now, *given]), E.add(count, 1), stride, *tape]

    begin = [*values, constant(0, int64), constant(1, int64), *empty]
    found = _loop(begin, fixed, lambda s, g: inline(test, [*s[:size], *g]), step)
    return found[size], found[size + 1], list(found[size + 2 :])


def _sweep(
    count: Node, stride: Node, tape: Sequence[Node], start: Sequence[Node], states: int, fixed: Sequence[Node], body: Graph, backward: Graph
) -> Sequence[Node]:  # fmt: skip
    """The cotangents before the first round, from those behind the last; the first `states` belong to the state."""
    from mycel.prims.control import inline

    size = len(tape)
    likes = body.outputs

    def step(state: Sequence[Node], given: Sequence[Node]) -> list[Node]:
        k, cts = state[0], state[1:]
        every, entries, constants = given[0], given[1 : size + 1], given[size + 1 :]
        slot = E.floor_div(k, every)
        near = [_get(e, slot, like) for e, like in zip(entries, likes)]
        advance = lambda s, g: [E.add(s[0], 1), *inline(body, [*s[1:], *g[1:]])]
        _, *before = _loop([E.mul(slot, every), *near], [k, *constants], lambda s, g: E.lt(s[0], g[0]), advance)
        grads = inline(backward, [*before, *constants, *cts[:states]])
        return [E.sub(k, 1), *grads[:states], *[E.add(c, g) for c, g in zip(cts[states:], grads[states:])]]

    found = _loop([E.sub(count, 1), *start], [stride, *tape, *fixed], lambda s, g: E.ge(s[0], 0), step)
    return found[1:]
