"""The batch rule of loop programs: one loop over the examples around the program."""

from __future__ import annotations

from dataclasses import replace

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.programs import Array, For, Program, Set, index_of, mapped, size_of, statements

__all__ = ["batched"]


def batched(program: Program, has_axis: tuple[bool, ...]) -> Program:
    """Return the program for a batch; `has_axis` says which inputs have the batch axis in front."""
    inputs, sizes = [], {}
    size: DimLike = 0
    for a, has in zip(program.inputs, has_axis):
        rank = len(a.shape) + has
        inputs.append(replace(a, shape=tuple([size_of(a.name, k) for k in range(rank)])))
        if has:
            size = size_of(a.name, 0)
            sizes.update({f"{a.name}.{k}": size_of(a.name, k + 1) for k in range(len(a.shape))})
    with_axis = {a.name for a, has in zip(inputs, has_axis) if has} | {a.name for a in program.outputs}
    # A batch of batches has a loop for each.
    depth = sum(isinstance(s, For) for s in statements(program.body))
    name = f"example{depth}"
    example = index_of(name)

    def position(d: DimLike) -> DimLike:
        return substitute(d, sizes)

    def element(f: Formula) -> Formula:
        return formulas.read(f.data, (example, *f.place), f.dtype) if f.data in with_axis else f

    def target(s: Set) -> Set:
        return replace(s, place=(example, *s.place)) if s.array in with_axis else s

    def array(a: Array) -> Array:
        return replace(a, shape=tuple([position(d) for d in a.shape]))

    body = mapped(program.body, position, element, target)
    around = For(name, 0, size, body, "parallel", False, tuple(map(array, program.locals)))
    outputs = [replace(a, shape=(size, *[position(d) for d in a.shape])) for a in program.outputs]
    plan = None if program.plan is None else batched(program.plan, has_axis)
    return Program(
        program.name, tuple(inputs), tuple(outputs), (), (around,), plan=plan, reassociate=program.reassociate
    )
