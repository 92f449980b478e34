"""Optimizers with parameter groups, in the manner of PyTorch, and the schedulers that set the
groups' learning rates.
"""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.experimental.optim import lr_scheduler as lr_scheduler
from mycel.experimental.optim.adam import Adam as Adam
from mycel.experimental.optim.adam import Adamax as Adamax
from mycel.experimental.optim.adam import AdamW as AdamW
from mycel.experimental.optim.adam import NAdam as NAdam
from mycel.experimental.optim.adam import RAdam as RAdam
from mycel.experimental.optim.adaptive import Adadelta as Adadelta
from mycel.experimental.optim.adaptive import Adagrad as Adagrad
from mycel.experimental.optim.adaptive import RMSprop as RMSprop
from mycel.experimental.optim.descent import ASGD as ASGD
from mycel.experimental.optim.descent import SGD as SGD
from mycel.experimental.optim.descent import Rprop as Rprop
from mycel.experimental.optim.optimizer import Optimizer as Optimizer

__dir__ = _listing(__name__)
