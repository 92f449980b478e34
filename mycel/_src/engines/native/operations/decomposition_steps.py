"""Lowering of decompositions and solves of small matrices (`operations.decomposition_kernel`).

Matrices of more than `MOST` rows or columns are left to LAPACK, which blocks its loops.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.operations.decomposition_kernel import MOST, cholesky_text, lu_text, solve_text
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views, result_types

__all__ = ["cholesky_step", "lu_step", "solve_step"]

# What an element that is eliminated costs, and one that is moved, in elements of a plain kernel.
ELIMINATED, MOVED = 4, 4


def lu_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of LU."""
    rows, columns = node.inputs[0].type.shape[-2:]
    least = node.type[1].shape[-1]
    _run(steps, node, (rows, columns, least), lu_text(node.inputs[0].dtype), rows * columns * least)


def cholesky_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of Cholesky's decomposition."""
    rows = node.type.shape[-1]
    _run(steps, node, (rows,), cholesky_text(node.dtype), rows * rows * rows)


def solve_step(steps: StepBuilder, node: Node) -> None:
    """Add the steps of triangular systems."""
    rows, sides = node.type.shape[-2:]
    p = node.params
    text = solve_text(node.dtype, p["lower"], p["trans"] != "N", p["unit"])
    _run(steps, node, (rows, sides), text, rows * rows * sides)


def _run(steps: StepBuilder, node: Node, sizes: tuple[DimLike, ...], text: str, eliminated: DimLike) -> None:
    """Add the kernel of `text` over matrices of these sizes, of which the first are theirs."""
    matrix = node.inputs[0].type
    empty = any(not t.size for t in result_types(node)) or not matrix.size
    if empty or any(d > MOST for d in matrix.shape[-2:]) or any(i.dtype is not matrix.dtype for i in node.inputs):
        steps.host(node, "no native code for large matrices")
        return
    places = [steps.contiguous(steps.view(i)) for i in node.inputs]
    results = new_views(result_types(node), node.op)
    every: list[View] = [*places, *results]
    words: list[Word] = [*[("int", d) for d in sizes], *[("pointer", v.buffer) for v in every]]
    count = product(matrix.shape[:-2])
    work = count * (eliminated // ELIMINATED + product(matrix.shape[-2:]) * MOVED)
    kernel = Kernel(text, words, count, work)
    steps.step(kernel, [v.buffer for v in places], [v.buffer for v in results], node)
    steps.bind(node, results)
