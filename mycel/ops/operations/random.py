"""Random numbers as objects: distributions, permutations, samples and masks.

Seeds of 0 (of `Bernoulli` -1) mean the default generator. With another seed each object has its own
sequence of random numbers (`mycel.ops.operations.seeded_random`); `Bernoulli` and `RandpermV2` give
the same numbers in every call.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random as random_prims
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.common.generator import seeded_generator
from mycel.ops import array, creation, random, random_candidates, random_rejection, sorting
from mycel.ops._operands import (
    broadcast,
    check_sizes,
    constant_like,
    flat,
    floating,
    iota,
    operand,
    reshaped,
    run,
    select,
    shape_of,
    take_slice,
    term,
)
from mycel.ops.images import boxes
from mycel.ops.operations.attributes import element_type, flag, integer, integers, real
from mycel.ops.operations.inputs import SIZES, WHOLE
from mycel.ops.operations.primitive import Primitive, need_dimensions, operations_of
from mycel.ops.operations.seeded_random import Drawing, numbers_of_object
from mycel.ops.random_truncated import truncated_normal_numbers

__all__: list[str] = []


# What a mask of `DropoutGenMask` is a multiple of, in bits.
ALIGNED = 128


def _shape(name: str, shape: Any) -> Any:
    if isinstance(shape, Tensor):
        if shape.ndim != 1:
            raise ShapeError(f"{name}: the shape must be sizes (n,), not {shape._type}")
        shape = shape.tolist()
    return check_sizes(name, shape_of(name, shape))


def _seed(p: Any) -> Any:
    return numbers_of_object(p, p.seed + getattr(p, "seed2", 0))


def _whole(value: Any) -> int:
    return int(value.item() if isinstance(value, Tensor) else value)


# Distributions.


def _bernoulli(p: Any, x: Any, probability: Any = 0.5) -> Tensor:
    return random.bernoulli(x, probability, None if p.seed == -1 else p.seed + p.offset)


def _cauchy(p: Any) -> Tensor:
    if not p.size:
        raise ValueError("Cauchy: size must have sizes")
    return creation.zeros(_shape("Cauchy", p.size), D.float32).cauchy(p.median, p.sigma)


def _log_normal(p: Any, x: Any) -> Tensor:
    return floating("LogNormalReverse", x).log_normal(p.mean, p.std)


def _any_integers(p: Any, shape: Any) -> Tensor:
    bits = 31 if p.dtype is D.int32 else 63
    full = _shape("NonDeterministicInts", shape)
    return random.draw(random_prims.randint, full, seeded_generator(None), dtype=p.dtype, low=-(2**bits), high=2**bits)


def _between(p: Any, shape: Any, mean: Any, stdevs: Any, low: Any, high: Any) -> Tensor:
    full = _shape(p.name, shape)
    given = [floating(p.name, v) for v in (mean, stdevs, low, high)]
    for v in given:
        if v.ndim > 1 or (v.ndim == 1 and v.shape[0] not in (1, full[0] if full else 1)):
            raise ShapeError(f"{p.name}: parameters must be () or (n,) for a shape (n, ..), not {v._type} for {full}")
    # A vector has one element for each part along axis 0.
    rows = [reshaped(v, (v.shape[0], *(1,) * (len(full) - 1))) if v.ndim and full else v for v in given]
    return truncated_normal_numbers(full, seeded_generator(_seed(p)), given[0].dtype, *rows)


def _truncated(p: Any, shape: Any) -> Tensor:
    ends = (as_tensor(v, D.float64) for v in (0.0, 1.0, -2.0, 2.0))
    return truncated_normal_numbers(_shape("TruncatedNormal", shape), seeded_generator(_seed(p)), p.dtype, *ends)


def _gamma(p: Any, shape: Any, alpha: Any, beta: Any) -> Tensor:
    return random_rejection.gamma(_shape(p.name, shape), alpha, beta, _seed(p))


def _poisson(p: Any, shape: Any, mean: Any) -> Tensor:
    return cast(random_rejection.poisson(_shape(p.name, shape), mean, _seed(p)), D.int32)


class Bernoulli(Drawing, compute=_bernoulli, seed=integer(-1, at_least=-1), offset=0, inputs=(Tensor, (Tensor, float))):
    """Random numbers, 1 with probability p and else 0, in the shape and type of x; called with (x,
    p=0.5).
    """


class Cauchy(Primitive, compute=_cauchy, size=integers(alone=False, kinds=list, at_least=1), median=0.0, sigma=1.0):
    """Random numbers of a Cauchy distribution, float32."""


class Gamma(
    Drawing, compute=_gamma, seed=integer(0, at_least=0), seed2=integer(0, at_least=0), inputs=(SIZES, Tensor, Tensor)
):
    """Random numbers of a gamma distribution, as `mycel.ops.gamma`; called with (shape, alpha,
    beta).
    """


class LogNormalReverse(Primitive, compute=_log_normal, mean=1.0, std=2.0):
    """Random numbers exp(x) with normal x, in the shape and type of a tensor."""


class NonDeterministicInts(Primitive, compute=_any_integers, dtype=element_type(D.int64, D.int32)):
    """Random integers of the whole range of their type."""


class ParameterizedTruncatedNormal(Drawing, compute=_between, seed=0, seed2=0):
    """Random normal numbers within bounds; called with (shape, mean, stdevs, min, max)."""


class Poisson(
    Drawing, compute=_poisson, seed=integer(0, at_least=0), seed2=integer(0, at_least=0), inputs=(SIZES, Tensor)
):
    """Random numbers (int32) of Poisson distributions with means that broadcast; called with
    (shape, mean).
    """


class RandomGamma(
    Drawing,
    compute=lambda p, shape, alpha: random_rejection.random_gamma(_shape(p.name, shape), alpha, _seed(p)),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
): ...


class RandomPoisson(
    Drawing,
    compute=lambda p, shape, rate: random_rejection.random_poisson(
        _shape(p.name, shape), floating(p.name, term(p.name, rate)), _seed(p), p.dtype
    ),
    seed=0,
    seed2=0,
    dtype=element_type(D.int64, D.int32, D.float16, D.float32, D.float64),
    inputs=(Tensor, (Tensor, float)),
): ...


class TruncatedNormal(
    Drawing, compute=_truncated, dtype=element_type(D.float32, D.float16, D.float64), seed=0, seed2=0
):
    """Random standard normal numbers within [-2, 2]."""


# Permutations and samples.


def _permuted_below(p: Any, n: Any) -> Tensor:
    need_dimensions("Randperm", 1, x=n)
    count = reshaped(term("Randperm", n, D.int64), ())
    place = iota((p.max_length,), 0, D.int64)
    known = place < count
    # Places from n on sort behind all others.
    keys = select(
        known, random.draw(random_prims.uniform, (p.max_length,), seeded_generator(None), dtype=D.float64), 2.0
    )
    return cast(select(known, sorting.argsort(keys), constant_like(p.pad, place)), p.dtype)


def _with_replacement(p: Any, x: Any, seed: Any, offset: Any) -> Tensor:
    first, second = _whole(seed), _whole(offset)
    value = floating("MultinomialWithReplacement", x)
    numbers = numbers_of_object(p, max(first, 0) and first + second)
    return cast(random.multinomial(value, p.numsamples, p.replacement, numbers), D.int64)


def _log_uniform(p: Any, true_classes: Any) -> Any:
    return random_candidates.log_uniform_candidate_sampler(
        true_classes, p.num_true, p.num_sampled, p.unique, p.range_max, _seed(p) or 0
    )


def _uniform_candidates(p: Any, true_classes: Any) -> Any:
    return random_candidates.uniform_candidate_sampler(
        true_classes, p.num_true, p.num_sampled, p.unique, p.range_max, _seed(p) or 0, p.remove_accidental_hits
    )


class LogUniformCandidateSampler(
    Drawing,
    compute=_log_uniform,
    num_true=integer(1, at_least=1),
    num_sampled=integer(5, at_least=1),
    unique=True,
    range_max=integer(5, at_least=1),
    seed=integer(0, at_least=0),
):
    """`mycel.ops.log_uniform_candidate_sampler` as an object: classes k drawn with the
    probabilities log((k + 2) / (k + 1)) / log(range_max + 1), for classes sorted from the most to
    the least frequent.

    It is called with the true classes, (batch, num_true), and returns the sampled ones in their
    type, and the expected counts, float32, of the true and of the sampled classes.

    Args:
        num_true (int): The number of true classes of an example, at least 1. Default: 1.
        num_sampled (int): The number of sampled classes, at least 1. Default: 5.
        unique (bool): Whether no class is sampled twice. Default: True.
        range_max (int): The number of classes, at least 1. Default: 5.
        seed (int): The seed, at least 0; 0 for the default generator. Default: 0.

    Examples:
        >>> import mycel as ms
        >>> true = ms.Tensor([[1, 7], [0, 4]])
        >>> sampled, of_true, of_sampled = ms.ops.LogUniformCandidateSampler(2)(true)
        >>> sorted(sampled.tolist()), of_true.shape, of_sampled.shape
        ([0, 1, 2, 3, 4], (2, 2), (5,))
    """


class MultinomialWithReplacement(
    Drawing,
    compute=_with_replacement,
    numsamples=integer(at_least=0),
    replacement=False,
):
    """Random positions with given weights; called with (x, seed, offset), where two zeros mean the
    default generator.
    """


class RandomChoiceWithMask(
    Drawing, compute=lambda p, x: boxes.choice_with_mask(x, p.count, _seed(p)), count=256, seed=0, seed2=0
): ...


class Randperm(
    Primitive,
    compute=_permuted_below,
    max_length=integer(1, at_least=1),
    pad=-1,
    dtype=element_type(D.int32, D.int8, D.int16, D.int64, D.uint8, D.uint16, D.uint32, D.uint64),
    inputs=(Tensor,),
):
    """The numbers 0 .. n - 1 in random order, then `pad` up to `max_length`."""


class RandpermV2(
    Drawing,
    compute=lambda p, n: random.randperm(n, p.seed, p.offset, p.dtype),
    seed=integer(0, tensors=True),
    offset=integer(0, tensors=True),
    dtype=D.int64,
    inputs=(WHOLE,),
): ...


class UniformCandidateSampler(
    Drawing,
    compute=_uniform_candidates,
    num_true=integer(at_least=1),
    num_sampled=integer(at_least=1),
    unique=flag(),
    range_max=integer(at_least=1),
    seed=integer(0, at_least=0),
    remove_accidental_hits=False,
):
    """`mycel.ops.uniform_candidate_sampler` as an object: classes drawn with equal probabilities
    from [0, `range_max`).

    It is called with the true classes, (batch, num_true), and returns the sampled ones in their
    type, and the expected counts, float32, of the true and of the sampled classes.

    Args:
        num_true (int): The number of true classes of an example, at least 1.
        num_sampled (int): The number of sampled classes, at least 1.
        unique (bool): Whether no class is sampled twice.
        range_max (int): The number of classes, at least 1.
        seed (int): The seed, at least 0; 0 for the default generator. Default: 0.
        remove_accidental_hits (bool): Whether, with `unique`, no true class is sampled; where too
            few other classes are left the last samples are -1. Default: False.

    Examples:
        >>> import mycel as ms
        >>> draw = ms.ops.UniformCandidateSampler(1, 3, False, 4)
        >>> draw(ms.Tensor([[1], [3]]))[1].tolist()
        [[0.75], [0.75]]
    """


# Masks of dropout, a bit an element.


def _bits(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _mask(p: Any, shape: Any, keep_prob: Any) -> Tensor:
    full = _shape("DropoutGenMask", shape)
    count = 1
    for size in full:
        count *= int(size)
    rate = broadcast(reshaped(term("DropoutGenMask", keep_prob, D.float32), ()), (_bits(count),))
    unit = random.draw(
        random_prims.uniform, rate.shape, seeded_generator(numbers_of_object(p, p.Seed0 + p.Seed1)), dtype=D.float32
    )
    kept = cast(run(E.lt, unit, rate), D.int32)
    weights = as_tensor([1 << k for k in range(8)], D.int32)
    packed = run(R.reduce_sum, reshaped(kept, (_bits(count) // 8, 8)) * weights, axes=(1,), keepdims=False)
    return cast(packed, D.uint8)


def _masked(x: Any, mask: Any, keep_prob: Any) -> Tensor:
    value, packed = floating("DropoutDoMask", x), operand("DropoutDoMask", mask)
    count = int(value.size)
    if packed.dtype is not D.uint8 or packed.shape != (_bits(count) // 8,):
        raise ShapeError(
            f"DropoutDoMask: the mask of {value._type} must be uint8 ({_bits(count) // 8},), not {packed._type}"
        )
    rate = reshaped(term("DropoutDoMask", keep_prob, value.dtype), ())
    rows = run(E.shift_right, reshaped(cast(packed, D.int32), (packed.shape[0], 1)), iota((1, 8), 1, D.int32))
    bits = take_slice(flat(run(E.mod, rows, constant_like(2, rows))), 0, 0, count)
    kept = reshaped(run(E.eq, bits, constant_like(1, bits)), value.shape)
    # Nothing is kept where keep_prob is 0.
    return select(kept, value / select(run(E.gt, rate, constant_like(0, rate)), rate, 1.0), 0.0)


class DropoutGenMask(Drawing, compute=_mask, Seed0=0, Seed1=0, inputs=(SIZES, (Tensor, float, int))):
    """Random bits, 1 with probability `keep_prob`, for each element of a shape: eight in a byte,
    padded to a multiple of 128; called with (shape, keep_prob).
    """


class DropoutDoMask(Primitive, compute=_masked, inputs=(Tensor, Tensor, (Tensor, float, int))):
    """The elements x / keep_prob where the bits of a mask of `DropoutGenMask` are 1, and else 0;
    called with (x, mask, keep_prob).
    """


# Dropout, and random numbers. Seeds of 0 mean the default generator.


def _drop(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating("Dropout", x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"Dropout: keep_prob must lie in (0, 1], not {p.keep_prob}")
    generator = seeded_generator(numbers_of_object(p, p.Seed0 + p.Seed1))
    kept = random.draw(random_prims.bernoulli, value.shape, generator, probability=float(p.keep_prob))
    return select(kept, value * (1.0 / p.keep_prob), 0.0), cast(kept, value.dtype)


def _drop_channels(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating(p.name, x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"{p.name}: keep_prob must lie in (0, 1], not {p.keep_prob}")
    need_dimensions(p.name, 4 if p.name == "Dropout2D" else 5, x=value)
    shape = (*value.shape[:2], *(1,) * (value.ndim - 2))
    kept = random.draw(random_prims.bernoulli, shape, seeded_generator(None), probability=float(p.keep_prob))
    kept = array.broadcast_to(kept, value.shape)
    return select(kept, value * (1.0 / p.keep_prob), 0.0), kept


class Dropout(Drawing, compute=_drop, keep_prob=0.5, Seed0=0, Seed1=0):
    """The elements, each kept with probability `keep_prob` and divided by it, else 0; and which
    were kept, as 1 and 0.
    """


class Dropout2D(Primitive, compute=_drop_channels, keep_prob=real(0.5, at_least=0, at_most=1)):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans.
    """


class Dropout3D(Primitive, compute=_drop_channels, keep_prob=real(0.5, at_least=0, at_most=1)):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans.
    """


class StandardNormal(
    Drawing,
    compute=lambda p, shape: random.standard_normal(shape, _seed(p)),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
    inputs=((tuple, Tensor),),
): ...


class StandardLaplace(
    Drawing,
    compute=lambda p, shape: random.standard_laplace(shape, _seed(p)),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
    inputs=((tuple, Tensor),),
): ...


class UniformReal(
    Drawing,
    compute=lambda p, shape: random.rand(*_separate(shape), seed=_seed(p)),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
    inputs=((tuple, Tensor),),
): ...


class UniformInt(
    Drawing,
    compute=lambda p, shape, low, high: random.uniform(shape, low, high, _seed(p), D.int32),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
    inputs=((tuple, Tensor),),
): ...


class Multinomial(
    Drawing,
    compute=lambda p, x, n: cast(random.multinomial(x, int(n), True, _seed(p)), p.dtype),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
    dtype=element_type(D.int32, D.int64),
    inputs=(Tensor, WHOLE),
): ...


class RandomShuffle(
    Drawing,
    compute=lambda p, x: random.shuffle(x, _seed(p)),
    seed=integer(0, at_least=0),
    seed2=integer(0, at_least=0),
): ...


class RandomCategorical(
    Drawing,
    compute=lambda p, x, n, seed=0: random.random_categorical(x, n, numbers_of_object(p, seed), p.dtype),
    dtype=D.int64,
    inputs=(Tensor, WHOLE, WHOLE),
): ...


def _separate(shape: Any) -> tuple[Any, ...]:
    """Return a shape as separate sizes."""
    return (
        tuple(shape.tolist())
        if isinstance(shape, Tensor)
        else tuple(shape)
        if isinstance(shape, (tuple, list))
        else (shape,)
    )


__all__.extend(operations_of(globals()))
