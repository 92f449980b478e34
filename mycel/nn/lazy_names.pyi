"""Names that are loaded when they are first asked for. `make stubs` writes this file."""

from mycel.train import Accuracy as Accuracy
from mycel.train import BleuScore as BleuScore
from mycel.train import ConfusionMatrix as ConfusionMatrix
from mycel.train import ConfusionMatrixMetric as ConfusionMatrixMetric
from mycel.train import CosineSimilarity as CosineSimilarity
from mycel.train import Dice as Dice
from mycel.train import F1 as F1
from mycel.train import Fbeta as Fbeta
from mycel.train import HausdorffDistance as HausdorffDistance
from mycel.train import Loss as Loss
from mycel.train import MAE as MAE
from mycel.train import MSE as MSE
from mycel.train import MeanSurfaceDistance as MeanSurfaceDistance
from mycel.train import Metric as Metric
from mycel.train import OcclusionSensitivity as OcclusionSensitivity
from mycel.train import Perplexity as Perplexity
from mycel.train import Precision as Precision
from mycel.train import ROC as ROC
from mycel.train import Recall as Recall
from mycel.train import RootMeanSquareDistance as RootMeanSquareDistance
from mycel.train import Top1CategoricalAccuracy as Top1CategoricalAccuracy
from mycel.train import Top5CategoricalAccuracy as Top5CategoricalAccuracy
from mycel.train import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from mycel.train import auc as auc
from mycel.train import get_metric_fn as get_metric_fn
from mycel.train import get_metrics as get_metrics
from mycel.train import names as names
from mycel.train import rearrange_inputs as rearrange_inputs
from typing import Any
from mycel.mint import nn as mint
Dropout2dExt: Any
DropoutExt: Any
EmbeddingExt = mint.Embedding
L1LossExt = mint.L1Loss
LayerNormExt = mint.LayerNorm
LogSoftmaxExt: Any
PReLUExt = mint.PReLU
