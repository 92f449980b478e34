"""The form of a kernel: how the loops of its nest run, and what is known of its expressions.

Both are found before any code is written, and do not change afterwards.
"""

from __future__ import annotations

import math

from mycel._src.compiler.ir.dims import is_one
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Expr, Nest, reaches_far
from mycel._src.engines.native.kernels.loop_schedule import row_work
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D

__all__ = ["LONG", "Facts", "Form"]

# A row of so many iterations, some 20 milliseconds at least, is worth a question on the way.
LONG = 1 << 26
# Multiples of one over `SIMPLE` up to it are never argument words.
SIMPLE = 64


class Form:
    """How the loops of a `nest` run.

    * `lanes`: the elements of a vector; `wide`: whether values are vectors at all.
    * `vector_loop`: the loop whose iterations are the lanes; `across`: whether they are combined,
      as it reduces or is a running one.
    * `rows`: the parallel loops outside of the lanes; `inner`: the reducing and sequential ones;
      `row_depth`: how many loops are around these.
    * `tile`: the loop that runs in blocks, if there is one.
    * `depth_of`: for each loop, how many are open inside it.
    * `near`: the bits of the positions that guards and vectors of lanes compare.
    * `is_long`: whether a row takes so long that it asks on the way whether the run is to end.

    `lanes` are the widest that the nest's types allow where they are 0. The loop `innermost` is
    written inside of all others (None: the tile's).
    """

    def __init__(self, nest: Nest, lanes: int = 0, innermost: int | None = None) -> None:
        self.nest = nest
        self.vector_loop = len(nest.loops) - 1
        kinds = [loop.kind for loop in nest.loops]
        widest = max([s.value.dtype.itemsize for s in nest.stores if s.value.dtype.itemsize <= 4], default=4)
        self.wide = not (nest.scalar or is_one(nest.loops[-1].extent))
        usual = 1 if target().scalar else max(target().vector_bytes // max(widest, 4), 2)
        self.lanes = lanes or (usual if self.wide else 1)
        self.across = kinds[-1] == "r" or (self.wide and kinds[-1] == "s")
        self.inner = [k for k, kind in enumerate(kinds) if kind != "p"]
        parallel = [k for k, kind in enumerate(kinds) if kind == "p"]
        self.rows = parallel if self.across or kinds[-1] == "s" else parallel[:-1]
        self.row_depth = len(parallel)
        self.tile = nest.tile
        innermost = self.tile if innermost is None else innermost
        order = parallel + self.inner
        if innermost is not None:
            order = [k for k in order if k != innermost] + [innermost]
        self.depth_of = {k: i + 1 for i, k in enumerate(order)}
        self.near = 64 if reaches_far(nest) else 32
        self.is_long = row_work(nest, self.rows or ([] if self.across else parallel)) >= LONG


class Facts:
    """What is known of the expressions of a nest of the form `form`, by their identity.

    * `depths`: the number of loops in the code around an expression; `varies`: whether it differs
      between lanes.
    * `stages`: how many reductions come before it; `late`: those that running reductions make, or
      that are made of these.
    * `constants`: those that follow from sizes, and None for those that are part of the text.

    `accesses` are those of the nest's memory, and `access_index` has their numbers.
    """

    def __init__(self, form: Form) -> None:
        self._form = form
        self.accesses: list[Access] = []
        self.access_index: dict[Access, int] = {}
        self.depths: dict[int, int] = {}
        self.varies: dict[int, bool] = {}
        self.stages: dict[int, int] = {}
        self.late: set[int] = set()
        self.constants: dict[int, Expr | None] = {}
        for r in form.nest.reduces:
            self._analyse(r.value)
            self._analyse(r.result)
            if r.valid is not None:
                self._analyse(r.valid)
        for s in form.nest.stores:
            self._analyse(s.value)
            self._enter_access(s.target)

    def _analyse(self, x: Expr) -> None:
        """Find the depth, lane dependence and stage of an expression."""
        if id(x) in self.depths:
            return
        form = self._form
        if x.kind == "scanned":
            self._analyse(x.args[0])
            self.late.add(id(x))
            self.depths[id(x)] = max(form.depth_of.values())
            self.varies[id(x)] = form.wide
            self.stages[id(x)] = self.stages[id(x.args[0])]
            return
        if x.kind == "reduced":
            self._analyse(x.args[0])
            self.depths[id(x)] = form.row_depth
            self.varies[id(x)] = form.wide and not form.across
            self.stages[id(x)] = self.stages[id(x.args[0])] + 1
            return
        depth, wide, stage = 0, False, 0
        for a in x.args:
            self._analyse(a)
            if a.kind == "const":
                self._note_constant(a, x.data if x.kind == "op" else "")
            depth, wide = max(depth, self.depths[id(a)]), wide or self.varies[id(a)]
            stage = max(stage, self.stages[id(a)])
        if any(id(a) in self.late for a in x.args):
            self.late.add(id(x))
        places: list[Affine] = []
        if x.kind == "load":
            access = x.data[0]
            self._enter_access(access)
            places = [access.offset, *[g for g, _ in access.guards]]
        elif x.kind == "index":
            places = [x.data]
        elif x.kind == "guard":
            places = [g for g, _ in x.data]
        for place in places:
            for loop, _ in place.terms:
                depth = max(depth, form.depth_of[loop])
                wide = wide or (form.wide and loop == form.vector_loop)
        self.depths[id(x)], self.varies[id(x)], self.stages[id(x)] = depth, wide, stage

    def _enter_access(self, access: Access) -> None:
        if access not in self.access_index:
            self.access_index[access] = len(self.accesses)
            self.accesses.append(access)
            for x, *_ in access.dynamic:
                self._analyse(x)

    def _note_constant(self, x: Expr, operation: str) -> None:
        """Note a constant that an operation uses."""
        known = self.constants.get(id(x))
        if known is None or known:
            fits = x.dtype is D.float32 and operation in ("mul", "div") and _is_of_sizes(x.data[0], operation)
            self.constants[id(x)] = x if fits else None


def _is_of_sizes(value: float, operation: str) -> bool:
    """Return whether a factor or divisor is likely to differ between layers, as one over the number
    of elements does, and is not turned into something quicker by LLVM.
    """
    if not math.isfinite(value) or value == 0:
        return False
    if operation == "div" and math.frexp(value)[0] in (0.5, -0.5):
        return False
    return abs(value) > SIMPLE or not float(value * SIMPLE).is_integer()
