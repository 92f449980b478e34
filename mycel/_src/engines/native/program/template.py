"""Templates: the ordered steps of a graph, the places of values, and the code of the kernels.

All programs of a graph share a template: sizes in it may be symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dimension_guards import evaluator
from mycel._src.compiler.ir.dims import Dim, DimLike, is_zero, same
from mycel._src.compiler.ir.graph import Graph
from mycel._src.engines.native.kernels.codegen import NAME, Kernel, generate
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest
from mycel._src.engines.native.kernels.strided_view import View, element_count, row_major
from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.lowering.lower import lower
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.onednn.dense_call import DenseCall, Number
from mycel._src.engines.native.program.checked_kernel_text import text_of
from mycel._src.engines.native.program.exchange_overlap import overlapped
from mycel._src.engines.native.program.kernel_batching import batches, without_shared
from mycel._src.engines.native.program.step_order import schedule
from mycel._src.engines.native.steps.inplace import may_overwrite, possible_overwrites
from mycel._src.engines.native.steps.step_types import Call, Copy, Lowered, Step, flat
from mycel._src.foundation.spans import timed
from mycel._src.foundation.system import locks

__all__ = ["Making", "Template"]

# Addresses of kernels, whose code is kept for ever, by the digests of their texts.
_kernels: dict[bytes, int] = {}
_lock = locks.lock()


class Making:
    """The making of kernels of one template.

    A kernel's text is written as soon as lowering has added its step, and compiled while lowering
    goes on. `objects` has the code of texts that are known without, by their digests.
    """

    def __init__(self, objects: Mapping[bytes, bytes] | None = None) -> None:
        self.objects = dict(objects or {})
        self._modules = jit.Modules()
        # Kernels with the nest that each is of, which keeps the number.
        self._kernels: dict[int, tuple[Nest, Kernel]] = {}

    def begin(self, step: Step) -> Kernel | None:
        """Return the kernel of a step, which is compiled from now on; None for other steps."""
        data = step.data
        if isinstance(data, Nest):
            if id(data) not in self._kernels:
                self._kernels[id(data)] = data, generate(data)
            kernel = self._kernels[id(data)][1]
        elif isinstance(data, Kernel):
            kernel = data
        else:
            return None
        self.compile(kernel)
        return kernel

    def compile(self, kernel: Kernel) -> None:
        """Have a kernel compiled, unless its code is known."""
        if kernel.digest not in _kernels and kernel.digest not in self.objects:
            self._modules.begin(text_of(kernel))

    def addresses(self, kernels: Sequence[Kernel]) -> list[int]:
        """Return the entry points of kernels once all are compiled."""
        for kernel in kernels:
            digest = kernel.digest
            if digest not in _kernels:
                if digest not in self.objects:
                    self.objects[digest] = self._modules.code(text_of(kernel))
                _kernels[digest] = jit.machine().link(self.objects[digest], [NAME], {})[0]
        return [_kernels[k.digest] for k in kernels]

    def close(self) -> None:
        """End the compilation of what is not needed any more."""
        self._modules.close()


class _Uses:
    """The steps that read and write each buffer, by number, and the buffers of results."""

    def __init__(self, steps: Sequence[Step], outputs: Sequence[View]) -> None:
        self.readers: dict[int, list[tuple[int, Step]]] = {}
        self.writers: dict[int, list[tuple[int, Step]]] = {}
        for k, step in enumerate(steps):
            for buffer in step.reads:
                self.readers.setdefault(id(buffer), []).append((k, step))
            for buffer in step.writes:
                self.writers.setdefault(id(buffer), []).append((k, step))
        self.results = {id(view.buffer) for view in outputs}


class Template:
    """The steps and kernels of a graph, with sizes that may be symbolic.

    `lowerings` counts all lowerings of the process. `objects` has the code of kernels, by digest,
    that were new to the process, where it is asked for before they are linked. The template of an
    `inner` function is a part of programs that call it. `aliases` maps outputs to the inputs that
    they replace; `making` makes the kernels, in place of one that compiles them for this machine.
    """

    lowerings = 0
    inner = False

    @timed("lowering", lambda _, graph, *__: graph.name)
    def __init__(
        self, graph: Graph, aliases: dict[int, int], inner: bool = False, making: Making | None = None
    ) -> None:
        Template.lowerings += 1
        self.inner = inner
        self.making: Making | None = Making() if making is None else making
        self.objects: dict[bytes, bytes] | None = None
        try:
            self.arrange(graph, aliases, lower(graph, aliases, self.making.begin))
            self.kernels = [kernel for s in self.all_steps if (kernel := self.making.begin(s)) is not None]
            self.bodies = {
                id(s): Template(s.data.graph, {}, True)
                for s in self.all_steps
                if isinstance(s.data, Call) and s.data.graph
            }
        except BaseException:
            self.making.close()
            raise
        self._dims: dict[Dim, None] = {}
        self._values: Callable[..., tuple[int, ...]] | None = None

    def restored(self, objects: Mapping[bytes, bytes]) -> None:
        """Begin to make the code of the kernels of a template that was read; `objects` is known."""
        self.bodies, self._dims, self._values, self.objects = {}, {}, None, None
        self.making = Making(objects)
        for kernel in self.kernels:
            self.making.compile(kernel)

    def link(self) -> None:
        """Finish the code of the kernels, once.

        `code` has kernel and address by the identity of the step.
        """
        with _lock:
            making = self.making
            if making is None:
                return
            steps = [s for s in self.all_steps if isinstance(s.data, (Nest, Kernel))]
            try:
                self.code = dict(zip(map(id, steps), zip(self.kernels, making.addresses(self.kernels))))
            finally:
                making.close()
            if self.objects is not None:
                self.objects.update(making.objects)
            self.making = None

    def arrange(self, graph: Graph, aliases: dict[int, int], lowered: Lowered | None = None) -> None:
        """Lower the graph, and find the order of the steps and the places of values.

        `lowered` are its steps where they are known. No code is made.
        """
        self.graph, self.aliases = graph, aliases
        self.lowered: Lowered = lowered or lower(graph, aliases)
        self.steps = self.ordered(aliases)
        self.final_places(self.steps, aliases)
        found: list[list[Step]] = []
        if target().threads:
            # Other processors run one step at a time.
            self.steps, found = batches(self.steps, aliases, hint)
        self.all_steps = list(flat(self.steps))
        self.takes = without_shared(possible_overwrites(self.all_steps), found)

    def plans(self, number: Number) -> dict[int, tuple[dense.Plan, dict[str, View]]]:
        """Return the dense library's plans for actual sizes, by the identity of the step."""
        return {id(s): s.data.plan(number) for s in self.all_steps if isinstance(s.data, DenseCall)}

    def numbers(self, sizes: Mapping[str, int]) -> dict[DimLike, int]:
        """Return the values of the dimensions that programs have needed so far."""
        if not sizes or not self._dims:
            return {}
        if self._values is None:
            self._values = evaluator(list(self._dims), list(sizes))
        return dict(zip(self._dims, self._values(*sizes.values())))

    def note(self, dims: Sequence[Dim]) -> None:
        """Remember dimensions that a program needed."""
        if dims:
            self._dims.update(dict.fromkeys(dims))
            self._values = None

    def ordered(self, aliases: Mapping[int, int]) -> list[Step]:
        """Return the steps in the order in which they are run."""
        inputs, outputs = self.lowered.inputs, [v.buffer for v in self.lowered.outputs]
        over = {id(outputs[j]): inputs[i] for j, i in aliases.items() if outputs[j] not in inputs}
        kept = [*inputs, *outputs, *[b for b, _ in self.lowered.constants.values()]]
        steps = schedule(self.lowered.steps, kept, over, hint)
        return steps if self.inner else overlapped(steps, self.graph, kept, over, hint)

    # Places.

    def final_places(self, steps: list[Step], aliases: dict[int, int]) -> None:
        """Assign memory to outputs.

        It is the buffer that they are computed in where nothing else uses that, else a copy at the
        end.
        """
        inputs = self.lowered.inputs
        for i, buffer in enumerate(inputs):
            buffer.place = ("input", i)
        for buffer, _ in self.lowered.constants.values():
            buffer.place = ("constant", 0)
        uses = _Uses(steps, self.lowered.outputs)
        plain: list[Step] = []
        last: list[Step] = []
        for j, view in enumerate(self.lowered.outputs):
            buffer = view.buffer
            direct = buffer.place is None and is_zero(view.offset) and same(buffer.size, element_count(view.shape))
            if direct and j in aliases and not self.may_write(uses, buffer, inputs[aliases[j]]):
                direct = False
            if direct:
                buffer.place = ("output", j)
                continue
            size = element_count(view.shape)
            copied = Buffer(buffer.dtype, size, "output")
            copied.place = ("output", j)
            if j in aliases:
                if buffer is inputs[aliases[j]] and is_zero(view.offset):
                    continue
                if buffer in inputs:
                    # Another output may be copied over this input first.
                    held = row_major(Buffer(buffer.dtype, size, "held"), view.shape)
                    plain.append(Step(Copy(held, view), [buffer], [held.buffer]))
                    view = held
                last.append(Step(Copy(row_major(copied, view.shape), view), [view.buffer], [copied]))
            else:
                plain.append(Step(Copy(row_major(copied, view.shape), view), [buffer], [copied]))
        if not target().threads:
            self.between_states(uses, aliases)
            self.before_outputs(uses, aliases)
        steps.extend(plain + last)

    def between_states(self, uses: _Uses, aliases: Mapping[int, int]) -> None:
        """Let values on the way from an input to what replaces it lie there.

        Such a value overwrites the input element by element, and is overwritten so by the output;
        nothing reads the input after it, nor it after the output.
        """
        for j, i in aliases.items():
            buffer, source = self.lowered.outputs[j].buffer, self.lowered.inputs[i]
            written = uses.writers.get(id(buffer), ())
            if buffer.place != ("output", j) or id(source) in uses.results or not written:
                continue
            last = written[0][0]
            readers = uses.readers.get(id(source), ())
            for k, step in readers:
                if k >= last or any(n > k for n, _ in readers):
                    continue
                for found in step.writes:
                    after = uses.readers.get(id(found), ())
                    if (
                        self._is_between(uses, found, source)
                        and may_overwrite(step, found, source)
                        and all(n < last or (n == last and may_overwrite(s, buffer, found)) for n, s in after)
                    ):
                        found.place = ("output", j)
                        break

    def before_outputs(self, uses: _Uses, aliases: Mapping[int, int]) -> None:
        """Let what an output overwrites element by element lie in its memory from the beginning."""
        for j, view in enumerate(self.lowered.outputs):
            buffer = view.buffer
            # Nothing writes an array of no elements.
            written = uses.writers.get(id(buffer), ())
            if j in aliases or buffer.place != ("output", j) or len(written) != 1:
                continue
            last, step = written[0]
            for found in step.reads:
                if (
                    id(found) in uses.writers
                    and self._is_between(uses, found, buffer)
                    and may_overwrite(step, buffer, found)
                    and all(n <= last for n, _ in uses.readers[id(found)])
                ):
                    found.place = ("output", j)
                    break

    def _is_between(self, uses: _Uses, buffer: Buffer, source: Buffer) -> bool:
        """Return whether a value inside of a program could have the memory of an input."""
        fits = buffer.dtype is source.dtype and same(buffer.size, source.size)
        return fits and buffer.place is None and id(buffer) not in uses.results and len(uses.writers[id(buffer)]) == 1

    def may_write(self, uses: _Uses, output: Buffer, source: Buffer) -> bool:
        """Return whether an output may overwrite an input.

        No step may read the input afterwards, and none at the same time other than element by
        element.
        """
        writers = uses.writers.get(id(output))
        if not writers:
            return False
        for k, step in uses.readers.get(id(source), ()):
            if k > writers[0][0] or (k == writers[0][0] and not may_overwrite(step, output, source)):
                return False
        return id(source) not in uses.results
