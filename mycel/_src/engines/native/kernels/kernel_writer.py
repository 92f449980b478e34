"""The parts of a kernel's writer: what its code is written with, from the form to the values."""

from __future__ import annotations

from mycel._src.engines.native.kernels.kernel_form import Facts, Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Nest
from mycel._src.engines.native.kernels.memory_access import MemoryWriter
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.kernels.register_transpose import TileWriter
from mycel._src.engines.native.kernels.value_writer import ValueWriter

__all__ = ["KernelWriter"]


class KernelWriter:
    """The parts of the writer of a nest's kernel, whose words are loaded.

    * `form`, `facts`: how the nest's loops run, and what is known of its expressions.
    * `function`: the text; `loops`: those around the code that is being written.
    * `tiles`, `memory`, `values`: the writers of transposed loads, of memory and of values.

    `lanes` and `innermost` are as for `Form`.
    """

    def __init__(self, nest: Nest, lanes: int = 0, innermost: int | None = None) -> None:
        self.form = Form(nest, lanes, innermost)
        self.facts = Facts(self.form)
        self.function = KernelFunction(self.form.lanes, self.form.is_long)
        self.loops = OpenLoops(self.form, self.facts, self.function)
        self.tiles = TileWriter(self.function, self.loops)
        self.memory = MemoryWriter(self.function, self.loops, self.tiles)
        self.values = ValueWriter(self.form, self.facts, self.function, self.loops, self.memory)
