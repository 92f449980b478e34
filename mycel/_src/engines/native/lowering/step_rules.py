"""Lowering rules of primitives with special steps, which take no part in fusion."""

from __future__ import annotations

from collections.abc import Callable

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.linear_algebra.decompositions import cholesky, lu, triangular_solve
from mycel._src.compiler.prims.neural.attention import attention
from mycel._src.engines.native.operations.attention.attention_rules import ATTENTION
from mycel._src.engines.native.operations.concat_pad_steps import concat_step, pad_step
from mycel._src.engines.native.operations.control_flow.control_flow_steps import call_step, cond_step, while_step
from mycel._src.engines.native.operations.control_flow.loop_gradient_steps import while_grad_step
from mycel._src.engines.native.operations.ctc_steps import ctc_grad_step, ctc_step
from mycel._src.engines.native.operations.grid_sampling_steps import sample_add_step, sample_slopes_step, sample_step
from mycel._src.engines.native.operations.recurrent_steps import recurrence_grad_step, recurrence_step
from mycel._src.engines.native.operations.scan_steps import SCANS, scan_step
from mycel._src.engines.native.operations.scatter_steps import put_along_step, scatter_nd_step, take_add_step
from mycel._src.engines.native.operations.sorting_steps import search_step, sort_step, top_step
from mycel._src.engines.native.operations.window_scatter_steps import window_scatter_step
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["STEP_RULES"]


def _operator_step(steps: StepBuilder, node: Node) -> None:
    # Loaded when first asked for, as most programs have no operators of their own.
    from mycel._src.engines.native.operations.custom_operators.custom_operator_steps import operator_step

    operator_step(steps, node)


def _attention_step(steps: StepBuilder, node: Node) -> None:
    from mycel._src.engines.native.operations.attention.attention_steps import attention_grad_step, attention_step

    (attention_step if node.prim is attention else attention_grad_step)(steps, node)


def _fourier_step(steps: StepBuilder, node: Node) -> None:
    from mycel._src.engines.native.operations.fourier.fourier_steps import fourier_step

    fourier_step(steps, node)


def _byte_step(steps: StepBuilder, node: Node) -> None:
    from mycel._src.engines.native.operations.microcontroller.microcontroller_steps import byte_step

    byte_step(steps, node)


def _matrix_step(steps: StepBuilder, node: Node) -> None:
    from mycel._src.engines.native.operations import decomposition_steps as d

    rule = d.lu_step if node.prim is lu else d.cholesky_step if node.prim is cholesky else d.solve_step
    rule(steps, node)


STEP_RULES: dict[str, Callable[[StepBuilder, Node], None]] = {
    "concat": concat_step,
    "rescaled_conv": _byte_step,
    "rescaled_pool": _byte_step,
    "rescaled_sum": _byte_step,
    "pad": pad_step,
    "take_add": take_add_step,
    "put_along": put_along_step,
    "scatter_nd": scatter_nd_step,
    "window_scatter": window_scatter_step,
    "sort": sort_step,
    "top_k": top_step,
    "search_sorted": search_step,
    **{prim.name: scan_step for prim in SCANS},
    "cond": cond_step,
    "while_loop": while_step,
    "while_grad": while_grad_step,
    "recurrence": recurrence_step,
    "recurrence_grad": recurrence_grad_step,
    "ctc": ctc_step,
    "ctc_grad": ctc_grad_step,
    "sample": sample_step,
    "sample_add": sample_add_step,
    "sample_slopes": sample_slopes_step,
    "loops": _operator_step,
    "fourier_parts": _fourier_step,
    **{prim.name: _matrix_step for prim in (lu, cholesky, triangular_solve)},
    **{prim.name: _attention_step for prim in ATTENTION},
    "recursion": call_step,
    "recur": call_step,
}
