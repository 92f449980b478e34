"""Compilation of a graph to a program, or loading of one from the cache."""

from __future__ import annotations

from collections.abc import Mapping

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.attention_fusion import with_attention
from mycel._src.compiler.transforms.complex_pairs import complex_pairs
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.optimisation.split_reductions import split_reductions
from mycel._src.compiler.transforms.quantise.integer_training import without_stand_ins
from mycel._src.compiler.transforms.quantise.requantisation_fusion import with_rescaled
from mycel._src.compiler.transforms.specialize import inner_sizes
from mycel._src.engines.native.lowering.expand import expand
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.onednn.binding import Unsupported
from mycel._src.engines.native.operations.microcontroller.int8_instructions import byte_machine
from mycel._src.engines.native.program import program_cache
from mycel._src.engines.native.program.program import Program, template_of
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime import garbage_collection

__all__ = ["compile_native", "host_steps", "prepared"]

USUAL = 8


def compile_native(graph: Graph, aliases: Mapping[int, int] | None = None) -> Program:
    """Return the program of a graph, from the cache if it was compiled before.

    `aliases` maps outputs to the inputs into whose memory they are written.
    """
    aliases = dict(aliases or {})
    with garbage_collection.left_alone():
        key = program_cache.key_of(graph, aliases)
        if key is not None:
            template = program_cache.load(key, graph, aliases)
            if template is not None:
                try:
                    return Program(template)
                except Unsupported as refusal:
                    logger.info("the kept program of %s is made anew: %s", graph.name, refusal)
        template = template_of(prepared(graph), aliases)
        if key is None:
            return Program(template)
        # Threads compile the kernels meanwhile.
        written = program_cache.written(graph, template)
        template.objects = {}
        program = Program(template)
        if written is not None:
            program_cache.save(key, written, template)
        template.objects = None
        return program


def host_steps(graph: Graph) -> list[tuple[Node, str]]:
    """Return the nodes that a graph's program runs in the reference engine, with the reasons.

    Unknown sizes are taken to be `USUAL`.
    """
    sizes = {name: max(USUAL, int(atom.low)) for name, atom in symbols_in(*inner_sizes(graph)).items()}
    with deciding(Decisions(sizes)):
        return lower(prepared(graph)).fallbacks


def prepared(graph: Graph, averages: bool = True) -> Graph:
    """Return the graph as it is lowered: expanded to nodes that have code, and optimized.

    `averages` says whether those of bytes are one node each, where there is a kernel for them.
    """
    if byte_machine():
        graph = with_rescaled(without_stand_ins(graph), averages)
    opened = complex_pairs(expand(with_attention(graph)))
    if len(opened.nodes) > 1 or any(node.prim is matmul for node in opened.nodes):
        return optimize(opened)
    return split_reductions(opened)
