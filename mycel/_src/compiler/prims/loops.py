"""The `loops` primitive, which runs a user's element-wise loop program as one node.

    loops(*operands; program)

runs a loop program (`loops.programs`). Its derivative is a loop program again (`adjoint`), or
the user's own; examples are batched by a loop around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node, input_node
from mycel._src.compiler.ir.graph import substitute as replace_nodes
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.loops import evaluation, formulas
from mycel._src.compiler.loops.adjoint import adjoint
from mycel._src.compiler.loops.batching import batched
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.legality import outside
from mycel._src.compiler.loops.programs import Array, For, Program, Set, Where, called, index_of, size_of, with_sizes
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import REGISTRY, SERVICES, Primitive, Sample, get_item, register
from mycel._src.compiler.prims.loop_idioms import opened
from mycel._src.compiler.prims.shape import zeros_like
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import ShapeError

__all__ = ["loops", "sizes_of"]


def sizes_of(program: Program, types: Sequence[TensorType]) -> dict[str, DimLike]:
    """Return the sizes of a program's inputs of these types, by the names of their symbols."""
    return {f"{a.name}.{k}": d for a, t in zip(program.inputs, types) for k, d in enumerate(t.shape)}


def _infer(*types: TensorType, program: Program) -> Any:
    if len(types) != len(program.inputs):
        raise TypeError(f"{program.name} takes {len(program.inputs)} tensors, not {len(types)}")
    for a, t in zip(program.inputs, types):
        if t.dtype is not a.dtype or t.rank != len(a.shape):
            raise TypeError(f"{program.name}: {a.name} is {t}, and {a.dtype.name} of {len(a.shape)} axes was compiled")
    sizes = sizes_of(program, types)
    _check(program, types)
    made = []
    for out in program.outputs:
        shape = tuple([substitute(d, sizes) for d in out.shape])
        if any(type(d) is int and d < 0 for d in shape):
            raise ShapeError(f"{program.name}: the result {out.name} would have the shape {shape}")
        made.append(tensor_type(shape, out.dtype))
    return made[0] if len(made) == 1 else tuple(made)


def _check(program: Program, types: tuple[TensorType, ...]) -> None:
    """Raise ShapeError where sizes do not agree, IndexError for a place outside of its array."""
    _checked.recall((program, types), lambda: _found_right(program, types))


_checked = Remembered[Any, bool]("operators checked", MANY)


def _found_right(program: Program, types: tuple[TensorType, ...]) -> bool:
    actual = with_sizes(program, sizes_of(program, types))
    for array, type in zip(actual.inputs, types):
        if array.shape != type.shape:
            raise ShapeError(f"{program.name}: {called(array.name)} is {type}, and its shape must be {array.shape}")
    for a in actual.agreements:
        if a.left != a.right:
            raise ShapeError(_told(program, f"{a.text}, {a.left} and {a.right}", a.where))
    found = outside(actual)
    if found is not None:
        element, axis, index, size = found
        name = called(element.array)
        raise IndexError(
            _told(program, f"{name}: index {index} is outside of axis {axis}, which has size {size}", element.where)
        )
    return True


def _told(program: Program, text: str, where: Where | None) -> str:
    line = "" if where is None else f"\n  in {where[0]}:{where[1]}"
    return f"{program.name}: {text}{line}"


def _reference(*arrays: Any, program: Program) -> Any:
    found = evaluation.run(program, arrays, lambda name: _function(name))
    return found[0] if len(found) == 1 else found


def _function(name: str) -> Callable[..., Any]:
    function = REGISTRY[name].reference
    assert function is not None
    return function


def partials(f: Formula) -> list[Formula | None]:
    """Return the derivative of an element-wise operation by each operand; None where there is none.

    They are those of the primitive's own rule, on tensors of no axes.
    """
    nodes = [input_node(tensor_type((), a.dtype), f"x{k}") for k, a in enumerate(f.args)]
    one = input_node(tensor_type((), f.dtype), "ct")
    out = input_node(tensor_type((), f.dtype), "out")
    if f.data == "cast":
        found: Sequence[Node | None] = (REGISTRY["cast"](one, dtype=f.args[0].dtype),)
        if not (f.dtype.kind == f.args[0].dtype.kind == "f"):
            return [None]
    else:
        rule = REGISTRY[f.data].vjp
        found = [None] * len(nodes) if rule is None else rule(one, out, *nodes)
    known = dict(zip(nodes, f.args))
    known[one], known[out] = formulas.constant(1, f.dtype), f
    return [None if n is None else _as_formula(n, known) for n in found]


def _as_formula(node: Node, known: dict[Node, Formula]) -> Formula:
    """Return a graph of element-wise operations on tensors of no axes as a formula."""
    found = known.get(node)
    if found is None:
        if node.is_constant:
            found = formulas.constant(node.value.reshape(()).item(), node.dtype)
        elif node.op in ("reshape", "broadcast", "identity", "stop_gradient"):
            found = _as_formula(node.inputs[0], known)
        else:
            found = formulas.operation(node.op, node.dtype, *[_as_formula(i, known) for i in node.inputs])
        known[node] = found
    return found


def _vjp(ct: Any, out: Any, *inputs: Node, program: Program) -> list[Node | None]:
    outs, cts = ((out,), (ct,)) if len(program.outputs) == 1 else (out, ct)
    given = [zeros_like(o) if c is None else c for o, c in zip(outs, cts) if o.dtype.is_differentiable]
    smooth = [k for k, i in enumerate(inputs) if i.dtype.is_differentiable]
    result: list[Node | None] = [None] * len(inputs)
    if not smooth or not given:
        return result
    if program.derivative is None:
        free = [input_node(i.type) for i in inputs]
        found = _opened(free, program)
        if found is not None:
            # What has another form is differentiated in that form.
            made = SERVICES.differentiate(found if isinstance(found, tuple) else (found,), cts, free)
            images = dict(zip(free, inputs))
            return [None if n is None else replace_nodes((n,), images)[0] for n in made]
    backward = program.derivative or adjoint(program, partials)
    operands = (*inputs, *outs, *given)
    whole = loops.node(*operands, program=backward)
    for place, k in enumerate(smooth):
        result[k] = whole if len(smooth) == 1 else get_item(whole, place)
    return result


def _batch(size: DimLike, values: Sequence[Node], axes: Sequence[int | None], *, program: Program) -> Any:
    moved = [v if a is None else S.move_axis(v, a, 0) for v, a in zip(values, axes)]
    made = loops.node(*moved, program=batched(program, tuple([a is not None for a in axes])))
    if isinstance(made.type, tuple):
        count = len(made.type)
        return tuple([get_item(made, k) for k in range(count)]), (0,) * count
    return made, 0


def _expand(*inputs: Node, program: Program) -> Any:
    if program.plan is not None:
        # Its schedule says how it runs.
        return None
    return _opened(inputs, program)


def _opened(inputs: Sequence[Node], program: Program) -> Any:
    found = opened(with_sizes(program, sizes_of(program, [i.type for i in inputs])), inputs)
    return found[0] if found is not None and len(found) == 1 else found


def _windows(dtype: DType) -> Program:
    """Return the program of the sample: sums of products over windows."""
    x, w = (Array(name, dtype, (size_of(name, 0),)) for name in "xw")
    y = Array("y", dtype, (size_of("x", 0) - size_of("w", 0) + 1,), 0.0)
    i, k = index_of("i"), index_of("k")
    value = formulas.operation("mul", dtype, formulas.read("x", (i + k,), dtype), formulas.read("w", (k,), dtype))
    body = For("k", 0, size_of("w", 0), (Set("y", (i,), value, "add"),))
    return Program("windows", (x, w), (y,), (), (For("i", 0, y.shape[0], (body,)),))


loops: Primitive = register(
    Primitive(
        "loops",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=(Sample(((7,), (3,)), {"program": _windows(D.float64)}, dtypes=("float64", "float64")),),
        dtypes=("float64",),
        opens=True,
        doc="An operator that the user wrote as loops over elements.",
    )
)
