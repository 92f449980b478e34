"""Random numbers as objects: distributions, permutations, samples and masks.

Seeds of 0 (of `Bernoulli` -1) mean the default generator; objects with the same seeds share one
sequence of random numbers.
"""

from __future__ import annotations

from typing import Any, Optional

from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.common.generator import seeded_generator
from mycel.core.tensor import Tensor, as_tensor, cast
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
    size_of,
    take_slice,
    term,
)
from mycel.ops.images import boxes
from mycel.ops.operations.primitive import NEEDED, Primitive, operations_of
from mycel.ops.random_truncated import truncated_normal_numbers
from mycel.prims import elementwise as E
from mycel.prims import random as P
from mycel.prims import reduce as R

__all__: list[str] = []


# What a mask of `DropoutGenMask` is a multiple of, in bits.
ALIGNED = 128


def _shape(name: str, shape: Any) -> Any:
    return check_sizes(name, shape_of(name, shape.tolist() if isinstance(shape, Tensor) else shape))


def _seed(p: Any) -> Optional[int]:
    return p.seed + getattr(p, "seed2", 0) or None


def _whole(value: Any) -> int:
    return int(value.item() if isinstance(value, Tensor) else value)


# Distributions.


def _bernoulli(p: Any, x: Any, probability: Any = 0.5) -> Tensor:
    if size_of("Bernoulli", p.seed) < -1 or size_of("Bernoulli", p.offset) < 0:
        raise ValueError(f"Bernoulli: seed must be -1 or more and offset 0 or more, not {p.seed} and {p.offset}")
    return random.bernoulli(x, probability, None if p.seed == -1 else p.seed + p.offset)


def _cauchy(p: Any) -> Tensor:
    if not isinstance(p.size, (tuple, list)) or not p.size:
        raise ValueError(f"Cauchy: size must be a list of sizes, not {p.size!r}")
    return creation.zeros(_shape("Cauchy", p.size), D.float32).cauchy(p.median, p.sigma)


def _log_normal(p: Any, x: Any) -> Tensor:
    return floating("LogNormalReverse", x).log_normal(p.mean, p.std)


def _any_integers(p: Any, shape: Any) -> Tensor:
    kind = D.from_any(p.dtype)
    if kind not in (D.int32, D.int64):
        raise TypeError(f"NonDeterministicInts: dtype must be int32 or int64, not {kind.name}")
    bits = 31 if kind is D.int32 else 63
    full = _shape("NonDeterministicInts", shape)
    return random.draw(P.randint, full, seeded_generator(None), dtype=kind, low=-(2**bits), high=2**bits)


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
    kind = D.from_any(p.dtype)
    if kind not in (D.float16, D.float32, D.float64):
        raise TypeError(f"TruncatedNormal: dtype must be float16, float32 or float64, not {kind.name}")
    ends = (as_tensor(v, D.float64) for v in (0.0, 1.0, -2.0, 2.0))
    return truncated_normal_numbers(_shape("TruncatedNormal", shape), seeded_generator(_seed(p)), kind, *ends)


def _gamma(p: Any, shape: Any, alpha: Any, beta: Any) -> Tensor:
    return random_rejection.gamma(_shape(p.name, shape), alpha, beta, _seed(p))


def _poisson(p: Any, shape: Any, mean: Any) -> Tensor:
    return cast(random_rejection.poisson(_shape(p.name, shape), mean, _seed(p)), D.int32)


class Bernoulli(Primitive, compute=_bernoulli, seed=-1, offset=0):
    """Random numbers, 1 with probability p and else 0, in the shape and type of x; called with (x,
    p=0.5).
    """


class Cauchy(Primitive, compute=_cauchy, size=NEEDED, median=0.0, sigma=1.0):
    """Random numbers of a Cauchy distribution, float32."""


class Gamma(Primitive, compute=_gamma, seed=0, seed2=0):
    """Random numbers of a gamma distribution, as `mycel.ops.gamma`; called with (shape, alpha,
    beta).
    """


class LogNormalReverse(Primitive, compute=_log_normal, mean=1.0, std=2.0):
    """Random numbers exp(x) with normal x, in the shape and type of a tensor."""


class NonDeterministicInts(Primitive, compute=_any_integers, dtype=D.int64):
    """Random integers of the whole range of their type."""


class ParameterizedTruncatedNormal(Primitive, compute=_between, seed=0, seed2=0):
    """Random normal numbers within bounds; called with (shape, mean, stdevs, min, max)."""


class Poisson(Primitive, compute=_poisson, seed=0, seed2=0):
    """Random numbers (int32) of Poisson distributions with means that broadcast; called with
    (shape, mean).
    """


class RandomGamma(
    Primitive,
    compute=lambda p, shape, alpha: random_rejection.random_gamma(_shape(p.name, shape), alpha, _seed(p)),
    seed=0,
    seed2=0,
): ...


class RandomPoisson(
    Primitive,
    compute=lambda p, shape, rate: random_rejection.random_poisson(
        _shape(p.name, shape), floating(p.name, term(p.name, rate)), _seed(p), p.dtype
    ),
    seed=0,
    seed2=0,
    dtype=D.int64,
): ...


class TruncatedNormal(Primitive, compute=_truncated, dtype=D.float32, seed=0, seed2=0):
    """Random standard normal numbers within [-2, 2]."""


# Permutations and samples.


def _permuted_below(p: Any, n: Any) -> Tensor:
    count = reshaped(term("Randperm", n, D.int64), ())
    place = iota((p.max_length,), 0, D.int64)
    known = place < count
    # Places from n on sort behind all others.
    keys = select(known, random.draw(P.uniform, (p.max_length,), seeded_generator(None), dtype=D.float64), 2.0)
    return cast(select(known, sorting.argsort(keys), constant_like(p.pad, place)), D.from_any(p.dtype))


def _with_replacement(p: Any, x: Any, seed: Any, offset: Any) -> Tensor:
    first, second = _whole(seed), _whole(offset)
    given = (-1, 0) if first == 0 and second == 0 else (first, second)
    return random_candidates.multinomial_with_replacement(x, *given, p.numsamples, p.replacement)


def _log_uniform(p: Any, true_classes: Any) -> Any:
    return random_candidates.log_uniform_candidate_sampler(
        true_classes, p.num_true, p.num_sampled, p.unique, p.range_max, p.seed
    )


def _uniform_candidates(p: Any, true_classes: Any) -> Any:
    return random_candidates.uniform_candidate_sampler(
        true_classes, p.num_true, p.num_sampled, p.unique, p.range_max, p.seed, p.remove_accidental_hits
    )


class LogUniformCandidateSampler(
    Primitive, compute=_log_uniform, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0
): ...


class MultinomialWithReplacement(Primitive, compute=_with_replacement, numsamples=NEEDED, replacement=False):
    """Random positions with given weights; called with (x, seed, offset), where two zeros mean the
    default generator.
    """


class RandomChoiceWithMask(
    Primitive, compute=lambda p, x: boxes.choice_with_mask(x, p.count, _seed(p)), count=256, seed=0, seed2=0
): ...


class Randperm(Primitive, compute=_permuted_below, max_length=1, pad=-1, dtype=D.int32):
    """The numbers 0 .. n - 1 in random order, then `pad` up to `max_length`."""


class RandpermV2(
    Primitive, compute=lambda p, n: random.randperm(n, p.seed, p.offset, p.dtype), seed=0, offset=0, dtype=D.int64
): ...


class UniformCandidateSampler(
    Primitive,
    compute=_uniform_candidates,
    num_true=NEEDED,
    num_sampled=NEEDED,
    unique=NEEDED,
    range_max=NEEDED,
    seed=0,
    remove_accidental_hits=False,
): ...


# Masks of dropout, a bit an element.


def _bits(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _mask(p: Any, shape: Any, keep_prob: Any) -> Tensor:
    full = _shape("DropoutGenMask", shape)
    count = 1
    for size in full:
        count *= int(size)
    rate = broadcast(reshaped(term("DropoutGenMask", keep_prob, D.float32), ()), (_bits(count),))
    kept = random.bernoulli(creation.zeros((_bits(count),), D.int32), rate, p.Seed0 + p.Seed1 or None)
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


class DropoutGenMask(Primitive, compute=_mask, Seed0=0, Seed1=0):
    """Random bits, 1 with probability `keep_prob`, for each element of a shape: eight in a byte,
    padded to a multiple of 128; called with (shape, keep_prob).
    """


class DropoutDoMask(Primitive, compute=_masked):
    """The elements x / keep_prob where the bits of a mask of `DropoutGenMask` are 1, and else 0;
    called with (x, mask, keep_prob).
    """


# Dropout, and random numbers. Seeds of 0 mean the default generator.


def _drop(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating("Dropout", x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"Dropout: keep_prob must lie in (0, 1], not {p.keep_prob}")
    generator = seeded_generator(p.Seed0 + p.Seed1 or None)
    kept = random.draw(P.bernoulli, value.shape, generator, probability=float(p.keep_prob))
    return select(kept, value * (1.0 / p.keep_prob), 0.0), cast(kept, value.dtype)


def _drop_channels(p: Any, x: Any) -> tuple[Tensor, Tensor]:
    value = floating(p.name, x)
    if not 0.0 < p.keep_prob <= 1.0:
        raise ValueError(f"{p.name}: keep_prob must lie in (0, 1], not {p.keep_prob}")
    shape = (*value.shape[:2], *(1,) * (value.ndim - 2))
    kept = random.draw(P.bernoulli, shape, seeded_generator(None), probability=float(p.keep_prob))
    kept = array.broadcast_to(kept, value.shape)
    return select(kept, value * (1.0 / p.keep_prob), 0.0), kept


class Dropout(Primitive, compute=_drop, keep_prob=0.5, Seed0=0, Seed1=0):
    """The elements, each kept with probability `keep_prob` and divided by it, else 0; and which
    were kept, as 1 and 0.
    """


class Dropout2D(Primitive, compute=_drop_channels, keep_prob=0.5):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans.
    """


class Dropout3D(Primitive, compute=_drop_channels, keep_prob=0.5):
    """The channels, each kept with probability `keep_prob` and divided by it, else 0; and which
    elements were kept, as booleans.
    """


class StandardNormal(Primitive, compute=lambda p, shape: random.standard_normal(shape, _seed(p)), seed=0, seed2=0): ...


class StandardLaplace(
    Primitive, compute=lambda p, shape: random.standard_laplace(shape, _seed(p)), seed=0, seed2=0
): ...


class UniformReal(
    Primitive, compute=lambda p, shape: random.rand(*_separate(shape), seed=_seed(p)), seed=0, seed2=0
): ...


class UniformInt(
    Primitive,
    compute=lambda p, shape, low, high: random.uniform(shape, low, high, _seed(p), D.int32),
    seed=0,
    seed2=0,
): ...


class Multinomial(
    Primitive,
    compute=lambda p, x, n: cast(random.multinomial(x, int(n), True, _seed(p)), D.from_any(p.dtype)),
    seed=0,
    seed2=0,
    dtype=D.int32,
): ...


class RandomShuffle(Primitive, compute=lambda p, x: random.shuffle(x, _seed(p)), seed=0, seed2=0): ...


class RandomCategorical(
    Primitive, compute=lambda p, x, n, seed=0: random.random_categorical(x, n, seed, p.dtype), dtype=D.int64
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
