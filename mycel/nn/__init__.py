"""Neural-network layers, losses, training cells, learning rates and optimizers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mycel._src.foundation.migration_hints import OF_NN as _OF_NN
from mycel._src.foundation.migration_hints import missing as _missing
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.cells.cell import Cell as Cell
from mycel._src.tensors.cells.cell import GraphCell as GraphCell
from mycel._src.tensors.core.parameter import no_init_parameters as no_init_parameters
from mycel.nn import probability as probability
from mycel.nn.derivatives import Jvp as Jvp
from mycel.nn.derivatives import Vjp as Vjp
from mycel.nn.dynamic_lr import cosine_decay_lr as cosine_decay_lr
from mycel.nn.dynamic_lr import exponential_decay_lr as exponential_decay_lr
from mycel.nn.dynamic_lr import inverse_decay_lr as inverse_decay_lr
from mycel.nn.dynamic_lr import natural_exp_decay_lr as natural_exp_decay_lr
from mycel.nn.dynamic_lr import piecewise_constant_lr as piecewise_constant_lr
from mycel.nn.dynamic_lr import polynomial_decay_lr as polynomial_decay_lr
from mycel.nn.dynamic_lr import warmup_lr as warmup_lr
from mycel.nn.grad_reducer import DistributedGradReducer as DistributedGradReducer
from mycel.nn.grad_reducer import PipelineGradReducer as PipelineGradReducer
from mycel.nn.layer.activation import CELU as CELU
from mycel.nn.layer.activation import ELU as ELU
from mycel.nn.layer.activation import GELU as GELU
from mycel.nn.layer.activation import GLU as GLU
from mycel.nn.layer.activation import FastGelu as FastGelu
from mycel.nn.layer.activation import Hardtanh as Hardtanh
from mycel.nn.layer.activation import HShrink as HShrink
from mycel.nn.layer.activation import HSigmoid as HSigmoid
from mycel.nn.layer.activation import HSwish as HSwish
from mycel.nn.layer.activation import LeakyReLU as LeakyReLU
from mycel.nn.layer.activation import LogSigmoid as LogSigmoid
from mycel.nn.layer.activation import LogSoftmax as LogSoftmax
from mycel.nn.layer.activation import Mish as Mish
from mycel.nn.layer.activation import PReLU as PReLU
from mycel.nn.layer.activation import ReLU as ReLU
from mycel.nn.layer.activation import ReLU6 as ReLU6
from mycel.nn.layer.activation import RReLU as RReLU
from mycel.nn.layer.activation import SeLU as SeLU
from mycel.nn.layer.activation import Sigmoid as Sigmoid
from mycel.nn.layer.activation import SiLU as SiLU
from mycel.nn.layer.activation import Softmax as Softmax
from mycel.nn.layer.activation import Softmax2d as Softmax2d
from mycel.nn.layer.activation import Softmin as Softmin
from mycel.nn.layer.activation import SoftShrink as SoftShrink
from mycel.nn.layer.activation import Softsign as Softsign
from mycel.nn.layer.activation import Tanh as Tanh
from mycel.nn.layer.activation import Tanhshrink as Tanhshrink
from mycel.nn.layer.activation import Threshold as Threshold
from mycel.nn.layer.activation import get_activation as get_activation
from mycel.nn.layer.basic import Dense as Dense
from mycel.nn.layer.basic import Dropout as Dropout
from mycel.nn.layer.basic import Dropout1d as Dropout1d
from mycel.nn.layer.basic import Dropout2d as Dropout2d
from mycel.nn.layer.basic import Dropout3d as Dropout3d
from mycel.nn.layer.basic import Flatten as Flatten
from mycel.nn.layer.basic import Identity as Identity
from mycel.nn.layer.basic import Linear as Linear
from mycel.nn.layer.basic import Norm as Norm
from mycel.nn.layer.basic import OneHot as OneHot
from mycel.nn.layer.basic import PixelShuffle as PixelShuffle
from mycel.nn.layer.basic import PixelUnshuffle as PixelUnshuffle
from mycel.nn.layer.basic import Unflatten as Unflatten
from mycel.nn.layer.clipping import ClipByNorm as ClipByNorm
from mycel.nn.layer.combined import BiDense as BiDense
from mycel.nn.layer.combined import Conv2dBnAct as Conv2dBnAct
from mycel.nn.layer.combined import DenseBnAct as DenseBnAct
from mycel.nn.layer.combined import L1Regularizer as L1Regularizer
from mycel.nn.layer.combined import TimeDistributed as TimeDistributed
from mycel.nn.layer.container import CellDict as CellDict
from mycel.nn.layer.container import CellList as CellList
from mycel.nn.layer.container import SequentialCell as SequentialCell
from mycel.nn.layer.conv import Conv1d as Conv1d
from mycel.nn.layer.conv import Conv1dTranspose as Conv1dTranspose
from mycel.nn.layer.conv import Conv2d as Conv2d
from mycel.nn.layer.conv import Conv2dTranspose as Conv2dTranspose
from mycel.nn.layer.conv import Conv3d as Conv3d
from mycel.nn.layer.conv import Conv3dTranspose as Conv3dTranspose
from mycel.nn.layer.embedding import Embedding as Embedding
from mycel.nn.layer.embedding import EmbeddingLookup as EmbeddingLookup
from mycel.nn.layer.embedding import MultiFieldEmbeddingLookup as MultiFieldEmbeddingLookup
from mycel.nn.layer.image import MSSSIM as MSSSIM
from mycel.nn.layer.image import PSNR as PSNR
from mycel.nn.layer.image import SSIM as SSIM
from mycel.nn.layer.image import CentralCrop as CentralCrop
from mycel.nn.layer.image import ChannelShuffle as ChannelShuffle
from mycel.nn.layer.image import ImageGradients as ImageGradients
from mycel.nn.layer.image import Unfold as Unfold
from mycel.nn.layer.image import Upsample as Upsample
from mycel.nn.layer.math import DiGamma as DiGamma
from mycel.nn.layer.math import IGamma as IGamma
from mycel.nn.layer.math import LBeta as LBeta
from mycel.nn.layer.math import LGamma as LGamma
from mycel.nn.layer.math import MatDet as MatDet
from mycel.nn.layer.math import MatInverse as MatInverse
from mycel.nn.layer.math import MatMul as MatMul
from mycel.nn.layer.math import Moments as Moments
from mycel.nn.layer.math import Range as Range
from mycel.nn.layer.math import ReduceLogSumExp as ReduceLogSumExp
from mycel.nn.layer.matrices import MatrixDiag as MatrixDiag
from mycel.nn.layer.matrices import MatrixDiagPart as MatrixDiagPart
from mycel.nn.layer.matrices import MatrixSetDiag as MatrixSetDiag
from mycel.nn.layer.matrices import Roll as Roll
from mycel.nn.layer.matrices import Tril as Tril
from mycel.nn.layer.matrices import Triu as Triu
from mycel.nn.layer.normalization import LRN as LRN
from mycel.nn.layer.normalization import BatchNorm1d as BatchNorm1d
from mycel.nn.layer.normalization import BatchNorm2d as BatchNorm2d
from mycel.nn.layer.normalization import BatchNorm3d as BatchNorm3d
from mycel.nn.layer.normalization import GroupNorm as GroupNorm
from mycel.nn.layer.normalization import InstanceNorm1d as InstanceNorm1d
from mycel.nn.layer.normalization import InstanceNorm2d as InstanceNorm2d
from mycel.nn.layer.normalization import InstanceNorm3d as InstanceNorm3d
from mycel.nn.layer.normalization import LayerNorm as LayerNorm
from mycel.nn.layer.normalization import SyncBatchNorm as SyncBatchNorm
from mycel.nn.layer.padded_pooling import AvgPool1dExt as AvgPool1dExt
from mycel.nn.layer.padded_pooling import AvgPool2dExt as AvgPool2dExt
from mycel.nn.layer.padded_pooling import AvgPool3dExt as AvgPool3dExt
from mycel.nn.layer.padded_pooling import MaxPool2dExt as MaxPool2dExt
from mycel.nn.layer.padding import ConstantPad1d as ConstantPad1d
from mycel.nn.layer.padding import ConstantPad2d as ConstantPad2d
from mycel.nn.layer.padding import ConstantPad3d as ConstantPad3d
from mycel.nn.layer.padding import Pad as Pad
from mycel.nn.layer.padding import ReflectionPad1d as ReflectionPad1d
from mycel.nn.layer.padding import ReflectionPad2d as ReflectionPad2d
from mycel.nn.layer.padding import ReflectionPad3d as ReflectionPad3d
from mycel.nn.layer.padding import ReplicationPad1d as ReplicationPad1d
from mycel.nn.layer.padding import ReplicationPad2d as ReplicationPad2d
from mycel.nn.layer.padding import ReplicationPad3d as ReplicationPad3d
from mycel.nn.layer.padding import ZeroPad2d as ZeroPad2d
from mycel.nn.layer.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from mycel.nn.layer.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from mycel.nn.layer.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from mycel.nn.layer.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from mycel.nn.layer.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from mycel.nn.layer.pooling import AvgPool1d as AvgPool1d
from mycel.nn.layer.pooling import AvgPool2d as AvgPool2d
from mycel.nn.layer.pooling import AvgPool3d as AvgPool3d
from mycel.nn.layer.pooling import MaxPool1d as MaxPool1d
from mycel.nn.layer.pooling import MaxPool2d as MaxPool2d
from mycel.nn.layer.pooling import MaxPool3d as MaxPool3d
from mycel.nn.layer.recurrent import GRU as GRU
from mycel.nn.layer.recurrent import LSTM as LSTM
from mycel.nn.layer.recurrent import RNN as RNN
from mycel.nn.layer.recurrent import GRUCell as GRUCell
from mycel.nn.layer.recurrent import LSTMCell as LSTMCell
from mycel.nn.layer.recurrent import RNNCell as RNNCell
from mycel.nn.layer.sparse import SparseTensorDenseMatmul as SparseTensorDenseMatmul
from mycel.nn.layer.sparse import SparseToDense as SparseToDense
from mycel.nn.layer.thor import Conv2dThor as Conv2dThor
from mycel.nn.layer.thor import DenseThor as DenseThor
from mycel.nn.layer.thor import EmbeddingLookupThor as EmbeddingLookupThor
from mycel.nn.layer.thor import EmbeddingThor as EmbeddingThor
from mycel.nn.layer.transformer import MultiheadAttention as MultiheadAttention
from mycel.nn.layer.transformer import Transformer as Transformer
from mycel.nn.layer.transformer import TransformerDecoder as TransformerDecoder
from mycel.nn.layer.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from mycel.nn.layer.transformer import TransformerEncoder as TransformerEncoder
from mycel.nn.layer.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from mycel.nn.layer.unpooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from mycel.nn.layer.unpooling import FractionalMaxPool2d as FractionalMaxPool2d
from mycel.nn.layer.unpooling import FractionalMaxPool3d as FractionalMaxPool3d
from mycel.nn.layer.unpooling import LPPool1d as LPPool1d
from mycel.nn.layer.unpooling import LPPool2d as LPPool2d
from mycel.nn.layer.unpooling import MaxUnpool1d as MaxUnpool1d
from mycel.nn.layer.unpooling import MaxUnpool2d as MaxUnpool2d
from mycel.nn.layer.unpooling import MaxUnpool3d as MaxUnpool3d
from mycel.nn.learning_rate_schedule import CosineDecayLR as CosineDecayLR
from mycel.nn.learning_rate_schedule import ExponentialDecayLR as ExponentialDecayLR
from mycel.nn.learning_rate_schedule import InverseDecayLR as InverseDecayLR
from mycel.nn.learning_rate_schedule import NaturalExpDecayLR as NaturalExpDecayLR
from mycel.nn.learning_rate_schedule import PolynomialDecayLR as PolynomialDecayLR
from mycel.nn.learning_rate_schedule import WarmUpLR as WarmUpLR
from mycel.nn.loss.base import LossBase as LossBase
from mycel.nn.loss.classification import BCELoss as BCELoss
from mycel.nn.loss.classification import BCEWithLogitsLoss as BCEWithLogitsLoss
from mycel.nn.loss.classification import CrossEntropyLoss as CrossEntropyLoss
from mycel.nn.loss.classification import DiceLoss as DiceLoss
from mycel.nn.loss.classification import FocalLoss as FocalLoss
from mycel.nn.loss.classification import KLDivLoss as KLDivLoss
from mycel.nn.loss.classification import MultiClassDiceLoss as MultiClassDiceLoss
from mycel.nn.loss.classification import MultilabelMarginLoss as MultilabelMarginLoss
from mycel.nn.loss.classification import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from mycel.nn.loss.classification import MultiMarginLoss as MultiMarginLoss
from mycel.nn.loss.classification import NLLLoss as NLLLoss
from mycel.nn.loss.classification import SoftmaxCrossEntropyWithLogits as SoftmaxCrossEntropyWithLogits
from mycel.nn.loss.regression import CosineEmbeddingLoss as CosineEmbeddingLoss
from mycel.nn.loss.regression import GaussianNLLLoss as GaussianNLLLoss
from mycel.nn.loss.regression import HingeEmbeddingLoss as HingeEmbeddingLoss
from mycel.nn.loss.regression import HuberLoss as HuberLoss
from mycel.nn.loss.regression import L1Loss as L1Loss
from mycel.nn.loss.regression import MAELoss as MAELoss
from mycel.nn.loss.regression import MarginRankingLoss as MarginRankingLoss
from mycel.nn.loss.regression import MSELoss as MSELoss
from mycel.nn.loss.regression import PoissonNLLLoss as PoissonNLLLoss
from mycel.nn.loss.regression import RMSELoss as RMSELoss
from mycel.nn.loss.regression import SmoothL1Loss as SmoothL1Loss
from mycel.nn.loss.regression import SoftMarginLoss as SoftMarginLoss
from mycel.nn.loss.regression import TripletMarginLoss as TripletMarginLoss
from mycel.nn.loss.regression import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from mycel.nn.loss.sampled import CTCLoss as CTCLoss
from mycel.nn.loss.sampled import SampledSoftmaxLoss as SampledSoftmaxLoss
from mycel.nn.loss_scale import DynamicLossScaleUpdateCell as DynamicLossScaleUpdateCell
from mycel.nn.loss_scale import FixedLossScaleUpdateCell as FixedLossScaleUpdateCell
from mycel.nn.loss_scale import TrainOneStepWithLossScaleCell as TrainOneStepWithLossScaleCell
from mycel.nn.micro_batch import GradAccumulationCell as GradAccumulationCell
from mycel.nn.micro_batch import MicroBatchInterleaved as MicroBatchInterleaved
from mycel.nn.micro_batch import PipelineCell as PipelineCell
from mycel.nn.micro_batch import VirtualDatasetCellTriple as VirtualDatasetCellTriple
from mycel.nn.network_summary import LayerSummary as LayerSummary
from mycel.nn.network_summary import Summary as Summary
from mycel.nn.network_summary import summary as summary
from mycel.nn.optim import ASGD as ASGD
from mycel.nn.optim import FTRL as FTRL
from mycel.nn.optim import LARS as LARS
from mycel.nn.optim import SGD as SGD
from mycel.nn.optim import Adadelta as Adadelta
from mycel.nn.optim import AdaFactor as AdaFactor
from mycel.nn.optim import Adagrad as Adagrad
from mycel.nn.optim import Adam as Adam
from mycel.nn.optim import AdaMax as AdaMax
from mycel.nn.optim import AdamOffload as AdamOffload
from mycel.nn.optim import AdamWeightDecay as AdamWeightDecay
from mycel.nn.optim import AdaSumByDeltaWeightWrapCell as AdaSumByDeltaWeightWrapCell
from mycel.nn.optim import AdaSumByGradWrapCell as AdaSumByGradWrapCell
from mycel.nn.optim import Lamb as Lamb
from mycel.nn.optim import LazyAdam as LazyAdam
from mycel.nn.optim import Momentum as Momentum
from mycel.nn.optim import Optimizer as Optimizer
from mycel.nn.optim import ProximalAdagrad as ProximalAdagrad
from mycel.nn.optim import RMSProp as RMSProp
from mycel.nn.optim import Rprop as Rprop
from mycel.nn.optim import thor as thor
from mycel.nn.wrap import ForwardValueAndGrad as ForwardValueAndGrad
from mycel.nn.wrap import ParameterUpdate as ParameterUpdate
from mycel.nn.wrap import TrainOneStepCell as TrainOneStepCell
from mycel.nn.wrap import WithEvalCell as WithEvalCell
from mycel.nn.wrap import WithGradCell as WithGradCell
from mycel.nn.wrap import WithLossCell as WithLossCell

# Metrics, which MindSpore offers under `nn` too.
_METRICS = (
    "Accuracy",
    "BleuScore",
    "ConfusionMatrix",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "Dice",
    "F1",
    "Fbeta",
    "HausdorffDistance",
    "Loss",
    "MAE",
    "MSE",
    "MeanSurfaceDistance",
    "Metric",
    "OcclusionSensitivity",
    "Perplexity",
    "Precision",
    "ROC",
    "Recall",
    "RootMeanSquareDistance",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "auc",
    "get_metric_fn",
    "get_metrics",
    "names",
    "rearrange_inputs",
)

# Other names of layers of `mint.nn`.
_MINT = {
    "Dropout2dExt": "Dropout2d",
    "DropoutExt": "Dropout",
    "EmbeddingExt": "Embedding",
    "L1LossExt": "L1Loss",
    "LayerNormExt": "LayerNorm",
    "LogSoftmaxExt": "LogSoftmax",
    "PReLUExt": "PReLU",
}


# Type checkers see only these names besides the imported ones; any other is a mistake.
if TYPE_CHECKING:
    from mycel.nn.lazy_names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name in _METRICS:
            return getattr(importlib.import_module("mycel.train"), name)
        if name in _MINT:
            return getattr(importlib.import_module("mycel.mint.nn"), _MINT[name])
        raise _missing("mycel.nn", name, _OF_NN)


__dir__ = _listing(__name__, (*_METRICS, *_MINT))

# Last, because it adds attributes to the classes above.
import mycel.nn.operation_attributes  # noqa: E402, F401
from mycel._src.foundation.errors import name_constructors as _name_constructors  # noqa: E402

_name_constructors(globals())
