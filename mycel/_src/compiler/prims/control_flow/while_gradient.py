"""The derivative of `while_loop`, for any number of iterations.

    while_grad(*values, *fixed, *cts; test, body, backward, carried, smooth, free, keep)

runs the loop and gives the cotangents of the carried values `smooth` and of the fixed operands
`free`, from the cotangents `cts` of the final values `smooth`. Its definition is

    x[k+1] = body(x[k], fixed)
    l[k] = l[k+1] d body / d x
    m <- m + l[k+1] d body / d fixed

and `backward` is the graph (values, fixed, l) -> (l, the addend of m). It is a primitive, so that
derivatives of a gradient need no tape of tapes: it is linear in `cts`, g(x, l) = J(x)^T l, and the
loop that carries tangents v along with its values (`tangent_loop`) ends in v[n] = J(x) v[0], so
that

    cotangents of g along v:      for l: v[n],      for x: the gradient of <l, v[n]>,

which is `while_grad` of the loop that carries v, and its push-forward is the same (Griewank and
Walther, "Evaluating Derivatives", 2008, chapter 5.3).

An engine that claims `while_grad` keeps the state before each iteration, or with ``keep="root"``
about as many states as the square root of their number. For other engines, `expand` runs the loop
again with a tape of `SLOTS` states: it keeps the state before every `stride`-th iteration, and when
the tape is full it drops every second entry and doubles the stride (Stumm and Walther, "New
algorithms for optimal online checkpointing", SIAM J. Sci. Comput. 2010, describe this family). The
iterations between two entries are computed anew, the last ones first. Up to SLOTS iterations cost
one more run of the body each; n iterations cost about n * n / (2 * SLOTS) runs, in memory that does
not grow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import Type, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import SERVICES, Primitive, Sample, constant, get_item, outputs_of, register
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation.dtype import bool_, float64, int8, int64

__all__ = ["SLOTS", "backward_graph", "loop_vjp", "push_while_grad", "tangent_loop", "while_grad"]

SLOTS = 64
Nodes = Sequence[Node]


def loop_vjp(
    ct: Sequence[Node | None],
    out: Any,
    *operands: Node,
    test: Graph,
    body: Graph,
    carried: int,
    active: Sequence[bool] | None = None,
) -> tuple[Node | None, ...]:
    """Return the cotangents of a loop's operands.

    `ct` are the cotangents of its outputs; `out`, the outputs themselves, is not used. `operands`
    are the loop's, the first `carried` of them the carried values; `test` and `body` are its
    graphs. `active` says of which operands derivatives are wanted. Those by integers, such as
    counters, are computed for these alone, and without `active` for none.
    """
    values = operands[:carried]
    whole = frozenset[int]() if active is None else _active_integers(body, carried, active)
    cts = [
        S.zeros_like(v) if c is None else c
        for i, (v, c) in enumerate(zip(values, ct))
        if v.dtype.is_inexact or i in whole
    ]
    result: list[Node | None] = [None] * len(operands)
    if not cts:
        return tuple(result)
    places, found = _gradient(test, body, carried, operands, cts, whole)
    for i, g in zip(places, found):
        result[i] = g
    return tuple(result)


def _active_integers(body: Graph, carried: int, active: Sequence[bool]) -> frozenset[int]:
    """Return the positions of the operands of integer type that depend on those which are
    `active`, in some iteration.
    """
    found = [a and n.dtype.is_differentiable for a, n in zip(active, body.inputs)]
    if not any(a and not n.dtype.is_inexact for a, n in zip(found, body.inputs)):
        return frozenset()
    count = 0
    while count != sum(found):
        count = sum(found)
        reached = {n for n, a in zip(body.inputs, found) if a}
        for node in body.nodes:
            if any(i in reached for i in node.inputs):
                reached.add(node)
        found[:carried] = [a or o in reached for a, o in zip(found, body.outputs)]
    return frozenset([i for i, (a, n) in enumerate(zip(found, body.inputs)) if a and not n.dtype.is_inexact])


def _gradient(
    test: Graph,
    body: Graph,
    carried: int,
    operands: Nodes,
    cts: Nodes,
    whole: frozenset[int] = frozenset(),
    keep: str = "all",
) -> tuple[list[int], list[Node]]:
    """Return which operands have cotangents, by position, and these cotangents.

    `test`, `body` and `carried` are the parameters of the loop of `operands`, `cts` the cotangents
    of its values, and `whole` says which integers have one too. `keep` is that of `while_grad`.
    """
    backward, smooth, free = backward_graph(body, carried, whole)
    params = {"test": test, "body": body, "backward": backward, "carried": carried}
    made = while_grad.node(*operands, *cts, **params, smooth=smooth, free=free, keep=keep)
    places = [*smooth, *[carried + i for i in free]]
    return places, [get_item(made, i) for i in range(len(places))]


def _or_zeros(change: Node | None, like: Node) -> Node:
    return S.zeros_like(like) if change is None else change


def backward_graph(
    body: Graph, carried: int, whole: frozenset[int] = frozenset()
) -> tuple[Graph, tuple[int, ...], tuple[int, ...]]:
    """Return the derivative of one iteration, and the positions that it has cotangents for.

    The positions are those of carried values and those of fixed operands. `whole` are the positions
    of integers among them.
    """
    from mycel._src.compiler.prims.control_flow.control import inner_gradient

    chosen = [n.dtype.is_inexact or i in whole for i, n in enumerate(body.inputs)]
    smooth = tuple([i for i in range(carried) if chosen[i]])
    seeds = [input_node(n.type, "cotangent") if c else None for n, c in zip(body.outputs, chosen)]
    grads = inner_gradient(body, seeds)
    fixed = range(carried, len(body.inputs))
    free = tuple([i - carried for i in fixed if chosen[i] and grads[i] is not None])
    wanted = [*smooth, *[carried + i for i in free]]
    results = [_or_zeros(grads[i], body.inputs[i]) for i in wanted]
    inputs = (*body.inputs, *[s for s in seeds if s is not None])
    return Graph(inputs, results, f"grad_{body.name}"), smooth, free


def tangent_loop(test: Graph, body: Graph, carried: int, moving: Sequence[int], fixed: Sequence[int]) -> dict[str, Any]:
    """Return the parameters of a loop that carries tangents along with its values.

    `test`, `body` and `carried` are the parameters of the loop itself. `moving` are the positions
    of the values that have tangents, `fixed` those of the other operands that do. The new loop's
    operands are the values, their tangents, the fixed operands, and the tangents of those.
    """
    values = [input_node(n.type, "carried") for n in body.inputs[:carried]]
    changes = [input_node(body.inputs[i].type, "tangent") for i in moving]
    rest = [input_node(n.type, "fixed") for n in body.inputs[carried:]]
    drift = [input_node(body.inputs[i].type, "tangent") for i in fixed]
    inputs = [*values, *changes, *rest, *drift]
    from mycel._src.compiler.prims.control_flow.control import inline

    outs, moved = SERVICES.push_forward(
        inline(body, [*values, *rest]),
        [*[values[i] for i in moving], *[rest[i - carried] for i in fixed]],
        [*changes, *drift],
    )
    results = [_or_zeros(moved[i], outs[i]) for i in moving]
    return {
        "test": Graph(inputs, inline(test, [*values, *rest]), f"jvp_{test.name}"),
        "body": Graph(inputs, [*outs, *results], f"jvp_{body.name}"),
        "carried": carried + len(moving),
    }


def _parts(inputs: Nodes, params: Any) -> tuple[Nodes, Nodes, Nodes]:
    """Return the carried values, the fixed operands and the cotangents."""
    carried, count = params["carried"], len(params["body"].inputs)
    return inputs[:carried], inputs[carried:count], inputs[count:]


def _infer(
    *types: Type, test: Graph, body: Graph, backward: Graph, carried: int, smooth: Any, free: Any, keep: str
) -> Any:
    if not 0 <= carried == len(body.outputs) <= len(body.inputs):
        raise TypeError(f"while_grad: {body.name} gives {len(body.outputs)} values, not the {carried} that are carried")
    operands, cts = types[: len(body.inputs)], types[len(body.inputs) :]
    wanted = (*body.input_types, *[body.input_types[i] for i in smooth])
    if types != wanted:
        raise TypeError(f"while_grad: the operands must be {wanted}, not {types}")
    if backward.input_types != types or keep not in ("all", "root"):
        raise TypeError(
            f"while_grad: {backward.name} takes {backward.input_types}, not {types}, or keep is wrong: {keep!r}"
        )
    return (*cts, *[operands[carried + i] for i in free])


def _reference(
    *arrays: Any, test: Graph, body: Graph, backward: Graph, carried: int, smooth: Any, free: Any, keep: str
) -> Any:
    run = SERVICES.evaluate
    values, fixed, cts = arrays[:carried], arrays[carried : len(body.inputs)], arrays[len(body.inputs) :]
    tape = []
    while bool(run(test, (*values, *fixed))[0]):
        tape.append(values)
        values = run(body, (*values, *fixed))
    sums = [np.zeros_like(fixed[i]) for i in free]
    for state in reversed(tape):
        found = run(backward, (*state, *fixed, *cts))
        cts = found[: len(smooth)]
        sums = [np.asarray(s + g, s.dtype) for s, g in zip(sums, found[len(smooth) :])]
    return (*cts, *sums)


def _with_tangents(inputs: Nodes, params: Any, start: Nodes, drift: Nodes) -> tuple[dict[str, Any], list[Node]]:
    """Return the parameters and operands of the loop that carries tangents.

    `start` are the tangents of the values `smooth`, `drift` those of the operands `free`.
    """
    values, fixed, _ = _parts(inputs, params)
    carried = params["carried"]
    loop = tangent_loop(
        params["test"], params["body"], carried, params["smooth"], [carried + i for i in params["free"]]
    )
    return loop, [*values, *start, *fixed, *drift]


def _integers_with_tangents(inputs: Nodes, params: Any) -> frozenset[int]:
    """Return the positions of integers, and of their tangents, among the operands of the loop that
    carries tangents.
    """
    values, fixed, _ = _parts(inputs, params)
    smooth, first = params["smooth"], len(values) + len(params["smooth"])
    found = [(i, len(values) + k) for k, i in enumerate(smooth) if not values[i].dtype.is_inexact]
    found += [
        (first + i, first + len(fixed) + k) for k, i in enumerate(params["free"]) if not fixed[i].dtype.is_inexact
    ]
    return frozenset([p for pair in found for p in pair])


def _vjp(ct: Sequence[Node | None], out: Any, *inputs: Node, **params: Any) -> tuple[Node | None, ...]:
    from mycel._src.compiler.prims.control_flow.control import while_loop

    values, fixed, cts = _parts(inputs, params)
    smooth, free, carried = params["smooth"], params["free"], params["carried"]
    likes = [*[values[i] for i in smooth], *[fixed[i] for i in free]]
    given = [S.zeros_like(like) if c is None else c for like, c in zip(likes, ct)]
    start, drift = given[: len(smooth)], given[len(smooth) :]
    loop, operands = _with_tangents(inputs, params, start, drift)
    ended = while_loop.node(*operands, **loop)
    zeros = [S.zeros_like(values[i]) for i in smooth]
    whole = _integers_with_tangents(inputs, params)
    places, found = _gradient(
        loop["test"], loop["body"], loop["carried"], operands, [*zeros, *cts], whole, params["keep"]
    )
    by_place = dict(zip(places, found))
    moved = len(smooth)
    result = [by_place.get(i) for i in range(carried)]
    result += [by_place.get(carried + moved + i) for i in range(len(fixed))]
    return (*result, *[get_item(ended, carried + i) for i in range(moved)])


def push_while_grad(node: Node, tangents: Sequence[Node | None]) -> tuple[list[Node], list[Node | None]]:
    """Return the outputs of `while_grad` and their tangents, computed by one loop."""
    params = node.params
    values, fixed, cts = _parts(node.inputs, params)
    smooth, free, carried = params["smooth"], params["free"], params["carried"]
    moved = [S.zeros_like(n) if t is None else t for n, t in zip(node.inputs, tangents) if n.dtype.is_differentiable]
    by_input = dict(zip([i for i, n in enumerate(node.inputs) if n.dtype.is_differentiable], moved))
    start, drift = [by_input[i] for i in smooth], [by_input[carried + i] for i in free]
    ends = [by_input[carried + len(fixed) + i] for i in range(len(cts))]
    loop, operands = _with_tangents(node.inputs, params, start, drift)
    whole = _integers_with_tangents(node.inputs, params)
    places, found = _gradient(
        loop["test"], loop["body"], loop["carried"], operands, [*ends, *cts], whole, params["keep"]
    )
    by_place = dict(zip(places, found))
    first, second = carried + len(smooth), carried + len(smooth) + len(fixed)

    def at(place: int, like: Node) -> Node:
        return by_place[place] if place in by_place else S.zeros_like(like)

    likes = [values[i] for i in smooth]
    primal = [at(carried + k, like) for k, like in enumerate(likes)]
    primal += [at(second + k, fixed[i]) for k, i in enumerate(free)]
    tangent = [at(i, like) for i, like in zip(smooth, likes)] + [at(first + i, fixed[i]) for i in free]
    return primal, list(tangent)


def _expand(*inputs: Node, **params: Any) -> tuple[Node, ...]:
    values, fixed, cts = _parts(inputs, params)
    body = params["body"]
    count, stride, tape = _record(values, fixed, params["test"], body)
    start = [*cts, *[S.zeros_like(fixed[i]) for i in params["free"]]]
    return tuple(_sweep(count, stride, tape, start, len(cts), fixed, body, params["backward"]))


def _sample() -> dict[str, Any]:
    i, x, a = (
        input_node(tensor_type((), int64), "i"),
        input_node(tensor_type((3,), float64), "x"),
        input_node(tensor_type((3,), float64), "a"),
    )
    test = Graph((i, x, a), (E.lt(i, 4),), "test")
    u = input_node(tensor_type((3,), float64), "u")
    slope = E.mul(u, E.mul(a, E.cos(x)))
    body = Graph((i, x, a), (E.add(i, 1), E.mul(a, E.sin(x))), "body")
    backward = Graph((i, x, a, u), (slope, E.mul(u, E.sin(x))), "backward")
    return {
        "test": test,
        "body": body,
        "backward": backward,
        "carried": 2,
        "smooth": (1,),
        "free": (0,),
        "keep": "all",
    }


while_grad: Primitive = register(
    Primitive(
        "while_grad",
        _infer,
        _reference,
        _vjp,
        expand=_expand,
        samples=(
            Sample((np.array(0), (3,), (3,), (3,)), _sample(), dtypes=("*", "float64", "float64", "float64")),
            Sample((np.array(9), (3,), (3,), (3,)), _sample(), dtypes=("*", "float64", "float64", "float64")),
        ),
        dtypes=("int64",),
        doc="The cotangents of a loop's values and fixed operands, from those of its final values.",
    )
)


def _loop(state: Sequence[Node], fixed: Sequence[Node], test: Any, step: Any) -> tuple[Node, ...]:
    """Return a `while_loop` whose test and step are functions of nodes."""
    from mycel._src.compiler.prims.control_flow.control import while_loop

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
    """Return a `cond` whose branches are functions of nodes."""
    from mycel._src.compiler.prims.control_flow.control import cond

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
    return I.scatter_nd(entries, S.reshape(slot, (1, 1)), update, mode="set", bounds="drop")


def _get(entries: Node, slot: Node, like: Node) -> Node:
    value = I.take(entries, slot, axis=0, bounds="drop")
    return E.ne(value, 0) if like.dtype is bool_ else value


def _thinned(entries: Node) -> Node:
    """Return the tape with every second entry, moved to its first half."""
    kept = S.slice_axis(entries, 0, 0, SLOTS, 2)
    return S.concat([kept, kept], 0)


def _record(values: Sequence[Node], fixed: Sequence[Node], test: Graph, body: Graph) -> tuple[Node, Node, list[Node]]:
    """Return the number of iterations, the stride, and the tape."""
    from mycel._src.compiler.prims.control_flow.control import inline

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
    count: Node,
    stride: Node,
    tape: Sequence[Node],
    start: Sequence[Node],
    states: int,
    fixed: Sequence[Node],
    body: Graph,
    backward: Graph,
) -> Sequence[Node]:
    """Return the cotangents before the first iteration, given those after the last.

    The first `states` of them belong to the state.
    """
    from mycel._src.compiler.prims.control_flow.control import inline

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
