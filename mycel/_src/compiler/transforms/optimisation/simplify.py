"""Simplification by local rules, applied to every node after its inputs.

`rules` says what they may change in a result; `arithmetic_rules`, `movement_rules`,
`reduction_rules` and `scatter_rules` have the rules.
"""

from __future__ import annotations

from mycel._src.compiler.ir.graph import Graph, Node, at, set_where
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, use_counts
from mycel._src.compiler.transforms.optimisation import arithmetic_rules, movement_rules, reduction_rules, scatter_rules
from mycel._src.compiler.transforms.optimisation.rewrite_rules import RULES, Context

__all__ = ["FAMILIES", "simplify", "simplify_counted"]

FAMILIES = (arithmetic_rules, movement_rules, reduction_rules, scatter_rules)


def simplify(graph: Graph) -> Graph:
    """Return `graph` after the rewrite rules; the graph itself where none applies.

    All types stay exactly as they are.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> simplify(Graph([x], [E.neg(E.neg(x)) * 1.0 + 0.0])).outputs[0] is x
    True
    """
    return simplify_counted(graph)[0]


def simplify_counted(graph: Graph) -> tuple[Graph, int]:
    """Return the result of `simplify`, and how many rules were applied."""
    contexts: list[Context] = []

    def start(inner: Graph) -> Visit:
        context = Context(use_counts(inner))
        contexts.append(context)
        uses, simplified = context.uses, context.simplify

        def visit(old: Node, new: Node) -> Node:
            prim = new.prim
            assert prim is not None
            if prim not in RULES and not prim.elementwise:
                made = new
            else:
                set_where(old.where)
                made = simplified(new)
            if made is not old:
                uses[made] = uses.get(made, 0) + uses[old]
            return made

        return visit

    with at(None):
        result = rewrite(graph, start)
    return result, sum(c.applications for c in contexts)
