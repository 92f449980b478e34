"""Operations on tensors, composed of primitives, and the methods of tensors, which importing this attaches."""

# isort: skip_file
# fmt: off
from __future__ import annotations

from mycel.derivatives import derivative as derivative, get_grad as get_grad, grad as grad, jacfwd as jacfwd, jacrev as jacrev, jet as jet, jvp as jvp, linearize as linearize, stop_gradient as stop_gradient, value_and_grad as value_and_grad, vjp as vjp
from mycel.ops.gradients import HookBackward as HookBackward, InsertGradientOf as InsertGradientOf, stop_gradient_ as stop_gradient_
from mycel.ops.composite import GradOperation as GradOperation, HyperMap as HyperMap, Map as Map, MultitypeFuncGraph as MultitypeFuncGraph, Partial as Partial, partial as partial
from mycel.common.markers import constexpr as constexpr
from mycel.core.tensor import Tensor as Tensor, is_tensor as is_tensor
from mycel.compiled.vmap import vmap as vmap
from mycel.ops.activation import (
    celu as celu, elu as elu, fast_gelu as fast_gelu, gelu as gelu, glu as glu, hardshrink as hardshrink,
    hardsigmoid as hardsigmoid, hardswish as hardswish, hardtanh as hardtanh, leaky_relu as leaky_relu,
    log_softmax as log_softmax, logsigmoid as logsigmoid, mish as mish, prelu as prelu, relu as relu, relu6 as relu6,
    selu as selu, silu as silu, soft_shrink as soft_shrink, softmax as softmax, softmin as softmin,
    softplus as softplus, softshrink as softshrink, softsign as softsign, swiglu as swiglu, tanhshrink as tanhshrink,
    threshold as threshold,
)
from mycel.ops.array import (
    adjoint as adjoint, atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_to as broadcast_to, cat as cat, chunk as chunk, column_stack as column_stack, concat as concat,
    dsplit as dsplit, dstack as dstack, expand as expand, expand_as as expand_as, expand_dims as expand_dims,
    flatten as flatten, hsplit as hsplit, hstack as hstack, moveaxis as moveaxis, movedim as movedim,
    permute as permute, ravel as ravel, reshape as reshape, row_stack as row_stack, split as split,
    squeeze as squeeze, stack as stack, swapaxes as swapaxes, swapdims as swapdims, t as t,
    tensor_split as tensor_split, transpose as transpose, unbind as unbind, unsqueeze as unsqueeze,
    unstack as unstack, view_as as view_as, vsplit as vsplit, vstack as vstack,
)
from mycel.ops.arrange import (
    block_diag as block_diag, diag as diag, diag_embed as diag_embed, diagonal as diagonal, flip as flip, fliplr as fliplr, flipud as flipud, meshgrid as meshgrid, narrow as narrow, pad as pad, repeat_elements as repeat_elements,
    repeat_interleave as repeat_interleave, reverse as reverse, roll as roll, rot90 as rot90, slice as slice,
    strided_slice as strided_slice, tensor_slice as tensor_slice, tile as tile, tril as tril, triu as triu,
)
from mycel.ops.properties import (
    cast as cast, deepcopy as deepcopy, dtype as dtype, dyn_shape as dyn_shape, identity as identity, is_complex as is_complex, is_floating_point as is_floating_point, is_nonzero as is_nonzero, numel as numel, rank as rank, shape as shape, size as size, type_as as type_as,
)
from mycel.ops.complex_numbers import (
    angle as angle, conj as conj, imag as imag, polar as polar, real as real, view_as_real as view_as_real,
)
from mycel.ops.convolution import (
    bias_add as bias_add, channel_shuffle as channel_shuffle, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv3d_transpose as conv3d_transpose, conv_transpose2d as conv_transpose2d, fold as fold,
    pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, unfold as unfold,
)
from mycel.ops.algebra.decompositions import (
    cholesky as cholesky, cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, cond as cond,
    det as det, eig as eig, eigvals as eigvals, geqrf as geqrf, inverse as inverse,
    log_matrix_determinant as log_matrix_determinant, logdet as logdet, lstsq as lstsq, lu_solve as lu_solve,
    lu_unpack as lu_unpack, matrix_determinant as matrix_determinant, matrix_exp as matrix_exp,
    matrix_norm as matrix_norm, matrix_solve as matrix_solve, norm as norm, orgqr as orgqr, ormqr as ormqr,
    pinv as pinv, qr as qr, slogdet as slogdet, svd as svd,
)
from mycel.ops.variants import baddbmm_ext as baddbmm_ext, bernoulli_ext as bernoulli_ext, bidense as bidense, diff_ext as diff_ext, eps as eps, float_power_ext as float_power_ext, hyper_add as hyper_add, inplace_index_add as inplace_index_add, inplace_sigmoid as inplace_sigmoid, isnan_ext as isnan_ext, mse_loss_ext as mse_loss_ext, print_ as print_, reduced_shape as reduced_shape, reshape_ as reshape_, shape_mul as shape_mul, tensor_muls as tensor_muls, unique_with_pad as unique_with_pad
from mycel.ops.fourier import (
    fft as fft, fft2 as fft2, fftfreq as fftfreq, fftn as fftn, fftshift as fftshift, hfft as hfft, hfft2 as hfft2, hfftn as hfftn, ifft as ifft,
    ifft2 as ifft2, ifftn as ifftn, ifftshift as ifftshift, ihfft as ihfft, ihfft2 as ihfft2, ihfftn as ihfftn, irfft as irfft,
    irfft2 as irfft2, irfftn as irfftn, rfft as rfft, rfft2 as rfft2, rfftfreq as rfftfreq, rfftn as rfftn,
)
from mycel.ops.creation import (
    arange as arange, empty as empty, empty_like as empty_like, eye as eye, fill as fill, fills as fills,
    full as full, full_like as full_like, linspace as linspace, logspace as logspace, one_hot as one_hot,
    ones as ones, ones_like as ones_like, range as range, tril_indices as tril_indices, triu_indices as triu_indices,
    zeros as zeros, zeros_like as zeros_like,
)
from mycel.ops.elementwise import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, arccos as arccos, arccosh as arccosh,
    arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin,
    asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, bitwise_and as bitwise_and,
    bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, ceil as ceil, cos as cos, cosh as cosh,
    digamma as digamma, div as div, divide as divide, eq as eq, equal as equal, erf as erf, erfc as erfc,
    erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1, floor as floor, floor_div as floor_div,
    floor_divide as floor_divide, floor_mod as floor_mod, floordiv as floordiv, floormod as floormod, fmod as fmod,
    ge as ge, greater as greater, greater_equal as greater_equal, gt as gt, inv as inv, invert as invert,
    isfinite as isfinite, isinf as isinf, isnan as isnan, le as le, less as less, less_equal as less_equal,
    lgamma as lgamma, log as log, log10 as log10, log1p as log1p, log2 as log2, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, lt as lt, maximum as maximum,
    minimum as minimum, mul as mul, multiply as multiply, ne as ne, neg as neg, negative as negative,
    not_equal as not_equal, positive as positive, pow as pow, pows as pows, reciprocal as reciprocal,
    remainder as remainder, round as round, rsqrt as rsqrt, sigmoid as sigmoid, sign as sign, sin as sin,
    sinh as sinh, sqrt as sqrt, square as square, sub as sub, subtract as subtract, tan as tan, tanh as tanh,
    tensor_add as tensor_add, tensor_div as tensor_div, tensor_exp as tensor_exp, tensor_expm1 as tensor_expm1,
    tensor_floordiv as tensor_floordiv, tensor_ge as tensor_ge, tensor_gt as tensor_gt, tensor_le as tensor_le,
    tensor_lt as tensor_lt, tensor_mod as tensor_mod, tensor_mul as tensor_mul, tensor_pow as tensor_pow,
    tensor_sub as tensor_sub, true_divide as true_divide, trunc as trunc, truncate_div as truncate_div,
    truncate_mod as truncate_mod,
)
from mycel.ops.indexed import (
    argwhere as argwhere, embedding as embedding, gather as gather, gather_d as gather_d,
    gather_elements as gather_elements, gather_nd as gather_nd, index_add as index_add, index_fill as index_fill,
    index_select as index_select, inplace_add as inplace_add, inplace_sub as inplace_sub,
    inplace_update as inplace_update, masked_fill as masked_fill, masked_scatter as masked_scatter,
    masked_select as masked_select, nonzero as nonzero, scatter as scatter, scatter_add as scatter_add,
    scatter_div as scatter_div, scatter_max as scatter_max, scatter_min as scatter_min, scatter_mul as scatter_mul,
    scatter_nd as scatter_nd, scatter_nd_add as scatter_nd_add, scatter_nd_div as scatter_nd_div,
    scatter_nd_max as scatter_nd_max, scatter_nd_min as scatter_nd_min, scatter_nd_mul as scatter_nd_mul,
    scatter_nd_sub as scatter_nd_sub, scatter_nd_update as scatter_nd_update, scatter_sub as scatter_sub,
    scatter_update as scatter_update, select as select, select_scatter as select_scatter,
    slice_scatter as slice_scatter, take as take, tensor_scatter_add as tensor_scatter_add,
    tensor_scatter_div as tensor_scatter_div, tensor_scatter_elements as tensor_scatter_elements,
    tensor_scatter_max as tensor_scatter_max, tensor_scatter_min as tensor_scatter_min,
    tensor_scatter_mul as tensor_scatter_mul, tensor_scatter_sub as tensor_scatter_sub,
    tensor_scatter_update as tensor_scatter_update, where as where,
)
from mycel.ops.algebra.linalg import (
    addbmm as addbmm, addmm as addmm, addmv as addmv, addr as addr, baddbmm as baddbmm, batch_dot as batch_dot,
    bmm as bmm, cross as cross, dense as dense, dot as dot, einsum as einsum, ger as ger, inner as inner,
    kron as kron, matmul as matmul, matrix_power as matrix_power, mm as mm, mv as mv, outer as outer,
    tensor_dot as tensor_dot, trace as trace, vecdot as vecdot,
)
from mycel.ops.loss import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss, cosine_similarity as cosine_similarity,
    cross_entropy as cross_entropy, gaussian_nll_loss as gaussian_nll_loss,
    hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss,
    margin_ranking_loss as margin_ranking_loss, mse_loss as mse_loss, multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    nll_loss as nll_loss, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss,
    triplet_margin_loss as triplet_margin_loss,
)
from mycel.ops.math import (
    accumulate_n as accumulate_n, addcdiv as addcdiv, addcmul as addcmul, addn as addn,
    approximate_equal as approximate_equal, clamp as clamp, clip as clip, clip_by_value as clip_by_value,
    copysign as copysign, deg2rad as deg2rad, float_power as float_power, fmax as fmax, fmin as fmin, frac as frac,
    gcd as gcd, heaviside as heaviside, hypot as hypot, isclose as isclose, isneginf as isneginf,
    isposinf as isposinf, isreal as isreal, lcm as lcm, ldexp as ldexp, lerp as lerp, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logit as logit, nan_to_num as nan_to_num, rad2deg as rad2deg, sgn as sgn,
    signbit as signbit, sinc as sinc, xdivy as xdivy, xlogy as xlogy,
)
from mycel.ops.normalization import (
    batch_norm as batch_norm, clip_by_global_norm as clip_by_global_norm, clip_by_norm as clip_by_norm,
    group_norm as group_norm, layer_norm as layer_norm, lrn as lrn, rms_norm as rms_norm,
)
from mycel.ops.pairwise import (
    cartesian_prod as cartesian_prod, cdist as cdist, combinations as combinations, cov as cov, dist as dist,
    pdist as pdist, vander as vander,
)
from mycel.ops.images.patches import mirror_pad as mirror_pad
from mycel.ops.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool2d_ext as adaptive_avg_pool2d_ext,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d, avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, lp_pool1d as lp_pool1d, lp_pool2d as lp_pool2d,
    max_pool2d as max_pool2d, max_pool3d as max_pool3d,
)
from mycel.ops.random import (
    bernoulli as bernoulli, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d,
    dropout3d as dropout3d, gumbel_softmax as gumbel_softmax, laplace as laplace, multinomial as multinomial,
    normal as normal, rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like,
    randn as randn, randn_like as randn_like, random_categorical as random_categorical, randperm as randperm,
    rrelu as rrelu, shuffle as shuffle, standard_laplace as standard_laplace, standard_normal as standard_normal,
    uniform as uniform,
)
from mycel.ops.random_candidates import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
    multinomial_with_replacement as multinomial_with_replacement, uniform_candidate_sampler as uniform_candidate_sampler,
)  # fmt: skip
from mycel.ops.random_rejection import (
    gamma as gamma, poisson as poisson, random_gamma as random_gamma, random_poisson as random_poisson,
)  # fmt: skip
from mycel.ops.reduction import (
    all as all, amax as amax, amin as amin, aminmax as aminmax, any as any, argmax as argmax, argmin as argmin,
    count_nonzero as count_nonzero, logsumexp as logsumexp, max as max, mean as mean, min as min, nanmean as nanmean,
    nansum as nansum, prod as prod, reduce_max as reduce_max, reduce_mean as reduce_mean,
    reduce_min as reduce_min, reduce_sum as reduce_sum, std as std, std_mean as std_mean, sum as sum, var as var,
    var_mean as var_mean, vector_norm as vector_norm,
)
from mycel.ops.segments import (
    intopk as intopk, sequence_mask as sequence_mask, unique as unique, unique_consecutive as unique_consecutive,
    unsorted_segment_max as unsorted_segment_max, unsorted_segment_min as unsorted_segment_min,
    unsorted_segment_prod as unsorted_segment_prod, unsorted_segment_sum as unsorted_segment_sum,
)
from mycel.ops.sorting import (
    argsort as argsort, bincount as bincount, bucketize as bucketize, cummax as cummax, cummin as cummin,
    cumprod as cumprod, cumsum as cumsum, diff as diff, histc as histc, logcumsumexp as logcumsumexp,
    median as median, msort as msort, nanmedian as nanmedian, nanquantile as nanquantile, quantile as quantile,
    searchsorted as searchsorted, sort as sort, top_k as top_k, topk as topk, trapz as trapz,
)
from mycel.ops.state import (
    assign as assign, assign_add as assign_add, assign_sub as assign_sub, depend as depend,
)

from mycel.ops.bessel import (
    bessel_i0 as bessel_i0, bessel_i0e as bessel_i0e, bessel_i1 as bessel_i1, bessel_i1e as bessel_i1e,
    bessel_j0 as bessel_j0, bessel_j1 as bessel_j1, bessel_k0 as bessel_k0, bessel_k0e as bessel_k0e,
    bessel_k1 as bessel_k1, bessel_k1e as bessel_k1e, bessel_y0 as bessel_y0, bessel_y1 as bessel_y1, i0 as i0,
)
from mycel.ops.blocks import (
    batch_to_space_nd as batch_to_space_nd, col2im as col2im, nextafter as nextafter, padding as padding,
    renorm as renorm, reverse_sequence as reverse_sequence, space_to_batch_nd as space_to_batch_nd,
    tensor_range as tensor_range,
)
from mycel.ops.images.boxes import (
    bounding_box_decode as bounding_box_decode, bounding_box_encode as bounding_box_encode,
    check_valid as check_valid, choice_with_mask as choice_with_mask, iou as iou,
)
from mycel.ops.sequences.ctc import (
    ctc_greedy_decoder as ctc_greedy_decoder, ctc_loss as ctc_loss,
)
from mycel.ops.images.deformable import deformable_conv2d as deformable_conv2d, multi_scale_deformable_attn_function as multi_scale_deformable_attn_function
from mycel.ops.algebra.diagonals import (
    diagflat as diagflat, diagonal_scatter as diagonal_scatter, matrix_band_part as matrix_band_part,
    matrix_diag as matrix_diag, matrix_diag_part as matrix_diag_part, matrix_set_diag as matrix_set_diag,
)
from mycel.ops.tensors.in_place import (
    bernoulli_ as bernoulli_, clamp_ as clamp_, erfinv_ as erfinv_, exponential_ as exponential_, normal_ as normal_,
    put_ as put_, random_ as random_, scalar_add as scalar_add, scalar_cast as scalar_cast, scalar_div as scalar_div,
    scalar_eq as scalar_eq, scalar_floordiv as scalar_floordiv, scalar_ge as scalar_ge, scalar_gt as scalar_gt,
    scalar_le as scalar_le, scalar_log as scalar_log, scalar_lt as scalar_lt, scalar_max as scalar_max,
    scalar_min as scalar_min, scalar_mod as scalar_mod, scalar_mul as scalar_mul, scalar_ne as scalar_ne,
    scalar_pow as scalar_pow, scalar_sub as scalar_sub, scalar_to_tensor as scalar_to_tensor,
    scalar_uadd as scalar_uadd, scalar_usub as scalar_usub, tanh_ as tanh_, tuple_to_array as tuple_to_array,
    uniform_ as uniform_, zero_ as zero_,
)
from mycel.ops.images.resize import (
    affine_grid as affine_grid, crop_and_resize as crop_and_resize, grid_sample as grid_sample,
    interpolate as interpolate, upsample as upsample,
)
from mycel.ops.images.rotated import rotated_iou as rotated_iou
from mycel.ops.special import (
    igamma as igamma, igammac as igammac, mvlgamma as mvlgamma, polygamma as polygamma,
    population_count as population_count, zeta as zeta,
)
from mycel.ops.images.unpooling import (
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d,
    max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d,
)
from mycel.ops.windows import (
    bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window,
    hann_window as hann_window, kaiser_window as kaiser_window, stft as stft,
)
from mycel.ops.sparse.functions import (
    coalesce as coalesce, coo2csr as coo2csr, coo_add as coo_add, coo_concat as coo_concat, csr2coo as csr2coo,
    csr_add as csr_add, csr_mm as csr_mm, csr_mv as csr_mv, csr_reduce_sum as csr_reduce_sum, csr_to_coo as csr_to_coo,
    csr_to_dense as csr_to_dense, dense_to_sparse_coo as dense_to_sparse_coo, dense_to_sparse_csr as dense_to_sparse_csr,
)
from mycel.ops.sparse.parts import (
    coo_tensor_get_dense_shape as coo_tensor_get_dense_shape, coo_tensor_get_indices as coo_tensor_get_indices,
    coo_tensor_get_values as coo_tensor_get_values, csr_tensor_get_dense_shape as csr_tensor_get_dense_shape,
    csr_tensor_get_indices as csr_tensor_get_indices, csr_tensor_get_indptr as csr_tensor_get_indptr,
    csr_tensor_get_values as csr_tensor_get_values, make_coo_tensor as make_coo_tensor,
    make_csr_tensor as make_csr_tensor, make_row_tensor as make_row_tensor,
    make_row_tensor_inner as make_row_tensor_inner, make_sparse_tensor as make_sparse_tensor,
    row_tensor_add as row_tensor_add, row_tensor_get_dense_shape as row_tensor_get_dense_shape,
    row_tensor_get_indices as row_tensor_get_indices, row_tensor_get_values as row_tensor_get_values,
    sparse_segment_mean as sparse_segment_mean,
)
from mycel.ops.sparse.values import (
    coo_abs as coo_abs, coo_acos as coo_acos, coo_acosh as coo_acosh, coo_asin as coo_asin, coo_asinh as coo_asinh,
    coo_atan as coo_atan, coo_atanh as coo_atanh, coo_ceil as coo_ceil, coo_cos as coo_cos, coo_cosh as coo_cosh,
    coo_exp as coo_exp, coo_expm1 as coo_expm1, coo_floor as coo_floor, coo_inv as coo_inv, coo_isfinite as coo_isfinite,
    coo_isinf as coo_isinf, coo_isnan as coo_isnan, coo_log as coo_log, coo_log1p as coo_log1p, coo_neg as coo_neg,
    coo_relu as coo_relu, coo_relu6 as coo_relu6, coo_round as coo_round, coo_sigmoid as coo_sigmoid, coo_sin as coo_sin,
    coo_sinh as coo_sinh, coo_softsign as coo_softsign, coo_sqrt as coo_sqrt, coo_square as coo_square,
    coo_tan as coo_tan, coo_tanh as coo_tanh, csr_abs as csr_abs, csr_acos as csr_acos, csr_acosh as csr_acosh,
    csr_asin as csr_asin, csr_asinh as csr_asinh, csr_atan as csr_atan, csr_atanh as csr_atanh, csr_ceil as csr_ceil,
    csr_cos as csr_cos, csr_cosh as csr_cosh, csr_div as csr_div, csr_exp as csr_exp, csr_expm1 as csr_expm1,
    csr_floor as csr_floor, csr_gather as csr_gather, csr_inv as csr_inv, csr_isfinite as csr_isfinite,
    csr_isinf as csr_isinf, csr_isnan as csr_isnan, csr_log as csr_log, csr_log1p as csr_log1p, csr_mul as csr_mul,
    csr_neg as csr_neg, csr_relu as csr_relu, csr_relu6 as csr_relu6, csr_round as csr_round, csr_sigmoid as csr_sigmoid,
    csr_sin as csr_sin, csr_sinh as csr_sinh, csr_softmax as csr_softmax, csr_softsign as csr_softsign,
    csr_sqrt as csr_sqrt, csr_square as csr_square, csr_tan as csr_tan, csr_tanh as csr_tanh,
)

from mycel.ops.attention.training import (
    flash_attention_score as flash_attention_score, ring_attention_update as ring_attention_update,
    speed_fusion_attention as speed_fusion_attention,
)
from mycel.ops.attention.serving import (
    fused_infer_attention_score as fused_infer_attention_score, incre_flash_attention as incre_flash_attention,
    prompt_flash_attention as prompt_flash_attention,
)
from mycel.ops.attention.sparse import (
    lightning_indexer as lightning_indexer, nsa_compress as nsa_compress, nsa_compress_attention as nsa_compress_attention,
    nsa_select_attention as nsa_select_attention, sparse_flash_attention as sparse_flash_attention,
)
from mycel.ops.attention.experts import (
    add_layer_norm as add_layer_norm, add_rms_norm as add_rms_norm, mixed_precision_cast as mixed_precision_cast,
    moe_init_routing_v2 as moe_init_routing_v2, moe_token_permute as moe_token_permute, moe_token_unpermute as moe_token_unpermute,
    move_to as move_to, recompute_block as recompute_block,
)
from mycel.ops.attention.rotary import rotary_position_embedding as rotary_position_embedding
from mycel.ops.containers import (
    augassign_add as augassign_add, augassign_div as augassign_div, augassign_floordiv as augassign_floordiv,
    augassign_mod as augassign_mod, augassign_mul as augassign_mul, augassign_sub as augassign_sub,
    bool_and as bool_and, bool_eq as bool_eq, bool_not as bool_not, bool_or as bool_or, dict_getitem as dict_getitem,
    dict_setitem as dict_setitem, in_dict as in_dict, is_ as is_, is_not as is_not, iter_converter as iter_converter,
    list_equal as list_equal, list_getitem as list_getitem, list_len as list_len, list_setitem as list_setitem,
    make_dict as make_dict, make_list as make_list, make_range as make_range, make_slice as make_slice,
    make_tuple as make_tuple, ms_hasnext as ms_hasnext, ms_next as ms_next, not_in_dict as not_in_dict,
    string_concat as string_concat, string_eq as string_eq, tail as tail, tuple_div as tuple_div,
    tuple_equal as tuple_equal, tuple_getitem as tuple_getitem, tuple_len as tuple_len,
    tuple_reversed as tuple_reversed, tuple_setitem as tuple_setitem, zip_operation as zip_operation,
)
from mycel.ops.environment import (
    env_get as env_get, environ_add as environ_add, environ_create as environ_create, environ_get as environ_get,
    environ_set as environ_set, ref_to_embed as ref_to_embed,
)
from mycel.ops.program import (
    J as J, SliceGetItem as SliceGetItem, add_flags as add_flags, array_to_scalar as array_to_scalar,
    broadcast_gradient_args as broadcast_gradient_args, hastype as hastype,
    is_sequence_shape_unknown as is_sequence_shape_unknown, is_sequence_value_unknown as is_sequence_value_unknown,
    is_tensor_bool_cond as is_tensor_bool_cond, isconstant as isconstant, scalar_to_array as scalar_to_array,
    shape_ as shape_, switch as switch, switch_layer as switch_layer, typeof as typeof,
)
from mycel.communication.collectives import (
    all_gather as all_gather, all_gather_into_tensor as all_gather_into_tensor, all_gather_into_tensor_uneven as all_gather_into_tensor_uneven,
    all_gather_matmul as all_gather_matmul, all_reduce as all_reduce, all_to_all as all_to_all, all_to_all_single as all_to_all_single,
    all_to_all_v_c as all_to_all_v_c, barrier as barrier, broadcast as broadcast, gather_into_tensor as gather_into_tensor,
    matmul_reduce_scatter as matmul_reduce_scatter, reduce as reduce, reduce_scatter as reduce_scatter, reduce_scatter_tensor as reduce_scatter_tensor,
    reduce_scatter_tensor_uneven as reduce_scatter_tensor_uneven, scatter_tensor as scatter_tensor,
)
from mycel.communication.messages import (
    P2POp as P2POp, all_gather_object as all_gather_object, batch_isend_irecv as batch_isend_irecv, broadcast_object_list as broadcast_object_list,
    gather_object as gather_object, irecv as irecv, isend as isend, recv as recv, recv_object_list as recv_object_list,
    scatter_object_list as scatter_object_list, send as send, send_object_list as send_object_list,
)
from mycel.communication.processes import (
    destroy_process_group as destroy_process_group, get_backend as get_backend, get_global_rank as get_global_rank, get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks, get_rank as get_rank, get_world_size as get_world_size,
    init_process_group as init_process_group, is_available as is_available, is_initialized as is_initialized, new_group as new_group,
)
from mycel.communication.steps import ReduceOp as ReduceOp, set_comm_ops_inplace as set_comm_ops_inplace
from mycel.communication.store import TCPStore as TCPStore

# Last, because they build on all of the functions.
from mycel.ops import operations as operations
from mycel.ops import tensors as tensors
from mycel.ops import random_tensor as random_tensor
from mycel.ops.operations import *  # noqa: F403

P = operations
einsum_ext = einsum
