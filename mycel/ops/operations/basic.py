"""The operations of arithmetic, reductions, shapes, layers and random numbers as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.common.generator import seeded_generator
from mycel.core.tensor import Tensor, cast
from mycel.ops import (
    activation,
    arrange,
    array,
    convolution,
    creation,
    elementwise,
    indexed,
    loss,
    math,
    normalization,
    pairwise,
    pooling,
    random,
    reduction,
    segments,
    sorting,
    state,
)
from mycel.ops._operands import axis_of, cast_index, floating, operand, operands, run, select, wide
from mycel.ops._operands import constant_like as like
from mycel.ops.algebra import linalg
from mycel.ops.images.patches import mirror_pad
from mycel.ops.operations.primitive import NEEDED, definer, plain
from mycel.prims import elementwise as E
from mycel.prims import random as distributions
from mycel.prims import reduce as R
from mycel.prims import shape as S

__all__: list[str] = []

define = definer(globals())

# Rows without parameters: a class and the function that it calls.
plain(define, {
    elementwise: """Abs=abs ACos=acos Acosh=acosh Add=add TensorAdd=add Asin=asin Asinh=asinh Atan=atan Atan2=atan2 Atanh=atanh
        BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Ceil=ceil Cos=cos Cosh=cosh Digamma=digamma Div=div Equal=equal
        Erf=erf Erfc=erfc Erfinv=erfinv Exp=exp Expm1=expm1 Floor=floor FloorDiv=floor_divide FloorMod=remainder Greater=greater
        GreaterEqual=greater_equal Inv=inv Invert=invert IsFinite=isfinite IsInf=isinf IsNan=isnan LeftShift=bitwise_left_shift Less=less
        LessEqual=less_equal Lgamma=lgamma Log=log Log1p=log1p LogicalAnd=logical_and LogicalNot=logical_not LogicalOr=logical_or
        LogicalXor=logical_xor Maximum=maximum Minimum=minimum Mod=truncate_mod Mul=mul Neg=neg NotEqual=not_equal Pow=pow
        RealDiv=div Reciprocal=reciprocal RightShift=bitwise_right_shift Rint=round Round=round Rsqrt=rsqrt Sigmoid=sigmoid Sign=sign Sin=sin
        Sinh=sinh Sqrt=sqrt Square=square Sub=sub Tan=tan Tanh=tanh Trunc=trunc TruncateDiv=truncate_div TruncateMod=truncate_mod""",
    math: """Addcdiv=addcdiv Addcmul=addcmul AddN=addn AccumulateNV2=accumulate_n Fmax=fmax Fmin=fmin Gcd=gcd Heaviside=heaviside Hypot=hypot
        Lcm=lcm Lerp=lerp Sinc=sinc Xdivy=xdivy Xlogy=xlogy""",
    activation: """FastGeLU=fast_gelu FastGelu=fast_gelu HSigmoid=hardsigmoid HSwish=hardswish Mish=mish PReLU=prelu ReLU=relu
        ReLU6=relu6 SeLU=selu Softplus=softplus Softsign=softsign""",
    array: """ExpandDims=expand_dims Reshape=reshape Transpose=transpose""",
    arrange: """Cast=cast Diag=diag Identity=identity Rank=rank Shape=shape TensorShape=dyn_shape DType=dtype Size=size Slice=slice Tile=tile""",
    creation: """Eye=eye Fill=fill Fills=fills LinSpace=linspace Ones=ones OnesLike=ones_like Zeros=zeros ZerosLike=zeros_like FillV2=full""",
    indexed: """GatherD=gather_d GatherNd=gather_nd MaskedFill=masked_fill MaskedSelect=masked_select NonZero=nonzero ScatterNd=scatter_nd
        Select=select TensorScatterUpdate=tensor_scatter_update TensorScatterAdd=tensor_scatter_add TensorScatterSub=tensor_scatter_sub
        TensorScatterMul=tensor_scatter_mul TensorScatterDiv=tensor_scatter_div TensorScatterMax=tensor_scatter_max
        TensorScatterMin=tensor_scatter_min MaskedScatter=masked_scatter IndexFill=index_fill""",
    segments: """Unique=unique UnsortedSegmentMax=unsorted_segment_max UnsortedSegmentMin=unsorted_segment_min
        UnsortedSegmentProd=unsorted_segment_prod UnsortedSegmentSum=unsorted_segment_sum""",
    linalg: "Dense=dense Ger=ger Trace=trace",
    state: "Assign=assign AssignAdd=assign_add AssignSub=assign_sub Depend=depend",
})  # fmt: skip
# Scatters into parameters; locking has no meaning here.
for _kind in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Update"):
    for _prefix, _family in (("Scatter", "scatter"), ("ScatterNd", "scatter_nd")):
        _write = getattr(indexed, f"{_family}_{_kind.lower()}")
        define(f"{_prefix}{_kind}", lambda p, x, i, u, _write=_write: _write(x, i, u), use_locking=_kind == "Update")


def _transposed(x: Tensor, swap: bool) -> Tensor:
    return array.swapaxes(x, -1, -2) if swap else x


def _matrix_product(p: Any, x: Any, y: Any) -> Tensor:
    a, b = operands(p.name, x, y)
    return linalg.matmul(_transposed(a, p.transpose_a), _transposed(b, p.transpose_b))


def _no_nan(function: Any) -> Callable[[Any, Any], Tensor]:
    def compute(x: Any, y: Any) -> Tensor:
        a, b = operands("no_nan", x, y)
        zero = run(E.eq, b, like(0, b))
        return select(zero, like(0, a), function(a, select(zero, like(1, b), b)))

    return compute


define("MatMul", _matrix_product, transpose_a=False, transpose_b=False)
define("BatchMatMul", _matrix_product, transpose_a=False, transpose_b=False)
define("DivNoNan", _no_nan(elementwise.div), "x / y, and 0 where y is 0.")
define("MulNoNan", _no_nan(elementwise.mul), "x * y, and 0 where y is 0.")
define("SquaredDifference", lambda x, y: elementwise.square(elementwise.sub(x, y)), "The square of the difference.")
define("SquareSumAll", lambda x, y: (reduction.sum(x * x), reduction.sum(y * y)), "The sums of squares of two tensors.")
define("L2Loss", lambda x: reduction.sum(x * x) * 0.5, "Half the sum of squares.")
define("ApproximateEqual", lambda p, x, y: math.approximate_equal(x, y, p.tolerance), tolerance=1e-5)
define(
    "IsClose", lambda p, x, y: math.isclose(x, y, p.rtol, p.atol, p.equal_nan), rtol=1e-5, atol=1e-8, equal_nan=False
)
define("NanToNum", lambda p, x: math.nan_to_num(x, p.nan, p.posinf, p.neginf), nan=None, posinf=None, neginf=None)
define("Logit", lambda p, x: math.logit(x, None if p.eps < 0 else p.eps), eps=-1.0)
define("Cdist", lambda p, x, y: pairwise.cdist(x, y, p.p), p=2.0)
define(
    "StopGradient",
    lambda x: run(E.stop_gradient, operand("StopGradient", x)),
    "The tensor as a constant for differentiation.",
)


# Reductions.
def _sum(p: Any, x: Any, axis: Any = ()) -> Tensor:
    value = operand("ReduceSum", x)
    if p.skip_mode and isinstance(axis, (tuple, list)) and not axis:
        return value
    return reduction.sum(value, axis, p.keep_dims, dtype=value.dtype)


define(
    "ReduceSum",
    _sum,
    keep_dims=False,
    skip_mode=False,
)
for _class, _reduce in (
    ("ReduceMean", reduction.mean),
    ("ReduceProd", reduction.prod),
    ("ReduceAny", reduction.any),
    ("ReduceAll", reduction.all),
):
    define(_class, lambda p, x, axis=(), _reduce=_reduce: _reduce(x, axis, p.keep_dims), keep_dims=False)
for _class, _extreme in (("ReduceMax", reduction.amax), ("ReduceMin", reduction.amin)):
    define(_class, lambda p, x, axis=(), _extreme=_extreme: _extreme(x, axis, p.keep_dims), keep_dims=False)


def _reduced_std(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    return reduction.std_mean(x, p.axis or None, int(p.unbiased), p.keep_dims)


define(
    "ReduceStd",
    _reduced_std,
    "The standard deviation over `axis` (all axes where it is empty), and the mean.",
    axis=[],
    unbiased=True,
    keep_dims=False,
)


def _position(find: Any) -> Any:
    def run_(p: Any, x: Any) -> Tensor:
        value, kind = operand(p.name, x), D.from_any(p.output_type)
        size = value.shape[axis_of(p.name, p.axis, value.ndim)] if value.ndim else 1
        if kind is D.int32 and S.position_type(size) is not kind:
            raise ValueError(
                f"{p.name}: int32 has no numbers for the {size} positions of axis {p.axis}; give output_type=mindspore.int64"
            )
        return cast(find(value, p.axis), kind)

    return run_


define("Argmax", _position(reduction.argmax), axis=-1, output_type=D.int32)
define("Argmin", _position(reduction.argmin), axis=-1, output_type=D.int32)
define("ArgMaxWithValue", lambda p, x: reduction.max(x, p.axis, p.keep_dims)[::-1], axis=0, keep_dims=False)
define("ArgMinWithValue", lambda p, x: reduction.min(x, p.axis, p.keep_dims)[::-1], axis=0, keep_dims=False)
define("CountNonZero", lambda p, x: reduction.count_nonzero(x, () if p.dims is None else p.dims), dims=None)
define(
    "LpNorm",
    lambda p, x: elementwise.maximum(reduction.vector_norm(x, p.p, p.axis, p.keep_dims), p.epsilon),
    "The norm of order `p` over axes, at least `epsilon`.",
    axis=NEEDED,
    p=2,
    keep_dims=False,
    epsilon=1e-12,
)
define("EuclideanNorm", lambda p, x, axes: reduction.vector_norm(x, 2, axes, p.keep_dims), keep_dims=False)


def _accumulated(function: Any) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any, axis: Any) -> Tensor:
        value = operand(p.name, x)
        where = axis_of(p.name, axis.item() if isinstance(axis, Tensor) else axis, value.ndim)
        value = arrange.flip(value, where) if p.reverse else value
        total = function(value, where)
        if p.exclusive:
            pads = [0, 0] * (value.ndim - 1 - where) + [1, -1]
            total = arrange.pad(total, tuple(pads), value=0 if p.name == "CumSum" else 1)
        return arrange.flip(total, where) if p.reverse else total

    return compute


define("CumSum", _accumulated(sorting.cumsum), exclusive=False, reverse=False)
define("CumProd", _accumulated(sorting.cumprod), exclusive=False, reverse=False)
define("Cummax", lambda p, x: sorting.cummax(x, p.axis), axis=NEEDED)
define("Cummin", lambda p, x: sorting.cummin(x, p.axis), axis=NEEDED)
define("Sort", lambda p, x: sorting.sort(x, p.axis, p.descending), axis=-1, descending=False)
define("TopK", lambda p, x, k: sorting.top_k(x, k.item() if isinstance(k, Tensor) else k, p.sorted), sorted=True)
define("InTopK", lambda p, x, y: segments.intopk(x, y, p.k), k=NEEDED)
define("SearchSorted", lambda p, rows, values: cast(sorting.searchsorted(rows, values, right=p.right), D.from_any(p.dtype)), dtype=D.int64, right=False)  # fmt: skip

# Shapes and positions.
define("BroadcastTo", lambda p, x: array.broadcast_to(x, p.shape), shape=NEEDED)
define("Concat", lambda p, xs: array.concat(xs, p.axis), axis=0)
define("Stack", lambda p, xs: array.stack(xs, p.axis), axis=0)
define("Pack", lambda p, xs: array.stack(xs, p.axis), axis=0)
define("Unstack", lambda p, x: array.unstack(x, p.axis), axis=0, num=None)
define("Unpack", lambda p, x: array.unstack(x, p.axis), axis=0)
define("Squeeze", lambda p, x: array.squeeze(x, p.axis), axis=())
define("Flatten", lambda x: array.flatten(x), "All axes but the first joined.")
define(
    "Split",
    lambda p, x: _even_parts(p, x),
    "`output_num` parts of one size along an axis; ValueError where it does not divide.",
    axis=0,
    output_num=1,
)


def _split(p: Any, x: Any) -> tuple[Tensor, ...]:
    if p.num_split not in (-1, len(p.size_splits)):
        raise ValueError(f"SplitV: num_split must be {len(p.size_splits)}, the number of sizes, not {p.num_split}")
    return array.split(x, list(p.size_splits), p.split_dim)


define(
    "SplitV",
    _split,
    size_splits=NEEDED,
    split_dim=NEEDED,
    num_split=NEEDED,
)
define("ReverseV2", lambda p, x: arrange.flip(x, p.axis), axis=NEEDED)
define("Roll", lambda p, x: arrange.roll(x, p.shifts, p.dims), shifts=NEEDED, dims=None)
define("Tril", lambda p, x: arrange.tril(x, p.diagonal), diagonal=0)
define("Triu", lambda p, x: arrange.triu(x, p.diagonal), diagonal=0)
define("Meshgrid", lambda p, xs: arrange.meshgrid(*xs, indexing=p.indexing), indexing="xy")
define("Gather", lambda p, x, i, axis: indexed.gather(x, i, axis, p.batch_dims), batch_dims=0)
define("GatherV2", indexed.gather)
define(
    "IndexAdd",
    lambda p, x, i, y: indexed.index_add(x, i, y, p.axis),
    axis=NEEDED,
    use_lock=True,
    check_index_bound=True,
)
define("InplaceUpdate", lambda p, x, v: indexed.inplace_update(x, v, p.indices), indices=NEEDED)
define("InplaceAdd", lambda p, x, v: indexed.inplace_add(x, v, p.indices), indices=NEEDED)
define("InplaceSub", lambda p, x, v: indexed.inplace_sub(x, v, p.indices), indices=NEEDED)


def _rows_or_beyond(x: Any, rows: Tensor) -> Tensor:
    """Indices of rows, in which negative ones lie beyond the last row."""
    table = operand("EmbeddingLookup", x)
    if table.ndim == 0:
        raise ShapeError("EmbeddingLookup: takes a table with an axis of rows, not a single number")
    return select(rows < 0, like(table.shape[0], rows), rows)


define(
    "EmbeddingLookup",
    lambda x, i, offset: indexed.read_or_zeros(
        operand("EmbeddingLookup", x), _rows_or_beyond(x, cast_index("EmbeddingLookup", i) - offset)
    ),
    "Rows that indices less an offset name; zeros where there is no such row.",
)
define(
    "TensorScatterElements",
    lambda p, x, i, u: indexed.tensor_scatter_elements(x, i, u, p.axis, p.reduction),
    axis=0,
    reduction="none",
)
define("OneHot", lambda p, i, depth, on, off: creation.one_hot(i, depth, on, off, p.axis), axis=-1)
define("Range", lambda p, start, end, step: creation.range(start, end, step, p.maxlen), maxlen=1000000)
define("TrilIndices", lambda p: creation.tril_indices(p.row, p.col, p.offset, dtype=p.dtype), row=NEEDED, col=NEEDED, offset=0, dtype=D.int32)  # fmt: skip
define(
    "TriuIndices",
    lambda p: creation.triu_indices(p.row, p.col, p.offset, dtype=p.dtype),
    row=NEEDED,
    col=NEEDED,
    offset=0,
    dtype=D.int32,
)
define(
    "StridedSlice",
    lambda p, x, begin, end, strides: arrange.strided_slice(
        x, begin, end, strides, p.begin_mask, p.end_mask, p.ellipsis_mask, p.new_axis_mask, p.shrink_axis_mask
    ),
    begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0,
)  # fmt: skip


def _even_parts(p: Any, x: Any) -> tuple[Tensor, ...]:
    value = operand("Split", x)
    size = value.shape[axis_of("Split", p.axis, value.ndim)]
    arguments.integer("Split", "output_num", p.output_num, 1, flags=True, numpy=False, error=ValueError)
    if isinstance(size, int) and size % p.output_num:
        raise ValueError(f"Split: axis {p.axis} of size {size} does not divide into {p.output_num} parts")
    return array.split(value, size // p.output_num, p.axis)


def _padded_around(p: Any, x: Any) -> Tensor:
    pairs = p.paddings
    if not isinstance(pairs, (tuple, list)) or not all(isinstance(v, (tuple, list)) and len(v) == 2 for v in pairs):
        raise TypeError(f"Pad: paddings must be pairs of ints, one for each axis, not {pairs!r:.80}")
    flat = [v for pair in reversed(pairs) for v in pair]
    return arrange.pad(x, tuple(flat))


define("Pad", _padded_around, paddings=NEEDED)
define("MirrorPad", lambda p, x, paddings: mirror_pad(x, paddings, p.mode), mode="REFLECT")

# Activations, normalisation and losses.
define(
    "Softmax", lambda p, x: activation.softmax(x, p.axis[0] if isinstance(p.axis, (tuple, list)) else p.axis), axis=-1
)
define("LogSoftmax", lambda p, x: activation.log_softmax(x, p.axis), axis=-1)
define("Elu", lambda p, x: activation.elu(x, p.alpha), alpha=1.0)
define("CeLU", lambda p, x: activation.celu(x, p.alpha), alpha=1.0)
define("GeLU", lambda x: activation.gelu(x, "tanh"), "The tanh form of `mycel.ops.gelu`.")
define("Gelu", lambda x: activation.gelu(x, "tanh"), "The tanh form of `mycel.ops.gelu`.")
define("GLU", lambda p, x: activation.glu(x, p.axis), axis=-1)
define("HShrink", lambda p, x: activation.hardshrink(x, p.lambd), lambd=0.5)
define("SoftShrink", lambda p, x: activation.softshrink(x, p.lambd), lambd=0.5)
define("L2Normalize", lambda p, x: normalization.l2_normalize(x, p.axis, p.epsilon), "The elements over the square root of the sum of squares along `axis`, which counts as at least `epsilon`.", axis=0, epsilon=1e-4)  # fmt: skip
define("LRN", lambda p, x: normalization.lrn(x, p.depth_radius, p.bias, p.alpha, p.beta, p.norm_region), depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS")  # fmt: skip
define("RmsNorm", lambda p, x, gamma: normalization.rms_norm(x, gamma, p.epsilon), epsilon=1e-6)


def _channels_first(p: Any, x: Any) -> Tensor:
    if p.data_format not in ("NCHW", "NCDHW"):
        raise ValueError(f"{p.name}: data_format {p.data_format!r} is not supported on the CPU; use 'NCHW' or 'NCDHW'")
    return operand(p.name, x)


def _layer_norm(p: Any, x: Any, gamma: Any, beta: Any) -> tuple[Tensor, Tensor, Tensor]:
    value = floating("LayerNorm", x)
    first = axis_of("LayerNorm", p.begin_norm_axis, value.ndim)
    full = wide(value)
    spread, centre = reduction.var_mean(full, tuple(range(first, value.ndim)), 0, True)
    result = (full - centre) * run(E.rsqrt, spread + p.epsilon)
    return cast(result * gamma + beta, value.dtype), centre, spread


def _batch_norm(p: Any, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> tuple[Tensor, ...]:
    value = _channels_first(p, x)
    out = normalization.batch_norm(value, mean, variance, scale, bias, p.is_training, p.momentum, p.epsilon)
    if not p.is_training:
        return out, mean, variance, mean, variance
    spread, centre = reduction.var_mean(value, (0, *range(2, value.ndim)))
    return out, creation.zeros_like(centre), creation.zeros_like(spread), centre, spread


define("LayerNorm", _layer_norm, "The axes from `begin_norm_axis` on normalised, scaled by `gamma` and shifted by `beta`; their mean, and their variance.", begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7)  # fmt: skip
define("BatchNorm", _batch_norm, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW")
define("BiasAdd", lambda p, x, b: convolution.bias_add(_channels_first(p, x), b), data_format="NCHW")


def _softmax_entropy(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    x, y = operands("SoftmaxCrossEntropyWithLogits", logits, labels)
    entropy = loss.cross_entropy(x, y, reduction="none")
    return entropy, activation.softmax(x) - y


def _sparse_entropy(p: Any, logits: Any, labels: Any) -> Tensor:
    x = floating(p.name, logits)
    if x.ndim != 2:
        raise ShapeError(f"{p.name}: takes logits (N, C) and labels (N,), not {x._type}")
    y = indexed.inside(p.name, labels, x.shape[-1], 1)
    if p.is_grad:
        return (activation.softmax(x) - cast(creation.one_hot(y, x.shape[1]), x.dtype)) / x.shape[0]
    return loss.cross_entropy(x, y)


def _nll(p: Any, logits: Any, labels: Any, weight: Any) -> tuple[Tensor, Tensor]:
    value = loss.nll_loss(logits, labels, weight, p.ignore_index, p.reduction)
    index = cast_index("NLLLoss", labels)
    counted = cast(run(E.ne, index, like(p.ignore_index, index)), value.dtype)
    own = indexed.gather(weight, select(run(E.ne, index, like(p.ignore_index, index)), index, 0), 0)
    return value, run(R.reduce_sum, own * counted, axes=tuple(range(own.ndim)), keepdims=False)


define(
    "SoftmaxCrossEntropyWithLogits",
    _softmax_entropy,
    "The cross-entropy of each row with probabilities, and its derivative.",
)
define("SparseSoftmaxCrossEntropyWithLogits", _sparse_entropy, "The mean cross-entropy of logits (N, C) with classes (N,), or with `is_grad` its derivative by the logits.", is_grad=False)  # fmt: skip
define("NLLLoss", _nll, reduction="mean", ignore_index=-100)
define(
    "BCEWithLogitsLoss",
    lambda p, x, y, w=None, q=None: loss.binary_cross_entropy_with_logits(x, y, w, q, p.reduction),
    reduction="mean",
)
define("BinaryCrossEntropy", lambda p, x, y, w=None: loss.binary_cross_entropy(x, y, w, p.reduction), reduction="mean")
define("KLDivLoss", lambda p, x, y: loss.kl_div(x, y, p.reduction), reduction="mean")
define("SmoothL1Loss", lambda p, x, y: loss.smooth_l1_loss(x, y, p.beta, p.reduction), beta=1.0, reduction="none")
define("SoftMarginLoss", lambda p, x, y: loss.soft_margin_loss(x, y, p.reduction), reduction="mean")


def _sigmoid_entropy(logits: Any, labels: Any) -> Tensor:
    return loss.binary_cross_entropy_with_logits(logits, labels, reduction="none")


define("SigmoidCrossEntropyWithLogits", _sigmoid_entropy, "The binary cross-entropy of each element, from logits.")


# Convolution and pooling. An operation's strides and sizes may come with the batch and channel entries of their layout.


def _convolve(rank: int) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any, weight: Any) -> Tensor:
        if p.mode != 1:
            raise ValueError(f"{p.name}: mode must be 1, cross-correlation, not {p.mode}")
        padding: Any = p.pad if p.pad_mode.lower() == "pad" else 0
        value = _channels_first(p, x)
        return convolution.convolution(
            p.name, rank, value, weight, None, p.stride, p.pad_mode, padding, p.dilation, p.group
        )

    return compute


define("Conv2D", _convolve(2), "The convolution of (N, C_in, H, W) with a weight (C_out, C_in / group, KH, KW), as `mycel.ops.conv2d` computes it.", out_channel=NEEDED, kernel_size=NEEDED, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1, data_format="NCHW")  # fmt: skip
define("Conv3D", _convolve(3), "The convolution of (N, C_in, D, H, W) with a weight (C_out, C_in / group, KD, KH, KW), as `mycel.ops.conv3d` computes it.", out_channel=NEEDED, kernel_size=NEEDED, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1, data_format="NCDHW")  # fmt: skip


def _convolve_back(p: Any, ct: Any, weight: Any, input_shape: Any) -> Tensor:
    from mycel.prims.conv import conv_grad_input

    if p.mode != 1:
        raise ValueError(f"{p.name}: mode must be 1, cross-correlation, not {p.mode}")
    y, w = operands(p.name, _channels_first(p, ct), weight)
    shape = tuple(input_shape.tolist() if isinstance(input_shape, Tensor) else input_shape)
    strides, steps = (
        convolution.per_axis(p.name, k, v, 2) for k, v in (("stride", p.stride), ("dilation", p.dilation))
    )
    padding = p.pad if p.pad_mode.lower() == "pad" else 0
    pairs = convolution.paddings(p.name, p.pad_mode, padding, shape[2:], w.shape[2:], strides, steps)
    return run(conv_grad_input, y, w, input_shape=shape, strides=strides, padding=pairs, dilation=steps, groups=p.group)


for _class in ("Conv2DTranspose", "Conv2DBackpropInput"):
    define(_class, _convolve_back, "The derivative of `Conv2D` by its input, given that of its output, the weight, and the input's shape.", out_channel=NEEDED, kernel_size=NEEDED, pad_mode="valid", pad=0, pad_list=None, mode=1, stride=1, dilation=1, group=1, data_format="NCHW")  # fmt: skip


def _pool(rank: int, mean: bool) -> Callable[..., Tensor]:
    def compute(p: Any, x: Any) -> Tensor:
        value = _channels_first(p, x)
        window, strides = (
            convolution.per_axis(p.name, k, v, rank)
            for k, v in (("kernel_size", p.kernel_size), ("strides", p.strides))
        )
        pairs = convolution.paddings(
            p.name, p.pad_mode, getattr(p, "pad_list", 0), value.shape[2:], window, strides, (1,) * rank
        )
        pairs = pooling.with_ceil(value.shape[2:], window, strides, pairs, bool(getattr(p, "ceil_mode", False)))
        if mean:
            return pooling.mean_windows(value, window, strides, pairs, ((0, 0),) * rank)
        return pooling.max_windows(value, window, strides, pairs)

    return compute


define("MaxPool", _pool(2, False), "The largest element of each window of (N, C, H, W).", kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW")  # fmt: skip
define("AvgPool", _pool(2, True), "The mean of each window of (N, C, H, W), zeros around the image left out.", kernel_size=1, strides=1, pad_mode="VALID", data_format="NCHW")  # fmt: skip
define(
    "MaxPool3D",
    _pool(3, False),
    "The largest element of each window of (N, C, D, H, W).",
    kernel_size=1,
    strides=1,
    pad_mode="VALID",
    pad_list=0,
    ceil_mode=None,
    data_format="NCDHW",
)


def _averaged(p: Any, x: Any) -> Tensor:
    value = _channels_first(p, x)
    window, strides = (
        convolution.per_axis(p.name, k, v, 3) for k, v in (("kernel_size", p.kernel_size), ("strides", p.strides))
    )
    pairs = convolution.paddings(
        p.name, p.pad_mode, p.pad if p.pad_mode.lower() == "pad" else 0, value.shape[2:], window, strides, (1, 1, 1)
    )
    full = pooling.with_ceil(value.shape[2:], window, strides, pairs, p.ceil_mode)
    return pooling.mean_windows(
        value, window, strides, full, pairs if p.count_include_pad else ((0, 0),) * 3, p.divisor_override
    )


define("AvgPool3D", _averaged, "The mean of each window of (N, C, D, H, W); zeros around count as elements with `count_include_pad`.", kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False, count_include_pad=True, divisor_override=0, data_format="NCDHW")  # fmt: skip
define("AdaptiveAvgPool2D", lambda p, x: pooling.adaptive_avg_pool2d(x, p.output_size), output_size=NEEDED)
define("AdaptiveAvgPool3D", lambda p, x: pooling.adaptive_avg_pool3d(x, p.output_size), output_size=NEEDED)
define("AdaptiveMaxPool2D", lambda p, x: pooling.adaptive_max_pool2d(x, p.output_size, True), output_size=NEEDED)


# Random numbers. Seeds of 0 mean the default generator.


def _seed(p: Any) -> Optional[int]:
    return p.seed + getattr(p, "seed2", 0) or None


def _drop(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating("Dropout", x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"Dropout: keep_prob must lie in (0, 1], not {p.keep_prob}")
    generator = seeded_generator(p.Seed0 + p.Seed1 or None)
    kept = random.draw(distributions.bernoulli, value.shape, generator, probability=float(p.keep_prob))
    return select(kept, value * (1.0 / p.keep_prob), 0.0), cast(kept, value.dtype)


def _drop_channels(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating(p.name, x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"{p.name}: keep_prob must lie in (0, 1], not {p.keep_prob}")
    shape = (*value.shape[:2], *(1,) * (value.ndim - 2))
    kept = random.draw(distributions.bernoulli, shape, seeded_generator(None), probability=float(p.keep_prob))
    kept = array.broadcast_to(kept, value.shape)
    return select(kept, value * (1.0 / p.keep_prob), 0.0), kept


define("Dropout", _drop, "Each element kept with `keep_prob`, over `keep_prob`, else 0; and which were kept, as 1 and 0.", keep_prob=0.5, Seed0=0, Seed1=0)  # fmt: skip
define("Dropout2D", _drop_channels, "Each channel kept with `keep_prob`, over `keep_prob`, else 0; and which elements were kept, as booleans.", keep_prob=0.5)  # fmt: skip
define("Dropout3D", _drop_channels, "Each channel kept with `keep_prob`, over `keep_prob`, else 0; and which elements were kept, as booleans.", keep_prob=0.5)  # fmt: skip
define("StandardNormal", lambda p, shape: random.standard_normal(shape, _seed(p)), seed=0, seed2=0)
define("StandardLaplace", lambda p, shape: random.standard_laplace(shape, _seed(p)), seed=0, seed2=0)
define("UniformReal", lambda p, shape: random.rand(*_separate(shape), seed=_seed(p)), seed=0, seed2=0)
define("UniformInt", lambda p, shape, low, high: random.uniform(shape, low, high, _seed(p), D.int32), seed=0, seed2=0)
define(
    "Multinomial",
    lambda p, x, n: cast(random.multinomial(x, int(n), True, _seed(p)), D.from_any(p.dtype)),
    seed=0,
    seed2=0,
    dtype=D.int32,
)
define("RandomShuffle", lambda p, x: random.shuffle(x, _seed(p)), seed=0, seed2=0)
define("RandomCategorical", lambda p, x, n, seed=0: random.random_categorical(x, n, seed, p.dtype), dtype=D.int64)


def _separate(shape: Any) -> tuple[Any, ...]:
    """A shape as separate sizes."""
    return (
        tuple(shape.tolist())
        if isinstance(shape, Tensor)
        else tuple(shape)
        if isinstance(shape, (tuple, list))
        else (shape,)
    )
