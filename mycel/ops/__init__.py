"""Operations on tensors, composed of primitives, and the methods of tensors, which this import
attaches.

Every name in the `__all__` of a module is public here, unless this module lists only some of its
names.
"""

# isort: skip_file
from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing

from mycel._src.staging.derivatives import (
    derivative as derivative,
    get_grad as get_grad,
    grad as grad,
    jacfwd as jacfwd,
    jacrev as jacrev,
    jet as jet,
    jvp as jvp,
    linearize as linearize,
    stop_gradient as stop_gradient,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from mycel.ops.gradients import (
    HookBackward as HookBackward,
    InsertGradientOf as InsertGradientOf,
    stop_gradient_ as stop_gradient_,
)
from mycel.ops.composite import *
from mycel.common.markers import constexpr as constexpr
from mycel._src.tensors.core.tensor import Tensor as Tensor, is_tensor as is_tensor
from mycel._src.staging.compiled.vmap import vmap as vmap
from mycel.ops.activation import *
from mycel.ops.array import *
from mycel.ops.splits import *
from mycel.ops.arrange import *
from mycel.ops.properties import *
from mycel.ops.complex_numbers import *
from mycel.ops.convolution import *
from mycel.ops.algebra.decompositions import *
from mycel.ops.algebra.norms import *
from mycel.ops.algebra.linear_systems import *
from mycel.ops.variants import (
    baddbmm_ext as baddbmm_ext,
    bernoulli_ext as bernoulli_ext,
    bidense as bidense,
    diff_ext as diff_ext,
    eps as eps,
    float_power_ext as float_power_ext,
    hyper_add as hyper_add,
    inplace_index_add as inplace_index_add,
    inplace_sigmoid as inplace_sigmoid,
    isnan_ext as isnan_ext,
    mse_loss_ext as mse_loss_ext,
    print_ as print_,
    reduced_shape as reduced_shape,
    reshape_ as reshape_,
    shape_mul as shape_mul,
    tensor_muls as tensor_muls,
    unique_with_pad as unique_with_pad,
)
from mycel.ops.fourier import *
from mycel.ops.creation import *
from mycel.ops.elementwise import *
from mycel.ops.gather_scatter import *
from mycel.ops.masked_selection import *
from mycel.ops.algebra.linalg import *
from mycel.ops.algebra.linalg import einsum as einsum
from mycel.ops.logic import *
from mycel.ops.loss import *
from mycel.ops.margin_losses import *
from mycel.ops.math import *
from mycel.ops.normalization import *
from mycel.ops.pairwise import *
from mycel.ops.vector_norms import vector_norm as vector_norm
from mycel.ops.images.patches import mirror_pad as mirror_pad
from mycel.ops.pooling import *
from mycel.ops.removable_singularities import *
from mycel.ops.adaptive_pooling import *
from mycel.ops.random import *
from mycel.ops.random_candidates import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    multinomial_with_replacement as multinomial_with_replacement,
    uniform_candidate_sampler as uniform_candidate_sampler,
)
from mycel.ops.random_rejection import (
    gamma as gamma,
    poisson as poisson,
    random_gamma as random_gamma,
    random_poisson as random_poisson,
)
from mycel.ops.reduction import (
    all as all,
    amax as amax,
    amin as amin,
    aminmax as aminmax,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    min as min,
    nanmean as nanmean,
    nansum as nansum,
    prod as prod,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_sum as reduce_sum,
    std as std,
    std_mean as std_mean,
    sum as sum,
    var as var,
    var_mean as var_mean,
)
from mycel.ops.segments import *
from mycel.ops.sorting import *
from mycel.ops.assignment import *

from mycel.ops.bessel import *
from mycel.ops.blocks import *
from mycel.ops.images.boxes import *
from mycel.ops.sequences.ctc import (
    ctc_greedy_decoder as ctc_greedy_decoder,
    ctc_loss as ctc_loss,
)
from mycel.ops.images.deformable import (
    deformable_conv2d as deformable_conv2d,
    multi_scale_deformable_attn_function as multi_scale_deformable_attn_function,
)
from mycel.ops.algebra.diagonals import *
from mycel.ops.tensors.in_place_functions import *
from mycel.ops.images.resize import *
from mycel.ops.images.rotated_boxes import rotated_iou as rotated_iou
from mycel.ops.special import *
from mycel.ops.resharding import *
from mycel.ops.images.unpooling import *
from mycel.ops.signal_windows import *
from mycel.ops.sparse.sparse_matrices import *
from mycel.ops.sparse.components import *
from mycel.ops.sparse.values import *

from mycel.ops.attention.training import (
    flash_attention_score as flash_attention_score,
    ring_attention_update as ring_attention_update,
    speed_fusion_attention as speed_fusion_attention,
)
from mycel.ops.attention.serving import (
    fused_infer_attention_score as fused_infer_attention_score,
    incre_flash_attention as incre_flash_attention,
    prompt_flash_attention as prompt_flash_attention,
)
from mycel.ops.attention.native_sparse import *
from mycel.ops.attention.deepseek_sparse import *
from mycel.ops.attention.expert_routing import *
from mycel.ops.attention.rotary import rotary_position_embedding as rotary_position_embedding
from mycel.ops.python_values import (
    augassign_add as augassign_add,
    augassign_div as augassign_div,
    augassign_floordiv as augassign_floordiv,
    augassign_mod as augassign_mod,
    augassign_mul as augassign_mul,
    augassign_sub as augassign_sub,
    bool_and as bool_and,
    bool_eq as bool_eq,
    bool_not as bool_not,
    bool_or as bool_or,
    dict_getitem as dict_getitem,
    dict_setitem as dict_setitem,
    in_dict as in_dict,
    is_ as is_,
    is_not as is_not,
    iter_converter as iter_converter,
    list_equal as list_equal,
    list_getitem as list_getitem,
    list_len as list_len,
    list_setitem as list_setitem,
    make_dict as make_dict,
    make_list as make_list,
    make_range as make_range,
    make_slice as make_slice,
    make_tuple as make_tuple,
    ms_hasnext as ms_hasnext,
    ms_next as ms_next,
    not_in_dict as not_in_dict,
    string_concat as string_concat,
    string_eq as string_eq,
    tail as tail,
    tuple_div as tuple_div,
    tuple_equal as tuple_equal,
    tuple_getitem as tuple_getitem,
    tuple_len as tuple_len,
    tuple_reversed as tuple_reversed,
    tuple_setitem as tuple_setitem,
    zip_operation as zip_operation,
)
from mycel.ops.environment import (
    env_get as env_get,
    environ_add as environ_add,
    environ_create as environ_create,
    environ_get as environ_get,
    environ_set as environ_set,
    ref_to_embed as ref_to_embed,
)
from mycel.ops.introspection import *
from mycel.communication.collectives import *
from mycel.communication.messages import *
from mycel.communication.processes import *
from mycel.communication.products import *
from mycel.communication.steps import ReduceOp as ReduceOp, set_comm_ops_inplace as set_comm_ops_inplace
from mycel.communication.store import TCPStore as TCPStore

# Last, because they build on all of the functions.
from mycel.ops import operations as operations
from mycel.ops import tensors as tensors
from mycel.ops import random_tensor as random_tensor
from mycel.ops.operations import *

P = operations
einsum_ext = einsum

__dir__ = _listing(__name__)
