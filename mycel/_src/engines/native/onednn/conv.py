"""Convolutions and their two gradients through oneDNN, for any strides of the operands.

Definitions (cross-correlation, as in neural networks): with d spatial dimensions, groups g and
dilation 1 for a dense kernel, dst[n, o, y] = bias[o] + sum over c, k of src[n, c', y * stride + k *
dilation - padding_low] * weights[o, c, k], where c' = c + (the group of o) * C / g. The gradients
are the two transposes of this bilinear map.

Weights are reordered to the layout that oneDNN prefers before the call (their gradient from it,
after the call). The other operands keep their layout if oneDNN has a fast kernel for it, else they
too are reordered. Where dimensions have size 1, the same memory is both channels-first and
channels-last, and both are tried. Where oneDNN has only a plain loop for 16-bit operands, these are
computed in float32.

For channels-first data oneDNN multiplies matrices of gathered patches. Direct kernels are faster
even with two reorders (1.2 times in a layer of ResNet-50, 15 times in a depthwise one), with two
exceptions: kernels of size 1, which gather nothing, and the gradient by an image of very few
channels, where the direct kernels fill their vectors with padding. For channels-last data oneDNN's
gradient by the weights of a strided window takes twice as long as for blocked data, so that both
images are reordered for it. A convolution that is a product of matrices is computed as one
(`pointwise`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mycel._src.engines.native.onednn import autotune
from mycel._src.engines.native.onednn import c_interface as dnnl
from mycel._src.engines.native.onednn.plan import (
    MOST_SIZE,
    Assembly,
    Attempt,
    Operand,
    Plan,
    PostOperation,
    Unsupported,
    cached,
    check_operands,
    choose,
    construct,
    dims,
    post_operands,
)
from mycel._src.engines.native.onednn.pointwise import pointwise, with_many_weights

ARGUMENT = {
    "src": dnnl.ARG_SRC,
    "weights": dnnl.ARG_WEIGHTS,
    "bias": dnnl.ARG_BIAS,
    "dst": dnnl.ARG_DST,
    "diff_src": dnnl.ARG_DIFF_SRC,
    "diff_weights": dnnl.ARG_DIFF_WEIGHTS,
    "diff_bias": dnnl.ARG_DIFF_BIAS,
    "diff_dst": dnnl.ARG_DIFF_DST,
}
VECTORS = ("bias", "diff_bias")


@dataclass(frozen=True)
class Direction:
    """One of the three primitives.

    It has the buffers in the order in which the primitive's constructor takes them, and those that
    the primitive writes.
    """

    name: str
    kind: str
    constructor: str
    src: str
    weights: str
    vector: str | None
    dst: str
    outputs: tuple[str, ...]

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(name for name in (self.src, self.weights, self.vector, self.dst) if name)


FORWARD = Direction(
    "conv_forward",
    "forward",
    "dnnl_convolution_forward_primitive_desc_create",
    "src",
    "weights",
    "bias",
    "dst",
    ("dst",),
)
BACKWARD_DATA = Direction(
    "conv_backward_data",
    "data",
    "dnnl_convolution_backward_data_primitive_desc_create",
    "diff_src",
    "weights",
    None,
    "diff_dst",
    ("diff_src",),
)
BACKWARD_WEIGHTS = Direction(
    "conv_backward_weights",
    "weights",
    "dnnl_convolution_backward_weights_primitive_desc_create",
    "src",
    "diff_weights",
    "diff_bias",
    "diff_dst",
    ("diff_weights", "diff_bias"),
)


@dataclass(frozen=True)
class Window:
    """The movement of the kernel: strides, padding on both sides and dilation of each dimension."""

    strides: tuple[int, ...]
    padding_low: tuple[int, ...]
    padding_high: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def arguments(self) -> tuple[object, ...]:
        """Return strides, dilates (0 for a dense kernel), padding_l and padding_r for oneDNN."""
        dilates = [dilation - 1 for dilation in self.dilation]
        return dims(self.strides), dims(dilates), dims(self.padding_low), dims(self.padding_high)


def conv_forward(
    src: Operand,
    weights: Operand,
    dst: Operand,
    *,
    strides: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    bias: Operand | None = None,
    post: Sequence[PostOperation] = (),
) -> Plan:
    """Return a plan of `dst = post(convolution(src, weights) + bias)`.

    The buffers are src, weights, dst, bias and post{i}. `src` is (N, C, *spatial), `weights` (O, C
    / groups, *kernel), `dst` (N, O, *spatial), `bias` (O,), with 1 to 3 spatial dimensions; a
    binary operand in `post` broadcasts to `dst`. Channels-last data are described by their strides.
    `strides`, `padding_low`, `padding_high` and `dilation` (1: a dense kernel) have one entry for
    each spatial dimension; `groups` divides the channels. `matmul` explains `post`. Element types:
    float32; bfloat16 and float16 with a result of the same type or float32.

    Raises ValueError if the shapes do not fit, Unsupported if oneDNN refuses them.

    >>> image = Operand.dense((1, 3, 8, 8), "float32")
    >>> kernel = Operand.dense((4, 3, 3, 3), "float32")
    >>> result = Operand.dense((1, 4, 6, 6), "float32")
    >>> window = dict(strides=(1, 1), padding_low=(0, 0), padding_high=(0, 0), dilation=(1, 1))
    >>> conv_forward(image, kernel, result, groups=1, **window).flops
    7776
    """
    operands = {"src": src, "weights": weights, "dst": dst}
    if bias is not None:
        operands["bias"] = bias
    window = Window(tuple(strides), tuple(padding_low), tuple(padding_high), tuple(dilation), groups)
    return _convolution(FORWARD, tuple(operands.items()), window, tuple(tuple(entry) for entry in post))


def conv_backward_data(
    diff_dst: Operand,
    weights: Operand,
    diff_src: Operand,
    *,
    strides: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Plan:
    """Return a plan of the gradient by `src` of `conv_forward`.

    This is also the transposed convolution. The buffers are diff_dst, weights and diff_src, with
    the shapes of dst, weights and src. `strides`, `padding_low`, `padding_high` and `dilation` (1:
    a dense kernel) have one entry for each spatial dimension; `groups` divides the channels. Raises
    as `conv_forward` does.
    """
    operands = {"diff_dst": diff_dst, "weights": weights, "diff_src": diff_src}
    window = Window(tuple(strides), tuple(padding_low), tuple(padding_high), tuple(dilation), groups)
    return _convolution(BACKWARD_DATA, tuple(operands.items()), window, ())


def conv_backward_weights(
    src: Operand,
    diff_dst: Operand,
    diff_weights: Operand,
    *,
    strides: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    diff_bias: Operand | None = None,
) -> Plan:
    """Return a plan of the gradient by `weights` and, if `diff_bias` is given, by `bias`.

    The buffers are src, diff_dst, diff_weights and diff_bias, with the shapes of src, dst, weights
    and bias of `conv_forward`. `strides`, `padding_low`, `padding_high` and `dilation` (1: a dense
    kernel) have one entry for each spatial dimension; `groups` divides the channels. Raises as
    `conv_forward` does.
    """
    operands = {"src": src, "diff_dst": diff_dst, "diff_weights": diff_weights}
    if diff_bias is not None:
        operands["diff_bias"] = diff_bias
    window = Window(tuple(strides), tuple(padding_low), tuple(padding_high), tuple(dilation), groups)
    return _convolution(BACKWARD_WEIGHTS, tuple(operands.items()), window, ())


# Ways to try, beside products of matrices: the library's convolution, with these images in layouts
# of its choice.
WAYS: dict[str, tuple[str, ...]] = {"library": (), "source arranged": ("src",)}


def _convolution(
    direction: Direction, named: tuple[tuple[str, Operand], ...], window: Window, post: tuple[PostOperation, ...]
) -> Plan:
    def build(way: str) -> Plan:
        return _made(direction, named, window, post, way)

    return autotune.quickest((direction.name, named, window, post), ("products", *WAYS), build)


@cached
def _made(
    direction: Direction,
    named: tuple[tuple[str, Operand], ...],
    window: Window,
    post: tuple[PostOperation, ...],
    way: str,
) -> Plan:
    second_operands = post_operands(direction.name, post)
    operands = {**dict(named), **second_operands}
    check_operands(direction.name, operands)
    _check_shapes(direction, operands, window)
    if max(*window.strides, *window.padding_low, *window.padding_high, *window.dilation) > MOST_SIZE:
        raise Unsupported(f"{direction.name}: oneDNN's kernels cannot count {window} in 32 bits")
    assembly = Assembly(operands)
    work = 2 * math.prod(operands[direction.dst].shape) * math.prod(operands[direction.weights].shape[1:])
    images = ((direction.src, operands[direction.src]), (direction.dst, operands[direction.dst]))
    plain = (
        len(operands) == 3
        and window.groups == max(window.strides) == 1
        and not any(window.padding_low + window.padding_high)
    )
    kernel = (direction.weights, operands[direction.weights])
    if plain and way in (autotune.RULE, "products"):
        if pointwise(direction.kind, images, kernel, assembly, way == "products"):
            return assembly.finish(work)
    if plain and direction is FORWARD and way == autotune.RULE:
        product = with_many_weights(operands["src"], operands["weights"], operands["dst"])
        if product is not None:
            return product
    if way == "products":
        raise Unsupported(f"{direction.name}: no product of float32 matrices: {operands}; {window}")
    roles = {name: ARGUMENT[name] for name, _ in named}
    indices = {name: int(name.removeprefix("post")) for name in second_operands}
    roles |= {name: dnnl.argument_of_post_operation(index) for name, index in indices.items()}

    def attempts() -> Iterator[Attempt]:
        for given, wanted, dtype in _layouts(direction, operands, assembly, window, way):
            attributes = assembly.attributes(post, {index: wanted[name] for name, index in indices.items()})
            layouts = [wanted.get(name) for name in direction.order]
            kind: tuple[int, ...] = (dnnl.CONVOLUTION_DIRECT,)
            hint: tuple[int, ...] = ()
            if direction is FORWARD:
                kind = (dnnl.FORWARD_TRAINING, *kind)
            else:
                hint = (_forward_hint(direction, operands, assembly, window, dtype),)
                if not hint[0]:
                    continue
            arguments = (dnnl.library().engine, *kind, *layouts, *window.arguments(), *hint, attributes)
            yield Attempt(given, roles, direction.constructor, arguments)

    weights = operands[direction.weights].shape
    gathers = not _is_image_gradient(direction, operands) and (window.groups > 1 or math.prod(weights[2:]) > 1)
    attempt, descriptor = choose(
        direction.name,
        operands,
        assembly,
        attempts(),
        bool(post) or way != autotune.RULE,
        lambda name: gathers and "gemm" in name.split(":"),
    )
    accumulate = any(entry[0] == "sum" for entry in post)
    assembly.add_between(direction.name, descriptor, attempt, direction.outputs, accumulate)
    return assembly.finish(work)


def _layouts(
    direction: Direction, operands: dict[str, Operand], assembly: Assembly, window: Window, way: str
) -> Iterator[tuple[dict[str, int], dict[str, int], str]]:
    """Yield the layouts to try.

    Each has the descriptors of the buffers as they are, those that the primitive is asked for, and
    the element type of the latter.
    """
    data = (direction.src, direction.dst)
    shaped = {**operands, direction.weights: _grouped(operands[direction.weights], window.groups)}
    dtype = operands[direction.dst].dtype
    forms = [_readings(operands[name]) for name in data]
    same = {name: assembly.describe(operand) for name, operand in shaped.items()}
    anything = {name: assembly.describe_any(operand) for name, operand in shaped.items()}
    dense = {name: assembly.describe(Operand.dense(item.shape, item.dtype)) for name, item in shaped.items()}
    fixed = {direction.weights: anything[direction.weights]}
    fixed |= {name: dense[name] for name in operands if name in VECTORS}
    # A post-operation's operand that is as large as the result goes along with the result's layout.
    followers = [name for name in operands if name.startswith("post") and operands[name].shape == operands["dst"].shape]

    if _is_image_gradient(direction, operands) and way == autotune.RULE:
        yield same, {**dense, **fixed}, dtype
    orders: tuple[tuple[str, ...], ...] = ((), (direction.src,), (direction.dst,), data)
    if direction is BACKWARD_DATA and operands["diff_src"].shape[1] < NARROW and window.groups == 1:
        # Few channels waste most lanes of the kernels for channels-last data; blocked data costs
        # two reorders less than that.
        orders = (data, *orders[:-1])
    if direction is BACKWARD_WEIGHTS and max(window.strides) > 1 and operands["src"].shape[1] >= NARROW:
        # The kernels for strided windows are half as fast again on blocked data, with the reorders.
        orders = (data, *orders[:-1])
    if way in WAYS:
        orders = (tuple([getattr(direction, name) for name in WAYS[way]]),)
    for chosen in orders:
        free = {name: anything[name] for name in (*chosen, *(followers if direction.dst in chosen else ()))}
        for readings in itertools.product(*forms):
            given = same | {name: assembly.describe(form) for name, form in zip(data, readings)}
            yield given, {**given, **fixed, **free}, dtype

    wide = {name: _widened(operand) for name, operand in shaped.items()}
    if wide != shaped and way == autotune.RULE:
        exact = [name for name in operands if name in VECTORS or (name.startswith("post") and name not in followers)]
        wanted = {
            name: assembly.describe(Operand.dense(item.shape, item.dtype))
            if name in exact
            else assembly.describe_any(item)
            for name, item in wide.items()
        }
        yield same, wanted, "float32"


# The lanes of a float32 vector.
NARROW = 16


def _is_image_gradient(direction: Direction, operands: dict[str, Operand]) -> bool:
    return direction is BACKWARD_DATA and operands["diff_src"].shape[1] < 4 and operands["diff_src"].dtype == "float32"


def _widened(operand: Operand) -> Operand:
    return replace(operand, dtype="float32") if operand.dtype in ("bfloat16", "float16") else operand


def _readings(operand: Operand) -> list[Operand]:
    """Return an operand with other strides for its dimensions of size 1.

    They are those of channels-first and of channels-last data.
    """
    rank = len(operand.shape)
    found = []
    for order in (range(rank), (0, *range(2, rank), 1)):
        strides, step = list(operand.strides), 1
        for axis in reversed(order):
            if operand.shape[axis] == 1:
                strides[axis] = step
            step = max(step, strides[axis] * operand.shape[axis])
        reading = replace(operand, strides=tuple(strides))
        if reading not in found:
            found.append(reading)
    return found


def _grouped(weights: Operand, groups: int) -> Operand:
    """Return weights as oneDNN takes them: several groups are a dimension in front."""
    if groups == 1:
        return weights
    per_group = weights.shape[0] // groups
    shape = (groups, per_group, *weights.shape[1:])
    return Operand(shape, (per_group * weights.strides[0], *weights.strides), weights.dtype)


def _forward_hint(
    direction: Direction, operands: dict[str, Operand], assembly: Assembly, window: Window, dtype: str
) -> int:
    """Return the forward primitive's descriptor that oneDNN's gradients require.

    Its element type is `dtype` throughout. Returns 0 if there is none.
    """
    shaped = [operands[direction.src], _grouped(operands[direction.weights], window.groups), operands[direction.dst]]
    src, weights, dst = (assembly.describe_any(replace(operand, dtype=dtype)) for operand in shaped)
    hint, status = construct(
        FORWARD.constructor,
        dnnl.library().engine,
        dnnl.FORWARD_TRAINING,
        dnnl.CONVOLUTION_DIRECT,
        src,
        weights,
        None,
        dst,
        *window.arguments(),
        None,
    )
    return 0 if status else assembly.handles.hold("dnnl_primitive_desc_destroy", hint)


def _check_shapes(direction: Direction, operands: dict[str, Operand], window: Window) -> None:
    src, weights, dst = (operands[name].shape for name in (direction.src, direction.weights, direction.dst))
    spatial = len(src) - 2
    moves = (window.strides, window.padding_low, window.padding_high, window.dilation)
    reason = None
    if not 1 <= spatial <= 3 or len(weights) != len(src) or len(dst) != len(src):
        reason = "1 to 3 spatial dimensions are supported, the same number in all operands"
    elif any(len(values) != spatial for values in moves):
        reason = f"strides, padding_low, padding_high and dilation need {spatial} values each"
    elif min(window.strides) < 1 or min(window.dilation) < 1 or window.groups < 1:
        reason = "strides, dilation and groups must be at least 1"
    elif src[1] != weights[1] * window.groups or dst[1] != weights[0] or weights[0] % window.groups:
        reason = f"the channels do not fit {window.groups} groups"
    elif src[0] != dst[0]:
        reason = "the batch sizes differ"
    else:
        for size, kernel, stride, low, high, dilation, have in zip(src[2:], weights[2:], *moves, dst[2:]):
            room = size + low + high - dilation * (kernel - 1) - 1
            if have != room // stride + 1:
                reason = f"the spatial shape of {direction.dst} should have {room // stride + 1} where it has {have}"
    for name, operand in operands.items():
        if name in VECTORS and operand.shape != (weights[0],):
            reason = f"{name} must have one value per output channel"
        if name.startswith("post") and (
            len(operand.shape) != len(dst) or any(size not in (1, full) for size, full in zip(operand.shape, dst))
        ):
            reason = f"{name} does not broadcast to {direction.dst}"
    if reason:
        shapes = ", ".join(f"{name} {operand.shape}" for name, operand in operands.items())
        raise ValueError(f"{direction.name}: {reason}: {shapes}; {window}")
