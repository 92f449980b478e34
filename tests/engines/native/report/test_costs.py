"""Bytes and operations of steps, against what their definitions say."""

from __future__ import annotations

from typing import Any

import pytest

import mycel as ms
from mycel import ops
from mycel._src.compiler.ir.graph import Graph, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import conv as conv_prims
from mycel._src.engines.native.program.compiling import compile_native
from mycel._src.engines.native.report.costs import Cost, cost, operations, plan_costs, total


def steps_of(fn: Any, *arguments: Any) -> list[Any]:
    """The steps of a compiled function's program."""
    version = ms.jit(fn).compile(*arguments)
    assert version is not None
    return compile_native(version.graph).all_steps


def zeros(*shape: int, dtype: Any = ms.float32) -> ms.Tensor:
    return ms.Tensor(shape=shape, dtype=dtype, init=ms.common.initializer.Zero())


def test_an_addition_reads_both_operands_and_writes_the_sum() -> None:
    (step,) = steps_of(lambda x, y: x + y, zeros(100, 7), zeros(100, 7))
    assert cost(step) == Cost(2 * 4 * 700, 4 * 700, 700)


def test_a_broadcast_operand_is_read_once() -> None:
    (step,) = steps_of(lambda x, y: x * y, zeros(100, 7), zeros(7))
    assert cost(step) == Cost(4 * 700 + 4 * 7, 4 * 700, 700)


def test_whole_numbers_and_comparisons_are_no_floating_point_operations() -> None:
    (step,) = steps_of(lambda x: x + x, zeros(10, dtype=ms.int32))
    assert cost(step) == Cost(40, 40, 0)
    (step,) = steps_of(lambda x, y: x < y, zeros(10), zeros(10))
    assert cost(step) == Cost(80, 10, 0)


def test_a_fused_chain_writes_only_its_end() -> None:
    (step,) = steps_of(lambda x: ops.relu(x * 2.0 + 1.0), zeros(1000))
    assert cost(step).read == 4000 and cost(step).written == 4000
    assert cost(step).flops == 2000


def test_a_sum_takes_in_each_value_once() -> None:
    costs = [cost(s) for s in steps_of(lambda x: x.sum(axis=1), zeros(20, 30))]
    assert sum(c.flops for c in costs) == 600
    assert costs[0].read == 4 * 600 and costs[-1].written == 4 * 20


def test_a_slice_reads_what_it_shows() -> None:
    (step,) = steps_of(lambda x: x[:, ::2] + 1.0, zeros(8, 100))
    assert cost(step) == Cost(4 * 8 * 50, 4 * 8 * 50, 400)


def test_shifted_reads_of_one_buffer_are_counted_together() -> None:
    (step,) = steps_of(lambda x: x[1:] - x[:-1], zeros(101))
    assert cost(step) == Cost(4 * 101, 4 * 100, 100)


def test_a_gather_reads_as_many_rows_as_there_are_indices() -> None:
    steps = steps_of(lambda x, i: ops.gather(x, i, 0), zeros(1000, 16), zeros(5, dtype=ms.int32))
    assert cost(steps[-1]).written == 4 * 5 * 16
    assert total(steps).read == 4 * 5 * 16 + 4 * 5


def test_a_product_is_two_operations_for_each_pair() -> None:
    steps = [s for s in steps_of(ops.matmul, zeros(30, 40), zeros(40, 50)) if s.kind == "dense"]
    assert cost(steps[0]) == Cost(4 * (30 * 40 + 40 * 50), 4 * 30 * 50, 2 * 30 * 40 * 50)


def test_a_convolution_meets_each_weight_at_each_position() -> None:
    x, w = (input_node(tensor_type(s, ms.float32)) for s in ((2, 3, 10, 10), (8, 3, 3, 3)))
    out = conv_prims.conv(x, w, strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1)
    program = compile_native(Graph([x, w], [out]))
    (step,) = [s for s in program.all_steps if s.kind == "dense"]
    assert cost(step).flops == 2 * 2 * 8 * 8 * 8 * 3 * 3 * 3
    plan, _ = program.calls[id(step)]
    parts = plan_costs(step.data, plan)
    assert len(parts) == len(plan.calls) and sum(p.flops for p in parts) == cost(step).flops


def test_sizes_can_be_given() -> None:
    x, y = (input_node(tensor_type(s, ms.float32)) for s in ((4, 6), (6, 5)))
    program = compile_native(Graph([x, y], [matrix_product.matmul(S.transpose(S.transpose(x, (1, 0)), (1, 0)), y)]))
    assert total(program.all_steps, program.number).flops == 2 * 4 * 6 * 5


def test_a_branch_is_its_longer_side_and_a_loop_one_round() -> None:
    def branch(x: Any) -> Any:
        return x * 2.0 + ops.exp(x) if x.sum() > 0 else x

    def loop(x: Any) -> Any:
        while x.sum() < 100:
            x = x * 2.0
        return x

    for fn, kind in ((branch, "cond"), (loop, "while")):
        (step,) = [s for s in steps_of(fn, zeros(50)) if s.kind == kind]
        sides = [total(step.data.first), total(step.data.second)]
        expected = sides[0] + sides[1] if kind == "while" else max(sides, key=lambda c: (c.bytes, c.flops))
        assert cost(step) == expected and cost(step).bytes > 200


@pytest.mark.parametrize("name,count", [("add", 1), ("maximum", 1), ("neg", 0), ("lt", 0), ("sqrt", 1), ("rsqrt", 2)])
def test_scalar_operations(name: str, count: int) -> None:
    types = [ms.float32] * (1 if name in ("neg", "sqrt", "rsqrt") else 2)
    assert operations(name, ms.float32, types) == count
