"""Gamma and Poisson numbers by rejection, exactly distributed: one loop whose rounds draw for all
elements until every one has been accepted.

Gamma, shape a >= 1: Marsaglia and Tsang, 2000. With d = a - 1/3 and c = 1 / sqrt(9 d), a normal
number x gives v = (1 + c x)^3, and d v is accepted if log u < x^2 / 2 + d - d v + d log v; smaller
a are drawn as a + 1 and multiplied by u^(1/a). More than 95 % are accepted in each round. Poisson,
mean below 10: inversion of one uniform number by summing probabilities. Above: Hoermann's
transformed rejection PTRS, 1993.

Each round draws from its own state, a fixed step behind that of the round before, so that results
depend neither on threads nor on the number of rounds. A draw advances the generator by `ROUNDS`
such steps, however many it uses. The probability that all rounds reject an element is below 1e-24.
Arithmetic is in float64. The results are not differentiable by the shape or mean of a distribution;
a rate or scale enters by ordinary arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.compiler.prims.control_flow import control
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.common.generator import Generator, _step, seeded_generator
from mycel.ops._compose import compose
from mycel.ops._operands import broadcast, check_sizes, constant_like, floating, run, select, shape_of, term

__all__ = ["gamma", "gamma_numbers", "poisson", "poisson_numbers", "random_gamma", "random_poisson"]

ROUNDS = 40
SMALL_MEAN = 10.0
Drawn = tuple[Tensor, Tensor]


def _until_accepted(
    propose: Callable[..., Drawn], state: Tensor, value: Tensor, waiting: Tensor, fixed: Tensor
) -> Tensor:
    """Return `value` with the elements that are `waiting` replaced by accepted proposals.

    `propose(first, second, fixed)` takes two states and returns proposals and which of them are
    accepted.
    """

    def body(i: Tensor, now: Tensor, found: Tensor, left: Tensor, step: Tensor, fixed: Tensor) -> tuple[Tensor, ...]:
        middle = run(E.add, now, step)
        proposed, accepted = propose(now, middle, fixed)
        found = select(left, proposed, found)
        left = run(E.logical_and, left, run(E.logical_not, accepted))
        return i + scalar(1, D.int32), run(E.add, middle, step), found, left

    def test(i: Tensor, now: Tensor, found: Tensor, left: Tensor, step: Tensor, fixed: Tensor) -> tuple[Tensor]:
        some = run(R.reduce_any, left, axes=tuple(range(left.ndim)), keepdims=False) if left.ndim else left
        return (run(E.logical_and, some, i < scalar(ROUNDS, D.int32)),)

    operands = (scalar(0, D.int32), state, value, waiting, _step(product(value.shape)), fixed)
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=4)
    return done[2]


def _uniform(state: Tensor, shape: Any) -> Tensor:
    """Return numbers in (0, 1]."""
    return 1.0 - compose(random.uniform, state, shape=shape, dtype=D.float64)


def gamma_numbers(shape: Any, concentration: Tensor, generator: Generator, dtype: Any) -> Tensor:
    """Return numbers from gamma distributions of shape `concentration` and scale 1.

    `concentration` is positive and broadcasts to `shape`; `generator` is the source and `dtype` the
    element type.
    """
    a = run(E.stop_gradient, broadcast(cast(concentration, D.float64), shape))
    count = product(shape)
    state = generator.take(count * (2 * ROUNDS + 1))
    low = a < 1.0
    d = select(low, a + 1.0, a) - 1.0 / 3.0

    def propose(first: Tensor, second: Tensor, d: Tensor) -> Drawn:
        x = compose(random.normal, first, shape=shape, dtype=D.float64)
        u = _uniform(second, shape)
        root = x / run(E.sqrt, d * 9.0) + 1.0
        good = root > 0.0
        v = select(good, root * root * root, 1.0)
        fits = run(E.log, u) < x * x * 0.5 + d - d * v + d * run(E.log, v)
        return d * v, run(E.logical_and, good, fits)

    boost = _uniform(state, shape)
    found = _until_accepted(propose, run(E.add, state, _step(count)), d, a == a, d)
    found = select(low, found * run(E.exp, run(E.log, boost) / a), found)
    return cast(found, dtype)


def poisson_numbers(shape: Any, mean: Tensor, generator: Generator, dtype: Any) -> Tensor:
    """Return numbers from Poisson distributions of mean `mean`.

    `mean` is not negative and broadcasts to `shape`; `generator` is the source and `dtype` the
    element type.
    """
    mu = run(E.stop_gradient, broadcast(cast(mean, D.float64), shape))
    count = product(shape)
    state = generator.take(count * (2 * ROUNDS + 1))
    small = mu < SMALL_MEAN
    low = select(small, mu, 1.0)
    high = select(small, SMALL_MEAN, mu)
    found = _inverted(_uniform(state, shape), low)
    found = _until_accepted(
        _transformed(shape), run(E.add, state, _step(count)), found, run(E.logical_not, small), high
    )
    return cast(found, dtype)


def _inverted(u: Tensor, mu: Tensor) -> Tensor:
    """Return the first k for which the probabilities of 0 .. k sum to `u` or more.

    Rounding may keep their sum below a `u` close to 1, so k is at most 80.
    """

    def body(k: Tensor, p: Tensor, left: Tensor, mu: Tensor) -> tuple[Tensor, ...]:
        over = left > p
        k = k + cast(over, D.float64)
        left = select(over, left - p, left)
        return k, select(over, p * mu / k, p), left

    def test(k: Tensor, p: Tensor, left: Tensor, mu: Tensor) -> tuple[Tensor]:
        # Beyond 80 lies less than 1e-40 for means up to 10.
        more = run(E.logical_and, left > p, k < 80.0)
        return (run(R.reduce_any, more, axes=tuple(range(more.ndim)), keepdims=False) if more.ndim else more,)

    p = run(E.exp, -mu)
    operands = (p * 0.0, p, u, mu)
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    return eager.apply(control.while_loop, *operands, **graphs, carried=3)[0]


def _transformed(shape: Any) -> Callable[..., Drawn]:
    def propose(first: Tensor, second: Tensor, mu: Tensor) -> Drawn:
        u = _uniform(first, shape) - 0.5
        v = _uniform(second, shape)
        b = run(E.sqrt, mu) * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        inverse = 1.1328 / (b - 3.4) + 1.1239
        room = 0.5 - run(E.abs_, u)
        inside = room > 0.0
        us = select(inside, room, 1.0)
        k = run(E.floor, (a * 2.0 / us + b) * u + mu + 0.43)
        quick = run(E.logical_and, us >= 0.07, v <= 0.9277 - 3.6224 / (b - 2.0))
        possible = run(E.logical_and, k >= 0.0, run(E.logical_or, us >= 0.013, v <= us))
        safe = run(E.maximum, k, constant_like(0.0, k))
        bound = safe * run(E.log, mu) - mu - run(E.lgamma, safe + 1.0)
        fits = run(E.log, v * inverse / (a / (us * us) + b)) <= bound
        accepted = run(E.logical_or, quick, run(E.logical_and, possible, fits))
        return k, run(E.logical_and, inside, accepted)

    return propose


def _shape(name: str, shape: Any) -> Any:
    return check_sizes(name, shape_of(name, shape, isinstance(shape, Tensor)))


def gamma(shape: Any, alpha: Any, beta: Any, seed: int | None = None) -> Tensor:
    """Return numbers from gamma distributions of shape `alpha` and rate (inverse scale) `beta`,
    both positive.

    Args:
        shape (tuple[int, ...]): What precedes the broadcast shapes of both parameters in the
            result.
        alpha (Tensor): The shape of the distributions.
        beta (Tensor): The rate, by which the result is differentiable.
        seed (int | None): The seed; None for the default generator. Default: None.

    Returns:
        Tensor: The numbers, of shape ``shape + broadcast(alpha, beta)``.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.gamma((3, 1), ms.Tensor([3.0, 4.0]), ms.Tensor(1.0)).shape
        (3, 2)
    """
    a, b = floating("gamma", alpha), floating("gamma", beta)
    kind = D.promote(a.dtype, b.dtype)
    full = broadcast_shapes(_shape("gamma", shape), a.shape, b.shape)
    return gamma_numbers(full, a, seeded_generator(seed), kind) / cast(b, kind)


def random_gamma(shape: Any, alpha: Any, seed: int | None = None) -> Tensor:
    """Return numbers from gamma distributions of shape `alpha` and scale 1, `shape` of them for
    each element of `alpha`.

    The result has the shape `shape + alpha.shape`.

    >>> import mycel as ms
    >>> ms.ops.random_gamma((7, 5), ms.Tensor([0.5, 1.5])).shape
    (7, 5, 2)
    """
    a = floating("random_gamma", alpha)
    return gamma_numbers((*_shape("random_gamma", shape), *a.shape), a, seeded_generator(seed), a.dtype)


def poisson(shape: Any, mean: Any, seed: int | None = None) -> Tensor:
    """Return float32 numbers from Poisson distributions of the means `mean`, which broadcast
    against `shape`.

    >>> import mycel as ms
    >>> ms.ops.poisson((4, 1), ms.Tensor([5.0, 0.0])).shape
    (4, 2)
    """
    mu = floating("poisson", mean)
    full = broadcast_shapes(_shape("poisson", shape), mu.shape)
    return poisson_numbers(full, mu, seeded_generator(seed), D.float32)


def random_poisson(shape: Any, rate: Any, seed: int | None = None, dtype: Any = D.float32) -> Tensor:
    """Return numbers from Poisson distributions.

    Args:
        shape (tuple[int, ...] | Tensor): How many numbers for each element of `rate`.
        rate (Tensor | float): The means.
        seed (int | None): The seed; None for the default generator. Default: None.
        dtype (DType | None): The element type. Default: float32.

    Returns:
        Tensor: ``shape + rate.shape``.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.random_poisson((2, 3), ms.Tensor([5.0, 1.0]), dtype=ms.int32).shape
        (2, 3, 2)
    """
    mu = floating("random_poisson", term("random_poisson", rate))
    full = (*_shape("random_poisson", shape), *mu.shape)
    return poisson_numbers(full, mu, seeded_generator(seed), D.from_any(dtype))
