"""NumPy's functions on tensors: they take array-like arguments, can be differentiated and compiled,
and return tensors.

>>> import mycel as ms
>>> import mycel.numpy as mnp
>>> f"{float(ms.grad(mnp.tanh)(2.0)):.6f}"
'0.070651'
"""

from __future__ import annotations

import math as _math

from mycel._src.foundation.dtype import bool_ as bool_
from mycel._src.foundation.dtype import float16 as float16
from mycel._src.foundation.dtype import float32 as float32
from mycel._src.foundation.dtype import float64 as float64
from mycel._src.foundation.dtype import int8 as int8
from mycel._src.foundation.dtype import int16 as int16
from mycel._src.foundation.dtype import int32 as int32
from mycel._src.foundation.dtype import int64 as int64
from mycel._src.foundation.dtype import uint8 as uint8
from mycel._src.foundation.dtype import uint16 as uint16
from mycel._src.foundation.dtype import uint32 as uint32
from mycel._src.foundation.dtype import uint64 as uint64
from mycel._src.foundation.public_names import listing as _listing
from mycel.numpy.arrays import *  # noqa: F403
from mycel.numpy.creation import *  # noqa: F403
from mycel.numpy.functional import *  # noqa: F403
from mycel.numpy.grids import *  # noqa: F403
from mycel.numpy.histograms import *  # noqa: F403
from mycel.numpy.linalg import *  # noqa: F403
from mycel.numpy.math import *  # noqa: F403
from mycel.numpy.padding import *  # noqa: F403
from mycel.numpy.sequences import *  # noqa: F403
from mycel.numpy.shaping import *  # noqa: F403
from mycel.numpy.without_nan import *  # noqa: F403

float_ = float32
int_ = int32
uint = uint32
pi = _math.pi
inf = PINF = _math.inf
NINF = -_math.inf
nan = _math.nan

#: Names by topic, as MindSpore lists them.
numeric_types = (
    """int_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float_ float16 float32 float64 bool_""".split()
)
array_creations_module = """
    array asarray asfarray ones zeros full randn rand randint arange linspace logspace eye identity
    empty empty_like ones_like zeros_like full_like diagonal tril triu tri trace meshgrid mgrid
    ogrid diagflat diag diag_indices ix_ indices geomspace vander hamming hanning bartlett blackman
    triu_indices tril_indices triu_indices_from tril_indices_from histogram_bin_edges pad
""".split()
array_ops_module = """
    transpose expand_dims squeeze rollaxis swapaxes reshape ravel concatenate where atleast_1d
    atleast_2d atleast_3d column_stack hstack dstack vstack stack unique moveaxis tile broadcast_to
    broadcast_arrays append roll split vsplit flip flipud fliplr hsplit dsplit take_along_axis take
    repeat rot90 select array_split choose size array_str apply_along_axis piecewise unravel_index
    apply_over_axes argwhere intersect1d
""".split()
math_module = """
    mean inner add subtract multiply divide true_divide power dot outer tensordot absolute std var
    average not_equal minimum matmul square sqrt reciprocal log maximum heaviside amax amin hypot
    float_power floor ptp deg2rad rad2deg count_nonzero positive negative clip floor_divide
    remainder mod fix fmod trunc exp expm1 fabs exp2 kron promote_types divmod diff cbrt cross ceil
    trapz abs max min gcd lcm log1p logaddexp log2 logaddexp2 log10 convolve ediff1d nansum nanmean
    nanvar nanstd cumsum nancumsum sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh
    arctanh arctan2 cov multi_dot nanmax nanmin argmax argmin searchsorted interp sum corrcoef
    gradient sign copysign radians digitize bincount histogram histogramdd histogram2d polyadd
    polysub polyval polyder polymul polyint result_type unwrap cumprod ravel_multi_index norm
    bitwise_and bitwise_or bitwise_xor invert bitwise_not rint correlate
""".split()
logic_module = """
    not_equal less_equal less greater_equal greater equal isfinite isnan isinf isposinf isneginf
    isscalar logical_and logical_not logical_or logical_xor in1d isin isclose signbit sometrue
    array_equal array_equiv setdiff1d
""".split()

__dir__ = _listing(__name__)
