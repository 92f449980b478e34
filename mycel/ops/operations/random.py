"""Random numbers as objects: distributions, permutations, samples and masks.

Seeds of 0 (of `Bernoulli` -1) mean the default generator; objects that name the same seeds go on in one sequence.
"""

from __future__ import annotations

from typing import Any, Optional

from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.common.generator import seeded_generator
from mycel.core.tensor import Tensor, cast
from mycel.ops import creation, random, random_candidates, random_rejection, sorting
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
)
from mycel.ops.images import boxes
from mycel.ops.operations.primitive import NEEDED, definer
from mycel.ops.random_truncated import truncated_normal_numbers
from mycel.prims import elementwise as E
from mycel.prims import random as P
from mycel.prims import reduce as R

__all__: list[str] = []

define = definer(globals())

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
    ends = (operand("TruncatedNormal", v, D.float64) for v in (0.0, 1.0, -2.0, 2.0))
    return truncated_normal_numbers(_shape("TruncatedNormal", shape), seeded_generator(_seed(p)), kind, *ends)


def _gamma(p: Any, shape: Any, alpha: Any, beta: Any) -> Tensor:
    return random_rejection.gamma(_shape(p.name, shape), alpha, beta, _seed(p))


def _poisson(p: Any, shape: Any, mean: Any) -> Tensor:
    return cast(random_rejection.poisson(_shape(p.name, shape), mean, _seed(p)), D.int32)


define("Bernoulli", _bernoulli, "1 with probability p, 0.5 unless given, and else 0, in the shape and type of x: (x, p=0.5).", seed=-1, offset=0)  # fmt: skip
define("Cauchy", _cauchy, "Numbers of a Cauchy distribution, float32.", size=NEEDED, median=0.0, sigma=1.0)
define("Gamma", _gamma, "`mycel.ops.gamma` of (shape, alpha, beta).", seed=0, seed2=0)
define("LogNormalReverse", _log_normal, "exp(x), x normal, in the shape and type of a tensor.", mean=1.0, std=2.0)
define("NonDeterministicInts", _any_integers, "Integers of the whole range of their type.", dtype=D.int64)
define("ParameterizedTruncatedNormal", _between, "Normal numbers within bounds: (shape, mean, stdevs, min, max).", seed=0, seed2=0)  # fmt: skip
define("Poisson", _poisson, "Numbers (int32) of Poisson distributions with means that broadcast: (shape, mean).", seed=0, seed2=0)  # fmt: skip
define("RandomGamma", lambda p, shape, alpha: random_rejection.random_gamma(_shape(p.name, shape), alpha, _seed(p)), seed=0, seed2=0)  # fmt: skip
define("RandomPoisson", lambda p, shape, rate: random_rejection.random_poisson(_shape(p.name, shape), floating(p.name, rate), _seed(p), p.dtype), seed=0, seed2=0, dtype=D.int64)  # fmt: skip
define("TruncatedNormal", _truncated, "Standard normal numbers within [-2, 2].", dtype=D.float32, seed=0, seed2=0)


# Permutations and samples.


def _permuted_below(p: Any, n: Any) -> Tensor:
    count = reshaped(operand("Randperm", n, D.int64), ())
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


define("LogUniformCandidateSampler", _log_uniform, num_true=1, num_sampled=5, unique=True, range_max=5, seed=0)
define("MultinomialWithReplacement", _with_replacement, "Positions drawn with given weights: (x, seed, offset), the default generator if both are 0.", numsamples=NEEDED, replacement=False)  # fmt: skip
define("RandomChoiceWithMask", lambda p, x: boxes.choice_with_mask(x, p.count, _seed(p)), count=256, seed=0, seed2=0)
define("Randperm", _permuted_below, "0 .. n - 1 in random order, then `pad` up to `max_length`.", max_length=1, pad=-1, dtype=D.int32)  # fmt: skip
define("RandpermV2", lambda p, n: random.randperm(n, p.seed, p.offset, p.dtype), seed=0, offset=0, dtype=D.int64)
define("UniformCandidateSampler", _uniform_candidates, num_true=NEEDED, num_sampled=NEEDED, unique=NEEDED, range_max=NEEDED, seed=0, remove_accidental_hits=False)  # fmt: skip


# Masks of dropout, a bit an element.


def _bits(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _mask(p: Any, shape: Any, keep_prob: Any) -> Tensor:
    full = _shape("DropoutGenMask", shape)
    count = 1
    for size in full:
        count *= int(size)
    rate = broadcast(reshaped(operand("DropoutGenMask", keep_prob, D.float32), ()), (_bits(count),))
    kept = random.bernoulli(creation.zeros((_bits(count),), D.int32), rate, p.Seed0 + p.Seed1 or None)
    weights = operand("DropoutGenMask", [1 << k for k in range(8)], D.int32)
    packed = run(R.reduce_sum, reshaped(kept, (_bits(count) // 8, 8)) * weights, axes=(1,), keepdims=False)
    return cast(packed, D.uint8)


def _masked(x: Any, mask: Any, keep_prob: Any) -> Tensor:
    value, packed = floating("DropoutDoMask", x), operand("DropoutDoMask", mask)
    count = int(value.size)
    if packed.dtype is not D.uint8 or packed.shape != (_bits(count) // 8,):
        raise ShapeError(
            f"DropoutDoMask: the mask of {value._type} must be uint8 ({_bits(count) // 8},), not {packed._type}"
        )
    rate = reshaped(operand("DropoutDoMask", keep_prob, value.dtype), ())
    rows = run(E.shift_right, reshaped(cast(packed, D.int32), (packed.shape[0], 1)), iota((1, 8), 1, D.int32))
    bits = take_slice(flat(run(E.mod, rows, constant_like(2, rows))), 0, 0, count)
    kept = reshaped(run(E.eq, bits, constant_like(1, bits)), value.shape)
    # Nothing is kept where keep_prob is 0.
    return select(kept, value / select(run(E.gt, rate, constant_like(0, rate)), rate, 1.0), 0.0)


define("DropoutGenMask", _mask, "A random bit for each element of a shape, 1 with `keep_prob`, eight in a byte and 128 at a time: (shape, keep_prob).", Seed0=0, Seed1=0)  # fmt: skip
define("DropoutDoMask", _masked, "x / keep_prob where the bits of a mask of `DropoutGenMask` are 1, and else 0: (x, mask, keep_prob).")  # fmt: skip
