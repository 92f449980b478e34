"""Routing of tokens to experts (mixtures of experts, Shazeer et al., 2017), and sums followed by a
normalisation, which large models repeat.

The places of a token are its choices of experts; all places lie in row-major order, token by token.
Sorting places by expert, those of one expert in order, puts the tokens of each expert side by side;
the inverse of that order brings results back.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.neural.normalization import moments
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.staging.derivatives import recompute
from mycel._src.tensors.core.eager import apply
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import gather_scatter, properties, reduction, sorting
from mycel.ops._operands import (
    broadcast,
    cast_index,
    constant_like,
    iota,
    operand,
    reshaped,
    run,
    select,
    take_slice,
    wide,
)

__all__ = [
    "add_layer_norm",
    "add_rms_norm",
    "mixed_precision_cast",
    "moe_init_routing_v2",
    "moe_token_permute",
    "moe_token_unpermute",
    "move_to",
    "recompute_block",
]


def _places(name: str, tokens: Any, indices: Any) -> tuple[Tensor, Tensor, Any]:
    """Return the tokens, the expert of each place along one axis, and the number of places that a
    token has.
    """
    x, index = operand(name, tokens), operand(name, indices)
    if not index.dtype.is_integer:
        raise TypeError(f"{name}: indices must be whole numbers, not {index.dtype.name}")
    if x.ndim != 2 or index.ndim not in (1, 2) or index.shape[0] != x.shape[0]:
        raise ShapeError(
            f"{name}: takes tokens (tokens, size) and indices (tokens,) or (tokens, choices), not {x._type} and "
            f"{index._type}"
        )
    return x, reshaped(index, (index.size,)), index.shape[1] if index.ndim == 2 else 1


def _order(experts: Tensor) -> tuple[Tensor, Tensor]:
    """Return places sorted by expert, and where each place went."""
    order = sorting.argsort(experts)
    return order, sorting.argsort(order)


def _owner(place: Tensor, choices: Any) -> Tensor:
    """Return the token of a place."""
    return run(E.floor_div, place, constant_like(choices, place))


@fused
def moe_token_permute(
    tokens: Any, indices: Any, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the tokens sorted by expert, once for each of their places.

    Args:
        tokens (Tensor): (tokens, size).
        indices (Tensor): The experts, (tokens,) or (tokens, choices).
        num_out_tokens (int | None): How many are kept, the first ones; None and 0 for all. Default:
            None.
        padded_mode (bool): Must be False. Default: False.

    Returns:
        tuple[Tensor, Tensor]: The tokens, and where each place went, int32.

    Raises:
        TypeError, ValueError: If types and sizes do not fit.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[1.0], [2.0], [3.0]])
        >>> out, where = ms.ops.moe_token_permute(x, ms.Tensor([2, 0, 1]))
        >>> out.tolist(), where.tolist()
        ([[2.0], [3.0], [1.0]], [2, 0, 1])
    """
    arguments.flag("moe_token_permute", "padded_mode", padded_mode)
    name = "moe_token_permute"
    if padded_mode:
        raise ValueError(f"{name}: padded_mode must be False")
    if num_out_tokens is not None and (
        isinstance(num_out_tokens, bool) or not isinstance(num_out_tokens, int) or num_out_tokens < 0
    ):
        raise TypeError(f"{name}: num_out_tokens must be an int that is not negative, not {num_out_tokens!r}")
    x, experts, choices = _places(name, tokens, indices)
    order, where = _order(experts)
    if num_out_tokens:
        order = take_slice(order, 0, 0, min(num_out_tokens, order.shape[0]))
    return gather_scatter.gather(x, _owner(order, choices), 0), cast(where, D.int32)


@fused
def moe_token_unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any = None, padded_mode: bool = False, restore_shape: Any = None
) -> Tensor:
    """Return the inverse of `moe_token_permute`.

    Args:
        permuted_tokens (Tensor): The tokens, sorted by expert.
        sorted_indices (Tensor): Where each place went; a place whose token was not kept counts as
            zeros.
        probs (Tensor | None): The weights of a token's places, (tokens, choices). Default: None.
        padded_mode (bool): Must be False. Default: False.
        restore_shape (None): Must be None. Default: None.

    Returns:
        Tensor: The token of each place, or with `probs` the weighted sum of a token's places.

    Raises:
        ValueError: If sizes do not fit.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.moe_token_unpermute(ms.Tensor([[2.0], [3.0], [1.0]]), ms.Tensor([2, 0,
        ...     1])).tolist()
        [[1.0], [2.0], [3.0]]
    """
    arguments.optional("moe_token_unpermute", "restore_shape", restore_shape, (tuple, list))
    arguments.flag("moe_token_unpermute", "padded_mode", padded_mode)
    name = "moe_token_unpermute"
    if padded_mode or restore_shape is not None:
        raise ValueError(f"{name}: padded_mode must be False, and restore_shape, which belongs to it, None")
    x, where = operand(name, permuted_tokens), operand(name, sorted_indices)
    if x.ndim != 2 or where.ndim != 1:
        raise ShapeError(f"{name}: takes tokens (places, size) and indices (places,), not {x._type} and {where._type}")
    found = gather_scatter.read_or_zeros(x, cast_index(name, where))
    if probs is None:
        return found
    p = operand(name, probs)
    if p.ndim != 2 or p.size != where.size:
        raise ShapeError(f"{name}: probs must be (tokens, choices) for {where.size} places, not {p.shape}")
    weighted = wide(reshaped(found, (*p.shape, x.shape[1]))) * wide(reshaped(p, (*p.shape, 1)))
    return cast(reduction.sum(weighted, 1), x.dtype)


@fused
def moe_init_routing_v2(
    x: Any,
    expert_idx: Any,
    active_num: int,
    expert_capacity: int,
    expert_num: int,
    drop_pad_mode: int,
    expert_tokens_count_or_cumsum_flag: int,
    expert_tokens_before_capacity_flag: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return tokens sorted by their experts, and the positions to which they went.

    In mode 0 the first result is the tokens of the first `active_num` places in order, and the
    second where each place went. In mode 1 the first is (expert_num, expert_capacity, size): the
    first tokens of each expert, filled up with zeros, and the second where each place went among
    them, -1 for a token that found no room.

    Args:
        x (Tensor): (tokens, size).
        expert_idx (Tensor): The experts of each token, (tokens, choices).
        active_num (int): How many places are kept in mode 0; 0 for all.
        expert_capacity (int): How many tokens an expert takes in mode 1.
        expert_num (int): The number of experts.
        drop_pad_mode (int): 0 to keep tokens in order, 1 to fill each expert's capacity.
        expert_tokens_count_or_cumsum_flag (int): In mode 0, what is counted: 0 nothing, 1 the
            running number of tokens of the experts, 2 the number of each.
        expert_tokens_before_capacity_flag (bool): In mode 1, whether the number of each before any
            was dropped is counted.

    Returns:
        tuple[Tensor, Tensor, Tensor, Tensor]: The tokens; where they went, int32; and the two
            counts, (expert_num,), int32, of which one that is not asked for is zeros.

    Raises:
        ValueError: If numbers or sizes do not fit.

    Examples:
        >>> import mycel as ms
        >>> x, experts = ms.Tensor([[1.0], [2.0]]), ms.Tensor([[1], [0]])
        >>> [t.tolist() for t in ms.ops.moe_init_routing_v2(x, experts, 0, 0, 2, 0, 2, False)]
        [[[2.0], [1.0]], [1, 0], [1, 1], [0, 0]]
    """
    name = "moe_init_routing_v2"
    for parameter, value in (
        ("active_num", active_num),
        ("expert_capacity", expert_capacity),
        ("expert_num", expert_num),
    ):
        arguments.integer(name, parameter, value, 0, numpy=False, error=ValueError)
    if drop_pad_mode not in (0, 1) or expert_tokens_count_or_cumsum_flag not in (0, 1, 2):
        raise ValueError(
            f"{name}: drop_pad_mode must be 0 or 1, not {drop_pad_mode!r}, and the flag of counts 0, 1 or 2"
        )
    if expert_num == 0 and (drop_pad_mode or expert_tokens_count_or_cumsum_flag):
        raise ValueError(f"{name}: expert_num must be positive where experts have a capacity or are counted")
    v, experts, choices = _places(name, x, expert_idx)
    if drop_pad_mode and not 0 < expert_capacity <= v.shape[0]:
        raise ValueError(f"{name}: expert_capacity must be in (0, {v.shape[0]}], not {expert_capacity}")
    order, where = _order(experts)
    numbers = reshaped(iota((max(expert_num, 1),), 0, experts.dtype), (1, max(expert_num, 1)))
    one_hot = run(E.eq, reshaped(experts, (experts.size, 1)), numbers)
    counts = reduction.sum(cast(one_hot, D.int32), 0, dtype=D.int32)
    sums = sorting.cumsum(counts, 0)
    none = constant_like(0, counts)
    nothing = broadcast(none, (expert_num,))
    if not drop_pad_mode:
        if active_num:
            order = take_slice(order, 0, 0, min(active_num, order.shape[0]))
        wanted = (nothing, sums, counts)[expert_tokens_count_or_cumsum_flag]
        return gather_scatter.gather(v, _owner(order, choices), 0), cast(where, D.int32), cast(wanted, D.int32), nothing
    own = gather_scatter.gather(sums - counts, experts, 0)
    rank = cast(where, D.int32) - own
    slot = cast(experts, D.int32) * constant_like(expert_capacity, rank) + rank
    room = run(E.lt, rank, constant_like(expert_capacity, rank))
    total = expert_num * expert_capacity
    rows = gather_scatter.gather(v, _owner(iota((experts.size,), 0, D.int64), choices), 0)
    target = reshaped(select(room, slot, constant_like(total, slot)), (experts.size, 1))
    filled = gather_scatter.write(
        name, broadcast(constant_like(0.0, v), (total, v.shape[1])), target, rows, "add", "drop"
    )
    before = counts if expert_tokens_before_capacity_flag else nothing
    back = select(room, slot, constant_like(-1, slot))
    return reshaped(filled, (expert_num, expert_capacity, v.shape[1])), back, nothing, before


def _sum(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Return `x1`, for its type and shape, and the sum x1 + x2 in at least float32."""
    a, b = operand(name, x1), operand(name, x2)
    if not a.dtype.is_floating or a.dtype is not b.dtype:
        raise TypeError(f"{name}: x1 and x2 must be of one floating type, not {a._type} and {b._type}")
    if a.shape != b.shape:
        raise ShapeError(f"{name}: x1 {a.shape} and x2 {b.shape} must have the same shape")
    return a, wide(a) + wide(b)


@fused
def add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-5, additional_output: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the layer normalisation (Ba et al., 2016) of `x1` + `x2` along the last axis.

    Args:
        x1 (Tensor): A summand, (..., D).
        x2 (Tensor): A summand, (..., D).
        gamma (Tensor): The scale, (D,).
        beta (Tensor): The shift, (D,).
        epsilon (float): Added to the variance. Default: 1e-05.
        additional_output (bool): Has no effect: the sum is given always. Default: False.

    Returns:
        tuple[Tensor, Tensor, Tensor, Tensor]: The normalised sum, scaled and shifted; its mean and
            1 / sqrt(variance + epsilon), both (..., 1); and the sum itself.

    Raises:
        TypeError, ValueError: If types and shapes differ.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[1.0, 3.0]])
        >>> ms.ops.add_layer_norm(x, x, ms.ops.ones(2), ms.ops.zeros(2))[1].tolist()
        [[4.0]]
    """
    arguments.flag("add_layer_norm", "additional_output", additional_output)
    name = "add_layer_norm"
    if isinstance(epsilon, bool) or not isinstance(epsilon, float):
        raise TypeError(f"{name}: epsilon must be a float, not {type(epsilon).__name__}")
    x, total = _sum(name, x1, x2)
    g, b = operand(name, gamma), operand(name, beta)
    if g.shape != x.shape[-1:] or b.shape != x.shape[-1:]:
        raise ShapeError(f"{name}: gamma {g.shape} and beta {b.shape} must have the size of the last axis of {x.shape}")
    found = apply(moments, total, axes=(x.ndim - 1,))
    mean, variance = (reshaped(t, (*x.shape[:-1], 1)) for t in found)
    spread = run(E.rsqrt, variance + constant_like(epsilon, variance))
    y = (total - mean) * spread * cast(g, total.dtype) + cast(b, total.dtype)
    return cast(y, x.dtype), cast(mean, x.dtype), cast(spread, x.dtype), cast(total, x.dtype)


@fused
def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-6) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of two tensors divided by the root of its mean square (Zhang and Sennrich,
    2019) over the axes of `gamma`, times `gamma`.

    Args:
        x1 (Tensor): A summand.
        x2 (Tensor): A summand.
        gamma (Tensor): The scale, of the shape of the last axes.
        epsilon (float): Added to the mean square, in (0, 1]. Default: 1e-06.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The normalised sum; 1 / root, of 16-bit floats in float32;
            and the sum.

    Raises:
        TypeError, ValueError: If types and shapes do not fit, or epsilon is outside (0, 1].

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[1.5, 2.0]])
        >>> ms.ops.add_rms_norm(x, x, ms.ops.ones(2))[2].tolist()
        [[3.0, 4.0]]
    """
    arguments.instance("add_rms_norm", "epsilon", epsilon, float)
    name = "add_rms_norm"
    if not isinstance(epsilon, float) or not 0.0 < epsilon <= 1.0:
        raise ValueError(f"{name}: epsilon must be a float in (0, 1], not {epsilon!r}")
    x, total = _sum(name, x1, x2)
    g = operand(name, gamma)
    if not g.ndim or g.ndim > x.ndim or g.shape != x.shape[x.ndim - g.ndim :]:
        raise ShapeError(f"{name}: gamma {g.shape} must have the last axes of {x.shape}")
    axes = tuple(range(x.ndim - g.ndim, x.ndim))
    spread = run(E.rsqrt, reduction.mean(total * total, axes, True) + constant_like(epsilon, total))
    return cast(total * spread * cast(g, total.dtype), x.dtype), spread, cast(total, x.dtype)


def mixed_precision_cast(dst_dtype: Any, x: Any) -> Any:
    """Return `x` with its tensors of floating types converted to `dst_dtype`; the rest stays as it
    is.

    `x` is a tensor, or tuples, lists and dicts of tensors.

    >>> import mycel as ms
    >>> values = (ms.Tensor([1.0]), ms.Tensor([1]))
    >>> [t.dtype.name for t in ms.ops.mixed_precision_cast(ms.float16, values)]
    ['float16', 'int64']
    """
    kind = D.from_any(dst_dtype)
    if not kind.is_floating:
        raise TypeError(f"mixed_precision_cast: dst_dtype must be a floating type, not {kind.name}")
    if isinstance(x, Tensor):
        return cast(x, kind) if x.dtype.is_floating else x
    if isinstance(x, dict):
        return {k: mixed_precision_cast(kind, v) for k, v in x.items()}
    return type(x)([mixed_precision_cast(kind, v) for v in x]) if type(x) in (tuple, list) else x


def recompute_block(*args: Any) -> Any:
    """Return a block (a Cell or a function) as a function whose values the backward pass computes
    anew, as `mycel.recompute` does.

    A second argument, MindSpore's `output_recompute`, has no effect on values. Raises TypeError for
    more arguments or none.

    >>> import mycel as ms
    >>> ms.ops.recompute_block(ms.ops.exp)(ms.Tensor(0.0)).item()
    1.0
    """
    if not 1 <= len(args) <= 2:
        raise TypeError(f"recompute_block: takes a block and perhaps output_recompute, not {len(args)} arguments")
    return lambda *values, **named: recompute(args[0], *values, **named)


def move_to(input: Any, to: str = "CPU", blocking: bool = True) -> Tensor:
    """Return a new tensor with the values of a tensor, or of a list or tuple of whole numbers, on
    the device `to`: "CPU", the only one.

    Raises TypeError and ValueError for other arguments.

    >>> import mycel as ms
    >>> ms.ops.move_to([1, 2]).tolist()
    [1, 2]
    """
    if to != "CPU":
        raise ValueError(f"move_to: tensors can only be moved to 'CPU', not to {to!r}")
    arguments.flag("move_to", "blocking", blocking)
    arguments.instance("move_to", "input", input, (Tensor, list, tuple), "a tensor, a list or a tuple")
    return properties.deepcopy(as_tensor(input))
