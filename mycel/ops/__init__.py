"""Operations on tensors, composed of primitives."""

from __future__ import annotations

from mycel.ops.creation import *  # noqa: F403
from mycel.ops.linalg import *  # noqa: F403
from mycel.ops.elementwise import *  # noqa: F403
from mycel.ops.activation import *  # noqa: F403
from mycel.ops.reduction import *  # noqa: F403
from mycel.ops.array import *  # noqa: F403
from mycel.ops.arrange import *  # noqa: F403
from mycel.ops.convolution import *  # noqa: F403
from mycel.ops.pooling import *  # noqa: F403
from mycel.ops.normalization import *  # noqa: F403
from mycel.ops.loss import *  # noqa: F403
from mycel.ops.random import *  # noqa: F403
from mycel.ops.indexed import *  # noqa: F403
from mycel.ops.state import *  # noqa: F403
from mycel.ops.sorting import *  # noqa: F403
from mycel.ops.math import *  # noqa: F403
from mycel.ops import tensor_methods as tensor_methods
