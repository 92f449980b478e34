"""Experts, quantised products and caches of attention: reference computations with the
parameters of MindSpore's kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.tensor import Tensor

__all__ = [
    "adam_w",
    "dynamic_quant_ext",
    "fused_add_top_k_div",
    "gmm",
    "gmm_v2",
    "grouped_matmul",
    "inplace_grouped_matmul_add",
    "grouped_matmul_v2",
    "grouped_matmul_v4",
    "kv_cache_scatter_update",
    "moe_compute_expert_tokens",
    "moe_finalize_routing",
    "moe_gating_top_k_softmax",
    "moe_init_routing",
    "quant_batch_matmul",
    "quant_matmul",
    "quant_v2",
    "weight_quant_batch_matmul",
]


def _part(listed: Any, number: int) -> Any:
    """Return an element of a list of tensors, or None where there is none."""
    if listed is None or isinstance(listed, Tensor):
        return listed
    return listed[number] if number < len(listed) else None


def _ends(group_list: Any, counts: bool) -> list[int]:
    """Return where each group of rows ends."""
    listed = group_list.asnumpy().tolist() if isinstance(group_list, Tensor) else [int(v) for v in group_list]
    if not counts:
        return [int(v) for v in listed]
    return [int(sum(listed[: k + 1])) for k in range(len(listed))]


def _weighed(weight: Any, scale: Any, offset: Any) -> Any:
    """Return a weight whose steps have a scale and an offset as numbers."""
    if scale is None:
        return weight
    whole = weight.astype(scale.dtype)
    return (whole if offset is None else whole + offset) * scale


def _product(x: Any, weight: Any, bias: Any, scale: Any, by_row: Any) -> Any:
    """Return a product of matrices; that of whole numbers times its scales."""
    if scale is None and by_row is None:
        found = ops.matmul(x, weight)
        return found if bias is None else found + bias
    found = ops.matmul(x.astype(D.float32), weight.astype(D.float32))
    found = found if bias is None else found + bias
    found = found if scale is None else found * scale.astype(D.float32)
    return found if by_row is None else found * by_row.reshape((-1, 1))


def _grouped(
    x: Sequence[Any],
    weight: Sequence[Any],
    parts: dict[str, Any],
    group_list: Any,
    counts: bool,
    split_item: int,
    group_type: int,
) -> tuple[Any, ...]:
    """Return the products of groups: of the tensors of two lists one by one (`group_type` -1),
    of groups of rows with the matrices of a stack (0), or of groups of columns with those of
    rows (2).

    `parts` are biases, scales and offsets, lists as `x` and `weight`; `group_list` has the ends
    of the groups, or with `counts` their sizes; `split_item` 2 and 3 join what is found.
    """
    bias, scale, by_row = parts.get("bias"), parts.get("scale"), parts.get("by_row")
    weights = [_weighed(w, _part(parts.get("by_step"), k), _part(parts.get("offset"), k)) for k, w in enumerate(weight)]
    if group_type == -1:
        found = [
            _product(x[k], weights[k], _part(bias, k), _part(scale, k), _part(by_row, k)) for k in range(len(weights))
        ]
        return (ops.cat(found, 0),) if split_item in (2, 3) else tuple(found)
    if len(x) != 1 or group_list is None:
        raise Unsupported("GroupedMatmul: groups of one tensor of rows are served; give one x and a group_list")
    ends = _ends(group_list, counts)
    bounds = list(zip([0, *ends], ends))
    rows = _part(by_row, 0)
    if group_type == 2:
        groups = [ops.matmul(x[0][:, a:b], weights[0][a:b]) for a, b in bounds]
        return (ops.stack(groups, 0),)
    stacked = list(weights) if len(weights) > 1 else [weights[0][k] for k in range(len(bounds))]
    groups = [
        _product(
            x[0][a:b],
            stacked[k],
            _row(bias, k, len(bounds)),
            _row(scale, k, len(bounds)),
            None if rows is None else rows[a:b],
        )
        for k, (a, b) in enumerate(bounds)
    ]
    left = x[0].shape[0] - (bounds[-1][1] if bounds else 0)
    if split_item not in (2, 3):
        return tuple(groups)
    return (ops.cat(groups + ([ops.zeros((left, groups[0].shape[1]), groups[0].dtype)] if left > 0 else []), 0),)


def _row(listed: Any, number: int, count: int) -> Any:
    """Return what a list, or a stack of `count`, has for a group."""
    if listed is None or not len(listed):
        return None
    return listed[number] if len(listed) == count and count > 1 else listed[0][number]


def _turned(listed: Any, turn: bool) -> Any:
    return [ops.swapaxes(v, -1, -2) for v in listed] if turn else listed


def grouped_matmul(
    x: Any,
    weight: Any,
    bias: Any = None,
    scale: Any = None,
    offset: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    group_list: Any = None,
    split_item: int = 0,
    group_type: int = -1,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> tuple[Any, ...]:
    """Return the products of groups of `x` and `weight`, lists of tensors; see `_grouped`.

    `bias`, `scale`, `antiquant_scale` and `antiquant_offset` are lists of what is added to a
    product, its scale, and the scale and offset of the weight's steps; `offset` must be None.
    `group_list` has the ends of groups of rows; `split_item`, `group_type`, `transpose_a` and
    `transpose_b` say what the groups are and which of them are transposed.
    """
    _without("GroupedMatmul", offset=offset)
    parts = {"bias": bias, "scale": scale, "by_step": antiquant_scale, "offset": antiquant_offset}
    turned = _turned(x, transpose_a), _turned(weight, transpose_b)
    return _grouped(*turned, parts, group_list, False, split_item, group_type)


def grouped_matmul_v2(
    x: Any,
    weight: Any,
    bias: Any = None,
    scale: Any = None,
    offset: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    group_list: Any = None,
    split_item: int = 0,
    group_type: int = -1,
) -> tuple[Any, ...]:
    """Return `grouped_matmul` of `x` and `weight` as they are.

    `bias`, `scale`, `offset`, `antiquant_scale`, `antiquant_offset`, `group_list`, `split_item`
    and `group_type` are those of it.
    """
    quantized = (antiquant_scale, antiquant_offset)
    return grouped_matmul(x, weight, bias, scale, offset, *quantized, group_list, split_item, group_type)


def grouped_matmul_v4(
    x: Any,
    weight: Any,
    bias: Any = None,
    scale: Any = None,
    offset: Any = None,
    antiquant_scale: Any = None,
    antiquant_offset: Any = None,
    pre_token_scale: Any = None,
    group_list: Any = None,
    activation_input: Any = None,
    activation_quant_scale: Any = None,
    activation_quant_offset: Any = None,
    split_item: int = 0,
    group_type: int = -1,
    group_list_type: int = 0,
    act_type: int = 0,
    output_dtype: Any = None,
) -> tuple[Any, ...]:
    """Return `grouped_matmul` with a scale of each row and a choice of the result's type.

    `x`, `weight`, `bias`, `scale`, `offset`, `antiquant_scale`, `antiquant_offset`,
    `group_list`, `split_item` and `group_type` are those of it; `pre_token_scale` has the scales
    of rows, a `group_list_type` of 1 makes `group_list` sizes instead of ends, and
    `output_dtype` is the type. `activation_input`, `activation_quant_scale`,
    `activation_quant_offset` and `act_type` must be as they are by default.
    """
    activations = {"activation_quant_scale": activation_quant_scale, "act_type": act_type or None}
    activations["activation_quant_offset"] = activation_quant_offset
    _without("GroupedMatmulV4", offset=offset, activation_input=activation_input, **activations)
    parts = {"bias": bias, "scale": scale, "by_step": antiquant_scale, "offset": antiquant_offset}
    parts["by_row"] = pre_token_scale
    found = _grouped(x, weight, parts, group_list, group_list_type == 1, split_item, group_type)
    return found if output_dtype is None else tuple(v.astype(output_dtype) for v in found)


def gmm(
    x: Any, weight: Any, bias: Any = None, group_list: Any = None, group_type: int = 0, group_list_type: int = 0
) -> tuple[Any, ...]:
    """Return `grouped_matmul` with what is found joined.

    `x`, `weight`, `bias`, `group_list` and `group_type` are those of it; a `group_list_type` of
    1 makes `group_list` sizes instead of ends.
    """
    return _grouped(x, weight, {"bias": bias}, group_list, group_list_type == 1, 3, group_type)


def gmm_v2(
    x: Any, weight: Any, bias: Any = None, group_list: Any = None, group_type: int = 0, group_list_type: int = 0
) -> tuple[Any, ...]:
    """Return `gmm` of `x`, `weight`, `bias`, `group_list`, `group_type` and `group_list_type`."""
    return gmm(x, weight, bias, group_list, group_type, group_list_type)


def inplace_grouped_matmul_add(x: Any, weight: Any, group_list: Any, out: Any) -> Tensor:
    """Return `out` after adding, for each group of rows, the product of its transposed rows of `x`
    with those of `weight`; `group_list` has the ends of the groups.
    """
    ends = _ends(group_list, False)
    products = [ops.matmul(ops.transpose(x[a:b], (1, 0)), weight[a:b]) for a, b in zip([0, *ends], ends)]
    return out.copy_(out + ops.stack(products, 0).reshape(out.shape).astype(out.dtype))


def _without(name: str, **given: Any) -> None:
    """Raise Unsupported for what is given and not served."""
    for parameter, value in given.items():
        if value is not None and not (isinstance(value, (list, tuple)) and not len(value)):
            raise Unsupported(f"{name}: {parameter} is part of a kernel for Ascend devices; leave it out")


def moe_compute_expert_tokens(sorted_experts: Any, num_expert: int) -> Tensor:
    """Return how many of the sorted numbers of experts are at most each expert's."""
    experts = ops.arange(0, num_expert).reshape((-1, 1)).astype(sorted_experts.dtype)
    return (sorted_experts.reshape((1, -1)) <= experts).astype(D.int32).sum(1).astype(D.int32)


def moe_gating_top_k_softmax(x: Any, finished: Any = None, k: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `k` largest probabilities of each row, their experts, and the places of the
    pairs, counted by columns; the expert of a row that is `finished` is the number of experts.
    """
    values, experts = ops.topk(ops.softmax(x, -1), k)
    experts = experts.astype(D.int32)
    if finished is not None:
        experts = ops.where(ops.expand_dims(finished, -1), ops.full_like(experts, x.shape[-1]), experts)
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    places = ops.swapaxes(ops.arange(0, rows * k).reshape((k, rows)), 0, 1)
    return values, experts, places.reshape(values.shape).astype(D.int32)


def moe_init_routing(x: Any, row_idx: Any, expert_idx: Any, active_num: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows of `x` in the order of their experts, where each pair went, and the experts in
    order.

    `row_idx` has the places of the pairs, counted by columns, and `expert_idx` their experts;
    `active_num` is how many rows of `x` are kept.
    """
    experts, order = ops.sort(expert_idx.reshape(-1).astype(D.float32))
    places = ops.gather(row_idx.reshape(-1), order, 0)
    chosen = places % x.shape[0]
    kept = min(int(active_num), x.shape[0]) * expert_idx.shape[-1]
    went = ops.tensor_scatter_elements(ops.zeros_like(places), places, ops.arange(0, places.shape[0]).astype(D.int32))
    return ops.gather(x, chosen[:kept], 0), went.astype(D.int32), experts.astype(D.int32)


def moe_finalize_routing(
    expanded_x: Any,
    x1: Any,
    x2: Any = None,
    bias: Any = None,
    scales: Any = None,
    expanded_row_idx: Any = None,
    expanded_expert_idx: Any = None,
) -> Tensor:
    """Return `x1` plus `x2` plus the results of each row's experts, weighed by `scales`.

    `expanded_x` are the results, `bias` one row for each expert, `expanded_row_idx` the place of
    each pair, counted by columns, and `expanded_expert_idx` the expert of each.
    """
    rows = x1.shape[0]
    count = expanded_row_idx.shape[0] // rows
    found = x1 if x2 is None else x1 + x2
    for k in range(count):
        taken = ops.gather(expanded_x, expanded_row_idx[k * rows : (k + 1) * rows], 0)
        if bias is not None:
            taken = taken + ops.gather(bias, expanded_expert_idx[:, k], 0)
        found = found + (taken if scales is None else taken * scales[:, k : k + 1])
    return found


def fused_add_top_k_div(
    x: Any,
    add_num: Any,
    group_num: int,
    group_topk: int,
    n: int,
    k: int,
    activate_type: int = 0,
    is_norm: bool = True,
    scale: float = 2.5,
    mapping_num: Any = None,
    mapping_table: Any = None,
    enable_expert_mapping: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the weights and the numbers of the `k` experts of each row: those with the largest
    sigmoid of `x` plus `add_num`, within the groups with the largest sums of `n` of them.

    `group_num` is how many groups there are and `group_topk` how many are chosen; with `is_norm`
    the weights of a row add up to `scale`. `activate_type` must be 0, and
    `enable_expert_mapping` False, so that `mapping_num` and `mapping_table` have no effect.
    """
    _without("FusedAddTopKDiv", activate_type=activate_type or None, mapping=enable_expert_mapping or None)
    scores = ops.sigmoid(x.astype(D.float32))
    biased = scores + add_num.astype(D.float32)
    grouped = biased.reshape((x.shape[0], group_num, -1))
    of_groups = ops.topk(grouped, n)[0].sum(-1)
    chosen = ops.topk(of_groups, group_topk)[1]
    groups = ops.arange(0, group_num).reshape((1, 1, -1)).astype(chosen.dtype)
    kept = ops.equal(ops.expand_dims(chosen, -1), groups).any(1)
    masked = ops.where(ops.expand_dims(kept, -1), grouped, ops.full_like(grouped, float("-inf")))
    experts = ops.topk(masked.reshape(biased.shape), k)[1]
    weights = ops.gather_elements(scores, 1, experts.astype(D.int64))
    if is_norm:
        weights = weights / weights.sum(-1, keepdims=True) * scale
    return weights, experts.astype(D.int32)


def _stepped(values: Any) -> Tensor:
    """Return numbers as the nearest of the levels of int8."""
    return ops.clamp(ops.round(values), -128, 127).astype(D.int8)


def dynamic_quant_ext(x: Any, smooth_scales: Any = None) -> tuple[Tensor, Tensor]:
    """Return the rows of `x`, times `smooth_scales`, in steps of int8, and the size of a step."""
    x = x.astype(D.float32) if smooth_scales is None else (x * smooth_scales).astype(D.float32)
    step = ops.amax(ops.abs(x), -1) / 127.0
    wide = ops.expand_dims(step, -1)
    return _stepped(ops.where(wide == 0, ops.zeros_like(x), x / ops.where(wide == 0, ops.ones_like(wide), wide))), step


def quant_v2(
    x: Any, scale: Any, offset: Any, sqrt_mode: bool = False, rounding_mode: str = "ROUND", dst_type: Any = D.int8
) -> Tensor:
    """Return ``x * scale + offset``, with `sqrt_mode` `scale` squared, in steps of int8.

    `rounding_mode` is "ROUND", "FLOOR", "CEIL" or "TRUNC", and `dst_type` must be int8.
    """
    if dst_type is not D.int8:
        raise Unsupported(f"QuantV2: dst_type must be int8, not {dst_type}; wider types are for Ascend devices")
    found = x * scale * (scale if sqrt_mode else 1.0) + offset
    rounding = {"ROUND": ops.round, "FLOOR": ops.floor, "CEIL": ops.ceil, "TRUNC": ops.trunc}[rounding_mode.upper()]
    return ops.clamp(rounding(found), -128, 127).astype(D.int8)


def quant_batch_matmul(
    x1: Any,
    x2: Any,
    scale: Any,
    offset: Any = None,
    bias: Any = None,
    pertokenScaleOptional: Any = None,
    transpose_x1: bool = False,
    transpose_x2: bool = False,
    dtype: Any = D.float16,
) -> Tensor:
    """Return the product of matrices in steps of int8, plus `bias`, times `scale`, in `dtype`.

    `x1` and `x2` are the matrices, and `transpose_x1` and `transpose_x2` say which is
    transposed; `pertokenScaleOptional` has a scale for each row, and `offset` is added where
    `dtype` is int8.
    """
    if scale.dtype in (D.int64, D.uint64):
        raise Unsupported("QuantBatchMatmul: scales packed in int64 are for Ascend devices; give them as float32")
    first = ops.swapaxes(x1, -1, -2) if transpose_x1 else x1
    second = ops.swapaxes(x2, -1, -2) if transpose_x2 else x2
    found = ops.matmul(first.astype(D.float32), second.astype(D.float32))
    found = found if bias is None else found + bias
    found = found * scale.astype(D.float32)
    if pertokenScaleOptional is not None:
        found = found * ops.expand_dims(pertokenScaleOptional, -1)
    if dtype is D.int8:
        return _stepped(found if offset is None else found + offset)
    return found.astype(dtype)


def quant_matmul(
    x1: Any,
    x2: Any,
    scale: Any,
    offset: Any = None,
    pertoken_scale: Any = None,
    bias: Any = None,
    output_dtype: Any = None,
    x1_dtype: Any = None,
    x2_dtype: Any = None,
    pertoken_scale_dtype: Any = None,
    scale_dtype: Any = None,
    group_sizes: Any = None,
) -> Tensor:
    """Return `quant_batch_matmul` of `x1` and `x2` as they are, by default in float16.

    `scale`, `offset` and `bias` are those of it, `pertoken_scale` has a scale for each row, and
    `output_dtype` is the result's type. `x1_dtype`, `x2_dtype`, `pertoken_scale_dtype`,
    `scale_dtype` and `group_sizes` must be None.
    """
    kinds = {"x1_dtype": x1_dtype, "x2_dtype": x2_dtype, "scale_dtype": scale_dtype, "group_sizes": group_sizes}
    _without("QuantMatmul", pertoken_scale_dtype=pertoken_scale_dtype, **kinds)
    return quant_batch_matmul(x1, x2, scale, offset, bias, pertoken_scale, False, False, output_dtype or D.float16)


def weight_quant_batch_matmul(
    x: Any,
    weight: Any,
    antiquant_scale: Any,
    antiquant_offset: Any = None,
    quant_scale: Any = None,
    quant_offset: Any = None,
    bias: Any = None,
    transpose_x: bool = False,
    transpose_weight: bool = False,
    antiquant_group_size: int = 0,
) -> Tensor:
    """Return the product of `x` and a `weight` in steps of int8, plus `bias`.

    A step has the size `antiquant_scale`, and its number is counted from minus
    `antiquant_offset`; `transpose_x` and `transpose_weight` say what is transposed.
    `quant_scale` and `quant_offset` must be None, and `antiquant_group_size` 0.
    """
    groups = antiquant_group_size or None
    _without("WeightQuantBatchMatmul", quant_scale=quant_scale, quant_offset=quant_offset, antiquant_group_size=groups)
    first = ops.swapaxes(x, -1, -2) if transpose_x else x
    second = ops.swapaxes(weight, -1, -2) if transpose_weight else weight
    found = ops.matmul(first, _weighed(second, antiquant_scale, antiquant_offset).astype(x.dtype))
    return found if bias is None else found + bias.astype(found.dtype)


def kv_cache_scatter_update(var: Any, indices: Any, updates: Any, axis: int, reduce: str = "none") -> Tensor:
    """Return `var` after writing the updates of each batch into it, from the place along `axis`
    that `indices` has for the batch; `reduce` must be "none".
    """
    _without("KVCacheScatterUpdate", reduce=None if reduce in ("none", 0, None) else reduce)
    axis = axis % var.ndim
    length = updates.shape[axis]
    for batch, start in enumerate(indices.reshape(-1).asnumpy().tolist()):
        where: list[Any] = [slice(None)] * var.ndim
        where[0], where[axis] = batch, slice(int(start), int(start) + length)
        var[tuple(where)] = updates[batch]
    return var


def adam_w(
    var: Any,
    m: Any,
    v: Any,
    max_v: Any,
    gradient: Any,
    step: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    decay: Any,
    eps: Any,
    amsgrad: bool = False,
    maximize: bool = False,
) -> tuple[Any, Any, Any]:
    """Return `var`, `m` and `v` after a step of Adam with decoupled weight decay, which writes
    them.

    `step` counts from 1; `max_v`, with `amsgrad`, keeps the largest `v`; `gradient`, `lr`,
    `beta1`, `beta2`, `decay` and `eps` are the gradient and the parameters of the rule;
    `maximize` goes up.
    """
    gradient = -gradient if maximize else gradient
    var.copy_(var * (1 - lr * decay))
    m.copy_(m * beta1 + gradient * (1 - beta1))
    v.copy_(v * beta2 + gradient * gradient * (1 - beta2))
    spread = v
    if amsgrad:
        spread = max_v.copy_(ops.maximum(max_v, v))
    first, second = 1 - ops.pow(beta1, step), 1 - ops.pow(beta2, step)
    var.copy_(var - lr / first * m / (ops.sqrt(spread) / ops.sqrt(second) + eps))
    return var, m, v
