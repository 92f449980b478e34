"""Batched matrix multiplication through oneDNN, for any strides.

The shapes are first reduced to the fewest dimensions: batch dimensions of size 1 are removed,
neighbours that are contiguous (or broadcast) in every operand are merged, and a batch over which
the second operand is broadcast becomes more rows of the first. A result whose columns are
contiguous is computed as the transpose of the product of the transposes.

oneDNN takes any layout, but has only plain loops for some. Then operands are repacked into
temporaries, with as few bytes as necessary, and 16-bit operands for which the processor has no
kernel are computed in float32.

On x86 without VNNI, oneDNN adds pairs of 8-bit products in 16 bits, which overflow; such kernels
are not used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mycel._src.engines.native.onednn import autotune
from mycel._src.engines.native.onednn import c_interface as dnnl
from mycel._src.engines.native.onednn.plan import (
    Assembly,
    Attempt,
    Operand,
    Plan,
    PostOperation,
    Product,
    Unsupported,
    cached,
    check_operands,
    choose,
    is_slow,
    never,
    post_operands,
)

Dimension = tuple[int, int]
Column = dict[str, Dimension]


def matmul(
    a: Operand,
    b: Operand,
    out: Operand,
    bias: Operand | None = None,
    post: Sequence[PostOperation] = (),
    small: bool = False,
) -> Plan:
    """Return a plan of `out = post(a @ b + bias)`.

    Making a plan takes the library as long as some 50 million operations. A `small` product is a
    call of its BLAS interface, where that can be, which needs no preparation, unless ways are tried
    out.

    The buffers are a, b, out, bias, and post{i} for a binary post[i]. `a` is (..., M, K), `b` (...,
    K, N), `out` (..., M, N) with the full batch shape; a batch dimension of `a` or `b` may be
    absent, of size 1, or have stride 0, and is then broadcast. `bias` and binary operands broadcast
    to `out`. Element types: float32; bfloat16 and float16 with a result of the same type or
    float32; int8 or uint8 times int8 to int32. `post` lists operations on the result in the order
    of application: ('relu',), ('relu', negative slope), ('gelu_erf',), ('tanh',), ('sum', scale),
    which adds scale times the former content of `out`, and ('binary_add', Operand).

    Raises ValueError if the shapes do not fit, Unsupported if oneDNN refuses them.

    >>> a, b = Operand.dense((2, 3), "float32"), Operand.dense((3, 4), "float32")
    >>> matmul(a, b, Operand.dense((2, 4), "float32")).flops
    48
    """
    entries = tuple(tuple(entry) for entry in post)
    if small and bias is None and not post and not autotune.is_on():
        try:
            return plan_in_way(a, b, out, None, (), "product")
        except Unsupported:
            pass

    def build(way: str) -> Plan:
        return plan_in_way(a, b, out, bias, entries, way)

    return autotune.quickest(("matmul", a, b, out, bias, entries), ("arranged", "product"), build)


@cached
def plan_in_way(
    a: Operand, b: Operand, out: Operand, bias: Operand | None, post: tuple[PostOperation, ...], way: str
) -> Plan:
    """Return a plan of `matmul` in one way.

    `a`, `b`, `out`, `bias` and `post` are those of `matmul`. The ways are the rules of this module,
    the second factor "arranged" in a layout that the library chooses, and a "product" by the BLAS
    interface.
    """
    operands = {"a": a, "b": b, "out": out}
    if bias is not None:
        operands["bias"] = bias
    operands |= post_operands("matmul", post)
    check_operands("matmul", operands)
    _check_shapes(operands)
    collapsed = _collapse(operands)
    out_strides = collapsed["out"].strides
    arrangements = [("a", "b", collapsed)]
    if out_strides[-1] != 1 and out_strides[-2] == 1:
        arrangements.insert(0, ("b", "a", {name: _transposed(layout) for name, layout in collapsed.items()}))
    assembly = Assembly(operands)
    flops = 2 * math.prod(out.shape) * a.shape[-1]
    if way == "product":
        product = _as_product(collapsed)
        if product is None:
            raise Unsupported(f"matmul: it cannot be computed as products: {operands}")
        assembly.add_product(product)
        return assembly.finish(flops)
    arranged = way == "arranged"
    attempts = itertools.chain.from_iterable(
        _attempts(*arrangement, post, assembly, arranged) for arrangement in arrangements
    )
    extended = bool(post) or bias is not None or arranged
    inexact = _overflows if a.dtype in ("int8", "uint8") else never
    attempt, descriptor = choose("matmul", operands, assembly, attempts, extended, inexact=inexact)
    assembly.add_between("matmul", descriptor, attempt, ("out",), any(entry[0] == "sum" for entry in post))
    return assembly.finish(flops)


def _as_product(layouts: dict[str, Operand]) -> Product | None:
    """Return a product of float32 matrices, or of evenly spaced ones, as a BLAS call; else None."""
    if layouts.keys() != {"a", "b", "out"} or {o.dtype for o in layouts.values()} != {"float32"}:
        return None
    if len(layouts["out"].shape) > 3 or not dnnl.is_x86():
        return None
    order = ("a", "b", "out")
    if layouts["out"].strides[-1] != 1:
        layouts, order = {name: _transposed(layout) for name, layout in layouts.items()}, ("b", "a", "out")
    a, b, out = (layouts[name] for name in order)
    lying = []
    for layout in (a, b, out):
        (height, width), (down, along) = layout.shape[-2:], layout.strides[-2:]
        turned = along != 1
        row, length = (along, height) if turned else (down, width)
        if (turned and down != 1) or row < length:
            return None
        lying.append((turned, row))
    if lying[2][0]:
        return None
    steps = [layout.strides[0] if len(layout.shape) == 3 and layout.shape[0] > 1 else 0 for layout in (a, b, out)]
    count = out.shape[0] if len(out.shape) == 3 else 1
    if count > 1 and not steps[2]:
        return None
    return Product(
        (order[0], order[1], "out"),
        (lying[0][0], lying[1][0]),
        (out.shape[-2], out.shape[-1], a.shape[-1]),
        (lying[0][1], lying[1][1], lying[2][1]),
        count,
        (steps[0], steps[1], steps[2]),
    )


def _overflows(implementation: str) -> bool:
    """Return whether the implementation of an 8-bit product adds in 16 bits."""
    if not dnnl.is_x86() or is_slow(implementation):
        return False
    if "gemm" in implementation:
        return not dnnl.library().has_isa(dnnl.ISA_AVX512_VNNI)
    return "vnni" not in implementation and "amx" not in implementation


def _attempts(
    first: str,
    second: str,
    layouts: dict[str, Operand],
    post: tuple[PostOperation, ...],
    assembly: Assembly,
    arranged: bool,
) -> Iterator[Attempt]:
    """Yield ways to compute the product of the buffers `first` and `second`.

    With `arranged`, `second` is in a layout that the library chooses.
    """
    roles = {first: dnnl.ARG_SRC, second: dnnl.ARG_WEIGHTS, "out": dnnl.ARG_DST}
    chain = post
    row_bias = "bias" in layouts and math.prod(layouts["bias"].shape) == layouts["bias"].shape[-1]
    if row_bias:
        roles["bias"] = dnnl.ARG_BIAS
    elif "bias" in layouts:
        # Any other bias is slow in oneDNN, and it can always be the first post-operation.
        chain = (("binary_add", layouts["bias"]), *post)
        roles["bias"] = dnnl.argument_of_post_operation(0)
    shift = len(chain) - len(post)
    for index in range(len(post)):
        if f"post{index}" in layouts:
            roles[f"post{index}"] = dnnl.argument_of_post_operation(index + shift)
    given = {name: assembly.describe(layout) for name, layout in layouts.items()}
    for repacked in _repackings(layouts):
        wanted = {name: assembly.describe(repacked[name]) if name in repacked else given[name] for name in layouts}
        binary = {index + shift: wanted[f"post{index}"] for index in range(len(post)) if f"post{index}" in wanted}
        if shift:
            binary[0] = wanted["bias"]
        if arranged:
            wanted[second] = assembly.describe_any(repacked.get(second, layouts[second]))
        factors = (wanted[first], wanted[second], wanted["bias"] if row_bias else None, wanted["out"])
        arguments = (dnnl.library().engine, *factors, assembly.attributes(chain, binary))
        yield Attempt(given, roles, "dnnl_matmul_primitive_desc_create", arguments)


def _check_shapes(operands: dict[str, Operand]) -> None:
    a, b, out = (operands[name].shape for name in ("a", "b", "out"))
    reason = None
    if min(len(a), len(b)) < 2 or len(out) != max(len(a), len(b)):
        reason = "a and b need at least 2 dimensions, and out as many as the longer of them"
    elif a[-1] != b[-2]:
        reason = "inner dimensions differ"
    elif out[-2:] != (a[-2], b[-1]):
        reason = "out does not have the rows of a and the columns of b"
    else:
        for axis in range(len(out) - 2):
            pair = {_size(a, axis, len(out)), _size(b, axis, len(out))}
            if not pair <= {1, out[axis]} or out[axis] not in pair:
                reason = f"batch dimension {axis} does not broadcast to that of out"
        for name, operand in operands.items():
            if any(_size(operand.shape, axis, len(out)) not in (1, out[axis]) for axis in range(len(out))):
                if name not in ("a", "b"):
                    reason = f"{name} does not broadcast to out"
    if reason:
        shapes = ", ".join(f"{name} {operand.shape}" for name, operand in operands.items())
        raise ValueError(f"matmul: {reason}: {shapes}")


def _size(shape: tuple[int, ...], axis: int, rank: int) -> int:
    """Return the size of `shape` at `axis` once it is padded to `rank` with ones in front."""
    return shape[axis - rank] if axis - rank >= -len(shape) else 1


def _collapse(operands: dict[str, Operand]) -> dict[str, Operand]:
    """Return the operands of the same product in the fewest dimensions."""
    rank = len(operands["out"].shape)
    columns = [
        {name: _dimension(operand, axis - rank, axis >= rank - 2) for name, operand in operands.items()}
        for axis in range(rank)
    ]
    *batch, rows, inner = columns
    merged: list[Column] = []
    for column in batch:
        if column["out"][0] == 1:
            continue
        joined = _join(merged[-1], column) if merged else None
        if joined:
            merged[-1] = joined
        else:
            merged.append(column)
    while merged and merged[-1]["b"][0] == 1:
        outer = {name: dimension for name, dimension in merged[-1].items() if name != "b"}
        joined = _join(outer, rows)
        if not joined:
            break
        rows = {**joined, "b": rows["b"]}
        merged.pop()
    return {
        name: _layout([column[name] for column in merged], rows[name], inner[name], operand.dtype)
        for name, operand in operands.items()
    }


def _dimension(operand: Operand, axis: int, in_matrix: bool) -> Dimension:
    if -axis > len(operand.shape):
        return 1, 0
    size, stride = operand.shape[axis], operand.strides[axis]
    return (1, 0) if size == 1 or (stride == 0 and not in_matrix) else (size, stride)


def _join(outer: Column, inner: Column) -> Column | None:
    """Return one dimension in place of two; None if some operand's strides do not allow it."""
    if inner["out"][0] == 1:
        return outer
    joined = {}
    for name, (size, stride) in outer.items():
        inner_size, inner_stride = inner[name]
        if (size == 1) != (inner_size == 1) or (size > 1 and stride != inner_size * inner_stride):
            return None
        joined[name] = (size * inner_size, inner_stride)
    return joined


def _layout(batch: Sequence[Dimension], rows: Dimension, columns: Dimension, dtype: str) -> Operand:
    """Return an operand that oneDNN recognises as a matrix.

    The strides of dimensions of size 1 are chosen so.
    """
    (height, row_stride), (width, column_stride) = rows, columns
    if width == 1:
        column_stride = 1
        row_stride = row_stride if height > 1 else 1
    elif height == 1:
        row_stride = width if column_stride == 1 else 1
    shape, strides = [height, width], [row_stride, column_stride]
    step = max(height * row_stride, width * column_stride)
    for size, stride in reversed(batch):
        stride = step if size == 1 else stride
        shape.insert(0, size)
        strides.insert(0, stride)
        step = max(step, size * stride)
    return Operand(tuple(shape), tuple(strides), dtype)


def _transposed(operand: Operand) -> Operand:
    *batch, rows, columns = zip(operand.shape, operand.strides)
    return _layout(batch, columns, rows, operand.dtype)


def _repackings(layouts: dict[str, Operand]) -> Iterator[dict[str, Operand]]:
    """Yield the operands to repack and their new layouts.

    First none, then fewer bytes before more, float32 at the end.
    """
    dense = {name: Operand.dense(layout.shape, layout.dtype) for name, layout in layouts.items()}
    loose = [name for name in layouts if dense[name] != layouts[name]]
    choices = [names for count in range(len(loose) + 1) for names in itertools.combinations(loose, count)]
    for names in sorted(choices, key=lambda names: sum(dense[name].span for name in names)):
        yield {name: dense[name] for name in names}
    widened = {
        name: replace(layout, dtype="float32") if layout.dtype in ("bfloat16", "float16") else layout
        for name, layout in dense.items()
    }
    if widened != dense:
        yield {name: layout for name, layout in widened.items() if layout != layouts[name]}
