"""Why private primitives are not served, by what they are tied to."""

from __future__ import annotations

__all__ = ["PRIVATE"]

_ASCEND = "works on blocks in the memory format of Ascend devices"
_GROUPS: tuple[tuple[str, str], ...] = (
    (
        f"{_ASCEND}; use the functions of mindspore.ops on plain tensors",
        """
        CholeskyTrsm CusCholeskyTrsm CusFusedAbsMax1 CusImg2Col CusMatMulCubeDenseLeft
        CusMatMulCubeDenseRight CusMatMulCubeFraczLeftCast CusMatMulCubeFraczRightMul
        LoadIm2Col NewIm2Col ThorIm2Col _Cholesky Cholesky AvgPoolGradVm DSDGrad DSDMatmul MatmulDDS
        MatmulDDSGrad NonZeroWithValue
        NonZeroWithValueShape ConfusionMulGrad FFN GenerateEodMask KVCacheMgr Lamb
        LambApplyOptimizerAssign LambApplyWeightAssign ProdForceSeA StackDestroy StackInit StackPop
        StackPush TensorReport _DynamicLossScale ActULQClampMaxGrad ActULQClampMinGrad ActsULQ
        ActsULQInputGrad IFMR WtsARQ
        """,
    ),
    (
        "goes with what an Ascend or GPU kernel of a recurrence keeps; use ms.grad of nn.LSTM, nn.GRU or "
        "ops.DynamicRNN",
        """
        BasicLSTMCellCStateGrad BasicLSTMCellInputGrad BasicLSTMCellWeightGrad CudnnGRU
        DynamicGRUV2Grad DynamicRNNGrad GRUV2 GRUV2Grad GruGradData GruGradWeight
        LSTMGradData LSTMGradWeight LSTMV2
        """,
    ),
    (
        "reads the queue of a dataset on an Ascend or GPU device; iterate over the dataset",
        "BatchEnqueue Dequeue",
    ),
    (
        "is an operation on text and contours for Ascend's inference processors; use mindspore.dataset.vision",
        """
        BatchDilatePolys GetShape OCRDetectionPostHandle OCRDetectionPreHandle OCRFindContours
        OCRIdentifyPreHandle OCRRecognitionPreHandle ResizeAndClipPolys StringLength DecodeImage
        """,
    ),
    (
        "moves parts of tensors between devices; use the collectives of mindspore.ops",
        """
        EmbeddingLookupCommGrad NeighborExchangeV2Grad ParallelResizeBilinear
        ParallelResizeBilinearGrad _AllSwap _HostAllGather _HostReduceScatter
        _VirtualAssignKvCache get_squared_device_local_norm_param
        """,
    ),
    (
        "reads a register of Ascend devices; look for overflow in values with ops.isfinite",
        "NPUClearFloatStatusV2 NPUGetFloatStatusV2",
    ),
    (
        "is a base of MindSpore's own classes that works out shapes; use ops.Primitive or ops.Custom",
        """
        _BinaryOp _BitwiseBinaryOp _LogicBinaryOp _MathBinaryOp _Reduce _Pool _PoolGrad
        _ActivationGrad _ScatterNdOp _ScatterOp _ScatterOpDynamic _TensorScatterOp _CustomExt
        """,
    ),
    (
        "was taken out of MindSpore; use ops.BatchNorm",
        "FusedBatchNorm FusedBatchNormEx",
    ),
    (
        "belongs to MindSpore's compiler of graphs, which Mycel does not have; write Python and compile it with "
        "mindspore.jit",
        """
        CellBackwardHook Generator GetitemTensorIndexInfo PartitionedCall PyInterpret
        SetitemTensorIndexInfo
        """,
    ),
    (
        "follows an ordering or a form of rows that only MindSpore's kernel defines; use scipy.sparse",
        "RaggedTensorToTensor SparseMatrixOrderingAMD",
    ),
)

PRIVATE: dict[str, str] = {name: advice for advice, names in _GROUPS for name in names.split()}
