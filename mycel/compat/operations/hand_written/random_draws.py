"""Random draws that are given a seed and an offset: the same two give the same numbers.

The numbers are those of Mycel's generator for the seed, not of MindSpore's kernels.
"""

from __future__ import annotations

from typing import Any

from mycel import mint, ops
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.generator import Generator
from mycel.ops._operands import shape_of

__all__ = [
    "bernoulli_ext",
    "dropout2d_ext",
    "dropout_do_mask_ext",
    "dropout_ext",
    "dropout_gen_mask_ext",
    "dropout_grad_ext",
    "func_dropout_ext",
    "inplace_bernoulli_scalar",
    "inplace_bernoulli_tensor",
    "inplace_exponential",
    "inplace_normal",
    "inplace_random",
    "inplace_uniform",
    "multinomial_ext",
    "normal_float_float",
    "normal_float_tensor",
    "normal_tensor_float",
    "normal_tensor_tensor",
    "rand_ext",
    "rand_int",
    "rand_int_like",
    "rand_like_ext",
    "randn",
    "randn_like",
    "randperm_ext",
    "uniform_ext",
]


def stream(seed: Any, offset: Any) -> Generator:
    """Return a generator for a seed and how many numbers of it were drawn before."""
    generator = Generator()
    generator.manual_seed((int(seed) * 1_000_003 + int(offset)) % 2**31)
    return generator


def bernoulli_ext(input: Any, seed: Any, offset: Any) -> Tensor:
    """Return 1 with the probability that `input` has, or else 0."""
    return mint.bernoulli(input, generator=stream(seed, offset))


def dropout_gen_mask_ext(shape: Any, p: Any, seed: Any, offset: Any, dtype: Any) -> Tensor:
    """Return 0 with probability `p`, or else 1, for each element, as bytes.

    `shape` is the mask's; `seed` and `offset` say which numbers are drawn; `dtype`, the type of
    what is masked, has no effect.
    """
    drawn = mint.rand(*shape_of("DropoutGenMaskExt", shape), generator=stream(seed, offset))
    return ops.greater_equal(drawn, float(p)).astype(D.uint8)


def dropout_do_mask_ext(input: Any, mask: Any, p: Any) -> Tensor:
    """Return what the mask keeps of `input`, divided by the probability to be kept."""
    kept = 1.0 - float(p)
    return input * mask.astype(input.dtype) / kept if kept > 0 else input * 0.0


def dropout_grad_ext(input: Any, mask: Any, p: Any) -> Tensor:
    """Return the cotangent of the input of a dropout for that of its result."""
    return dropout_do_mask_ext(input, mask, p)


def dropout_ext(input: Any, p: Any, seed: Any, offset: Any) -> tuple[Tensor, Tensor]:
    """Return `input` with elements dropped with probability `p`, and the mask of those kept.
    `seed` and `offset` say which numbers are drawn.
    """
    mask = dropout_gen_mask_ext(input.shape, p, seed, offset, input.dtype)
    return dropout_do_mask_ext(input, mask, p), mask


def func_dropout_ext(input: Any, p: Any, training: bool, inplace: bool, seed: Any, offset: Any) -> Tensor:
    """Return `input`, in training with elements dropped with probability `p`.

    With `inplace` it is written into `input`. `seed` and `offset` say which numbers are drawn.
    """
    found = dropout_ext(input, p, seed, offset)[0] if training else input
    return input.copy_(found) if inplace and training else found


def dropout2d_ext(input: Any, p: Any, training: bool, inplace: bool, seed: Any, offset: Any) -> Tensor:
    """Return `input`, in training with whole channels dropped with probability `p`.

    With `inplace` it is written into `input`. `seed` and `offset` say which numbers are drawn.
    """
    if not training:
        return input
    lead = input.shape[: max(1, min(2, input.ndim - 2))] if input.ndim > 2 else input.shape
    mask = dropout_gen_mask_ext(lead, p, seed, offset, input.dtype)
    found = dropout_do_mask_ext(input, mask.reshape((*lead, *[1] * (input.ndim - len(lead)))), p)
    return input.copy_(found) if inplace else found


def multinomial_ext(input: Any, num_samples: int, replacement: bool, seed: Any, offset: Any) -> Tensor:
    """Return `num_samples` places drawn with the weights `input`, with `replacement` or without.

    `seed` and `offset` say which numbers are drawn.
    """
    return mint.multinomial(input, num_samples, replacement, generator=stream(seed, offset))


def normal_tensor_tensor(mean: Any, std: Any, seed: Any, offset: Any) -> Tensor:
    """Return normal numbers of these means (`mean`) and deviations (`std`), drawn by `seed` and
    `offset`.
    """
    return mint.normal(mean, std, generator=stream(seed, offset))


def normal_tensor_float(mean: Any, std: Any, seed: Any, offset: Any) -> Tensor:
    """Return normal numbers of these means (`mean`) and one deviation (`std`), drawn by `seed`
    and `offset`.
    """
    return normal_tensor_tensor(mean, std, seed, offset)


def normal_float_tensor(mean: Any, std: Any, seed: Any, offset: Any) -> Tensor:
    """Return normal numbers of one mean and these deviations (`std`), drawn by `seed` and
    `offset`.
    """
    return normal_tensor_tensor(mean, std, seed, offset)


def normal_float_float(mean: Any, std: Any, size: Any, seed: Any, offset: Any) -> Tensor:
    """Return normal numbers of shape `size`, of one `mean` and deviation (`std`), drawn by
    `seed` and `offset`.
    """
    return mint.normal(mean, std, tuple(size), generator=stream(seed, offset))


def rand_ext(shape: Any, seed: Any, offset: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return uniform numbers of `shape` and `dtype` from 0 to 1, drawn by `seed` and `offset`.

    `device` has no effect.
    """
    return mint.rand(*shape, generator=stream(seed, offset), dtype=dtype)


def rand_like_ext(tensor: Any, seed: Any, offset: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return uniform numbers of the tensor's shape and type, or of `dtype`, by `seed` and
    `offset`.

    `device` has no effect.
    """
    return rand_ext(tensor.shape, seed, offset, dtype or tensor.dtype)


def randn(shape: Any, seed: Any, offset: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return normal numbers of `shape` and `dtype`, drawn by `seed` and `offset`.

    `device` has no effect.
    """
    return mint.randn(*shape, generator=stream(seed, offset), dtype=dtype)


def randn_like(input: Any, seed: Any, offset: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return normal numbers of the shape and type of `input`, or of `dtype`, by `seed` and
    `offset`.

    `device` has no effect.
    """
    return randn(input.shape, seed, offset, dtype or input.dtype)


def rand_int(low: int, high: int, shape: Any, seed: Any, offset: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return whole numbers from `low` to below `high`, of `shape` and `dtype`, by `seed` and
    `offset`.

    `device` has no effect.
    """
    return mint.randint(low, high, tuple(shape), generator=stream(seed, offset), dtype=dtype)


def rand_int_like(
    input: Any, low: int, high: int, seed: Any, offset: Any, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return whole numbers from `low` to below `high`, of the shape and type of `input`, or of
    `dtype`, by `seed` and `offset`.

    `device` has no effect.
    """
    return rand_int(low, high, input.shape, seed, offset, dtype or input.dtype)


def randperm_ext(n: int, seed: Any, offset: Any, dtype: Any = ...) -> Tensor:
    """Return the numbers below `n` in random order, in `dtype`, drawn by `seed` and `offset`."""
    return mint.randperm(int(n), generator=stream(seed, offset), dtype=dtype)


def uniform_ext(tensor: Any, a: Any, b: Any, seed: Any, offset: Any) -> Tensor:
    """Return uniform numbers from `a` to `b` in the shape and type of `tensor`, by `seed` and
    `offset`.
    """
    drawn = mint.rand(*tensor.shape, generator=stream(seed, offset))
    return (drawn * (b - a) + a).astype(tensor.dtype)


def inplace_uniform(input: Any, from_: Any, to: Any, seed: Any, offset: Any) -> Tensor:
    """Return `input` filled with uniform numbers between `from_` and `to`, by `seed` and
    `offset`.
    """
    return input.uniform_(from_, to, generator=stream(seed, offset))


def inplace_normal(input: Any, mean: Any, std: Any, seed: Any, offset: Any) -> Tensor:
    """Return `input` filled with normal numbers of `mean` and deviation `std`, by `seed` and
    `offset`.
    """
    return input.normal_(mean, std, generator=stream(seed, offset))


def inplace_random(input: Any, from_: Any = 0, to: Any = None, seed: Any = 0, offset: Any = 0) -> Tensor:
    """Return `input` filled with whole numbers from `from_` to below `to`, by `seed` and
    `offset`.
    """
    return input.random_(from_, to, generator=stream(seed, offset))


def inplace_exponential(input: Any, lambd: Any, seed: Any, offset: Any) -> Tensor:
    """Return `input` filled with exponential numbers of rate `lambd`, by `seed` and `offset`."""
    return input.exponential_(lambd, generator=stream(seed, offset))


def inplace_bernoulli_scalar(input: Any, p: Any, seed: Any, offset: Any) -> Tensor:
    """Return `input` filled with ones of probability `p`, drawn by `seed` and `offset`."""
    return input.bernoulli_(p, generator=stream(seed, offset))


def inplace_bernoulli_tensor(input: Any, p: Any, seed: Any, offset: Any) -> Tensor:
    """Return `input` filled with ones of the probabilities `p`, drawn by `seed` and `offset`."""
    return input.bernoulli_(p, generator=stream(seed, offset))
