"""Callbacks: code that runs between the steps and epochs of training and evaluation."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.train.callback.backup import BackupAndRestore as BackupAndRestore
from mycel.train.callback.base import Callback as Callback
from mycel.train.callback.base import RunContext as RunContext
from mycel.train.callback.checkpoint import CheckpointConfig as CheckpointConfig
from mycel.train.callback.checkpoint import ModelCheckpoint as ModelCheckpoint
from mycel.train.callback.early_stopping import EarlyStopping as EarlyStopping
from mycel.train.callback.early_stopping import LearningRateScheduler as LearningRateScheduler
from mycel.train.callback.early_stopping import ReduceLROnPlateau as ReduceLROnPlateau
from mycel.train.callback.flops import FlopsUtilizationCollector as FlopsUtilizationCollector
from mycel.train.callback.landscape import SummaryLandscape as SummaryLandscape
from mycel.train.callback.monitor import History as History
from mycel.train.callback.monitor import LambdaCallback as LambdaCallback
from mycel.train.callback.monitor import LossMonitor as LossMonitor
from mycel.train.callback.monitor import TimeMonitor as TimeMonitor
from mycel.train.callback.progress import ProgressBar as ProgressBar
from mycel.train.callback.progress import TrainingHistory as TrainingHistory
from mycel.train.callback.request_exit import OnRequestExit as OnRequestExit
from mycel.train.callback.summary import SummaryCollector as SummaryCollector

__dir__ = _listing(__name__)
