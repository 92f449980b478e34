"""Random choices of positions: candidates for sampled losses, and positions by weights.

A candidate sampler draws classes one after the other until it has enough; with `unique` it draws
again where it already has the class. The expected count of a class of probability p is then 1 - (1
- p)^tries, with the number of tries that were made; where every try was accepted it is p times the
number of samples (Jean et al., 2015; Mikolov et al., 2013, use such counts). The draws are a loop
primitive, so that they are the same eagerly and compiled.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.common.generator import Generator, _step, repeated_generator
from mycel.ops._compose import compose
from mycel.ops._operands import constant_like, floating, operand, reshaped, run, select
from mycel.ops.creation import arange, zeros
from mycel.ops.random import draw, multinomial

__all__ = [
    "log_uniform_candidate_sampler",
    "multinomial_with_replacement",
    "uniform_candidate_sampler",
]

Sampled = tuple[Tensor, Tensor, Tensor]


def _any(x: Tensor) -> Tensor:
    return run(R.reduce_any, x, axes=tuple(range(x.ndim)), keepdims=False)


def _class(unit: Tensor, range_max: int, logarithmic: bool) -> Tensor:
    """Return the class that a number in [0, 1) selects."""
    if logarithmic:
        found = run(E.exp, unit * math.log(range_max + 1.0)) - 1.0
    else:
        found = unit * float(range_max)
    found = cast(run(E.floor, found), D.int64)
    return run(E.minimum, found, constant_like(range_max - 1, found))


def _distinct(
    state: Tensor, count: int, range_max: int, logarithmic: bool, barred: Tensor, limit: int
) -> tuple[Tensor, Tensor]:
    """Return `count` different classes outside `barred`, and the number of tries; classes that
    `limit` tries did not find are -1.
    """

    def body(
        have: Tensor, tries: Tensor, now: Tensor, found: Tensor, step: Tensor, barred: Tensor
    ) -> tuple[Tensor, ...]:
        drawn = _class(compose(random.uniform, now, shape=(), dtype=D.float64), range_max, logarithmic)
        here = arange(count)
        known = run(E.logical_or, _any(found == drawn), _any(barred == drawn))
        put = run(E.logical_and, here == have, run(E.logical_not, known))
        more = cast(run(E.logical_not, known), D.int64)
        return have + more, tries + scalar(1, D.int64), run(E.add, now, step), select(put, drawn, found)

    def test(have: Tensor, tries: Tensor, *rest: Tensor) -> tuple[Tensor]:
        return (run(E.logical_and, have < scalar(count, D.int64), tries < scalar(limit, D.int64)),)

    operands = (zeros((), D.int64), zeros((), D.int64), state, zeros((count,), D.int64) - 1, _step(1), barred)
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=4)
    return done[3], done[1]


def _candidates(
    name: str,
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: Any,
    logarithmic: bool,
    remove: bool,
) -> Sampled:
    true = operand(name, true_classes)
    if not true.dtype.is_integer:
        raise TypeError(f"{name}: the true classes must be integers, not {true.dtype.name}")
    if true.ndim != 2 or true.shape[1] != num_true:
        raise ShapeError(f"{name}: the true classes must be (batch, {num_true}), not {true._type}")
    if num_sampled < 1 or range_max < 1 or (unique and num_sampled > range_max):
        raise ValueError(
            f"{name}: {num_sampled} {'different ' if unique else ''}samples of {range_max} classes cannot be drawn"
        )
    generator = repeated_generator(seed or None)
    if unique:
        limit = 1000 + 64 * range_max * (4 + math.ceil(math.log(range_max + 1.0)))
        barred = cast(reshaped(true, (true.size,)), D.int64) if remove else zeros((1,), D.int64) - 1
        sampled, tries = _distinct(generator.take(limit), num_sampled, range_max, logarithmic, barred, limit)
    else:
        drawn = draw(random.uniform, (num_sampled,), generator, dtype=D.float64)
        sampled, tries = _class(drawn, range_max, logarithmic), scalar(num_sampled, D.int64)

    def expected(classes: Tensor) -> Tensor:
        k = cast(classes, D.float64)
        p = k * 0.0 + 1.0 / range_max
        if logarithmic:
            p = run(E.log, (k + 2.0) / (k + 1.0)) / math.log(range_max + 1.0)
        every = -run(E.expm1, cast(tries, D.float64) * run(E.log1p, -p))
        return cast(select(tries == num_sampled, p * float(num_sampled), every), D.float32)

    return cast(sampled, true.dtype), expected(true), expected(sampled)


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: Any = 0
) -> Sampled:
    """Draw classes k with the probabilities log((k + 2) / (k + 1)) / log(range_max + 1), for
    classes sorted from the most to the least frequent.

    Args:
        true_classes (Tensor): The true classes, (batch, num_true).
        num_true (int): The number of true classes of an example. Default: 1.
        num_sampled (int): The number of sampled classes. Default: 5.
        unique (bool): Whether no class is sampled twice. Default: True.
        range_max (int): The number of classes. Default: 5.
        seed (int | None): The seed; 0 for the default generator. Default: 0.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The sampled classes, in the type of the true ones, and the
            expected counts, float32, of the true and of the sampled classes.

    Examples:
        >>> import mycel as ms
        >>> true = ms.Tensor([[1, 7], [0, 4]])
        >>> found = ms.ops.log_uniform_candidate_sampler(true, 2, 5, True, 5)
        >>> sampled, of_true, of_sampled = found
        >>> sorted(sampled.tolist()), of_true.shape, of_sampled.shape
        ([0, 1, 2, 3, 4], (2, 2), (5,))
    """
    arguments.integer("log_uniform_candidate_sampler", "num_true", num_true)
    arguments.integer("log_uniform_candidate_sampler", "num_sampled", num_sampled)
    arguments.integer("log_uniform_candidate_sampler", "range_max", range_max)
    if not isinstance(seed, Generator):
        arguments.integer("log_uniform_candidate_sampler", "seed", seed)
    arguments.flag("log_uniform_candidate_sampler", "unique", unique)
    return _candidates(
        "log_uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max, seed, True, False
    )


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: Any = 0,
    remove_accidental_hits: bool = False,
) -> Sampled:
    """Draw classes with equal probabilities from [0, `range_max`).

    Args:
        true_classes (Tensor): The true classes, (batch, num_true).
        num_true (int): The number of true classes of an example.
        num_sampled (int): The number of sampled classes.
        unique (bool): Whether no class is sampled twice.
        range_max (int): The number of classes.
        seed (int | None): The seed; 0 for the default generator. Default: 0.
        remove_accidental_hits (bool): Whether, with `unique`, no true class is sampled; where too
            few other classes are left the last samples are -1. Default: False.

    Returns:
        tuple[Tensor, Tensor, Tensor]: The sampled classes, in the type of the true ones, and the
            expected counts, float32, of the true and of the sampled classes.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.uniform_candidate_sampler(ms.Tensor([[1], [3]]), 1, 3, False, 4)[1].tolist()
        [[0.75], [0.75]]
    """
    arguments.integer("uniform_candidate_sampler", "num_true", num_true)
    arguments.integer("uniform_candidate_sampler", "num_sampled", num_sampled)
    arguments.integer("uniform_candidate_sampler", "range_max", range_max)
    if not isinstance(seed, Generator):
        arguments.integer("uniform_candidate_sampler", "seed", seed)
    arguments.flag("uniform_candidate_sampler", "unique", unique)
    arguments.flag("uniform_candidate_sampler", "remove_accidental_hits", remove_accidental_hits)
    return _candidates(
        "uniform_candidate_sampler",
        true_classes,
        num_true,
        num_sampled,
        unique,
        range_max,
        seed,
        False,
        remove_accidental_hits,
    )


def multinomial_with_replacement(x: Any, seed: int, offset: int, numsamples: int, replacement: bool = False) -> Tensor:
    """Return positions along the last axis, drawn with probabilities in proportion to weights.

    Args:
        x (Tensor): The weights, (C,) or (N, C).
        seed (int): The seed, to which `offset` is added; a negative one for the default generator.
        offset (int): What is added to the seed.
        numsamples (int): How many positions.
        replacement (bool): Whether a position may come twice. Default: False.

    Returns:
        Tensor: (numsamples,) or (N, numsamples), int64.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.multinomial_with_replacement(ms.Tensor([[0.0, 9.0, 0.0]]), 2, 5, 2, True).tolist(
        ...     )
        [[1, 1]]
    """
    arguments.integer("multinomial_with_replacement", "seed", seed, flags=True)
    arguments.flag("multinomial_with_replacement", "replacement", replacement)
    given: Any = None if seed < 0 else repeated_generator(seed + offset)
    return cast(multinomial(floating("multinomial_with_replacement", x), numsamples, replacement, given), D.int64)
