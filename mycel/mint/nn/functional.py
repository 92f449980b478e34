"""The functions of layers under the names and arguments of PyTorch."""

# isort: skip_file
from __future__ import annotations

from mycel.ops import (
    broadcast_to as broadcast_to,
    conv_transpose2d as conv_transpose2d,
    clamp as clamp,
    cross_entropy as cross_entropy,
    fold as fold,
    group_norm as group_norm,
    hardshrink as hardshrink,
    hardsigmoid as hardsigmoid,
    hardswish as hardswish,
    layer_norm as layer_norm,
    pixel_shuffle as pixel_shuffle,
    prelu as prelu,
    relu as relu,
    sigmoid as sigmoid,
    softplus as softplus,
    softshrink as softshrink,
    tanh as tanh,
    unfold as unfold,
)
from mycel.mint.arithmetic import conv2d as conv2d
from mycel.mint.arrangement import flatten as flatten
from mycel.mint.reductions import norm
from mycel.mint.nn._activations import (
    dropout as dropout,
    dropout2d as dropout2d,
    elu as elu,
    elu_ as elu_,
    gelu as gelu,
    glu as glu,
    hardtanh as hardtanh,
    hardtanh_ as hardtanh_,
    inplace_elu as inplace_elu,
    inplace_silu as inplace_silu,
    leaky_relu as leaky_relu,
    log_softmax as log_softmax,
    logsigmoid as logsigmoid,
    mish as mish,
    relu6 as relu6,
    relu_ as relu_,
    selu as selu,
    sigmoid_ as sigmoid_,
    silu as silu,
    silu_func as silu_func,
    softmax as softmax,
    threshold as threshold,
    threshold_ as threshold_,
)
from mycel.mint.nn._images import (
    batch_norm as batch_norm,
    conv1d as conv1d,
    conv3d as conv3d,
    embedding as embedding,
    grid_sample as grid_sample,
    interpolate as interpolate,
    linear as linear,
    normalize as normalize,
    one_hot as one_hot,
    pad as pad,
    upsample as upsample,
)
from mycel.mint.nn._pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
    adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d,
    adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d,
    avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d,
    avg_pool3d as avg_pool3d,
    max_pool2d as max_pool2d,
    max_unpool2d as max_unpool2d,
)
from mycel.mint.nn._losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss,
    kl_div as kl_div,
    l1_loss as l1_loss,
    mse_loss as mse_loss,
    nll_loss as nll_loss,
    smooth_l1_loss as smooth_l1_loss,
    soft_margin_loss as soft_margin_loss,
)

# The same under the names of MindSpore's operations.
adaptive_avg_pool3d_ext = adaptive_avg_pool3d
elu_ext, hardtanh_op, norm_ext, threshold_op = elu, hardtanh, norm, threshold
del norm
