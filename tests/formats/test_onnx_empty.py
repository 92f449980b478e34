"""ONNX's loops, scans and branches without rounds and over nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel.formats import onnx as ours

onnx = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT, INT64, BOOL = 1, 7, 9
SHAPES: tuple[tuple[int, ...], ...] = ((), (2,), (0,), (2, 0))


def info(name: str, kind: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def declared(shape: tuple[int, ...], how: str) -> Any:
    return {"all": list(shape), "names": [f"n{k}" for k in range(len(shape))], "nothing": None}[how]


def loaded(nodes: Any, inputs: Any, outputs: Any) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return ours.loads(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def same(found: Any, wanted: Any) -> None:
    found = found if isinstance(found, (tuple, list)) else (found,)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a.shape, a.asnumpy().dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a.asnumpy(), b)


@pytest.mark.parametrize("how", ["all", "names", "nothing"])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops(shape: tuple[int, ...], how: str) -> None:
    """Counts and first conditions, with up to two collections, at once and compiled."""
    for collected, has_count, has_condition in itertools.product(range(3), (True, False), (True, False)):
        # The condition stays true for two rounds at most.
        body = helper.make_graph(
            [
                helper.make_node("Constant", [], ["one"], value=onnx.numpy_helper.from_array(np.array(1, np.int64))),
                node("Less", "i one", "on"),
                node("Add", "s x", "s2"),
                *[node(op, "s2", f"v{k}") for k, op in enumerate(("Neg", "IsNaN")[:collected])],
            ],
            "body",
            [info("i", INT64, []), info("c", BOOL, []), info("s", FLOAT, declared(shape, how))],
            [info("on", BOOL, []), info("s2", FLOAT, declared(shape, how))]
            + [info(f"v{k}", kind, declared(shape, how)) for k, kind in enumerate((FLOAT, BOOL)[:collected])],
        )
        loop = helper.make_node(
            "Loop",
            ["n" * has_count, "go" * has_condition, "s0"],
            ["y", *[f"all{k}" for k in range(collected)]],
            body=body,
        )
        net = loaded(
            [loop],
            [info("n", INT64, [])] * has_count
            + [info("go", BOOL, [])] * has_condition
            + [info("x", FLOAT, list(shape)), info("s0", FLOAT, list(shape))],
            [
                info("y", FLOAT, None),
                *[info(f"all{k}", kind, None) for k, kind in enumerate((FLOAT, BOOL)[:collected])],
            ],
        )
        x, start = np.full(shape, 2, np.float32), np.ones(shape, np.float32)
        for count, go in itertools.product(
            (0, 1, 5) if has_count else (None,), (True, False) if has_condition else (None,)
        ):
            rounds = 0 if go is False else min(2, 2 if count is None else count)
            state = [start + (k + 1) * x for k in range(rounds)]
            kept = np.array(state, np.float32).reshape(rounds, *shape)
            wanted = [state[-1] if rounds else start, -kept, np.isnan(kept)][: 1 + collected]
            given = [ms.Tensor(np.array(v)) for v in (count, go) if v is not None] + [ms.Tensor(x), ms.Tensor(start)]
            same(net(*given), wanted)
            if how == "all" and shape == (2,) and has_count != has_condition:
                same(ms.jit(lambda *a, net=net: net(*a))(*given), wanted)


@pytest.mark.parametrize("how", ["all", "names", "nothing"])
@pytest.mark.parametrize("shape", SHAPES)
def test_scans(shape: tuple[int, ...], how: str) -> None:
    """Numbers of entries, axes and directions."""
    body = helper.make_graph(
        [node("Add", "s a", "s2"), node("Identity", "s2", "v"), node("IsNaN", "a", "w")],
        "body",
        [info("s", FLOAT, declared(shape, how)), info("a", FLOAT, declared(shape, how))],
        [
            info("s2", FLOAT, declared(shape, how)),
            info("v", FLOAT, declared(shape, how)),
            info("w", BOOL, declared(shape, how)),
        ],
    )
    for axis, out, back, length in itertools.product(range(len(shape) + 1), range(len(shape) + 1), (0, 1), (0, 1, 3)):
        scan = node(
            "Scan",
            "s0 x",
            "y all nan",
            body=body,
            num_scan_inputs=1,
            scan_input_axes=[axis],
            scan_output_axes=[out, out - len(shape) - 1],
            scan_output_directions=[back, back],
        )
        whole = (*shape[:axis], length, *shape[axis:])
        net = loaded(
            [scan],
            [info("s0", FLOAT, list(shape)), info("x", FLOAT, list(whole))],
            [info("y", FLOAT, None), info("all", FLOAT, None), info("nan", BOOL, None)],
        )
        x, state = np.arange(np.prod(whole), dtype=np.float32).reshape(whole), np.ones(shape, np.float32)
        kept = []
        for k in range(length):
            state = state + np.take(x, k, axis)
            kept.append(state)
        entries = np.array(kept, np.float32).reshape(length, *shape)[:: -1 if back else 1]
        wanted = np.moveaxis(entries, 0, out)
        same(
            net(ms.Tensor(np.ones(shape, np.float32)), ms.Tensor(x)), [state, wanted, np.zeros(wanted.shape, np.bool_)]
        )


@pytest.mark.parametrize("shape", SHAPES)
def test_branches(shape: tuple[int, ...]) -> None:
    def branch(operator: str) -> Any:
        return helper.make_graph([node(operator, "x", "z")], operator, [], [info("z", FLOAT, list(shape))])

    choice = node("If", "c", "y", then_branch=branch("Neg"), else_branch=branch("Exp"))
    net = loaded([choice], [info("c", BOOL, []), info("x", FLOAT, list(shape))], [info("y", FLOAT, None)])
    x = np.ones(shape, np.float32)
    for value in (True, False):
        given = ms.Tensor(np.array(value)), ms.Tensor(x)
        for call in (net, ms.jit(lambda *a: net(*a))):
            np.testing.assert_allclose(call(*given).asnumpy(), -x if value else np.exp(x), rtol=1e-6)


def test_a_round_that_cannot_be_is_not_needed_where_the_body_says_its_shape() -> None:
    body = helper.make_graph(
        [node("SequenceAt", "empty i", "v"), node("Identity", "c", "c2"), node("SequenceEmpty", "", "empty2")],
        "body",
        [info("i", INT64, []), info("c", BOOL, [])],
        [info("c2", BOOL, []), info("v", FLOAT, [4])],
    )
    net = loaded(
        [
            node("SequenceEmpty", "", "empty"),
            node("SequenceLength", "empty", "n"),
            helper.make_node("Loop", ["n", ""], ["all"], body=body),
        ],
        [info("x", FLOAT, [1])],
        [info("all", FLOAT, None)],
    )
    assert net(ms.Tensor(np.ones(1, np.float32))).shape == (0, 4)
