"""Operations as objects, for editors and type checkers. `make stubs` writes this file."""

from mycel._src.tensors.core.tensor import Tensor
from typing import Any

from mycel.ops.operations.primitive import Primitive as Primitive
from mycel.ops.operations.attention import ApplyRotaryPosEmb as ApplyRotaryPosEmb
from mycel.ops.operations.attention import PagedAttention as PagedAttention
from mycel.ops.operations.attention import PagedAttentionMask as PagedAttentionMask
from mycel.ops.operations.custom import Custom as Custom
from mycel.ops.operations.custom import PyFunc as PyFunc
from mycel.ops.operations.custom import kernel as kernel
from mycel.ops.operations.custom import ms_kernel as ms_kernel
from mycel.ops.operations.custom_builder import CustomOpBuilder as CustomOpBuilder
from mycel.ops.operations.debugging import tensordump as tensordump
from mycel.ops.operations.morph import Morph as Morph
from mycel.ops.operations.python_values import PrimitiveWithCheck as PrimitiveWithCheck
from mycel.ops.operations.python_values import PrimitiveWithInfer as PrimitiveWithInfer
from mycel.ops.operations.python_values import prim_arg_register as prim_arg_register
from mycel.ops.operations.python_values import prim_attr_register as prim_attr_register
from mycel.ops.operations.registration import AiCPURegOp as AiCPURegOp
from mycel.ops.operations.registration import AkgAscendRegOp as AkgAscendRegOp
from mycel.ops.operations.registration import AkgGpuRegOp as AkgGpuRegOp
from mycel.ops.operations.registration import CpuRegOp as CpuRegOp
from mycel.ops.operations.registration import CustomRegOp as CustomRegOp
from mycel.ops.operations.registration import DataType as DataType
from mycel.ops.operations.registration import TBERegOp as TBERegOp
from mycel.ops.operations.registration import custom_info_register as custom_info_register
from mycel.ops.operations.registration import op_info_register as op_info_register
from mycel.ops.operations.resharding import Reshard as Reshard

__all__ = [
    "ACos",
    "Abs",
    "AccumulateNV2",
    "Acosh",
    "Adam",
    "AdamNoUpdateParam",
    "AdamWeightDecay",
    "AdaptiveAvgPool2D",
    "AdaptiveAvgPool3D",
    "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D",
    "Add",
    "AddN",
    "Addcdiv",
    "Addcmul",
    "AdjustHue",
    "AdjustSaturation",
    "AffineGrid",
    "AiCPURegOp",
    "AkgAscendRegOp",
    "AkgGpuRegOp",
    "AllGather",
    "AllGatherV",
    "AllReduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Angle",
    "ApplyAdaMax",
    "ApplyAdadelta",
    "ApplyAdagrad",
    "ApplyAdagradDA",
    "ApplyAdagradV2",
    "ApplyAdamWithAmsgrad",
    "ApplyAdamWithAmsgradV2",
    "ApplyAddSign",
    "ApplyCenteredRMSProp",
    "ApplyFtrl",
    "ApplyGradientDescent",
    "ApplyKerasMomentum",
    "ApplyMomentum",
    "ApplyPowerSign",
    "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent",
    "ApplyRMSProp",
    "ApplyRotaryPosEmb",
    "ApproximateEqual",
    "ArgMaxWithValue",
    "ArgMinWithValue",
    "Argmax",
    "Argmin",
    "Asin",
    "Asinh",
    "Assert",
    "Assign",
    "AssignAdd",
    "AssignSub",
    "Atan",
    "Atan2",
    "Atanh",
    "AvgPool",
    "AvgPool3D",
    "BCEWithLogitsLoss",
    "Barrier",
    "BartlettWindow",
    "BasicLSTMCell",
    "BatchISendIRecv",
    "BatchMatMul",
    "BatchNorm",
    "BatchToSpace",
    "BatchToSpaceND",
    "BatchToSpaceNDV2",
    "Bernoulli",
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Betainc",
    "BiasAdd",
    "BinaryCrossEntropy",
    "Bincount",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BlackmanWindow",
    "BoundingBoxDecode",
    "BoundingBoxEncode",
    "Broadcast",
    "BroadcastTo",
    "Bucketize",
    "CTCGreedyDecoder",
    "CTCLoss",
    "CTCLossV2",
    "Cast",
    "Cauchy",
    "Cdist",
    "CeLU",
    "Ceil",
    "ChannelShuffle",
    "CheckNumerics",
    "CheckValid",
    "Cholesky",
    "CholeskyInverse",
    "CholeskySolve",
    "Coalesce",
    "Col2Im",
    "CollectiveGather",
    "CollectiveScatter",
    "CombinedNonMaxSuppression",
    "CompareAndBitpack",
    "Complex",
    "ComplexAbs",
    "ComputeAccidentalHits",
    "Concat",
    "ConfusionMatrix",
    "Conj",
    "ConjugateTranspose",
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "CopyWithSlice",
    "Cos",
    "Cosh",
    "CountNonZero",
    "CpuRegOp",
    "CropAndResize",
    "Cross",
    "CumProd",
    "CumSum",
    "Cummax",
    "Cummin",
    "CumulativeLogsumexp",
    "Custom",
    "CustomOpBuilder",
    "CustomRegOp",
    "DType",
    "DataFormatDimMap",
    "DataFormatVecPermute",
    "DataType",
    "DeformableOffsets",
    "Dense",
    "Depend",
    "DepthToSpace",
    "DepthwiseConv2dNative",
    "Diag",
    "DiagPart",
    "Digamma",
    "Dilation2D",
    "Div",
    "DivNoNan",
    "Dropout",
    "Dropout2D",
    "Dropout3D",
    "DropoutDoMask",
    "DropoutGenMask",
    "DtypeToEnum",
    "DumpGradient",
    "DynamicGRUV2",
    "DynamicRNN",
    "DynamicShape",
    "EditDistance",
    "Eig",
    "Einsum",
    "Elu",
    "EmbeddingLookup",
    "Eps",
    "Equal",
    "EqualCount",
    "Erf",
    "Erfc",
    "Erfinv",
    "EuclideanNorm",
    "Exp",
    "Expand",
    "ExpandDims",
    "Expm1",
    "ExtractGlimpse",
    "ExtractImagePatches",
    "ExtractVolumePatches",
    "Eye",
    "FFTWithSize",
    "FastGeLU",
    "FastGelu",
    "Fill",
    "FillDiagonal",
    "FillV2",
    "Fills",
    "Flatten",
    "FloatStatus",
    "Floor",
    "FloorDiv",
    "FloorMod",
    "Fmax",
    "Fmin",
    "ForiLoop",
    "FractionalAvgPool",
    "FractionalMaxPool",
    "FractionalMaxPool3DWithFixedKsize",
    "FractionalMaxPoolWithFixedKsize",
    "FusedAdaFactor",
    "FusedAdaFactorWithGlobalNorm",
    "FusedCastAdamWeightDecay",
    "FusedSparseAdam",
    "FusedSparseFtrl",
    "FusedSparseLazyAdam",
    "FusedSparseProximalAdagrad",
    "FusedWeightScaleApplyMomentum",
    "GLU",
    "Gamma",
    "Gather",
    "GatherD",
    "GatherNd",
    "GatherV2",
    "Gcd",
    "GeLU",
    "Gelu",
    "Geqrf",
    "Ger",
    "Greater",
    "GreaterEqual",
    "GridSampler2D",
    "GridSampler3D",
    "HSVToRGB",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "HammingWindow",
    "Heaviside",
    "Histogram",
    "HistogramFixedWidth",
    "HistogramSummary",
    "Hypot",
    "IOU",
    "Identity",
    "IdentityN",
    "Igamma",
    "Igammac",
    "Im2Col",
    "Imag",
    "ImageSummary",
    "InTopK",
    "IndexAdd",
    "IndexFill",
    "IndexPut",
    "InplaceAdd",
    "InplaceIndexAdd",
    "InplaceSub",
    "InplaceUpdate",
    "InplaceUpdateV2",
    "Inv",
    "Invert",
    "InvertPermutation",
    "IsClose",
    "IsFinite",
    "IsInf",
    "IsNan",
    "KLDivLoss",
    "L2Loss",
    "L2Normalize",
    "LARSUpdate",
    "LRN",
    "LSTM",
    "LayerNorm",
    "Lcm",
    "LeftShift",
    "Lerp",
    "LerpScalar",
    "Less",
    "LessEqual",
    "Lgamma",
    "LinSpace",
    "ListDiff",
    "Log",
    "Log1p",
    "LogMatrixDeterminant",
    "LogNormalReverse",
    "LogSoftmax",
    "LogSoftmaxExt",
    "LogSpace",
    "LogUniformCandidateSampler",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "LogicalXor",
    "Logit",
    "LowerBound",
    "LpNorm",
    "Lstsq",
    "LuSolve",
    "LuUnpack",
    "MapUniform",
    "MaskedFill",
    "MaskedScatter",
    "MaskedSelect",
    "MatMul",
    "MatrixBandPart",
    "MatrixDeterminant",
    "MatrixDiagPartV3",
    "MatrixDiagV3",
    "MatrixExp",
    "MatrixInverse",
    "MatrixLogarithm",
    "MatrixPower",
    "MatrixSetDiagV3",
    "MatrixSolve",
    "MatrixSolveLs",
    "MatrixTriangularSolve",
    "MaxPool",
    "MaxPool3D",
    "MaxPool3DWithArgmax",
    "MaxPoolWithArgmax",
    "MaxPoolWithArgmaxV2",
    "MaxUnpool2D",
    "MaxUnpool3D",
    "Maximum",
    "Median",
    "Meshgrid",
    "Minimum",
    "MirrorPad",
    "Mish",
    "Mod",
    "Morph",
    "MoveTo",
    "Mul",
    "MulNoNan",
    "MultiMarginLoss",
    "MultilabelMarginLoss",
    "Multinomial",
    "MultinomialWithReplacement",
    "Mvlgamma",
    "NLLLoss",
    "NMSWithMask",
    "NanToNum",
    "Neg",
    "NeighborExchange",
    "NeighborExchangeV2",
    "NextAfter",
    "NoRepeatNGram",
    "NonDeterministicInts",
    "NonMaxSuppressionV3",
    "NonMaxSuppressionWithOverlaps",
    "NonZero",
    "NotEqual",
    "NthElement",
    "NuclearNorm",
    "OneHot",
    "Ones",
    "OnesLike",
    "Orgqr",
    "Ormqr",
    "PReLU",
    "Pack",
    "Pad",
    "PadV3",
    "Padding",
    "PagedAttention",
    "PagedAttentionMask",
    "ParallelConcat",
    "ParameterizedTruncatedNormal",
    "Pdist",
    "Poisson",
    "Polar",
    "Polygamma",
    "PopulationCount",
    "Pow",
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "Print",
    "PyExecute",
    "PyFunc",
    "Qr",
    "Quantile",
    "RGBToHSV",
    "RNNTLoss",
    "ROIAlign",
    "RaggedRange",
    "RandomCategorical",
    "RandomChoiceWithMask",
    "RandomGamma",
    "RandomPoisson",
    "RandomShuffle",
    "Randperm",
    "RandpermV2",
    "Range",
    "Rank",
    "ReLU",
    "ReLU6",
    "Real",
    "RealDiv",
    "Receive",
    "Reciprocal",
    "Reduce",
    "ReduceAll",
    "ReduceAny",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceScatter",
    "ReduceScatterV",
    "ReduceStd",
    "ReduceSum",
    "Renorm",
    "Reshape",
    "ReshapeAndCache",
    "Reshard",
    "ResizeArea",
    "ResizeBicubic",
    "ResizeBilinearV2",
    "ResizeLinear1D",
    "ResizeNearestNeighbor",
    "ResizeNearestNeighborV2",
    "Reusing",
    "ReverseSequence",
    "ReverseV2",
    "RightShift",
    "Rint",
    "RmsNorm",
    "Roll",
    "Round",
    "Rsqrt",
    "SGD",
    "STFT",
    "SampleDistortedBoundingBoxV2",
    "ScalarCast",
    "ScalarSummary",
    "ScalarToArray",
    "ScalarToTensor",
    "ScaleAndTranslate",
    "Scan",
    "ScatterAdd",
    "ScatterAddWithAxis",
    "ScatterDiv",
    "ScatterMax",
    "ScatterMin",
    "ScatterMul",
    "ScatterNd",
    "ScatterNdAdd",
    "ScatterNdDiv",
    "ScatterNdMax",
    "ScatterNdMin",
    "ScatterNdMul",
    "ScatterNdSub",
    "ScatterNdUpdate",
    "ScatterNonAliasingAdd",
    "ScatterSub",
    "ScatterUpdate",
    "SeLU",
    "SearchSorted",
    "SegmentMax",
    "SegmentMean",
    "SegmentMin",
    "SegmentProd",
    "SegmentSum",
    "Select",
    "SelectView",
    "Send",
    "Shape",
    "Sigmoid",
    "SigmoidCrossEntropyWithLogits",
    "Sign",
    "Sin",
    "Sinc",
    "Sinh",
    "Size",
    "Slice",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "SoftShrink",
    "Softmax",
    "SoftmaxCrossEntropyWithLogits",
    "Softplus",
    "Softsign",
    "Sort",
    "SpaceToBatch",
    "SpaceToBatchND",
    "SpaceToDepth",
    "SparseApplyAdadelta",
    "SparseApplyAdagrad",
    "SparseApplyAdagradV2",
    "SparseApplyFtrl",
    "SparseApplyFtrlV2",
    "SparseApplyProximalAdagrad",
    "SparseApplyRMSProp",
    "SparseGatherV2",
    "SparseSlice",
    "SparseSoftmaxCrossEntropyWithLogits",
    "SparseTensorDenseAdd",
    "SparseTensorDenseMatmul",
    "SparseToDense",
    "Split",
    "SplitV",
    "Sqrt",
    "Square",
    "SquareSumAll",
    "SquaredDifference",
    "Squeeze",
    "Stack",
    "StandardLaplace",
    "StandardNormal",
    "StopGradient",
    "StridedSlice",
    "Sub",
    "SubAndFilter",
    "Svd",
    "TBERegOp",
    "Tan",
    "Tanh",
    "TensorAdd",
    "TensorDump",
    "TensorScatterAdd",
    "TensorScatterDiv",
    "TensorScatterElements",
    "TensorScatterMax",
    "TensorScatterMin",
    "TensorScatterMul",
    "TensorScatterSub",
    "TensorScatterUpdate",
    "TensorShape",
    "TensorSummary",
    "TensorToTuple",
    "Tile",
    "TopK",
    "Trace",
    "Transpose",
    "TransposeExtView",
    "TransposeView",
    "TridiagonalMatMul",
    "Tril",
    "TrilIndices",
    "TripletMarginLoss",
    "Triu",
    "TriuIndices",
    "Trunc",
    "TruncateDiv",
    "TruncateMod",
    "TruncatedNormal",
    "TupleToArray",
    "UniformCandidateSampler",
    "UniformInt",
    "UniformReal",
    "Unique",
    "UniqueConsecutive",
    "UniqueWithPad",
    "Unpack",
    "UnravelIndex",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
    "UnsortedSegmentProd",
    "UnsortedSegmentSum",
    "Unstack",
    "UpdateState",
    "UpperBound",
    "UpsampleNearest3D",
    "UpsampleTrilinear3D",
    "WhileLoop",
    "Xdivy",
    "Xlogy",
    "Zeros",
    "ZerosLike",
    "Zeta",
    "custom_info_register",
    "kernel",
    "ms_kernel",
    "op_info_register",
    "prim_arg_register",
    "prim_attr_register",
    "tensordump",
]

class ACos(Primitive):
    """`mycel.ops.acos` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Abs(Primitive):
    """`mycel.ops.abs` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class AccumulateNV2(Primitive):
    """`mycel.ops.accumulate_n` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Acosh(Primitive):
    """`mycel.ops.acosh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Adam(Primitive):
    """Adam (Kingma and Ba, 2014), or Nesterov's form of it."""

    def __init__(self, use_locking: bool = ..., use_nesterov: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        beta1_power: Any,
        beta2_power: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        gradient: Tensor,
    ) -> Any:
        ...

class AdamNoUpdateParam(Primitive):
    """The step of `Adam`, to be added to the parameter; m and v are updated."""

    def __init__(self, use_locking: bool = ..., use_nesterov: bool = ...) -> None:
        ...

    def __call__(self, m: Any, v: Any, *values: Any) -> Tensor:
        ...

class AdamWeightDecay(Primitive):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        decay: Any,
        gradient: Tensor,
    ) -> Any:
        ...

class AdaptiveAvgPool2D(Primitive):
    """`mycel.ops.adaptive_avg_pool2d` as an object. Return the means of (N, C, H, W) over
    windows that adapt to `output_size`, where None keeps an axis."""

    def __init__(self, output_size: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class AdaptiveAvgPool3D(Primitive):
    """`mycel.ops.adaptive_avg_pool3d` as an object. Return the means of (N, C, D, H, W) over
    windows that adapt to `output_size`, where None keeps an axis."""

    def __init__(self, output_size: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class AdaptiveMaxPool2D(Primitive):
    """`mycel.ops.adaptive_max_pool2d` as an object. Return the maxima of (N, C, H, W) over
    windows that adapt to `output_size`, where None keeps an axis."""

    def __init__(self, output_size: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class AdaptiveMaxPool3D(Primitive):
    """`mycel.ops.adaptive_max_pool3d` with positions, as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, output_size: Any) -> Any:
        ...

class Add(Primitive):
    """`mycel.ops.add` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class AddN(Primitive):
    """`mycel.ops.addn` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Addcdiv(Primitive):
    """`mycel.ops.addcdiv` as an object. Return ``input + value * tensor1 / tensor2``."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, x1: Any, x2: Any, value: Any) -> Any:
        ...

class Addcmul(Primitive):
    """`mycel.ops.addcmul` as an object. Return ``input + value * tensor1 * tensor2``."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, x1: Any, x2: Any, value: Any) -> Any:
        ...

class AdjustHue(Primitive):
    """Return RGB images (..., 3) of at least 3 dimensions with `delta` turns added to the hue."""

    def __init__(self) -> None:
        ...

    def __call__(self, image: Any, delta: Any) -> Tensor:
        ...

class AdjustSaturation(Primitive):
    """Return RGB images (..., 3) of at least 3 dimensions with the saturation times `scale`, cut
    off at 1."""

    def __init__(self) -> None:
        ...

    def __call__(self, image: Any, scale: Any) -> Tensor:
        ...

class AffineGrid(Primitive):
    """`mycel.ops.affine_grid` as an object. Return positions for `grid_sample`: those of an
    output (N, C, [D,] H, W) of shape `size`, taken to others by matrices."""

    def __init__(self, align_corners: bool = ...) -> None:
        ...

    def __call__(self, theta: Any, size: Any) -> Any:
        ...

class AllGather(Primitive):
    """The tensors of all processes, concatenated along the first axis."""

    def __init__(self, group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class AllGatherV(Primitive):
    """Vectors of all processes, concatenated; `output_split_sizes` has the number of elements of
    each."""

    def __init__(self, group: str = ...) -> None:
        ...

    def __call__(self, x: Any, output_split_sizes: Any) -> Tensor:
        ...

class AllReduce(Primitive):
    """The sum of a tensor over all processes, or another reduction: `op` is sum, prod, max, min
    or avg."""

    def __init__(self, op: str = ..., group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class AlltoAll(Primitive):
    """The parts of tensors for this process, joined along `concat_dim`, where each process cuts
    its tensor along `split_dim` into a part for each other one."""

    def __init__(self, split_count: Any, split_dim: Any, concat_dim: Any, group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class AlltoAllV(Primitive):
    """The parts of vectors that all processes sent to this one; a call says how many blocks go
    to each process and come from it."""

    def __init__(self, group: str = ..., block_size: Any = ...) -> None:
        ...

    def __call__(self, x: Any, sent: Any, awaited: Any) -> Any:
        ...

class AlltoAllVC(Primitive):
    """`AlltoAllV` whose call takes a matrix of the blocks that each process sends to each other
    one, or its transpose."""

    def __init__(self, group: str = ..., block_size: Any = ..., transpose: bool = ...) -> None:
        ...

    def __call__(self, x: Any, matrix: Any) -> Tensor:
        ...

class Angle(Primitive):
    """`mycel.ops.angle` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class ApplyAdaMax(Primitive):
    """Adam with the largest instead of the mean square (Kingma and Ba, 2014)."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        beta1_power: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyAdadelta(Primitive):
    """Adadelta (Zeiler, 2012)."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        accum_update: Tensor,
        lr: Any,
        rho: Any,
        epsilon: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyAdagrad(Primitive):
    """AdaGrad (Duchi et al., 2011)."""

    def __init__(self, update_slots: bool = ...) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor) -> Any:
        ...

class ApplyAdagradDA(Primitive):
    """AdaGrad by dual averaging (Duchi et al., 2011)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        gradient_accumulator: Tensor,
        gradient_squared_accumulator: Tensor,
        grad: Tensor,
        lr: Any,
        l1: Any,
        l2: Any,
        global_step: Any,
    ) -> Any:
        ...

class ApplyAdagradV2(Primitive):
    """AdaGrad with `epsilon` added to the root."""

    def __init__(self, epsilon: Any, update_slots: bool = ...) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor) -> Any:
        ...

class ApplyAdamWithAmsgrad(Primitive):
    """Adam with the largest second moment (Reddi et al., 2018)."""

    def __init__(
        self,
        beta1: float = ...,
        beta2: float = ...,
        epsilon: float = ...,
        use_locking: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        vhat: Tensor,
        beta1_power: Any,
        beta2_power: Any,
        lr: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyAdamWithAmsgradV2(Primitive):
    """Adam with the largest second moment (Reddi et al., 2018)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        vhat: Tensor,
        beta1_power: Any,
        beta2_power: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyAddSign(Primitive):
    """AddSign: steps scaled by ``alpha + sign_decay * sign(grad) * sign(m)`` (Bello et al.,
    2017)."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        lr: Any,
        alpha: Any,
        sign_decay: Any,
        beta: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyCenteredRMSProp(Primitive):
    """Centred RMSProp (Graves, 2013)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        mean_gradient: Tensor,
        mean_square: Tensor,
        moment: Tensor,
        grad: Tensor,
        learning_rate: Any,
        decay: Any,
        momentum: Any,
        epsilon: Any,
    ) -> Any:
        ...

class ApplyFtrl(Primitive):
    """Follow the regularized leader (McMahan et al., 2013)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        linear: Tensor,
        grad: Tensor,
        lr: Any,
        l1: Any,
        l2: Any,
        lr_power: Any,
    ) -> Any:
        ...

class ApplyGradientDescent(Primitive):
    """Gradient descent: ``var -= alpha * delta``."""

    def __init__(self) -> None:
        ...

    def __call__(self, var: Tensor, alpha: Any, delta: Tensor) -> Any:
        ...

class ApplyKerasMomentum(Primitive):
    """Gradient descent with a momentum that holds the step itself."""

    def __init__(self, use_locking: bool = ..., use_nesterov: bool = ...) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, lr: Any, grad: Tensor, momentum: Any) -> Any:
        ...

class ApplyMomentum(Primitive):
    """Gradient descent with momentum (Sutskever et al., 2013)."""

    def __init__(
        self,
        use_nesterov: bool = ...,
        use_locking: bool = ...,
        gradient_scale: float = ...,
    ) -> None:
        ...

    def __call__(
        self,
        variable: Tensor,
        accumulation: Tensor,
        learning_rate: Any,
        gradient: Tensor,
        momentum: Any,
    ) -> Any:
        ...

class ApplyPowerSign(Primitive):
    """PowerSign: steps scaled by ``exp(logbase * sign_decay * sign(grad) * sign(m))`` (Bello et
    al., 2017)."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        lr: Any,
        logbase: Any,
        sign_decay: Any,
        beta: Any,
        grad: Tensor,
    ) -> Any:
        ...

class ApplyProximalAdagrad(Primitive):
    """AdaGrad with a proximal step (Duchi and Singer, 2009)."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, lr: Any, l1: Any, l2: Any, grad: Tensor) -> Any:
        ...

class ApplyProximalGradientDescent(Primitive):
    """Descent with a proximal step (Duchi and Singer, 2009)."""

    def __init__(self) -> None:
        ...

    def __call__(self, var: Tensor, alpha: Any, l1: Any, l2: Any, delta: Tensor) -> Any:
        ...

class ApplyRMSProp(Primitive):
    """RMSProp (Tieleman and Hinton, 2012) with momentum."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        mean_square: Tensor,
        moment: Tensor,
        learning_rate: Any,
        grad: Tensor,
        decay: Any,
        momentum: Any,
        epsilon: Any,
    ) -> Any:
        ...

class ApproximateEqual(Primitive):
    """`mycel.ops.approximate_equal` as an object. Return whether ``|x - y| < tolerance``."""

    def __init__(self, tolerance: float = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class ArgMaxWithValue(Primitive):
    """`mycel.ops.max` as an object. Return the largest element along an axis and its position."""

    def __init__(self, axis: Any = ..., keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ArgMinWithValue(Primitive):
    """`mycel.ops.min` as an object. Return the smallest element along an axis and its position."""

    def __init__(self, axis: Any = ..., keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Argmax(Primitive):
    """`mycel.ops.argmax` as an object. Return the int64 position of the first largest element
    along `dim`, or without `dim` among all elements in row-major order."""

    def __init__(self, axis: Any = ..., output_type: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Argmin(Primitive):
    """`mycel.ops.argmin` as an object. Return the int32 position of the first smallest element
    along `axis`, or without `axis` among all elements in row-major order."""

    def __init__(self, axis: Any = ..., output_type: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Asin(Primitive):
    """`mycel.ops.asin` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Asinh(Primitive):
    """`mycel.ops.asinh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Assert(Primitive):
    """A check of a condition: ``Assert(summarize)(condition, input_data)`` raises RuntimeError
    unless the condition holds."""

    def __init__(self, summarize: Any = ...) -> None:
        ...

    def __call__(self, condition: Any, input_data: Any) -> None:
        ...

class Assign(Primitive):
    """`mycel.ops.assign` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, variable: Tensor, value: Any) -> Tensor:
        ...

class AssignAdd(Primitive):
    """`mycel.ops.assign_add` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, variable: Tensor, value: Any) -> Tensor:
        ...

class AssignSub(Primitive):
    """`mycel.ops.assign_sub` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, variable: Tensor, value: Any) -> Tensor:
        ...

class Atan(Primitive):
    """`mycel.ops.atan` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Atan2(Primitive):
    """`mycel.ops.atan2` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Atanh(Primitive):
    """`mycel.ops.atanh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class AvgPool(Primitive):
    """The mean of each window of (N, C, H, W), without the zeros around the image."""

    def __init__(
        self,
        kernel_size: Any = ...,
        strides: Any = ...,
        pad_mode: str = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class AvgPool3D(Primitive):
    """The mean of each window of (N, C, D, H, W); with `count_include_pad` the zeros around it
    count as elements."""

    def __init__(
        self,
        kernel_size: Any = ...,
        strides: Any = ...,
        pad_mode: str = ...,
        pad: Any = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        divisor_override: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BCEWithLogitsLoss(Primitive):
    """`mycel.ops.binary_cross_entropy_with_logits` as an object. Return `binary_cross_entropy`
    of sigmoid(input) and the labels `target`, computed from the logits without overflow."""

    def __init__(self, reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any, w: Any = ..., q: Any = ...) -> Any:
        ...

class Barrier(Primitive):
    """A wait until all processes of the group are here."""

    def __init__(self, group: str = ...) -> None:
        ...

    def __call__(self) -> Any:
        ...

class BartlettWindow(Primitive):
    """`mycel.ops.bartlett_window` as an object. Return the triangular window, which is 0 at its
    ends; float32 unless `dtype` is given."""

    def __init__(self, periodic: bool = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, window_length: Any) -> Tensor:
        ...

class BasicLSTMCell(Primitive):
    """One step of an LSTM: called with (x, h, c, w, b), it gives the next c and h, the gates i,
    j, f and o, and tanh(c)."""

    def __init__(
        self,
        keep_prob: float = ...,
        forget_bias: float = ...,
        state_is_tuple: bool = ...,
        activation: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, h: Any, c: Any, w: Any, b: Any) -> tuple[Tensor, ...]:
        ...

class BatchISendIRecv(Primitive):
    """Tensors sent and received at once: a result for each of `op_types`, which is a zero for a
    tensor that is sent."""

    def __init__(
        self,
        op_types: Any,
        remote_ranks: Any,
        receive_shapes: Any = ...,
        receive_dtypes: Any = ...,
        group: str = ...,
    ) -> None:
        ...

    def __call__(self, values: Any = ...) -> tuple[Tensor, ...]:
        ...

class BatchMatMul(Primitive):
    """`mycel.ops.matmul` as an object. Return the matrix product over the last two axes; the
    axes before broadcast."""

    def __init__(self, transpose_a: bool = ..., transpose_b: bool = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class BatchNorm(Primitive):
    """`mycel.ops.batch_norm` as an object: each channel (axis 1) of `input_x` normalised, scaled
    by `scale` and shifted by `bias` (Ioffe and Szegedy, 2015)."""

    def __init__(
        self,
        is_training: bool = ...,
        epsilon: float = ...,
        momentum: float = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        variance: Any,
    ) -> tuple[Tensor, ...]:
        ...

class BatchToSpace(Primitive):
    """`mycel.ops.batch_to_space_nd` as an object. Invert `space_to_batch_nd`: batches become
    places within blocks, and `crops` are cut off."""

    def __init__(self, block_size: Any, crops: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class BatchToSpaceND(Primitive):
    """`mycel.ops.batch_to_space_nd` as an object. Invert `space_to_batch_nd`: batches become
    places within blocks, and `crops` are cut off."""

    def __init__(self, block_shape: Any, crops: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class BatchToSpaceNDV2(Primitive):
    """`mycel.ops.batch_to_space_nd` as an object. Invert `space_to_batch_nd`: batches become
    places within blocks, and `crops` are cut off."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, block: Any, crops: Any) -> Any:
        ...

class Bernoulli(Primitive):
    """Random numbers, 1 with probability p and else 0, in the shape and type of x; called with
    (x, p=0.5)."""

    def __init__(self, seed: Any = ..., offset: Any = ...) -> None:
        ...

    def __call__(self, x: Any, probability: Any = ...) -> Tensor:
        ...

class BesselI0(Primitive):
    """`mycel.ops.bessel_i0` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselI0e(Primitive):
    """`mycel.ops.bessel_i0e` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselI1(Primitive):
    """`mycel.ops.bessel_i1` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselI1e(Primitive):
    """`mycel.ops.bessel_i1e` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselJ0(Primitive):
    """`mycel.ops.bessel_j0` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselJ1(Primitive):
    """`mycel.ops.bessel_j1` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselK0(Primitive):
    """`mycel.ops.bessel_k0` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselK0e(Primitive):
    """`mycel.ops.bessel_k0e` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselK1(Primitive):
    """`mycel.ops.bessel_k1` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselK1e(Primitive):
    """`mycel.ops.bessel_k1e` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselY0(Primitive):
    """`mycel.ops.bessel_y0` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class BesselY1(Primitive):
    """`mycel.ops.bessel_y1` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Betainc(Primitive):
    """The regularized incomplete beta function of a, b and x, which have one shape and type."""

    def __init__(self) -> None:
        ...

    def __call__(self, a: Any, b: Any, x: Any) -> Tensor:
        ...

class BiasAdd(Primitive):
    """`mycel.ops.bias_add` as an object. Add a vector along axis 1, the channels. Raises
    ValueError where the sizes differ."""

    def __init__(self, data_format: str = ...) -> None:
        ...

    def __call__(self, x: Any, b: Any) -> Any:
        ...

class BinaryCrossEntropy(Primitive):
    """`mycel.ops.binary_cross_entropy` as an object. Return ``-(y log p + (1 - y) log(1 - p))``
    for probabilities p (`logits`) and labels y, with 1e-12 added inside the logarithms."""

    def __init__(self, reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any, w: Any = ...) -> Any:
        ...

class Bincount(Primitive):
    """The sum of weights (1 each if empty) of each number below `size`; called with (array,
    size, weights)."""

    def __init__(self) -> None:
        ...

    def __call__(self, array: Any, size: Any, weights: Any) -> Tensor:
        ...

class BitwiseAnd(Primitive):
    """`mycel.ops.bitwise_and` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class BitwiseOr(Primitive):
    """`mycel.ops.bitwise_or` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class BitwiseXor(Primitive):
    """`mycel.ops.bitwise_xor` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class BlackmanWindow(Primitive):
    """`mycel.ops.blackman_window` as an object. Return 0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08
    cos(4 pi i / (n - 1)) for i in 0 .. n - 1, where n is `window_length`."""

    def __init__(self, periodic: bool = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, window_length: Any) -> Tensor:
        ...

class BoundingBoxDecode(Primitive):
    """`mycel.ops.bounding_box_decode` as an object: the boxes (boxes, 4) to which offsets take
    other boxes, cut at an image of `max_shape`."""

    def __init__(
        self,
        max_shape: Any,
        means: Any = ...,
        stds: Any = ...,
        wh_ratio_clip: float = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class BoundingBoxEncode(Primitive):
    """`mycel.ops.bounding_box_encode` as an object. Return the offsets that take each box of
    `anchor_box` to that of `groundtruth_box`."""

    def __init__(self, means: Any = ..., stds: Any = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class Broadcast(Primitive):
    """The tensors, given as a tuple, of the process `root_rank`."""

    def __init__(self, root_rank: Any, group: str = ...) -> None:
        ...

    def __call__(self, values: Any) -> tuple[Tensor, ...]:
        ...

class BroadcastTo(Primitive):
    """`mycel.ops.broadcast_to` as an object. Broadcast `input` to `shape`: axes of size 1 are
    repeated and missing axes added in front."""

    def __init__(self, shape: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Bucketize(Primitive):
    """The number of sorted boundaries that are not above each element, int32."""

    def __init__(self, boundaries: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CTCGreedyDecoder(Primitive):
    """`mycel.ops.ctc_greedy_decoder` as an object. Return the most probable class of each step
    of (T, N, C) without blanks (the last class), and with `merge_repeated` without
    repetitions."""

    def __init__(self, merge_repeated: bool = ...) -> None:
        ...

    def __call__(self, x: Any, n: Any) -> Any:
        ...

class CTCLoss(Primitive):
    """The loss of connectionist temporal classification, and its derivative, a constant."""

    def __init__(
        self,
        preprocess_collapse_repeated: bool = ...,
        ctc_merge_repeated: bool = ...,
        ignore_longer_outputs_than_inputs: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        x: Any,
        labels_indices: Any,
        labels_values: Any,
        sequence_length: Any,
    ) -> tuple[Tensor, Tensor]:
        ...

class CTCLossV2(Primitive):
    """`mycel.ops.ctc_loss` as an object. Return the loss of connectionist temporal
    classification (Graves et al., 2006)."""

    def __init__(self, blank: Any = ..., reduction: str = ..., zero_infinity: bool = ...) -> None:
        ...

    def __call__(
        self,
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
    ) -> tuple[Tensor, Tensor]:
        ...

class Cast(Primitive):
    """`mycel.ops.cast` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, dtype: Any) -> Tensor:
        ...

class Cauchy(Primitive):
    """Random numbers of a Cauchy distribution, float32."""

    def __init__(self, size: Any, median: float = ..., sigma: float = ...) -> None:
        ...

    def __call__(self) -> Tensor:
        ...

class Cdist(Primitive):
    """`mycel.ops.cdist` as an object. Return the p-norm distances between the rows of two
    (stacks of) matrices: (..., P, M) and (..., R, M) give (..., P, R)."""

    def __init__(self, p: float = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class CeLU(Primitive):
    """`mycel.ops.celu` as an object. Return x where it is positive, else alpha * (exp(x / alpha)
    - 1). Barron, 2017."""

    def __init__(self, alpha: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Ceil(Primitive):
    """`mycel.ops.ceil` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class ChannelShuffle(Primitive):
    """`mycel.ops.channel_shuffle` as an object. Shuffle the channels of (N, C, ...): written as
    a matrix of `groups` rows, they are read by columns. Zhang et al., 2018."""

    def __init__(self, group: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CheckNumerics(Primitive):
    """The tensor itself."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class CheckValid(Primitive):
    """`mycel.ops.check_valid` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, bboxes: Any, img_metas: Any) -> Tensor:
        ...

class Cholesky(Primitive):
    """`mycel.ops.cholesky` as an object. Return the Cholesky factor of Hermitian positive
    definite matrices A: lower triangular L with L L^H = A, or with `upper` U with U^H U = A."""

    def __init__(self, upper: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CholeskyInverse(Primitive):
    """`mycel.ops.cholesky_inverse` as an object. Return the inverse of A, where `input_x` is the
    Cholesky factor of A."""

    def __init__(self, upper: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CholeskySolve(Primitive):
    """`mycel.ops.cholesky_solve` as an object. Return the solution x of A x = `input`, where
    `input2` is the Cholesky factor of A."""

    def __init__(self, upper: bool = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class Coalesce(Primitive):
    """`mycel.ops.coalesce` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        x_indices: Any,
        x_values: Any,
        x_shape: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ...

class Col2Im(Primitive):
    """`mycel.ops.col2im` as an object: columns added up into images (N, C, H, W), as `fold`
    does."""

    def __init__(
        self,
        kernel_size: Any,
        dilation: Any = ...,
        padding: Any = ...,
        stride: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class CollectiveGather(Primitive):
    """The tensors of all processes, concatenated along the first axis, for the process
    `dest_rank`."""

    def __init__(self, dest_rank: Any, group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class CollectiveScatter(Primitive):
    """The share of this process of the rows that the process `src_rank` has."""

    def __init__(self, src_rank: Any = ..., group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class CombinedNonMaxSuppression(Primitive):
    """Return the best detections of each image: boxes (B, D, 4), scores (B, D), classes (B, D)
    as floats, and their number (B,); further places are 0."""

    def __init__(self, pad_per_class: bool = ..., clip_boxes: bool = ...) -> None:
        ...

    def __call__(
        self,
        boxes: Any,
        scores: Any,
        each: Any,
        total: Any,
        overlap: Any,
        score: Any,
    ) -> tuple[Tensor, ...]:
        ...

class CompareAndBitpack(Primitive):
    """Bytes of eight comparisons `x > threshold` each, along the last axis, the first as the
    highest bit."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, threshold: Any) -> Tensor:
        ...

class Complex(Primitive):
    """Return the complex numbers whose parts are two floating tensors, which broadcast."""

    def __init__(self) -> None:
        ...

    def __call__(self, real: Tensor, imag: Tensor) -> Tensor:
        ...

class ComplexAbs(Primitive):
    """Return the absolute values of complex numbers, in the type of their parts."""

    def __init__(self) -> None:
        ...

    def __call__(self, z: Tensor) -> Tensor:
        ...

class ComputeAccidentalHits(Primitive):
    """The places where sampled classes are true ones: rows, positions of samples, and float32's
    lowest number for each."""

    def __init__(self, num_true: Any = ...) -> None:
        ...

    def __call__(self, true_classes: Any, sampled_candidates: Any) -> tuple[Tensor, Tensor, Tensor]:
        ...

class Concat(Primitive):
    """`mycel.ops.concat` as an object. Join tensors along an existing axis, in their common
    type."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class ConfusionMatrix(Primitive):
    """The number of times, or the sum of weights, with which each label (rows) met each
    prediction."""

    def __init__(self, num_classes: Any, dtype: str = ...) -> None:
        ...

    def __call__(self, labels: Any, predictions: Any, weights: Any = ...) -> Tensor:
        ...

class Conj(Primitive):
    """`mycel.ops.conj` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class ConjugateTranspose(Primitive):
    """The complex conjugate with its axes in another order."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, order: Any) -> Any:
        ...

class Conv2D(Primitive):
    """The convolution of (N, C_in, H, W) with a weight (C_out, C_in / group, KH, KW), as
    `mycel.ops.conv2d` computes it."""

    def __init__(
        self,
        out_channel: Any,
        kernel_size: Any,
        mode: Any = ...,
        pad_mode: str = ...,
        pad: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, weight: Any) -> Tensor:
        ...

class Conv2DBackpropInput(Primitive):
    """The gradient of `Conv2D` by its input; called with the gradient of its output, the weight,
    and the shape of the input."""

    def __init__(
        self,
        out_channel: Any,
        kernel_size: Any,
        pad_mode: str = ...,
        pad: Any = ...,
        pad_list: Any = ...,
        mode: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, ct: Any, weight: Any, input_shape: Any) -> Tensor:
        ...

class Conv2DTranspose(Primitive):
    """The gradient of `Conv2D` by its input; called with the gradient of its output, the weight,
    and the shape of the input."""

    def __init__(
        self,
        out_channel: Any,
        kernel_size: Any,
        pad_mode: str = ...,
        pad: Any = ...,
        pad_list: Any = ...,
        mode: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, ct: Any, weight: Any, input_shape: Any) -> Tensor:
        ...

class Conv3D(Primitive):
    """The convolution of (N, C_in, D, H, W) with a weight (C_out, C_in / group, KD, KH, KW), as
    `mycel.ops.conv3d` computes it."""

    def __init__(
        self,
        out_channel: Any,
        kernel_size: Any,
        mode: Any = ...,
        pad_mode: str = ...,
        pad: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, weight: Any) -> Tensor:
        ...

class Conv3DTranspose(Primitive):
    """`mycel.ops.conv3d_transpose` as an object: the transpose of a convolution of volumes."""

    def __init__(
        self,
        in_channel: Any,
        out_channel: Any,
        kernel_size: Any,
        mode: Any = ...,
        pad_mode: str = ...,
        pad: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
        output_padding: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, weight: Any) -> Tensor:
        ...

class CopyWithSlice(Primitive):
    """The tensor x, which may be a view, after y was written into it."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class Cos(Primitive):
    """`mycel.ops.cos` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Cosh(Primitive):
    """`mycel.ops.cosh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class CountNonZero(Primitive):
    """`mycel.ops.count_nonzero` as an object. Return how many elements of `x` over `axis` (all
    axes by default) are not 0."""

    def __init__(self, dims: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CropAndResize(Primitive):
    """`mycel.ops.crop_and_resize` as an object. Return boxes cut out of images (N, H, W, C) and
    resized to `crop_size`: (boxes, height, width, C)."""

    def __init__(self, method: str = ..., extrapolation_value: float = ...) -> None:
        ...

    def __call__(self, x: Any, b: Any, i: Any, size: Any) -> Any:
        ...

class Cross(Primitive):
    """`mycel.ops.cross` as an object. Return the vector product along an axis of size 3; the
    others broadcast."""

    def __init__(self, dim: Any = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class CumProd(Primitive):
    """`mycel.ops.cumprod` as an object. Return the running products along an axis, in `dtype` or
    the type of `input`; integers are multiplied in int64."""

    def __init__(self, exclusive: bool = ..., reverse: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any) -> Tensor:
        ...

class CumSum(Primitive):
    """`mycel.ops.cumsum` as an object. Return the running sums along an axis, in the type of `x`
    or in `dtype`."""

    def __init__(self, exclusive: bool = ..., reverse: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any) -> Tensor:
        ...

class Cummax(Primitive):
    """`mycel.ops.cummax` as an object. Return the largest element so far along an axis, and its
    int64 position (the last of equal ones)."""

    def __init__(self, axis: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Cummin(Primitive):
    """`mycel.ops.cummin` as an object. Return the smallest element so far along an axis, and its
    int32 position (the last of equal ones)."""

    def __init__(self, axis: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class CumulativeLogsumexp(Primitive):
    """The logarithms of running sums of exponentials."""

    def __init__(self, exclusive: bool = ..., reverse: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any) -> Tensor:
        ...

class DType(Primitive):
    """`mycel.ops.dtype` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Tensor) -> Any:
        ...

class DataFormatDimMap(Primitive):
    """The axis of the source format that the target format has at each of the given axes, -4 to
    3, as in MindSpore."""

    def __init__(self, src_format: str = ..., dst_format: str = ...) -> None:
        ...

    def __call__(self, value: Any) -> Tensor:
        ...

class DataFormatVecPermute(Primitive):
    """Values that belong to the axes of one format, in the order of another format."""

    def __init__(self, src_format: str = ..., dst_format: str = ...) -> None:
        ...

    def __call__(self, value: Any) -> Tensor:
        ...

class DeformableOffsets(Primitive):
    """What the elements of a kernel read at each place of `x` (N, C, H, W): (N, C, H_out kh,
    W_out kw), the kernel's elements side by side (Dai et al., 2017; Zhu et al., 2018)."""

    def __init__(
        self,
        strides: Any,
        pads: Any,
        ksize: Any,
        dilations: Any = ...,
        data_format: str = ...,
        deformable_groups: Any = ...,
        modulated: bool = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, offsets: Any) -> Any:
        ...

class Dense(Primitive):
    """`mycel.ops.dense` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, weight: Any, bias: Any | None = ...) -> Tensor:
        ...

class Depend(Primitive):
    """`mycel.ops.depend` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, value: Any, expr: Any) -> Any:
        ...

class DepthToSpace(Primitive):
    """The inverse of `SpaceToDepth`."""

    def __init__(self, block_size: Any) -> None:
        ...

    def __call__(self, value: Any) -> Tensor:
        ...

class DepthwiseConv2dNative(Primitive):
    """The convolution of each channel of (N, C, H, W) with its own `channel_multiplier` filters,
    of a weight (multiplier, C, KH, KW); results of a channel lie side by side."""

    def __init__(
        self,
        channel_multiplier: Any,
        kernel_size: Any,
        mode: Any = ...,
        pad_mode: str = ...,
        pad: Any = ...,
        stride: Any = ...,
        dilation: Any = ...,
        group: Any = ...,
    ) -> None:
        ...

    def __call__(self, value: Any, weight: Any) -> Tensor:
        ...

class Diag(Primitive):
    """`mycel.ops.diag` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class DiagPart(Primitive):
    """The diagonal elements of a tensor (d.., d..): those at positions whose two halves are
    equal."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Digamma(Primitive):
    """`mycel.ops.digamma` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Dilation2D(Primitive):
    """The largest x + filter over each window of `x` (N, C, H, W), with a `filter` (C, KH, KW)."""

    def __init__(
        self,
        stride: Any,
        dilation: Any,
        pad_mode: str = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, filter: Any) -> Any:
        ...

class Div(Primitive):
    """`mycel.ops.div` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any, *, rounding_mode: str | None = ...) -> Tensor:
        ...

class DivNoNan(Primitive):
    """The quotient x / y, and 0 where y is 0."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class Dropout(Primitive):
    """The elements, each kept with probability `keep_prob` and divided by it, else 0; and which
    were kept, as 1 and 0."""

    def __init__(self, keep_prob: float = ..., Seed0: Any = ..., Seed1: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class Dropout2D(Primitive):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans."""

    def __init__(self, keep_prob: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class Dropout3D(Primitive):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans."""

    def __init__(self, keep_prob: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class DropoutDoMask(Primitive):
    """The elements x / keep_prob where the bits of a mask of `DropoutGenMask` are 1, and else 0;
    called with (x, mask, keep_prob)."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, mask: Any, keep_prob: Any) -> Tensor:
        ...

class DropoutGenMask(Primitive):
    """Random bits, 1 with probability `keep_prob`, for each element of a shape: eight in a byte,
    padded to a multiple of 128; called with (shape, keep_prob)."""

    def __init__(self, Seed0: Any = ..., Seed1: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, keep_prob: Any) -> Tensor:
        ...

class DtypeToEnum(Primitive):
    """The number of an element type in MindSpore's formats: ``DtypeToEnum()(op_name, arg_name,
    dtype)``."""

    def __init__(self) -> None:
        ...

    def __call__(self, op_name: str, arg_name: str, dtype: Any) -> int:
        ...

class DumpGradient(Primitive):
    """The identity, whose gradient is written into a file: ``DumpGradient()(path, x,
    input_output)`` is `x`, and `mycel.ops.tensordump` writes its gradient when it comes."""

    def __init__(self) -> None:
        ...

    def __call__(self, path: str, x: Tensor, input_output: str) -> Tensor:
        ...

class DynamicGRUV2(Primitive):
    """A GRU over (time, batch, inputs), called with (x, weight_input, weight_hidden, bias_input,
    bias_hidden, None, init_h)."""

    def __init__(
        self,
        direction: str = ...,
        cell_depth: Any = ...,
        keep_prob: float = ...,
        cell_clip: float = ...,
        num_proj: Any = ...,
        time_major: bool = ...,
        activation: str = ...,
        gate_order: str = ...,
        reset_after: bool = ...,
        is_training: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        x: Any,
        weight_input: Any,
        weight_hidden: Any,
        bias_input: Any = ...,
        bias_hidden: Any = ...,
        seq_length: Any = ...,
        init_h: Any = ...,
    ) -> tuple[Tensor, ...]:
        ...

class DynamicRNN(Primitive):
    """An LSTM over (time, batch, inputs): called with (x, w, b, None, init_h, init_c), it gives
    y, h, c, i, j, f, o and tanh(c) at all times."""

    def __init__(
        self,
        cell_type: str = ...,
        direction: str = ...,
        cell_depth: Any = ...,
        use_peephole: bool = ...,
        keep_prob: float = ...,
        cell_clip: float = ...,
        num_proj: Any = ...,
        time_major: bool = ...,
        activation: str = ...,
        forget_bias: float = ...,
        is_training: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        x: Any,
        w: Any,
        b: Any,
        seq_length: Any = ...,
        init_h: Any = ...,
        init_c: Any = ...,
    ) -> tuple[Tensor, ...]:
        ...

class DynamicShape(Primitive):
    """The shape as a tensor: ``DynamicShape()(x)`` is the shape of `x` as an int64 tensor;
    `dtype` has no effect."""

    def __init__(self, dtype: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class EditDistance(Primitive):
    """The number of edits between the sequences of two sparse tensors, as
    `mycel.ops.sequences.token_sequences.edit_distance` counts them."""

    def __init__(self, normalize: bool = ...) -> None:
        ...

    def __call__(
        self,
        hypothesis_indices: Any,
        hypothesis_values: Any,
        hypothesis_shape: Any,
        truth_indices: Any,
        truth_values: Any,
        truth_shape: Any,
    ) -> Tensor:
        ...

class Eig(Primitive):
    """The complex eigenvalues, and with `compute_v` the eigenvectors, else 0 in their place."""

    def __init__(self, compute_v: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class Einsum(Primitive):
    """`mycel.ops.einsum` as an object. Return the sum of products that an equation in Einstein's
    notation describes: ``"ij,jk->ik"``."""

    def __init__(self, equation: Any) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class Elu(Primitive):
    """`mycel.ops.elu` as an object. Return x where it is positive, else alpha * (exp(x) - 1).
    Clevert et al., 2016."""

    def __init__(self, alpha: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class EmbeddingLookup(Primitive):
    """The rows that indices less an offset name; zeros where there is no such row."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, i: Any, offset: Any) -> Any:
        ...

class Eps(Primitive):
    """`mycel.ops.eps` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Equal(Primitive):
    """`mycel.ops.equal` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class EqualCount(Primitive):
    """The number of equal elements of two tensors, (1,), in their type."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class Erf(Primitive):
    """`mycel.ops.erf` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Erfc(Primitive):
    """`mycel.ops.erfc` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Erfinv(Primitive):
    """`mycel.ops.erfinv` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class EuclideanNorm(Primitive):
    """`mycel.ops.vector_norm` as an object. Return the norm ``sum(|x| ** ord) ** (1 / ord)``
    over `axis` (None: all axes)."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axes: Any) -> Any:
        ...

class Exp(Primitive):
    """`mycel.ops.exp` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Expand(Primitive):
    """The tensor broadcast to a shape, in which -1 keeps a size."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, shape: Any) -> Tensor:
        ...

class ExpandDims(Primitive):
    """`mycel.ops.expand_dims` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, axis: int) -> Tensor:
        ...

class Expm1(Primitive):
    """`mycel.ops.expm1` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class ExtractGlimpse(Primitive):
    """Windows out of images `x` (N, H, W, C), one for each, centred at `offsets` (N, 2) of (y,
    x)."""

    def __init__(
        self,
        centered: bool = ...,
        normalized: bool = ...,
        uniform_noise: bool = ...,
        noise: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, size: Any, at: Any) -> Any:
        ...

class ExtractImagePatches(Primitive):
    """The windows of images (N, C, H, W) as channels: (N, KH KW C, *windows), where the place in
    the window is slowest and the channel fastest."""

    def __init__(self, ksizes: Any, strides: Any, rates: Any, padding: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ExtractVolumePatches(Primitive):
    """Return the windows of `input` (N, C, *spatial) as channels: (N, prod(kernel) C, *windows)."""

    def __init__(self, kernel_size: Any, strides: Any, padding: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Eye(Primitive):
    """`mycel.ops.eye` as an object. Return an `n` x `m` matrix (n x n without `m`) with ones on
    the diagonal and zeros elsewhere."""

    def __init__(self) -> None:
        ...

    def __call__(self, n: Any, m: Any, t: Any) -> Any:
        ...

class FFTWithSize(Primitive):
    """The Fourier transform over the last `signal_ndim` axes of complex or real signals, or its
    inverse."""

    def __init__(
        self,
        signal_ndim: Any,
        inverse: Any,
        real: Any,
        norm: str = ...,
        onesided: bool = ...,
        signal_sizes: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class FastGeLU(Primitive):
    """`mycel.ops.fast_gelu` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class FastGelu(Primitive):
    """`mycel.ops.fast_gelu` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Fill(Primitive):
    """`mycel.ops.fill` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, type: Any, shape: Any, value: Any) -> Tensor:
        ...

class FillDiagonal(Primitive):
    """Return a new tensor with `fill_value` on the diagonal, where the positions along all axes
    are equal."""

    def __init__(self, fill_value: Any, wrap: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class FillV2(Primitive):
    """`mycel.ops.full` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, size: Any, fill_value: Any, *, dtype: Any = ...) -> Tensor:
        ...

class Fills(Primitive):
    """`mycel.ops.fills` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, value: Any) -> Tensor:
        ...

class Flatten(Primitive):
    """The tensor with all axes but the first joined."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class FloatStatus(Primitive):
    """A test for infinities and NaN: ``FloatStatus()(x)`` is float32 [1.0] where an element of a
    floating tensor is infinite or NaN, else [0.0]."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Floor(Primitive):
    """`mycel.ops.floor` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class FloorDiv(Primitive):
    """`mycel.ops.floor_divide` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class FloorMod(Primitive):
    """`mycel.ops.remainder` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Fmax(Primitive):
    """`mycel.ops.fmax` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Fmin(Primitive):
    """`mycel.ops.fmin` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class ForiLoop(Primitive):
    """A loop over whole numbers: ``ForiLoop()(lower, upper, loop_func, init_val)`` computes
    ``value = loop_func(i, value)`` for i from `lower` to below `upper`."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        lower: Any,
        upper: Any,
        loop_func: Any,
        init_val: Any,
        unroll: bool = ...,
    ) -> Any:
        ...

class FractionalAvgPool(Primitive):
    """Means of images (N, H, W, C) over random cells, and the cuts of rows and columns."""

    def __init__(
        self,
        pooling_ratio: Any,
        pseudo_random: bool = ...,
        overlapping: bool = ...,
        deterministic: bool = ...,
        seed: Any = ...,
        seed2: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class FractionalMaxPool(Primitive):
    """Maxima of images (N, H, W, C) over random cells, and the cuts of rows and columns."""

    def __init__(
        self,
        pooling_ratio: Any,
        pseudo_random: bool = ...,
        overlapping: bool = ...,
        deterministic: bool = ...,
        seed: Any = ...,
        seed2: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class FractionalMaxPool3DWithFixedKsize(Primitive):
    """`mycel.ops.fractional_max_pool3d` with positions, as an object; samples (N, C, 3) in
    either format."""

    def __init__(self, ksize: Any, output_shape: Any, data_format: str = ...) -> None:
        ...

    def __call__(self, value: Any, random_samples: Any) -> tuple[Tensor, Tensor]:
        ...

class FractionalMaxPoolWithFixedKsize(Primitive):
    """`mycel.ops.fractional_max_pool2d` with positions, as an object."""

    def __init__(self, ksize: Any, output_shape: Any, data_format: str = ...) -> None:
        ...

    def __call__(self, value: Any, random_samples: Any) -> tuple[Tensor, Tensor]:
        ...

class FusedAdaFactor(Primitive):
    """Adafactor (Shazeer and Stern, 2018); the result is a tuple of the parameter."""

    def __init__(
        self,
        enable_scale_parameter: bool = ...,
        enable_first_moment: bool = ...,
        enable_weight_decay: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        epsilon: Any,
        clip_threshold: Any,
        beta1: Any,
        beta2: Any,
        weight_decay: Any,
        learning_rate: Any,
        gradient: Tensor,
        param: Tensor,
        exp_avg: Tensor,
        exp_avg_sq_row: Tensor,
        exp_avg_sq_col: Tensor,
        exp_avg_sq: Tensor,
    ) -> Any:
        ...

class FusedAdaFactorWithGlobalNorm(Primitive):
    """`FusedAdaFactor` of a gradient divided by its norm."""

    def __init__(
        self,
        enable_scale_parameter: bool = ...,
        enable_first_moment: bool = ...,
        enable_weight_decay: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        epsilon: Any,
        clip_threshold: Any,
        beta1: Any,
        beta2: Any,
        weight_decay: Any,
        learning_rate: Any,
        gradient: Tensor,
        param: Tensor,
        exp_avg: Tensor,
        exp_avg_sq_row: Tensor,
        exp_avg_sq_col: Tensor,
        exp_avg_sq: Tensor,
        global_norm: Any,
    ) -> Any:
        ...

class FusedCastAdamWeightDecay(Primitive):
    """`AdamWeightDecay` of a gradient divided by its norm, computed in the type of m."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        decay: Any,
        gradient: Tensor,
        global_norm: Any,
    ) -> Any:
        ...

class FusedSparseAdam(Primitive):
    """Adam with a gradient that has some rows, and is 0 in the others."""

    def __init__(self, use_locking: bool = ..., use_nesterov: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        beta1_power: Any,
        beta2_power: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        gradient: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class FusedSparseFtrl(Primitive):
    """Follow the regularized leader, of rows."""

    def __init__(self, lr: Any, l1: Any, l2: Any, lr_power: Any, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        linear: Tensor,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class FusedSparseLazyAdam(Primitive):
    """Adam for the rows of the parameter that the gradient has."""

    def __init__(self, use_locking: bool = ..., use_nesterov: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        m: Tensor,
        v: Tensor,
        beta1_power: Any,
        beta2_power: Any,
        lr: Any,
        beta1: Any,
        beta2: Any,
        epsilon: Any,
        gradient: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class FusedSparseProximalAdagrad(Primitive):
    """AdaGrad with a proximal step, of rows."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        lr: Any,
        l1: Any,
        l2: Any,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class FusedWeightScaleApplyMomentum(Primitive):
    """`ApplyMomentum` of the gradient ``(gradient + weight_decay * variable) * loss_scale``."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        weight_decay: Any,
        loss_scale: Any,
        variable: Tensor,
        accumulation: Tensor,
        learning_rate: Any,
        gradient: Tensor,
        momentum: Any,
    ) -> Any:
        ...

class GLU(Primitive):
    """`mycel.ops.glu` as an object. Return a * sigmoid(b) of the two halves a and b of `x` along
    `axis`. Dauphin et al., 2017."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Gamma(Primitive):
    """Random numbers of a gamma distribution, as `mycel.ops.gamma`; called with (shape, alpha,
    beta)."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, alpha: Any, beta: Any) -> Tensor:
        ...

class Gather(Primitive):
    """`mycel.ops.gather` as an object. Return the slices of a tensor along an axis at given
    positions."""

    def __init__(self, batch_dims: Any = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, axis: Any) -> Any:
        ...

class GatherD(Primitive):
    """`mycel.ops.gather_d` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, dim: int, index: Any) -> Tensor:
        ...

class GatherNd(Primitive):
    """`mycel.ops.gather_nd` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any) -> Tensor:
        ...

class GatherV2(Primitive):
    """`mycel.ops.gather` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        input_params: Any,
        input_indices: Any,
        axis: Any,
        batch_dims: int = ...,
    ) -> Tensor:
        ...

class Gcd(Primitive):
    """`mycel.ops.gcd` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class GeLU(Primitive):
    """The tanh form of `mycel.ops.gelu`."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Gelu(Primitive):
    """The tanh form of `mycel.ops.gelu`."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Geqrf(Primitive):
    """`mycel.ops.geqrf` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> tuple[Tensor, Tensor]:
        ...

class Ger(Primitive):
    """`mycel.ops.ger` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, vec2: Any) -> Tensor:
        ...

class Greater(Primitive):
    """`mycel.ops.greater` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class GreaterEqual(Primitive):
    """`mycel.ops.greater_equal` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class GridSampler2D(Primitive):
    """`mycel.ops.grid_sample` as an object. Return an input at the positions of a grid
    (Jaderberg et al., "Spatial Transformer Networks", 2015)."""

    def __init__(
        self,
        interpolation_mode: str = ...,
        padding_mode: str = ...,
        align_corners: bool = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, grid: Any) -> Any:
        ...

class GridSampler3D(Primitive):
    """`mycel.ops.grid_sample` as an object. Return an input at the positions of a grid
    (Jaderberg et al., "Spatial Transformer Networks", 2015)."""

    def __init__(
        self,
        interpolation_mode: str = ...,
        padding_mode: str = ...,
        align_corners: bool = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, grid: Any) -> Any:
        ...

class HSVToRGB(Primitive):
    """Return red, green and blue of images (..., 3) of hue, saturation and value."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class HShrink(Primitive):
    """`mycel.ops.hardshrink` as an object. Return x where |x| > lambd, else 0."""

    def __init__(self, lambd: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class HSigmoid(Primitive):
    """`mycel.ops.hardsigmoid` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class HSwish(Primitive):
    """`mycel.ops.hardswish` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class HammingWindow(Primitive):
    """`mycel.ops.hamming_window` as an object: the Hamming window ``alpha - beta * cos(2 * pi *
    i / (n - 1))``."""

    def __init__(
        self,
        periodic: bool = ...,
        alpha: float = ...,
        beta: float = ...,
        dtype: Any = ...,
    ) -> None:
        ...

    def __call__(self, n: Any) -> Any:
        ...

class Heaviside(Primitive):
    """`mycel.ops.heaviside` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, values: Any) -> Tensor:
        ...

class Histogram(Primitive):
    """`mycel.ops.histc` as an object. Return how many elements fall into each of `bins` equal
    intervals."""

    def __init__(self, bins: Any = ..., min: float = ..., max: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class HistogramFixedWidth(Primitive):
    """The number of elements in each of `nbins` equal parts of a range; elements outside count
    in the first or last part."""

    def __init__(self, nbins: Any, dtype: str = ...) -> None:
        ...

    def __call__(self, x: Any, range: Any) -> Tensor:
        ...

class HistogramSummary(Primitive):
    """A summary of numbers: ``HistogramSummary()(name, value)`` keeps numbers of this step for
    the next ``record`` of each open `mycel.SummaryRecord`."""

    def __init__(self) -> None:
        ...

    def __call__(self, name: str, value: Any) -> None:
        ...

class Hypot(Primitive):
    """`mycel.ops.hypot` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class IOU(Primitive):
    """`mycel.ops.iou` as an object. Return the overlap of each pair of boxes: (ground truths,
    anchors)."""

    def __init__(self, mode: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class Identity(Primitive):
    """`mycel.ops.identity` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class IdentityN(Primitive):
    """Tensors as they are."""

    def __init__(self) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class Igamma(Primitive):
    """`mycel.ops.igamma` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Igammac(Primitive):
    """`mycel.ops.igammac` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Im2Col(Primitive):
    """The windows of (N, C, H, W) as columns: (N, C, KH KW, positions)."""

    def __init__(
        self,
        ksizes: Any,
        strides: Any = ...,
        dilations: Any = ...,
        pads: Any = ...,
    ) -> None:
        ...

    def __call__(self, value: Any) -> Tensor:
        ...

class Imag(Primitive):
    """`mycel.ops.imag` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class ImageSummary(Primitive):
    """A summary of images: ``ImageSummary()(name, value)`` keeps images [N, C, H, W] of this
    step for the next ``record`` of each open `mycel.SummaryRecord`."""

    def __init__(self) -> None:
        ...

    def __call__(self, name: str, value: Any) -> None:
        ...

class InTopK(Primitive):
    """`mycel.ops.intopk` as an object. Return whether the target class in `x2` is among the `k`
    largest elements of its row of `x1`."""

    def __init__(self, k: Any) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class IndexAdd(Primitive):
    """`mycel.ops.index_add` as an object. Return `x` with the slices of `y` along `axis` added
    at the positions in the vector `indices`; a Parameter is also changed in place."""

    def __init__(self, axis: Any, use_lock: bool = ..., check_index_bound: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, y: Any) -> Any:
        ...

class IndexFill(Primitive):
    """`mycel.ops.index_fill` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, axis: int, index: Any, value: Any) -> Tensor:
        ...

class IndexPut(Primitive):
    """x1 with x2 written, or added if `accumulate` is 1, at the places that index tensors name."""

    def __init__(self, accumulate: Any = ...) -> None:
        ...

    def __call__(self, x1: Any, x2: Any, indices: Any) -> Tensor:
        ...

class InplaceAdd(Primitive):
    """`mycel.ops.inplace_add` as an object. Return `x` with the rows of `v` added to the rows
    (axis 0) at `indices`."""

    def __init__(self, indices: Any) -> None:
        ...

    def __call__(self, x: Any, v: Any) -> Any:
        ...

class InplaceIndexAdd(Primitive):
    """`mycel.ops.inplace_index_add` along an axis."""

    def __init__(self, axis: Any) -> None:
        ...

    def __call__(self, var: Any, indices: Any, updates: Any) -> Tensor:
        ...

class InplaceSub(Primitive):
    """`mycel.ops.inplace_sub` as an object. Return `x` with the rows of `v` subtracted from the
    rows (axis 0) at `indices`."""

    def __init__(self, indices: Any) -> None:
        ...

    def __call__(self, x: Any, v: Any) -> Any:
        ...

class InplaceUpdate(Primitive):
    """`mycel.ops.inplace_update` as an object. Return `x` with the rows (axis 0) at `indices`
    replaced by those of `v`."""

    def __init__(self, indices: Any) -> None:
        ...

    def __call__(self, x: Any, v: Any) -> Any:
        ...

class InplaceUpdateV2(Primitive):
    """x with the rows that `indices` names replaced by those of v."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, indices: Any, v: Any) -> Any:
        ...

class Inv(Primitive):
    """`mycel.ops.inv` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Invert(Primitive):
    """`mycel.ops.invert` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class InvertPermutation(Primitive):
    """The inverse of a permutation of 0 .. n - 1, as a tuple."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> tuple[int, ...]:
        ...

class IsClose(Primitive):
    """`mycel.ops.isclose` as an object. Return whether ``|x - y| <= atol + rtol * |y|`` for the
    elements x of `input` and y of `other`."""

    def __init__(self, rtol: float = ..., atol: float = ..., equal_nan: bool = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class IsFinite(Primitive):
    """`mycel.ops.isfinite` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class IsInf(Primitive):
    """`mycel.ops.isinf` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class IsNan(Primitive):
    """`mycel.ops.isnan` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class KLDivLoss(Primitive):
    """`mycel.ops.kl_div` as an object. Return ``y (log y - x)`` for log-probabilities x
    (`logits`) and probabilities y (`labels`), which is 0 where y is 0."""

    def __init__(self, reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class L2Loss(Primitive):
    """Half the sum of squares."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class L2Normalize(Primitive):
    """The elements divided by the square root of their sum of squares along `axis`, or of
    `epsilon` where that is larger."""

    def __init__(self, axis: Any = ..., epsilon: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class LARSUpdate(Primitive):
    """The gradient scaled for the layer (You et al., 2017), from the sums of squares of weight
    and gradient."""

    def __init__(self, epsilon: float = ..., hyperpara: float = ..., use_clip: bool = ...) -> None:
        ...

    def __call__(
        self,
        weight: Any,
        gradient: Any,
        squares: Any,
        slopes: Any,
        decay: Any,
        lr: Any,
    ) -> Tensor:
        ...

class LRN(Primitive):
    """`mycel.ops.lrn` as an object: each element of (N, C, H, W) divided by ``(bias + alpha *
    squares) ** beta`` (Krizhevsky et al., 2012)."""

    def __init__(
        self,
        depth_radius: Any = ...,
        bias: float = ...,
        alpha: float = ...,
        beta: float = ...,
        norm_region: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class LSTM(Primitive):
    """Layers of LSTM over (time, batch, inputs): called with (input, h, c, w), they give the
    outputs, the last h and c, and two empty tensors."""

    def __init__(
        self,
        input_size: Any,
        hidden_size: Any,
        num_layers: Any,
        has_bias: Any,
        bidirectional: Any,
        dropout: Any,
        proj_size: Any = ...,
    ) -> None:
        ...

    def __call__(self, input: Any, h: Any, c: Any, w: Any) -> tuple[Tensor, ...]:
        ...

class LayerNorm(Primitive):
    """The tensor normalised over the axes from `begin_norm_axis` on, scaled by `gamma` and
    shifted by `beta`; with the mean and the variance."""

    def __init__(
        self,
        begin_norm_axis: Any = ...,
        begin_params_axis: Any = ...,
        epsilon: float = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, gamma: Any, beta: Any) -> tuple[Tensor, Tensor, Tensor]:
        ...

class Lcm(Primitive):
    """`mycel.ops.lcm` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class LeftShift(Primitive):
    """`mycel.ops.bitwise_left_shift` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Lerp(Primitive):
    """`mycel.ops.lerp` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, end: Any, weight: Any) -> Tensor:
        ...

class LerpScalar(Primitive):
    """`mycel.ops.lerp` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, end: Any, weight: Any) -> Tensor:
        ...

class Less(Primitive):
    """`mycel.ops.less` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class LessEqual(Primitive):
    """`mycel.ops.less_equal` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Lgamma(Primitive):
    """`mycel.ops.lgamma` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class LinSpace(Primitive):
    """`mycel.ops.linspace` as an object. Return `steps` numbers from `start` to `end`, both
    included, at equal distances."""

    def __init__(self) -> None:
        ...

    def __call__(self, start: Any, stop: Any, num: Any) -> Tensor:
        ...

class ListDiff(Primitive):
    """The elements of x that are not in y, in their order, and their positions."""

    def __init__(self, out_idx: Any = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        ...

class Log(Primitive):
    """`mycel.ops.log` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Log1p(Primitive):
    """`mycel.ops.log1p` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class LogMatrixDeterminant(Primitive):
    """`mycel.ops.log_matrix_determinant` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> tuple[Tensor, Tensor]:
        ...

class LogNormalReverse(Primitive):
    """Random numbers exp(x) with normal x, in the shape and type of a tensor."""

    def __init__(self, mean: float = ..., std: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class LogSoftmax(Primitive):
    """`mycel.ops.log_softmax` as an object. Return log(softmax(x)) along `axis`, as x - max -
    log(sum(exp(x - max)))."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class LogSoftmaxExt(Primitive):
    """The logarithm of soft-max along `dim` in a type, as `mycel.ops.log_softmax`; called with
    (input, dim=None, dtype=None)."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, dim: Any = ..., dtype: Any = ...) -> Tensor:
        ...

class LogSpace(Primitive):
    """Numbers from base ** start to base ** end at equal ratios."""

    def __init__(self, steps: Any = ..., base: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, start: Any, end: Any) -> Tensor:
        ...

class LogUniformCandidateSampler(Primitive):
    """`mycel.ops.log_uniform_candidate_sampler` as an object: classes k drawn with the
    probabilities log((k + 2) / (k + 1)) / log(range_max + 1), for classes sorted from the
    most to the least frequent."""

    def __init__(
        self,
        num_true: Any = ...,
        num_sampled: Any = ...,
        unique: bool = ...,
        range_max: Any = ...,
        seed: Any = ...,
    ) -> None:
        ...

    def __call__(self, true_classes: Any) -> Any:
        ...

class LogicalAnd(Primitive):
    """`mycel.ops.logical_and` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class LogicalNot(Primitive):
    """`mycel.ops.logical_not` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class LogicalOr(Primitive):
    """`mycel.ops.logical_or` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class LogicalXor(Primitive):
    """`mycel.ops.logical_xor` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Logit(Primitive):
    """`mycel.ops.logit` as an object. Return log(x / (1 - x)), where x is first limited to [eps,
    1 - eps] if `eps` is given."""

    def __init__(self, eps: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class LowerBound(Primitive):
    """The number of elements below each value, in each row."""

    def __init__(self, out_type: Any = ...) -> None:
        ...

    def __call__(self, sorted_x: Any, values: Any) -> Tensor:
        ...

class LpNorm(Primitive):
    """The norm of order `p` over axes, at least `epsilon`."""

    def __init__(
        self,
        axis: Any,
        p: Any = ...,
        keep_dims: bool = ...,
        epsilon: float = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Lstsq(Primitive):
    """The least-squares solution for one matrix, by QR, or with a penalty by Cholesky; `fast`
    has no effect."""

    def __init__(self, fast: bool = ..., l2_regularizer: float = ...) -> None:
        ...

    def __call__(self, x: Any, a: Any) -> Tensor:
        ...

class LuSolve(Primitive):
    """`mycel.ops.lu_solve` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, b: Any, LU_data: Any, LU_pivots: Any) -> Tensor:
        ...

class LuUnpack(Primitive):
    """`mycel.ops.lu_unpack` as an object. Return P, L and U with A = P L U."""

    def __init__(self, unpack_data: bool = ..., unpack_pivots: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any) -> Any:
        ...

class MapUniform(Primitive):
    """The numbers key % groups * size + key // groups."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, per_group_size: Any, group_num: Any) -> Any:
        ...

class MaskedFill(Primitive):
    """`mycel.ops.masked_fill` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, mask: Any, value: Any) -> Tensor:
        ...

class MaskedScatter(Primitive):
    """`mycel.ops.masked_scatter` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, mask: Any, source: Any) -> Tensor:
        ...

class MaskedSelect(Primitive):
    """`mycel.ops.masked_select` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, mask: Any) -> Tensor:
        ...

class MatMul(Primitive):
    """`mycel.ops.matmul` as an object. Return the matrix product over the last two axes; the
    axes before broadcast."""

    def __init__(self, transpose_a: bool = ..., transpose_b: bool = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class MatrixBandPart(Primitive):
    """`mycel.ops.matrix_band_part` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, lower: Any, upper: Any) -> Tensor:
        ...

class MatrixDeterminant(Primitive):
    """`mycel.ops.det` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class MatrixDiagPartV3(Primitive):
    """`mycel.ops.matrix_diag_part` as an object. Return the diagonals of matrices."""

    def __init__(self, align: str = ...) -> None:
        ...

    def __call__(self, x: Any, k: Any, padding_value: Any) -> Tensor:
        ...

class MatrixDiagV3(Primitive):
    """`mycel.ops.matrix_diag` as an object. Return matrices with `x` on the diagonals `k` and
    `padding_value` elsewhere."""

    def __init__(self, align: str = ...) -> None:
        ...

    def __call__(self, x: Any, k: Any, num_rows: Any, num_cols: Any, padding_value: Any) -> Tensor:
        ...

class MatrixExp(Primitive):
    """`mycel.ops.matrix_exp` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class MatrixInverse(Primitive):
    """`mycel.ops.inverse` as an object. Return the inverses of square matrices; singular ones
    give infinities or NaN."""

    def __init__(self, adjoint: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class MatrixLogarithm(Primitive):
    """Return the principal logarithm of square matrices (.., n, n), complex64 or complex128."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class MatrixPower(Primitive):
    """`mycel.ops.matrix_power` as an object. Return the product of `n` factors `input`, by
    repeated squaring; the identity for 0, and for a negative `n` the product of factors of
    the inverse."""

    def __init__(self, n: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class MatrixSetDiagV3(Primitive):
    """`mycel.ops.matrix_set_diag` as an object. Return matrices with the diagonals `k` replaced."""

    def __init__(self, align: str = ...) -> None:
        ...

    def __call__(self, x: Any, d: Any, k: Any) -> Any:
        ...

class MatrixSolve(Primitive):
    """`mycel.ops.matrix_solve` as an object. Return the solution x of A x = `rhs` for square
    matrices `matrix` = A, or of A^H x = `rhs` with `adjoint`."""

    def __init__(self, adjoint: bool = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class MatrixSolveLs(Primitive):
    """The least-squares solution of (matrix, rhs, l2_regularizer); the penalty counts if `fast`."""

    def __init__(self, fast: bool = ...) -> None:
        ...

    def __call__(self, matrix: Any, rhs: Any, l2_regularizer: Any) -> Tensor:
        ...

class MatrixTriangularSolve(Primitive):
    """The solution of a triangular system, or of the system of its adjoint."""

    def __init__(self, lower: bool = ..., adjoint: bool = ...) -> None:
        ...

    def __call__(self, matrix: Any, rhs: Any) -> Tensor:
        ...

class MaxPool(Primitive):
    """The largest element of each window of (N, C, H, W)."""

    def __init__(
        self,
        kernel_size: Any = ...,
        strides: Any = ...,
        pad_mode: str = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class MaxPool3D(Primitive):
    """The largest element of each window of (N, C, D, H, W)."""

    def __init__(
        self,
        kernel_size: Any = ...,
        strides: Any = ...,
        pad_mode: str = ...,
        pad_list: Any = ...,
        ceil_mode: bool = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class MaxPool3DWithArgmax(Primitive):
    """`mycel.ops.max_pool3d` with positions, as an object."""

    def __init__(
        self,
        ksize: Any,
        strides: Any,
        pads: Any,
        dilation: Any = ...,
        ceil_mode: bool = ...,
        data_format: str = ...,
        argmax_type: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class MaxPoolWithArgmax(Primitive):
    """The largest element of each window of (N, C, H, W), and its int32 position in the
    flattened image."""

    def __init__(
        self,
        kernel_size: Any = ...,
        strides: Any = ...,
        pad_mode: str = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, value: Any) -> tuple[Tensor, Tensor]:
        ...

class MaxPoolWithArgmaxV2(Primitive):
    """`mycel.ops.max_pool2d` with positions, as an object."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = ...,
        pads: Any = ...,
        dilation: Any = ...,
        ceil_mode: bool = ...,
        argmax_type: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class MaxUnpool2D(Primitive):
    """The inverse of max-pooling, `mycel.ops.max_unpool2d`, as an object; strides of 0 are the
    size of the window."""

    def __init__(
        self,
        ksize: Any,
        strides: Any = ...,
        pads: Any = ...,
        output_shape: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, value: Any, argmax: Any) -> Tensor:
        ...

class MaxUnpool3D(Primitive):
    """The inverse of max-pooling, `mycel.ops.max_unpool3d`, as an object; strides of 0 are the
    size of the window."""

    def __init__(
        self,
        ksize: Any,
        strides: Any = ...,
        pads: Any = ...,
        output_shape: Any = ...,
        data_format: str = ...,
    ) -> None:
        ...

    def __call__(self, value: Any, argmax: Any) -> Tensor:
        ...

class Maximum(Primitive):
    """`mycel.ops.maximum` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Median(Primitive):
    """The lower median along an axis, or of all elements, and its position."""

    def __init__(
        self,
        global_median: bool = ...,
        axis: Any = ...,
        keep_dims: bool = ...,
        ignore_nan: bool = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class Meshgrid(Primitive):
    """`mycel.ops.meshgrid` as an object. Return vectors spread over a grid: the i-th result
    varies along axis i."""

    def __init__(self, indexing: str = ...) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class Minimum(Primitive):
    """`mycel.ops.minimum` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class MirrorPad(Primitive):
    """`mycel.ops.mirror_pad` as an object. Return `input_x` with every axis grown by its own
    elements mirrored."""

    def __init__(self, mode: str = ...) -> None:
        ...

    def __call__(self, x: Any, paddings: Any) -> Any:
        ...

class Mish(Primitive):
    """`mycel.ops.mish` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Mod(Primitive):
    """`mycel.ops.truncate_mod` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class MoveTo(Primitive):
    """`mycel.ops.move_to` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, to: str = ..., blocking: bool = ...) -> Tensor:
        ...

class Mul(Primitive):
    """`mycel.ops.mul` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class MulNoNan(Primitive):
    """The product x * y, and 0 where y is 0."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class MultiMarginLoss(Primitive):
    """`mycel.ops.multi_margin_loss` as an object. Return the mean over the other classes i of
    ``max(0, margin - x[target] + x[i]) ** p``."""

    def __init__(self, p: Any = ..., margin: float = ..., reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any, w: Any = ...) -> Any:
        ...

class MultilabelMarginLoss(Primitive):
    """The loss `mycel.ops.multilabel_margin_loss`, and which classes are targets."""

    def __init__(self, reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, target: Any) -> tuple[Tensor, Tensor]:
        ...

class Multinomial(Primitive):
    """`mycel.ops.multinomial` as an object. Return positions along the last axis, drawn with
    probabilities in proportion to weights."""

    def __init__(self, seed: Any = ..., seed2: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, x: Any, n: Any) -> Any:
        ...

class MultinomialWithReplacement(Primitive):
    """Random positions with given weights; called with (x, seed, offset), where two zeros mean
    the default generator."""

    def __init__(self, numsamples: Any, replacement: bool = ...) -> None:
        ...

    def __call__(self, x: Any, seed: Any, offset: Any) -> Tensor:
        ...

class Mvlgamma(Primitive):
    """`mycel.ops.mvlgamma` as an object. Return the logarithm of the multivariate gamma function
    of dimension `p`."""

    def __init__(self, p: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class NLLLoss(Primitive):
    """`mycel.ops.nll_loss` as an object. Return the negative log-probability of the target
    class."""

    def __init__(self, reduction: str = ..., ignore_index: Any = ...) -> None:
        ...

    def __call__(self, logits: Any, labels: Any, weight: Any) -> tuple[Tensor, Tensor]:
        ...

class NMSWithMask(Primitive):
    """Return boxes and scores (N, 5) by decreasing score, their int32 numbers 0 to N - 1 in that
    order, and which of them survive."""

    def __init__(self, iou_threshold: float = ...) -> None:
        ...

    def __call__(self, boxes: Any) -> Any:
        ...

class NanToNum(Primitive):
    """`mycel.ops.nan_to_num` as an object. Return a tensor with NaN and infinities replaced."""

    def __init__(self, nan: Any = ..., posinf: Any = ..., neginf: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Neg(Primitive):
    """`mycel.ops.neg` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class NeighborExchange(Primitive):
    """The tensors that come from `recv_rank_ids`, as a tuple, while others are sent to
    `send_rank_ids`."""

    def __init__(
        self,
        send_rank_ids: Any,
        recv_rank_ids: Any,
        recv_shapes: Any,
        send_shapes: Any,
        recv_type: Any,
        group: str = ...,
    ) -> None:
        ...

    def __call__(self, values: Any) -> tuple[Tensor, ...]:
        ...

class NeighborExchangeV2(Primitive):
    """An image (N, C, H, W) with the borders that neighbours sent; they get borders of this
    process's image."""

    def __init__(
        self,
        send_rank_ids: Any,
        send_lens: Any,
        recv_rank_ids: Any,
        recv_lens: Any,
        data_format: Any,
        group: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class NextAfter(Primitive):
    """`mycel.ops.nextafter` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class NoRepeatNGram(Primitive):
    """Return `log_probs` (batch, beams, words) with the type's lowest number for words that
    would repeat a run of `ngram_size` words."""

    def __init__(self, ngram_size: Any = ...) -> None:
        ...

    def __call__(self, said: Any, x: Any) -> Any:
        ...

class NonDeterministicInts(Primitive):
    """Random integers of the whole range of their type."""

    def __init__(self, dtype: Any = ...) -> None:
        ...

    def __call__(self, shape: Any) -> Tensor:
        ...

class NonMaxSuppressionV3(Primitive):
    """Return the int32 numbers of at most `max_output_size` of the `boxes` (N, 4), best first,
    that no better one overlaps by more than `iou_threshold`."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        boxes: Any,
        scores: Any,
        max_output_size: Any,
        iou_threshold: Any,
        score_threshold: Any,
    ) -> Tensor:
        ...

class NonMaxSuppressionWithOverlaps(Primitive):
    """Return the result of `non_max_suppression` for `overlaps` (N, N) instead of boxes."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        overlaps: Any,
        scores: Any,
        max_output_size: Any,
        overlap_threshold: Any,
        score_threshold: Any,
    ) -> Tensor:
        ...

class NonZero(Primitive):
    """`mycel.ops.nonzero` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, *, as_tuple: bool = ...) -> Any:
        ...

class NotEqual(Primitive):
    """`mycel.ops.not_equal` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class NthElement(Primitive):
    """The n-th smallest element of each row, counted from 0; with `reverse` the n-th largest."""

    def __init__(self, reverse: bool = ...) -> None:
        ...

    def __call__(self, x: Any, n: Any) -> Tensor:
        ...

class NuclearNorm(Primitive):
    """The sum of the singular values of matrices in two axes."""

    def __init__(self, dim: Any = ..., keepdim: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class OneHot(Primitive):
    """`mycel.ops.one_hot` as an object. Return the one-hot code of indices along a new axis."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, i: Any, depth: Any, on: Any, off: Any) -> Any:
        ...

class Ones(Primitive):
    """`mycel.ops.ones` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, shape: Any, dtype: Any = ...) -> Tensor:
        ...

class OnesLike(Primitive):
    """`mycel.ops.ones_like` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, *, dtype: Any = ...) -> Tensor:
        ...

class Orgqr(Primitive):
    """`mycel.ops.orgqr` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, input2: Any) -> Tensor:
        ...

class Ormqr(Primitive):
    """`mycel.ops.ormqr` as an object. Return a tensor multiplied by the product Q of
    reflections."""

    def __init__(self, left: bool = ..., transpose: bool = ...) -> None:
        ...

    def __call__(self, x: Any, tau: Any, y: Any) -> Any:
        ...

class PReLU(Primitive):
    """`mycel.ops.prelu` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, weight: Any) -> Tensor:
        ...

class Pack(Primitive):
    """`mycel.ops.stack` as an object. Join tensors of one shape along a new axis, in their
    common type."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class Pad(Primitive):
    """`mycel.ops.pad` as an object. Pad the last axes of `input_x`."""

    def __init__(self, paddings: Any) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class PadV3(Primitive):
    """A tensor padded along its last axes: pairs (begin, end), the last axis first, or all
    begins before all ends."""

    def __init__(self, mode: str = ..., paddings_contiguous: bool = ...) -> None:
        ...

    def __call__(self, x: Any, paddings: Any, constant_value: Any = ...) -> Tensor:
        ...

class Padding(Primitive):
    """`mycel.ops.padding` as an object. Extend a last axis of size 1 with zeros to the size
    `pad_dim_size`."""

    def __init__(self, pad_dim_size: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ParallelConcat(Primitive):
    """Tensors whose first size is 1, concatenated along axis 0."""

    def __init__(self) -> None:
        ...

    def __call__(self, values: Any) -> Tensor:
        ...

class ParameterizedTruncatedNormal(Primitive):
    """Random normal numbers within bounds; called with (shape, mean, stdevs, min, max)."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, mean: Any, stdevs: Any, low: Any, high: Any) -> Tensor:
        ...

class Pdist(Primitive):
    """`mycel.ops.pdist` as an object. Return the p-norm distances between the rows of a matrix,
    for every pair i < j."""

    def __init__(self, p: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Poisson(Primitive):
    """Random numbers (int32) of Poisson distributions with means that broadcast; called with
    (shape, mean)."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, mean: Any) -> Tensor:
        ...

class Polar(Primitive):
    """`mycel.ops.polar` as an object. Return the complex numbers with the absolute values `abs`
    and the angles `angle` in radians."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Tensor, y: Tensor) -> Any:
        ...

class Polygamma(Primitive):
    """`mycel.ops.polygamma` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, n: Any, input: Any) -> Tensor:
        ...

class PopulationCount(Primitive):
    """`mycel.ops.population_count` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Tensor:
        ...

class Pow(Primitive):
    """`mycel.ops.pow` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, exponent: Any) -> Tensor:
        ...

class Print(Primitive):
    """Output of values: ``Print()(*values)`` shows tensors and other values on standard output,
    a line each."""

    def __init__(self) -> None:
        ...

    def __call__(self, *input_x: Any) -> None:
        ...

class PyExecute(Primitive):
    """The value of a Python expression: ``PyExecute()(script, names, values)`` computes `script`
    with names for values."""

    def __init__(self) -> None:
        ...

    def __call__(self, script: Any, names: Any, values: Any) -> Any:
        ...

class Qr(Primitive):
    """`mycel.ops.qr` as an object. Return orthonormal columns Q and upper triangular R with Q R
    = A."""

    def __init__(self, full_matrices: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Quantile(Primitive):
    """`mycel.ops.quantile` as an object, or with `ignore_nan` `mycel.ops.nanquantile`."""

    def __init__(self, dim: Any = ..., keep_dims: bool = ..., ignore_nan: bool = ...) -> None:
        ...

    def __call__(self, x: Any, q: Any) -> Tensor:
        ...

class RGBToHSV(Primitive):
    """Return hue, saturation and value, 0 to 1, of images (..., 3) of red, green and blue."""

    def __init__(self) -> None:
        ...

    def __call__(self, images: Any) -> Tensor:
        ...

class RNNTLoss(Primitive):
    """The losses of transducers, and their derivatives by acts, which are logits."""

    def __init__(self, blank_label: Any = ...) -> None:
        ...

    def __call__(self, acts: Any, labels: Any, input_lengths: Any, label_lengths: Any) -> Any:
        ...

class ROIAlign(Primitive):
    """The features (N, C, H, W) of regions at one size: (R, C, pooled_height, pooled_width) (He
    et al., "Mask R-CNN", 2017)."""

    def __init__(
        self,
        pooled_height: Any,
        pooled_width: Any,
        spatial_scale: Any,
        sample_num: Any = ...,
        roi_end_mode: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, rois: Any) -> Any:
        ...

class RaggedRange(Primitive):
    """Ranges, one after the other: where each begins, and their elements."""

    def __init__(self, Tsplits: Any) -> None:
        ...

    def __call__(self, starts: Any, limits: Any, deltas: Any) -> tuple[Tensor, Tensor]:
        ...

class RandomCategorical(Primitive):
    """`mycel.ops.random_categorical` as an object. Return positions along the last axis, drawn
    with the probabilities softmax(logits)."""

    def __init__(self, dtype: Any = ...) -> None:
        ...

    def __call__(self, x: Any, n: Any, seed: Any = ...) -> Any:
        ...

class RandomChoiceWithMask(Primitive):
    """`mycel.ops.choice_with_mask` as an object. Return the positions of `count` true elements
    in random order, and which of them there are."""

    def __init__(self, count: Any = ..., seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class RandomGamma(Primitive):
    """`mycel.ops.random_gamma` as an object. Return numbers from gamma distributions of shape
    `alpha` and scale 1, `shape` of them for each element of `alpha`."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, alpha: Any) -> Any:
        ...

class RandomPoisson(Primitive):
    """`mycel.ops.random_poisson` as an object. Return numbers from Poisson distributions."""

    def __init__(self, seed: Any = ..., seed2: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, rate: Any) -> Any:
        ...

class RandomShuffle(Primitive):
    """`mycel.ops.shuffle` as an object. Return the slices along axis 0 in random order."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Randperm(Primitive):
    """The numbers 0 .. n - 1 in random order, then `pad` up to `max_length`."""

    def __init__(self, max_length: Any = ..., pad: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, n: Any) -> Tensor:
        ...

class RandpermV2(Primitive):
    """`mycel.ops.randperm` as an object. Return the numbers from 0 to n - 1 in random order."""

    def __init__(self, seed: Any = ..., offset: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self, n: Any) -> Any:
        ...

class Range(Primitive):
    """`mycel.ops.range` as an object. Return the numbers from `start` up to but not including
    `end`, in steps of `step`."""

    def __init__(self, maxlen: Any = ...) -> None:
        ...

    def __call__(self, start: Any, end: Any, step: Any) -> Any:
        ...

class Rank(Primitive):
    """`mycel.ops.rank` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> int:
        ...

class ReLU(Primitive):
    """`mycel.ops.relu` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, inplace: bool = ...) -> Tensor:
        ...

class ReLU6(Primitive):
    """`mycel.ops.relu6` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Real(Primitive):
    """`mycel.ops.real` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class RealDiv(Primitive):
    """`mycel.ops.div` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any, *, rounding_mode: str | None = ...) -> Tensor:
        ...

class Receive(Primitive):
    """The tensor that the process `src_rank` sent."""

    def __init__(
        self,
        sr_tag: Any,
        src_rank: Any,
        shape: Any,
        dtype: Any,
        group: str = ...,
        group_back: str = ...,
    ) -> None:
        ...

    def __call__(self, *_: Any) -> Tensor:
        ...

class Reciprocal(Primitive):
    """`mycel.ops.reciprocal` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Reduce(Primitive):
    """The sum of a tensor over all processes, for the process `dest_rank`."""

    def __init__(self, dest_rank: Any, op: str = ..., group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class ReduceAll(Primitive):
    """`mycel.ops.all` as an object. Return whether all elements over `axis` (None: all axes) are
    true; numbers are true where they are not 0."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceAny(Primitive):
    """`mycel.ops.any` as an object. Return whether any element over `axis` (None: all axes) is
    true; numbers are true where they are not 0."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceMax(Primitive):
    """`mycel.ops.amax` as an object. Return the largest element of `input` over `axis` (None:
    all axes), kept at size 1 with `keepdims`."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceMean(Primitive):
    """`mycel.ops.mean` as an object. Return the mean over `axis` (None: all axes), in the type
    of the tensor; for integers it is rounded towards 0."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceMin(Primitive):
    """`mycel.ops.amin` as an object. Return the smallest element of `input` over `axis` (None:
    all axes), kept at size 1 with `keepdims`."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceProd(Primitive):
    """`mycel.ops.prod` as an object. Return the product of `input` over `axis` (None: all axes),
    kept at size 1 with `keep_dims`."""

    def __init__(self, keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Any:
        ...

class ReduceScatter(Primitive):
    """The share of this process of the rows of the sum of a tensor over all processes."""

    def __init__(self, op: str = ..., group: str = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ReduceScatterV(Primitive):
    """The share of this process of the sum of a vector over all processes; `input_split_sizes`
    has the number of elements of each share."""

    def __init__(self, op: str = ..., group: str = ...) -> None:
        ...

    def __call__(self, x: Any, sizes: Any) -> Any:
        ...

class ReduceStd(Primitive):
    """The standard deviation over `axis` (all axes where it is empty), and the mean."""

    def __init__(self, axis: Any = ..., unbiased: bool = ..., keep_dims: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, Tensor]:
        ...

class ReduceSum(Primitive):
    """`mycel.ops.sum` as an object. Return the sum of `input` over the axes `dim` (None: all),
    kept at size 1 with `keepdim`."""

    def __init__(self, keep_dims: bool = ..., skip_mode: bool = ...) -> None:
        ...

    def __call__(self, x: Any, axis: Any = ...) -> Tensor:
        ...

class Renorm(Primitive):
    """`mycel.ops.renorm` as an object. Scale down the slices of `input` along `axis` whose
    `p`-norm is above `maxnorm`, so that it is `maxnorm`."""

    def __init__(self, p: Any, dim: Any, maxnorm: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Reshape(Primitive):
    """`mycel.ops.reshape` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, shape: Any) -> Tensor:
        ...

class ReshapeAndCache(Primitive):
    """Write new keys and values into slots of their caches, and return the key."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        key: Any,
        value: Any = ...,
        key_cache: Any = ...,
        value_cache: Any = ...,
        slot_mapping: Any = ...,
    ) -> Tensor:
        ...

class ResizeArea(Primitive):
    """Return images (N, H, W, C) at another `size` (height, width), where each element is the
    mean over its area of the input."""

    def __init__(self, align_corners: bool = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class ResizeBicubic(Primitive):
    """Return images (N, C, H, W) at another `size` (height, width) by cubic convolution."""

    def __init__(self, align_corners: bool = ..., half_pixel_centers: bool = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class ResizeBilinearV2(Primitive):
    """Return images `x` (N, C, H, W) at another `size` (height, width), by linear interpolation
    along both axes."""

    def __init__(self, align_corners: bool = ..., half_pixel_centers: bool = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class ResizeLinear1D(Primitive):
    """Return signals (N, C, W) at another width by linear interpolation."""

    def __init__(self, coordinate_transformation_mode: str = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class ResizeNearestNeighbor(Primitive):
    """Return images `x` (N, C, H, W) at another `size` (height, width), where each element is
    the nearest one."""

    def __init__(
        self,
        size: Any,
        align_corners: bool = ...,
        half_pixel_centers: bool = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ResizeNearestNeighborV2(Primitive):
    """Return images `x` (N, C, H, W) at another `size` (height, width), where each element is
    the nearest one."""

    def __init__(self, align_corners: bool = ..., half_pixel_centers: bool = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any) -> Any:
        ...

class Reusing(Primitive):
    """The identity: ``Reusing()(x)`` is `x`, a value or a function."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class ReverseSequence(Primitive):
    """`mycel.ops.reverse_sequence` as an object. Reverse the first `seq_lengths[i]` elements of
    each sequence i."""

    def __init__(self, seq_dim: Any, batch_dim: Any = ...) -> None:
        ...

    def __call__(self, x: Any, n: Any) -> Any:
        ...

class ReverseV2(Primitive):
    """`mycel.ops.flip` as an object. Reverse the order of the elements along the axes `dims`."""

    def __init__(self, axis: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class RightShift(Primitive):
    """`mycel.ops.bitwise_right_shift` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Rint(Primitive):
    """`mycel.ops.round` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, *, decimals: int = ...) -> Tensor:
        ...

class RmsNorm(Primitive):
    """`mycel.ops.rms_norm` as an object. Divide the last axes of `x`, of the shape of `gamma`,
    by their root mean square and scale them by `gamma`. Zhang and Sennrich, 2019."""

    def __init__(self, epsilon: float = ...) -> None:
        ...

    def __call__(self, x: Any, gamma: Any) -> Any:
        ...

class Roll(Primitive):
    """`mycel.ops.roll` as an object. Shift the elements by `shifts` places along the axes
    `dims`; those that leave at the end come back at the start."""

    def __init__(self, shifts: Any, dims: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Round(Primitive):
    """`mycel.ops.round` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, *, decimals: int = ...) -> Tensor:
        ...

class Rsqrt(Primitive):
    """`mycel.ops.rsqrt` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class SGD(Primitive):
    """Gradient descent with momentum; the first step, where `stat` is above 0, is not dampened."""

    def __init__(
        self,
        dampening: float = ...,
        weight_decay: float = ...,
        nesterov: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        parameters: Tensor,
        gradient: Tensor,
        learning_rate: Any,
        accum: Tensor,
        momentum: Any,
        stat: Tensor,
    ) -> Any:
        ...

class STFT(Primitive):
    """`mycel.ops.stft` as an object: the Fourier transforms of overlapping frames of a signal."""

    def __init__(
        self,
        n_fft: Any,
        hop_length: Any,
        win_length: Any,
        normalized: Any,
        onesided: Any,
        return_complex: Any,
    ) -> None:
        ...

    def __call__(self, x: Any, w: Any) -> Any:
        ...

class SampleDistortedBoundingBoxV2(Primitive):
    """A random part of an image: where it begins (y, x, 0), its size (height, width, -1), and
    its box (1, 1, 4) of (y0, x0, y1, x1) from 0 to 1 (Szegedy et al., 2015)."""

    def __init__(
        self,
        seed: Any = ...,
        seed2: Any = ...,
        aspect_ratio_range: Any = ...,
        area_range: Any = ...,
        max_attempts: Any = ...,
        use_image_if_no_bounding_boxes: bool = ...,
    ) -> None:
        ...

    def __call__(self, size: Any, boxes: Any, covered: Any) -> Any:
        ...

class ScalarCast(Primitive):
    """A conversion of numbers: ``ScalarCast()(input_x, input_y)`` is a number as a Python number
    of an element type: bool, int64, float32 or float64; floats are truncated."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, input_y: Any) -> Any:
        ...

class ScalarSummary(Primitive):
    """A summary of a number: ``ScalarSummary()(name, value)`` keeps a tensor of one number of
    this step for the next ``record`` of each open `mycel.SummaryRecord`."""

    def __init__(self) -> None:
        ...

    def __call__(self, name: str, value: Any) -> None:
        ...

class ScalarToArray(Primitive):
    """`mycel.ops.scalar_to_array` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Tensor:
        ...

class ScalarToTensor(Primitive):
    """A conversion of numbers: ``ScalarToTensor()(input_x, dtype)`` is a Python number as a
    tensor without dimensions, by default float32."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, dtype: Any = ...) -> Tensor:
        ...

class ScaleAndTranslate(Primitive):
    """Return images (N, H, W, C) scaled by `scale` (height, width), then moved by `translation`,
    and cut at `size`."""

    def __init__(self, kernel_type: str = ..., antialias: bool = ...) -> None:
        ...

    def __call__(self, x: Any, size: Any, scale: Any, shift: Any) -> Any:
        ...

class Scan(Primitive):
    """A loop that carries a value and collects results: ``Scan()(loop_func, init, xs)`` computes
    ``carry, y = loop_func(carry, x)`` for the members of a tuple or list, and returns the
    last carry and the list of the y."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        loop_func: Any,
        init: Any,
        xs: Any,
        length: Any = ...,
        unroll: bool = ...,
    ) -> Any:
        ...

class ScatterAdd(Primitive):
    """`mycel.ops.scatter_add` as an object. Write to a parameter in place: `input_x` is
    increased by `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterAddWithAxis(Primitive):
    """x with updates added at the positions along an axis that indices name."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any, indices: Any, update: Any) -> Tensor:
        ...

class ScatterDiv(Primitive):
    """`mycel.ops.scatter_div` as an object. Write to a parameter in place: `input_x` is divided
    by `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterMax(Primitive):
    """`mycel.ops.scatter_max` as an object. Write to a parameter in place: `input_x` is raised
    to at least `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterMin(Primitive):
    """`mycel.ops.scatter_min` as an object. Write to a parameter in place: `input_x` is lowered
    to at most `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterMul(Primitive):
    """`mycel.ops.scatter_mul` as an object. Write to a parameter in place: `input_x` is
    multiplied by `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNd(Primitive):
    """`mycel.ops.scatter_nd` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, indices: Any, updates: Any, shape: Any) -> Tensor:
        ...

class ScatterNdAdd(Primitive):
    """`mycel.ops.scatter_nd_add` as an object. Write to a parameter in place: it is increased by
    the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdDiv(Primitive):
    """`mycel.ops.scatter_nd_div` as an object. Write to a parameter in place: it is divided by
    the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdMax(Primitive):
    """`mycel.ops.scatter_nd_max` as an object. Write to a parameter in place: it is raised to at
    least the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdMin(Primitive):
    """`mycel.ops.scatter_nd_min` as an object. Write to a parameter in place: it is lowered to
    at most the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdMul(Primitive):
    """`mycel.ops.scatter_nd_mul` as an object. Write to a parameter in place: it is multiplied
    by the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdSub(Primitive):
    """`mycel.ops.scatter_nd_sub` as an object. Write to a parameter in place: it is decreased by
    the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNdUpdate(Primitive):
    """`mycel.ops.scatter_nd_update` as an object. Write to a parameter in place: it is replaced
    by the updates at given positions."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterNonAliasingAdd(Primitive):
    """The parameter after updates were added at positions (.., n)."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterSub(Primitive):
    """`mycel.ops.scatter_sub` as an object. Write to a parameter in place: `input_x` is
    decreased by `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class ScatterUpdate(Primitive):
    """`mycel.ops.scatter_update` as an object. Write to a parameter in place: `input_x` is
    replaced by `updates` at the rows (axis 0) at `indices`."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class SeLU(Primitive):
    """`mycel.ops.selu` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Tensor:
        ...

class SearchSorted(Primitive):
    """`mycel.ops.searchsorted` as an object. Return the positions at which values would be
    inserted into sorted rows (the last axis)."""

    def __init__(self, dtype: Any = ..., right: bool = ...) -> None:
        ...

    def __call__(self, rows: Any, values: Any) -> Any:
        ...

class SegmentMax(Primitive):
    """Return the largest element of each segment of axis 0; 0 for an empty one."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any) -> Tensor:
        ...

class SegmentMean(Primitive):
    """Return the mean of each segment of axis 0, in the type of `input_x` (of integers rounded
    towards 0); 0 for an empty one."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any) -> Tensor:
        ...

class SegmentMin(Primitive):
    """Return the smallest element of each segment of axis 0; 0 for an empty one."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any) -> Tensor:
        ...

class SegmentProd(Primitive):
    """Return the product of each segment of axis 0; 1 for an empty one."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any) -> Tensor:
        ...

class SegmentSum(Primitive):
    """Return the sum of each segment of axis 0."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any) -> Tensor:
        ...

class Select(Primitive):
    """`mycel.ops.select` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, condition: Any, input: Any, other: Any) -> Tensor:
        ...

class SelectView(Primitive):
    """The part at one position along an axis, without the axis."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_tensor: Any, input_indices: Any, axis: int) -> Tensor:
        ...

class Send(Primitive):
    """A message with a tensor to the process `dest_rank`."""

    def __init__(
        self,
        sr_tag: Any,
        dest_rank: Any,
        group: str = ...,
        group_back: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> None:
        ...

class Shape(Primitive):
    """`mycel.ops.shape` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> tuple[Any, ...]:
        ...

class Sigmoid(Primitive):
    """`mycel.ops.sigmoid` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class SigmoidCrossEntropyWithLogits(Primitive):
    """The binary cross-entropy of each element, from logits."""

    def __init__(self) -> None:
        ...

    def __call__(self, logits: Any, labels: Any) -> Tensor:
        ...

class Sign(Primitive):
    """`mycel.ops.sign` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Sin(Primitive):
    """`mycel.ops.sin` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Sinc(Primitive):
    """`mycel.ops.sinc` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Sinh(Primitive):
    """`mycel.ops.sinh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Size(Primitive):
    """`mycel.ops.size` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Any:
        ...

class Slice(Primitive):
    """`mycel.ops.slice` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, begin: Any, size: Any) -> Tensor:
        ...

class SmoothL1Loss(Primitive):
    """`mycel.ops.smooth_l1_loss` as an object. Return d**2 / (2 beta) where d < beta, else d -
    beta / 2, of absolute differences d (Girshick, 2015)."""

    def __init__(self, beta: float = ..., reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class SoftMarginLoss(Primitive):
    """`mycel.ops.soft_margin_loss` as an object. Return log(1 + exp(-y x)) for `input` x and
    `target` y, which is 1 or -1."""

    def __init__(self, reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class SoftShrink(Primitive):
    """`mycel.ops.softshrink` as an object. Return x moved towards 0 by `lambd`, and 0 where |x|
    <= lambd."""

    def __init__(self, lambd: float = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Softmax(Primitive):
    """`mycel.ops.softmax` as an object. Return exp(x) / sum(exp(x)) along `axis`."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class SoftmaxCrossEntropyWithLogits(Primitive):
    """The cross-entropy of each row with probabilities, and its derivative."""

    def __init__(self) -> None:
        ...

    def __call__(self, logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
        ...

class Softplus(Primitive):
    """`mycel.ops.softplus` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, beta: Any = ..., threshold: Any = ...) -> Tensor:
        ...

class Softsign(Primitive):
    """`mycel.ops.softsign` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Sort(Primitive):
    """`mycel.ops.sort` as an object. Return the sorted elements along an axis and their int32
    positions."""

    def __init__(self, axis: Any = ..., descending: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class SpaceToBatch(Primitive):
    """`mycel.ops.space_to_batch_nd` as an object. Cut the last axes, padded with zeros, into
    blocks, and move the places within a block to the batch axis."""

    def __init__(self, block_size: Any, paddings: Any) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class SpaceToBatchND(Primitive):
    """`mycel.ops.space_to_batch_nd` as an object. Cut the last axes, padded with zeros, into
    blocks, and move the places within a block to the batch axis."""

    def __init__(self, block_shape: Any, paddings: Any) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class SpaceToDepth(Primitive):
    """Blocks of an image (N, C, H, W) moved into its channels."""

    def __init__(self, block_size: Any) -> None:
        ...

    def __call__(self, value: Any) -> Tensor:
        ...

class SparseApplyAdadelta(Primitive):
    """Adadelta of rows."""

    def __init__(self, epsilon: Any, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        accum_update: Tensor,
        lr: Any,
        rho: Any,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class SparseApplyAdagrad(Primitive):
    """AdaGrad of rows."""

    def __init__(self, lr: Any, update_slots: bool = ..., use_locking: bool = ...) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, grad: Tensor, indices: Tensor) -> Any:
        ...

class SparseApplyAdagradV2(Primitive):
    """AdaGrad of rows with `epsilon` added to the root."""

    def __init__(
        self,
        lr: Any,
        epsilon: Any,
        use_locking: bool = ...,
        update_slots: bool = ...,
    ) -> None:
        ...

    def __call__(self, var: Tensor, accum: Tensor, grad: Tensor, indices: Tensor) -> Any:
        ...

class SparseApplyFtrl(Primitive):
    """Follow the regularized leader, of rows."""

    def __init__(self, lr: Any, l1: Any, l2: Any, lr_power: Any, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        linear: Tensor,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class SparseApplyFtrlV2(Primitive):
    """Follow the regularized leader, of rows, with ``2 * l2_shrinkage * var`` added to the
    gradient of `linear`."""

    def __init__(
        self,
        lr: Any,
        l1: Any,
        l2: Any,
        l2_shrinkage: Any,
        lr_power: Any,
        use_locking: bool = ...,
    ) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        linear: Tensor,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class SparseApplyProximalAdagrad(Primitive):
    """AdaGrad with a proximal step, of rows."""

    def __init__(self, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        accum: Tensor,
        lr: Any,
        l1: Any,
        l2: Any,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class SparseApplyRMSProp(Primitive):
    """RMSProp of rows."""

    def __init__(self, rho: Any, momentum: Any, epsilon: Any, use_locking: bool = ...) -> None:
        ...

    def __call__(
        self,
        var: Tensor,
        ms: Tensor,
        mom: Tensor,
        lr: Any,
        grad: Tensor,
        indices: Tensor,
    ) -> Any:
        ...

class SparseGatherV2(Primitive):
    """`mycel.ops.gather` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        input_params: Any,
        input_indices: Any,
        axis: Any,
        batch_dims: int = ...,
    ) -> Tensor:
        ...

class SparseSlice(Primitive):
    """The part of a sparse tensor that begins at `start` and has at most `size`: indices from
    its start, values and shape."""

    def __init__(self) -> None:
        ...

    def __call__(
        self,
        indices: Any,
        values: Any,
        shape: Any,
        start: Any,
        size: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        ...

class SparseSoftmaxCrossEntropyWithLogits(Primitive):
    """The mean cross-entropy of logits (N, C) with classes (N,), or with `is_grad` its
    derivative by the logits."""

    def __init__(self, is_grad: bool = ...) -> None:
        ...

    def __call__(self, logits: Any, labels: Any) -> Tensor:
        ...

class SparseTensorDenseAdd(Primitive):
    """The sum of a sparse and a dense tensor of one shape, which is dense."""

    def __init__(self) -> None:
        ...

    def __call__(self, x1_indices: Any, x1_values: Any, x1_shape: Any, x2: Any) -> Tensor:
        ...

class SparseTensorDenseMatmul(Primitive):
    """A sparse matrix times a dense one."""

    def __init__(self, adjoint_st: bool = ..., adjoint_dt: bool = ...) -> None:
        ...

    def __call__(self, i: Any, v: Any, shape: Any, y: Any) -> Any:
        ...

class SparseToDense(Primitive):
    """The dense tensor of a sparse one."""

    def __init__(self) -> None:
        ...

    def __call__(self, indices: Any, values: Any, sparse_shape: Any) -> Tensor:
        ...

class Split(Primitive):
    """The `output_num` parts, of one size, of a tensor along an axis."""

    def __init__(self, axis: Any = ..., output_num: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class SplitV(Primitive):
    """`mycel.ops.split` as an object. Split a tensor along an axis into parts of one size (the
    last may be smaller), or of the sizes in a sequence, which must add up to the size of the
    axis."""

    def __init__(self, size_splits: Any, split_dim: Any, num_split: Any) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Tensor, ...]:
        ...

class Sqrt(Primitive):
    """`mycel.ops.sqrt` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Tensor:
        ...

class Square(Primitive):
    """`mycel.ops.square` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class SquareSumAll(Primitive):
    """The sums of squares of two tensors."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Tensor, y: Tensor) -> Any:
        ...

class SquaredDifference(Primitive):
    """The square of the difference."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Any:
        ...

class Squeeze(Primitive):
    """`mycel.ops.squeeze` as an object. Remove axes of size 1; `axis` limits which. Axes of
    other sizes stay."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Stack(Primitive):
    """`mycel.ops.stack` as an object. Join tensors of one shape along a new axis, in their
    common type."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, xs: Any) -> Any:
        ...

class StandardLaplace(Primitive):
    """`mycel.ops.standard_laplace` as an object. Return float32 numbers from the Laplace
    distribution with mean 0 and scale 1."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any) -> Any:
        ...

class StandardNormal(Primitive):
    """`mycel.ops.standard_normal` as an object. Return float32 numbers from the standard normal
    distribution."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any) -> Any:
        ...

class StopGradient(Primitive):
    """The tensor as a constant for differentiation."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class StridedSlice(Primitive):
    """`mycel.ops.strided_slice` as an object: ``input_x[begin[0]:end[0]:strides[0], ...]``."""

    def __init__(
        self,
        begin_mask: Any = ...,
        end_mask: Any = ...,
        ellipsis_mask: Any = ...,
        new_axis_mask: Any = ...,
        shrink_axis_mask: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, begin: Any, end: Any, strides: Any) -> Any:
        ...

class Sub(Primitive):
    """`mycel.ops.sub` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class SubAndFilter(Primitive):
    """The elements of x - offset that lie in [0, max_num), and their positions (int32); called
    with (x, max_num, offset)."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, max_num: Any, offset: Any) -> tuple[Tensor, Tensor]:
        ...

class Svd(Primitive):
    """`mycel.ops.svd` as an object. Return singular values s in descending order, U and V with A
    = U diag(s) V^H."""

    def __init__(self, full_matrices: bool = ..., compute_uv: bool = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class Tan(Primitive):
    """`mycel.ops.tan` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Tanh(Primitive):
    """`mycel.ops.tanh` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class TensorAdd(Primitive):
    """`mycel.ops.add` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class TensorDump(Primitive):
    """`mycel.ops.tensordump` as an object: ``TensorDump(input_output)(file, input_x)``."""

    def __init__(self, input_output: str = ...) -> None:
        ...

    def __call__(self, file: Any, input_x: Any) -> None:
        ...

class TensorScatterAdd(Primitive):
    """`mycel.ops.tensor_scatter_add` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterDiv(Primitive):
    """`mycel.ops.tensor_scatter_div` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterElements(Primitive):
    """`mycel.ops.tensor_scatter_elements` as an object. Return a copy of `input_x` with each
    element of `updates` written at its own position, but at the index in `indices` along
    `axis`."""

    def __init__(self, axis: Any = ..., reduction: str = ...) -> None:
        ...

    def __call__(self, x: Any, i: Any, u: Any) -> Any:
        ...

class TensorScatterMax(Primitive):
    """`mycel.ops.tensor_scatter_max` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterMin(Primitive):
    """`mycel.ops.tensor_scatter_min` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterMul(Primitive):
    """`mycel.ops.tensor_scatter_mul` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterSub(Primitive):
    """`mycel.ops.tensor_scatter_sub` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorScatterUpdate(Primitive):
    """`mycel.ops.tensor_scatter_update` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, indices: Any, updates: Any) -> Tensor:
        ...

class TensorShape(Primitive):
    """`mycel.ops.dyn_shape` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Tensor:
        ...

class TensorSummary(Primitive):
    """A summary of a tensor: ``TensorSummary()(name, value)`` keeps a tensor of this step for
    the next ``record`` of each open `mycel.SummaryRecord`."""

    def __init__(self) -> None:
        ...

    def __call__(self, name: str, value: Any) -> None:
        ...

class TensorToTuple(Primitive):
    """The elements of a tensor of one dimension as a tuple of numbers."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any) -> tuple[Any, ...]:
        ...

class Tile(Primitive):
    """`mycel.ops.tile` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, dims: Any) -> Tensor:
        ...

class TopK(Primitive):
    """`mycel.ops.top_k` as an object. Return the k largest elements along the last axis in
    order, and their int32 positions."""

    def __init__(self, sorted: bool = ...) -> None:
        ...

    def __call__(self, x: Any, k: Any) -> Any:
        ...

class Trace(Primitive):
    """`mycel.ops.trace` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class Transpose(Primitive):
    """`mycel.ops.transpose` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, dims: Any) -> Tensor:
        ...

class TransposeExtView(Primitive):
    """The tensor with two axes exchanged."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, dim0: Any, dim1: Any) -> Any:
        ...

class TransposeView(Primitive):
    """The tensor with its axes in another order."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, input_perm: Any) -> Any:
        ...

class TridiagonalMatMul(Primitive):
    """Return the product of tridiagonal matrices with `rhs` (.., m, n)."""

    def __init__(self) -> None:
        ...

    def __call__(self, superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Tensor:
        ...

class Tril(Primitive):
    """`mycel.ops.tril` as an object. Keep the elements of matrices on and below a diagonal and
    set the others to 0."""

    def __init__(self, diagonal: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class TrilIndices(Primitive):
    """`mycel.ops.tril_indices` as an object: the row and column indices (2 x count) of the
    elements of a `row` x `col` matrix on and below a diagonal."""

    def __init__(self, row: Any, col: Any, offset: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self) -> Any:
        ...

class TripletMarginLoss(Primitive):
    """The loss max(d(x, positive) - d(x, negative) + margin, 0), where the margin is a tensor."""

    def __init__(
        self,
        p: Any = ...,
        swap: bool = ...,
        eps: float = ...,
        reduction: str = ...,
    ) -> None:
        ...

    def __call__(self, x: Any, positive: Any, negative: Any, margin: Any) -> Tensor:
        ...

class Triu(Primitive):
    """`mycel.ops.triu` as an object. Keep the elements of matrices on and above a diagonal and
    set the others to 0."""

    def __init__(self, diagonal: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class TriuIndices(Primitive):
    """`mycel.ops.triu_indices` as an object: the row and column indices (2 x count) of the
    elements of a `row` x `col` matrix on and above a diagonal."""

    def __init__(self, row: Any, col: Any, offset: Any = ..., dtype: Any = ...) -> None:
        ...

    def __call__(self) -> Any:
        ...

class Trunc(Primitive):
    """`mycel.ops.trunc` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> Tensor:
        ...

class TruncateDiv(Primitive):
    """`mycel.ops.truncate_div` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class TruncateMod(Primitive):
    """`mycel.ops.truncate_mod` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class TruncatedNormal(Primitive):
    """Random standard normal numbers within [-2, 2]."""

    def __init__(self, dtype: Any = ..., seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any) -> Tensor:
        ...

class TupleToArray(Primitive):
    """A conversion of tuples: ``TupleToArray()(input_x)`` is a tuple of ints as an int32 tensor,
    one of floats as a float32 tensor."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any) -> Tensor:
        ...

class UniformCandidateSampler(Primitive):
    """`mycel.ops.uniform_candidate_sampler` as an object: classes drawn with equal probabilities
    from [0, `range_max`)."""

    def __init__(
        self,
        num_true: Any,
        num_sampled: Any,
        unique: Any,
        range_max: Any,
        seed: Any = ...,
        remove_accidental_hits: bool = ...,
    ) -> None:
        ...

    def __call__(self, true_classes: Any) -> Any:
        ...

class UniformInt(Primitive):
    """`mycel.ops.uniform` as an object. Return uniform numbers between bounds."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any, low: Any, high: Any) -> Any:
        ...

class UniformReal(Primitive):
    """`mycel.ops.rand` as an object. Return uniform numbers in [0, 1), of shape `size` and
    floating type `dtype` (float32)."""

    def __init__(self, seed: Any = ..., seed2: Any = ...) -> None:
        ...

    def __call__(self, shape: Any) -> Any:
        ...

class Unique(Primitive):
    """`mycel.ops.unique` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any) -> tuple[Tensor, Tensor]:
        ...

class UniqueConsecutive(Primitive):
    """`mycel.ops.unique_consecutive` as an object. Return the elements (or slices along an axis)
    without those equal to the one before."""

    def __init__(
        self,
        return_inverse: bool = ...,
        return_counts: bool = ...,
        dim: Any = ...,
    ) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class UniqueWithPad(Primitive):
    """`mycel.ops.unique_with_pad` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, pad_num: Any) -> tuple[Tensor, Tensor]:
        ...

class Unpack(Primitive):
    """`mycel.ops.unstack` as an object. Return the slices of a tensor along an axis, each
    without that axis."""

    def __init__(self, axis: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class UnravelIndex(Primitive):
    """The positions (n, ..) in a shape of positions in the flattened array."""

    def __init__(self) -> None:
        ...

    def __call__(self, indices: Any, dims: Any) -> Tensor:
        ...

class UnsortedSegmentMax(Primitive):
    """`mycel.ops.unsorted_segment_max` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        ...

class UnsortedSegmentMin(Primitive):
    """`mycel.ops.unsorted_segment_min` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        ...

class UnsortedSegmentProd(Primitive):
    """`mycel.ops.unsorted_segment_prod` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        ...

class UnsortedSegmentSum(Primitive):
    """`mycel.ops.unsorted_segment_sum` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input_x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        ...

class Unstack(Primitive):
    """`mycel.ops.unstack` as an object. Return the slices of a tensor along an axis, each
    without that axis."""

    def __init__(self, axis: Any = ..., num: Any = ...) -> None:
        ...

    def __call__(self, x: Any) -> Any:
        ...

class UpdateState(Primitive):
    """The state after values are there: ``UpdateState()(state, *values)`` is `state`."""

    def __init__(self) -> None:
        ...

    def __call__(self, state: Any, *values: Any) -> Any:
        ...

class UpperBound(Primitive):
    """The number of elements not above each value, in each row."""

    def __init__(self, out_type: Any = ...) -> None:
        ...

    def __call__(self, sorted_x: Any, values: Any) -> Tensor:
        ...

class UpsampleNearest3D(Primitive):
    """Return a volume `x` (N, C, D, H, W) at another size."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, output_size: Any = ..., scales: Any = ...) -> Any:
        ...

class UpsampleTrilinear3D(Primitive):
    """Return a volume `x` (N, C, D, H, W) at another size."""

    def __init__(self, align_corners: bool = ...) -> None:
        ...

    def __call__(self, x: Any, output_size: Any = ..., scales: Any = ...) -> Any:
        ...

class WhileLoop(Primitive):
    """A while-loop: ``WhileLoop()(cond_func, loop_func, init_val)`` replaces a value by
    ``loop_func(value)`` as long as ``cond_func(value)`` holds."""

    def __init__(self) -> None:
        ...

    def __call__(self, cond_func: Any, loop_func: Any, init_val: Any) -> Any:
        ...

class Xdivy(Primitive):
    """`mycel.ops.xdivy` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Any, y: Any) -> Tensor:
        ...

class Xlogy(Primitive):
    """`mycel.ops.xlogy` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, other: Any) -> Tensor:
        ...

class Zeros(Primitive):
    """`mycel.ops.zeros` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, size: Any, dtype: Any = ...) -> Tensor:
        ...

class ZerosLike(Primitive):
    """`mycel.ops.zeros_like` as an object."""

    def __init__(self) -> None:
        ...

    def __call__(self, input: Any, *, dtype: Any = ...) -> Tensor:
        ...

class Zeta(Primitive):
    """`mycel.ops.zeta` as an object. Return Hurwitz's zeta function: the sum over k >= 0 of
    (other + k)^-input."""

    def __init__(self) -> None:
        ...

    def __call__(self, x: Tensor, y: Tensor) -> Any:
        ...
