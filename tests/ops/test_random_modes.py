"""Random numbers with a seed, in pynative and in graph mode: both draw the same, an object with a
seed begins its own sequence, and the operations that MindSpore starts anew in every call are the
same in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, mint, nn, ops
from mycel import numpy as mnp

X = Tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6))
WEIGHTS = Tensor(np.linspace(0.1, 1, 24, dtype=np.float32).reshape(4, 6))
TRUE = Tensor(np.array([[1, 3], [0, 2]], np.int64))
MASK = Tensor(np.ones((4, 5), bool))
ZERO, ONE = Tensor(0.0), Tensor(1.0)
IMAGES = ops.ones((2, 3, 4, 4))

# Objects whose sequence is their own and goes on: made with a seed, then called with the arguments.
OBJECTS: dict[str, tuple[Callable[[int], Any], tuple[Any, ...]]] = {
    "Dropout": (lambda s: ops.Dropout(0.5, s, 1), (X,)),
    "DropoutGenMask": (lambda s: ops.DropoutGenMask(s, 1), ((40,), 0.5)),
    "Gamma": (lambda s: ops.Gamma(s, 1), ((20,), ONE, ONE)),
    "LogUniformCandidateSampler": (lambda s: ops.LogUniformCandidateSampler(2, 9, False, 50, s), (TRUE,)),
    "Multinomial": (lambda s: ops.Multinomial(s, 1), (WEIGHTS, 9)),
    "MultinomialWithReplacement": (
        lambda s: lambda x: MULTINOMIALS[s](x, Tensor(s), Tensor(1)),
        (WEIGHTS,),
    ),
    "ParameterizedTruncatedNormal": (
        lambda s: ops.ParameterizedTruncatedNormal(s, 1),
        (Tensor([20]), ZERO, ONE, -ONE, ONE),
    ),
    "Poisson": (lambda s: ops.Poisson(s, 1), ((20,), Tensor(9.0))),
    "RandomCategorical": (lambda s: lambda x: CATEGORICALS[s](x, 9, s), (X,)),
    "RandomChoiceWithMask": (lambda s: ops.RandomChoiceWithMask(9, s, 1), (MASK,)),
    "RandomGamma": (lambda s: ops.RandomGamma(s, 1), (Tensor([20]), ONE)),
    "RandomPoisson": (lambda s: ops.RandomPoisson(s, 1), (Tensor([20]), Tensor(9.0))),
    "RandomShuffle": (lambda s: ops.RandomShuffle(s, 1), (mnp.arange(20),)),
    "SampleDistortedBoundingBoxV2": (
        lambda s: ops.SampleDistortedBoundingBoxV2(s, 1),
        (Tensor([640, 480, 3]), Tensor([[[0.2, 0.2, 0.8, 0.8]]]), ONE * 0.1),
    ),
    "StandardLaplace": (lambda s: ops.StandardLaplace(s, 1), ((20,),)),
    "StandardNormal": (lambda s: ops.StandardNormal(s, 1), ((20,),)),
    "TruncatedNormal": (lambda s: ops.TruncatedNormal(ms.float32, s, 1), (Tensor([20]),)),
    "UniformCandidateSampler": (lambda s: ops.UniformCandidateSampler(2, 9, False, 50, s), (TRUE,)),
    "UniformInt": (lambda s: ops.UniformInt(s, 1), ((20,), Tensor(0, ms.int32), Tensor(99, ms.int32))),
    "UniformReal": (lambda s: ops.UniformReal(s, 1), ((20,),)),
}
CATEGORICALS: dict[int, Any] = {}
MULTINOMIALS: dict[int, Any] = {}

# What begins anew in every call with a seed.
ANEW: dict[str, Callable[[int], Any]] = {
    "Bernoulli": lambda s: ops.Bernoulli(s)(X, 0.5),
    "RandpermV2": lambda s: ops.RandpermV2(s, 1)(20),
    "bernoulli": lambda s: ops.bernoulli(X, 0.5, s),
    "bernoulli of rates": lambda s: ops.bernoulli(X, Tensor(0.5), s),
    "log_uniform_candidate_sampler": lambda s: ops.log_uniform_candidate_sampler(TRUE, 2, 9, False, 50, s),
    "multinomial_with_replacement": lambda s: ops.multinomial_with_replacement(WEIGHTS, s, 1, 9, True),
    "random_categorical": lambda s: ops.random_categorical(X, 9, s),
    "random_categorical of tensors": lambda s: X.random_categorical(9, s),
    "randperm": lambda s: ops.randperm(20, s),
    "uniform_candidate_sampler": lambda s: ops.uniform_candidate_sampler(TRUE, 2, 9, True, 50, s),
    "an object made for a call": lambda s: ops.StandardNormal(s, 1)((20,)),
}

LAYERS = [layer(p=0.5).set_train() for layer in (nn.Dropout, nn.Dropout1d, nn.Dropout2d)]
# What continues the default sequence, or that of a seed, after `set_seed`.
SEQUENCES: dict[str, Callable[[int], Any]] = {
    "Cauchy": lambda s: ops.Cauchy([9])(),
    "Dropout2D": lambda s: ops.Dropout2D(0.5)(IMAGES),
    "Dropout3D": lambda s: ops.Dropout3D(0.5)(IMAGES[..., None]),
    "LogNormalReverse": lambda s: ops.LogNormalReverse()(X),
    "choice_with_mask": lambda s: ops.choice_with_mask(MASK, 9, s),
    "dropout": lambda s: ops.dropout(X, 0.5, True, s),
    "dropout2d": lambda s: ops.dropout2d(IMAGES),
    "gamma": lambda s: ops.gamma((20,), ONE, ONE, s),
    "gumbel_softmax": lambda s: ops.gumbel_softmax(X),
    "laplace": lambda s: ops.laplace((20,), ZERO, ONE, s),
    "multinomial": lambda s: ops.multinomial(WEIGHTS, 9, True, s),
    "multinomial without replacement": lambda s: ops.multinomial(WEIGHTS, 3, False, s),
    "normal": lambda s: ops.normal((20,), ZERO, ONE, s),
    "rand": lambda s: ops.rand(20, seed=s),
    "rand_like": lambda s: ops.rand_like(X, s),
    "randint": lambda s: ops.randint(0, 99, (20,), s),
    "randint_like": lambda s: ops.randint_like(TRUE, 0, 99, seed=s),
    "randn": lambda s: ops.randn(20, seed=s),
    "randn_like": lambda s: ops.randn_like(X, s),
    "random_gamma": lambda s: ops.random_gamma(Tensor([20]), ONE, s),
    "random_poisson": lambda s: ops.random_poisson(Tensor([20]), Tensor(9.0), s),
    "rrelu": lambda s: ops.rrelu(X),
    "shuffle": lambda s: ops.shuffle(mnp.arange(20), s),
    "standard_laplace": lambda s: ops.standard_laplace((20,), s),
    "standard_normal": lambda s: ops.standard_normal((20,), s),
    "uniform": lambda s: ops.uniform((20,), ZERO, ONE, s),
    "mint.bernoulli": lambda s: mint.bernoulli(WEIGHTS),
    "mint.multinomial": lambda s: mint.multinomial(WEIGHTS, 3),
    "mint.normal": lambda s: mint.normal(0.0, 1.0, (20,)),
    "mint.nn.functional.dropout": lambda s: mint.nn.functional.dropout(X),
    "mint.randint": lambda s: mint.randint(0, 99, (20,)),
    "mint.randn_like": lambda s: mint.randn_like(X),
    "mint.randperm": lambda s: mint.randperm(20),
    "numpy.rand": lambda s: mnp.rand(20),
    "numpy.randint": lambda s: mnp.randint(0, 99, (20,)),
    "nn.Dropout": lambda s: LAYERS[0](X),
    "nn.Dropout1d": lambda s: LAYERS[1](IMAGES[0]),
    "nn.Dropout2d": lambda s: LAYERS[2](IMAGES),
}


@pytest.fixture(autouse=True)
def _mode() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Called(nn.Cell):
    """A network that is one call."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def construct(self, *args: Any) -> Any:
        return self.function(*args)


def twice(mode: int, function: Any, *args: Any) -> list[Any]:
    """What two calls of the function draw in a mode."""
    ms.set_context(mode=mode)
    net = Called(function)
    found = [net(*args), net(*args)]
    return [[t.tolist() for t in v] if isinstance(v, tuple) else v.tolist() for v in found]


@pytest.mark.parametrize("name", list(OBJECTS))
def test_an_object_with_a_seed_begins_a_sequence(name: str) -> None:
    make, args = OBJECTS[name]

    def drawn(mode: int, seed: int) -> list[Any]:
        CATEGORICALS[seed], MULTINOMIALS[seed] = ops.RandomCategorical(), ops.MultinomialWithReplacement(9, True)
        return twice(mode, make(seed), *args)

    eager = drawn(ms.PYNATIVE_MODE, 3)
    assert drawn(ms.GRAPH_MODE, 3) == eager == drawn(ms.PYNATIVE_MODE, 3)
    assert eager[0] != eager[1] and drawn(ms.GRAPH_MODE, 8) != eager


@pytest.mark.parametrize("name", list(ANEW))
def test_what_begins_anew_in_every_call(name: str) -> None:
    eager = twice(ms.PYNATIVE_MODE, ANEW[name], 3)
    assert twice(ms.GRAPH_MODE, ANEW[name], 3) == eager and eager[0] == eager[1]
    assert twice(ms.GRAPH_MODE, ANEW[name], 8)[0] == twice(ms.PYNATIVE_MODE, ANEW[name], 8)[0] != eager[0]


@pytest.mark.parametrize("name", list(SEQUENCES))
def test_sequences_are_the_same_in_both_modes(name: str) -> None:
    def drawn(mode: int) -> list[Any]:
        ms.set_seed(5)
        return twice(mode, SEQUENCES[name], 3)

    eager = drawn(ms.PYNATIVE_MODE)
    assert drawn(ms.GRAPH_MODE) == eager and eager[0] != eager[1]


def test_set_seed_leaves_the_sequence_of_an_object() -> None:
    one, other = ops.StandardNormal(3, 4), ops.StandardNormal(3, 4)
    drawn = [one((2,)).tolist(), one((2,)).tolist()]
    first = other((2,)).tolist()
    ms.set_seed(5)
    assert [first, other((2,)).tolist()] == drawn
