"""MindSpore's second interface: functions with `dim` and `keepdim`, in the manner of PyTorch."""

# isort: skip_file
# fmt: off
from __future__ import annotations

from mycel.common.markers import constexpr as constexpr
from mycel.mint import linalg as linalg
from mycel.mint import nn as nn
from mycel.mint import distributed as distributed
from mycel.mint import optim as optim
from mycel.mint import special as special
from mycel.core.tensor import Tensor as Tensor
from mycel.ops import (
    mul as mul, div as div, bitwise_not as bitwise_not, clamp as clamp, clip as clip, eq as eq, ge as ge, greater_equal as greater_equal, less as less, lt as lt,
    floor_divide as floor_divide, fmod as fmod, remainder as remainder, lerp as lerp, xlogy as xlogy, real as real, imag as imag, t as t, reshape as reshape,
    abs as abs, acos as acos, acosh as acosh, addbmm as addbmm, addmm as addmm, addmv as addmv, arange as arange,
    arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2,
    arctanh as arctanh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh,
    bincount as bincount, bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    broadcast_to as broadcast_to, ceil as ceil, cos as cos, cosh as cosh, cross as cross, cumprod as cumprod,
    divide as divide, dot as dot, dstack as dstack, einsum as einsum, erf as erf, erfc as erfc,
    erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1, eye as eye, flip as flip, float_power as float_power,
    floor as floor, full as full, full_like as full_like, gcd as gcd, greater as greater, gt as gt, hstack as hstack,
    inverse as inverse, isclose as isclose, isfinite as isfinite, isinf as isinf, isneginf as isneginf, le as le,
    less_equal as less_equal, log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, logsumexp as logsumexp, masked_select as masked_select, matmul as matmul,
    maximum as maximum, minimum as minimum, mm as mm, nan_to_num as nan_to_num, ne as ne, neg as neg,
    negative as negative, not_equal as not_equal, ones_like as ones_like, outer as outer, polar as polar, pow as pow,
    ravel as ravel, reciprocal as reciprocal, roll as roll, round as round, rsqrt as rsqrt,
    searchsorted as searchsorted, sigmoid as sigmoid, sign as sign, sin as sin, sinc as sinc, sinh as sinh,
    square as square, swapaxes as swapaxes, take as take, tan as tan, tanh as tanh, tile as tile, trace as trace,
    tril as tril, triu as triu, trunc as trunc, unbind as unbind, unique_consecutive as unique_consecutive,
    unsqueeze as unsqueeze, zeros_like as zeros_like,
)
from mycel.mint.arithmetic import (
    add as add, addcdiv as addcdiv, addcmul as addcmul, addr_ as addr_, allclose as allclose, baddbmm as baddbmm,
    batch_norm_elemt as batch_norm_elemt, batch_norm_gather_stats_with_counts as batch_norm_gather_stats_with_counts,
    batch_norm_stats as batch_norm_stats, bmm as bmm, cdist as cdist,
    conv2d as conv2d, conv_tbc as conv_tbc, equal as equal, fix as fix,
    frac as frac,
    histc as histc, isnan as isnan, mv as mv,
    softmax as softmax, sqrt as sqrt, sub as sub,
    triangular_solve as triangular_solve, vdot as vdot,
)
from mycel.mint.arrangement import (
    cat as cat, chunk as chunk, clone as clone, concat as concat, diag as diag, diff as diff, flatten as flatten,
    gather as gather, index_add as index_add, index_select as index_select, item as item, meshgrid as meshgrid,
    narrow as narrow, nonzero as nonzero, permute as permute, repeat_interleave as repeat_interleave,
    scatter as scatter, scatter_add as scatter_add, select as select, split as split,
    squeeze as squeeze, stack as stack, transpose as transpose, where as where,
)
from mycel.mint.creation import (
    bernoulli as bernoulli, empty as empty, empty_like as empty_like, linspace as linspace,
    multinomial as multinomial, normal as normal, ones as ones, rand as rand, rand_like as rand_like,
    randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm,
    zeros as zeros,
)
from mycel.mint.reductions import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, argsort as argsort,
    count_nonzero as count_nonzero, cummax as cummax, cummin as cummin, cumsum as cumsum, kthvalue as kthvalue,
    max as max, mean as mean, median as median, min as min, nansum as nansum, norm as norm, prod as prod,
    sort as sort, std as std, std_mean as std_mean, sum as sum, topk as topk, unique as unique, var as var,
    var_mean as var_mean,
)
from mycel.mint.other_names import (
    cdist_ as cdist_, equal_ext_op as equal_ext_op, flatten_ext as flatten_ext,
    jit_forbidden_register as jit_forbidden_register, jit_view_unsupported as jit_view_unsupported, npu_gelu as npu_gelu,
    softmax_ext as softmax_ext, squeeze_impl as squeeze_impl,
)
