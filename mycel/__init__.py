"""Mycel: an AI framework with MindSpore's interface and a compiler of its own.

    import mycel as ms
"""

from __future__ import annotations

from mycel import dtype as dtype
from mycel import nn as nn
from mycel import ops as ops
from mycel.api import get_grad as get_grad
from mycel.api import grad as grad
from mycel.api import value_and_grad as value_and_grad
from mycel.config import GRAPH_MODE as GRAPH_MODE
from mycel.config import PYNATIVE_MODE as PYNATIVE_MODE
from mycel.config import get_context as get_context
from mycel.config import set_context as set_context
from mycel.dtype import *  # noqa: F403
from mycel.frontend.explain import explain as explain
from mycel.jit import jit as jit
from mycel.parameter import Parameter as Parameter
from mycel.parameter import ParameterTuple as ParameterTuple
from mycel.tensor import Tensor as Tensor
from mycel.tensor import is_tensor as is_tensor
from mycel.tensor import tensor as tensor

__version__ = "0.1.0"
