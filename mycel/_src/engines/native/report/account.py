"""The account of a program's steps: fused operations, bytes, operations, and reasons for stores.

Nothing is compiled or run: the graph is lowered as for a program, and the account lists the
decisions of the lowering. For each value that a step writes the reason is one of these: it is a
result; the dense library, control flow or a host step reads it, which can only read memory; another
kernel reads it, which could not be fused with this one; it is small, a row's statistic, from which
others compute larger values again. Values that several kernels recompute, which moves fewer bytes
than writing them (`recompute.py`), are listed with those kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.native.kernels.codegen import Kernel, generate
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.llvm.jit import machine
from mycel._src.engines.native.lowering.fusion import Fusion
from mycel._src.engines.native.lowering.lower import lower_explained
from mycel._src.engines.native.program import arena as memory
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.native.program.liveness import Liveness
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.native.report.costs import cost
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.engines.native.steps.step_types import Batch, Step
from mycel._src.engines.native.steps.view_rules import root_of
from mycel._src.engines.reports import Account, StepAccount, joined

__all__ = ["account"]


def account(graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
    """Return the account of the program of a graph of static types."""
    opened = prepared(graph)
    aliases = dict(aliases or {})
    steps, fusion = lower_explained(opened, aliases)
    template = Template.__new__(Template)
    template.arrange(opened, aliases, steps.lowered)
    reasons = _Reasons(steps, fusion, template)
    return Account(graph.name, [reasons.of(k, step) for k, step in enumerate(template.steps, 1)])


class _Reasons:
    """The readers of each buffer, and the node whose value it holds."""

    def __init__(self, steps: StepBuilder, fusion: Fusion, template: Template) -> None:
        self.fusion, self.template = fusion, template
        self.readers: dict[int, list[Step]] = {}
        for step in template.steps:
            for b in step.reads:
                self.readers.setdefault(id(b), []).append(step)
        self.values: dict[int, tuple[Node, View]] = {}
        for node, view in steps.views.items():
            known = self.values.get(id(view.buffer))
            # The value itself rather than a view of it.
            if node.prim is not None and (known is None or root_of(known[0]) is not known[0]):
                self.values[id(view.buffer)] = node, view
        self.results = {id(v.buffer) for v in template.lowered.outputs}
        calls = template.plans(hint)
        live = Liveness(template.steps, calls, template.takes)
        _, members = memory.joined(live.lives(hint), live.taking)
        self.over = {b for first, *rest in members.values() for b in rest}
        for j, i in template.aliases.items():
            output, source = template.lowered.outputs[j].buffer, template.lowered.inputs[i]
            if output.place == ("output", j) and any(source in s.reads and output in s.writes for s in template.steps):
                self.over.add(id(output))

    def of(self, number: int, step: Step) -> StepAccount:
        """Return the account of one step."""
        node = step.node
        operations = tuple(m.op for m in step.members if m.prim is not None)
        if not operations:
            name = step.data.name if isinstance(step.data, Nest) else ""
            operations = (node.op,) if node is not None and node.prim is not None else (name,) if name else ()
        where = node.where if node is not None else None
        stores = tuple(self.store(step, b) for b in step.writes)
        listing = step.data.listing if isinstance(step.data, Kernel) else ()
        code = functools.partial(_code, step.data) if isinstance(step.data, (Nest, Kernel, Batch)) else None
        again = self.again(step)
        return StepAccount(number, step.kind, operations, cost(step), _loops(step), stores, again, where, listing, code)

    def store(self, step: Step, buffer: Buffer) -> tuple[str, str, str, bool]:
        """Return a buffer that a step writes as (operation, type with layout, reason, overwrites).

        The last item says whether it overwrites an operand.
        """
        node, view = self.values.get(id(buffer), (None, None))
        name = buffer.name if node is None or node.prim is None else node.op
        kind = str(buffer.dtype.name)
        if view is not None:
            kind += (
                f"[{', '.join(map(str, view.shape))}]{'' if view.is_row_major() else f' strides {tuple(view.strides)}'}"
            )
        over = id(buffer) in self.over
        return name, kind, self.why(step, buffer), over

    def why(self, step: Step, buffer: Buffer) -> str:
        """Return the reason why a value is stored in memory."""
        readers = [r for r in self.readers.get(id(buffer), ()) if r is not step]
        kinds = {r.kind for r in readers}
        if id(buffer) in self.results:
            return "a result"
        if "dense" in kinds:
            named = sorted({r.node.op for r in readers if r.kind == "dense" and r.node is not None and r.node.prim})
            return f"{joined(named)} of the dense library reads it"
        for kind, who in (
            ("host", "a host step"),
            ("cond", "a branch"),
            ("while", "a loop"),
            ("call", "a recursion"),
            ("tape", "a tape"),
        ):
            if kind in kinds:
                return f"{who} reads it"
        if not readers:
            return "nothing reads it"
        if step.kind != "kernel":
            return f"{_count(len(readers), 'kernel')} {'reads' if len(readers) == 1 else 'read'} it"
        return (
            f"{_count(len(readers), 'kernel')} with other loops or behind other reductions "
            f"{'reads' if len(readers) == 1 else 'read'} it"
        )

    def again(self, step: Step) -> tuple[str, ...]:
        """Return the values that a kernel recomputes, as they belong to another kernel."""
        members = set(step.members)
        found: dict[Node, None] = {}
        pending = list(step.members)
        seen = set(pending)
        while pending:
            for i in pending.pop().inputs:
                root = root_of(i)
                if root not in seen and root in self.fusion.again:
                    seen.add(root)
                    pending.append(root)
                    if root not in members:
                        found[root] = None
        return tuple(n.op for n in found if n.prim is not None)


def _loops(step: Step) -> str:
    """Return the loops of a kernel as text, outermost first, with marks on those that reduce."""
    if not isinstance(step.data, Nest):
        return ""
    return "loops " + " x ".join(f"{loop.extent}{' reducing' if loop.kind == 'r' else ''}" for loop in step.data.loops)


def _code(data: Nest | Kernel | Batch, assembly: bool) -> str:
    """Return the code of a kernel, or of those that run at once: LLVM's, or the processor's."""
    if isinstance(data, Batch):
        members = [m.data for m in data.members if isinstance(m.data, (Nest, Kernel, Batch))]
        return "\n".join([_code(m, assembly) for m in members])
    text = (generate(data) if isinstance(data, Nest) else data).text
    return machine().assembly(text) if assembly else text


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"
