"""The optimizers."""

from mycel.nn.optim.adafactor import AdaFactor as AdaFactor
from mycel.nn.optim.adam import Adam as Adam
from mycel.nn.optim.adam import AdaMax as AdaMax
from mycel.nn.optim.adam import AdamOffload as AdamOffload
from mycel.nn.optim.adam import AdamWeightDecay as AdamWeightDecay
from mycel.nn.optim.adam import Lamb as Lamb
from mycel.nn.optim.adam import LazyAdam as LazyAdam
from mycel.nn.optim.adaptive import FTRL as FTRL
from mycel.nn.optim.adaptive import Adadelta as Adadelta
from mycel.nn.optim.adaptive import Adagrad as Adagrad
from mycel.nn.optim.adaptive import ProximalAdagrad as ProximalAdagrad
from mycel.nn.optim.adaptive import RMSProp as RMSProp
from mycel.nn.optim.adasum import AdaSumByDeltaWeightWrapCell as AdaSumByDeltaWeightWrapCell
from mycel.nn.optim.adasum import AdaSumByGradWrapCell as AdaSumByGradWrapCell
from mycel.nn.optim.lars import LARS as LARS
from mycel.nn.optim.momentum import SGD as SGD
from mycel.nn.optim.momentum import Momentum as Momentum
from mycel.nn.optim.optimizer import Optimizer as Optimizer
from mycel.nn.optim.resilient import ASGD as ASGD
from mycel.nn.optim.resilient import Rprop as Rprop
from mycel.nn.optim.second_order import thor as thor
