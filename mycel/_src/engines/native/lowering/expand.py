"""Expansion of the primitives that the native engine has no code for, and inlining of calls."""

from __future__ import annotations

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.compiler.prims.fourier import fourier_from_half, fourier_half
from mycel._src.compiler.prims.indexing.index import checked
from mycel._src.compiler.prims.neural.quantisation import int_conv
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_conv, rescaled_pool, rescaled_sum
from mycel._src.compiler.prims.shape import SIZE, iota
from mycel._src.compiler.transforms.expansion import by_definition, opened
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.lowering.step_rules import STEP_RULES
from mycel._src.engines.native.operations.attention.attention_rules import ATTENTION, has_kernel, widened_attention
from mycel._src.engines.native.operations.convolution_index_maps import has_conv_nest
from mycel._src.engines.native.operations.dense_rules import is_dense
from mycel._src.engines.native.operations.dense_widening import is_native, widened
from mycel._src.engines.native.operations.fusion_rules import FULL_RULES, GROUP_RULES
from mycel._src.engines.native.operations.microcontroller.microcontroller_rules import has_byte_kernel
from mycel._src.engines.native.operations.requantisation.requantisation_rules import is_rescaled
from mycel._src.engines.native.steps.view_rules import VIEWS

__all__ = ["expand", "is_claimed"]

# Transforms of real numbers are opened as such with the complex ones, in `complex_pairs`.
_OTHERS = (CONSTANT, iota, GET_ITEM, checked, fourier_half, fourier_from_half)


def is_claimed(node: Node) -> bool:
    """Return whether the native engine has code for a node."""
    name, prim = node.op, node.prim
    if prim in (conv, conv_grad_input, conv_grad_weight):
        return is_dense(node) or has_conv_nest(node)
    if prim is int_conv:
        return has_conv_nest(node)
    if prim in (rescaled_conv, rescaled_pool, rescaled_sum):
        return has_byte_kernel(node)
    if prim in ATTENTION:
        return has_kernel(node)
    if prim is SIZE:
        return isinstance(node.params["dim"], Dim)
    return (
        prim in _OTHERS
        or instruction_emitter.is_cast(node)
        or name in VIEWS
        or name in FULL_RULES
        or name in GROUP_RULES
        or name in STEP_RULES
        or instruction_emitter.is_supported(name)
        or is_rescaled(node)
    )


def expand(graph: Graph) -> Graph:
    """Return the graph with each unclaimed primitive replaced by its definition, if it has one."""
    return opened(graph, _opening)


def _opening(node: Node, inputs: tuple[Node, ...]) -> tuple[Node, ...] | None:
    if is_dense(node) and not is_native(node.dtype):
        return (widened(node, inputs),)
    if node.prim in ATTENTION and node.inputs[0].dtype.itemsize == 2:
        return opened(Graph(inputs, widened_attention(node, inputs)), _opening).outputs
    return None if is_claimed(node) and not (node.prim and node.prim.opens) else by_definition(node, inputs, _opening)
