"""Random number generators: a state that operations read and advance.

The state is uint64[2], a key (the seed) and a counter, as the primitives of `prims.random`
take it. It is a parameter, so that drawing works in the same way eagerly and in compiled code,
where reading and advancing it become an input and an output of the graph. Element i of a draw
depends only on key and counter + i, so a draw of n elements advances the counter by n.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.random import seed_state
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.errors import operation_called
from mycel._src.foundation.system import locks
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "repeated_generator",
    "seed",
    "seeded_generator",
    "set_rng_state",
]

_lock = locks.reentrant()


class Generator:
    """A source of random numbers with its own seed and position; its first seed is 0.

    >>> import mycel as ms
    >>> from mycel.common.generator import Generator
    >>> Generator().manual_seed(7).initial_seed()
    7
    """

    def __init__(self) -> None:
        self._held: Parameter | None = None
        self._seed = 0

    @property
    def state(self) -> Parameter:
        """The state itself, uint64[2], which operations read and replace."""
        if self._held is None:
            # Of nobody's function, though one that is being compiled may be the first to ask.
            with eager.use_context(None):
                self._held = Parameter(
                    Tensor.from_numpy(seed_state(self._seed)), name="generator_state", requires_grad=False
                )
        return self._held

    def take(self, count: DimLike) -> Tensor:
        """Return the state for a draw of `count` elements, and advance behind them."""
        if eager.active and (staging := eager.local.staging) is not None:
            staging.before_draw(self.state)
        with _lock:
            # A copy, because the state's own memory is about to be replaced.
            now: Tensor = eager.apply(E.identity, self.state)
            self.state._replace(eager.apply(E.add, now, _step(count)))
        return now

    def manual_seed(self, seed: int) -> Generator:
        """Restart with a seed (taken modulo 2**64), and return the generator itself.

        Raises TypeError unless the seed is an int.
        """
        arguments.integer("manual_seed", "the seed", seed)
        self._seed = int(seed)
        self.state._replace(Tensor.from_numpy(seed_state(int(seed))))
        return self

    def seed(self) -> int:
        """Restart with a seed from the operating system, and return that seed."""
        fresh = secrets.randbits(32)
        self.manual_seed(fresh)
        return fresh

    def initial_seed(self) -> int:
        """Return the seed that the generator was last started with."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as 16 bytes (uint8): the seed and the counter."""
        return Tensor(self.state.asnumpy().view(np.uint8))

    def set_state(self, state: Any) -> None:
        """Continue from a state that `get_state` returned.

        Raises ValueError for anything but 16 bytes.
        """
        array = np.ascontiguousarray(state.asnumpy() if isinstance(state, Tensor) else state)
        if array.dtype != np.uint8 or array.shape != (16,):
            raise ValueError(f"set_state: the state must be 16 bytes (uint8), not {array.dtype} of shape {array.shape}")
        words = array.view(np.uint64).copy()
        self._seed = int(words[0])
        self.state._replace(Tensor.from_numpy(words))


_steps = Remembered[int, Tensor]("steps of random numbers", MANY)


def _step(count: DimLike) -> Tensor:
    """Return the increment of a state: zero for the key, the number of elements for the counter."""
    if isinstance(count, Dim):
        parts = [eager.apply(S.RESHAPE, as_tensor(v, D.uint64), shape=(1,)) for v in (Tensor(0, D.uint64), count)]
        return eager.apply(S.CONCAT, *parts, axis=0)
    found = _steps.recent.get(count)
    if found is None:
        if not 0 <= count < 1 << 63:
            raise ValueError(f"random numbers: {count} of them at once are not possible")
        with eager.use_context(None):
            found = _steps.enter(count, Tensor.from_numpy(np.array([0, count], np.uint64)))
    return found


class Repeated(Generator):
    """The numbers of one seed from their beginning, where `Generator` would go on in compiled code.

    What was drawn is no parameter, so a compiled function that makes one draws the same numbers in
    every call.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = arguments.integer(operation_called(), "seed", seed, 0)
        self._drawn: DimLike = 0

    def take(self, count: DimLike) -> Tensor:
        """Return the state for a draw of `count` elements, and advance behind them."""
        drawn, self._drawn = self._drawn, self._drawn + count
        start = Tensor.from_numpy(seed_state(self._seed))
        now: Tensor = eager.apply(E.add, start, _step(drawn))
        return now


default_generator = Generator()
_seeded: dict[int, Generator] = {}


def seeded_generator(seed: None | int | Generator) -> Generator:
    """Return the generator for an operation's `seed`: a seed of its own, a generator, or None for
    the default one.

    Operations with the same seed share one sequence, which `set_seed` restarts.
    """
    if seed is None:
        return default_generator
    if isinstance(seed, Generator):
        return seed
    arguments.integer(operation_called(), "seed", seed, 0)
    with _lock:
        found = _seeded.get(int(seed))
        if found is None:
            # Made once, not at each call of a function that is being compiled.
            with eager.use_context(None):
                found = _seeded[int(seed)] = Generator().manual_seed(int(seed))
    return found


def repeated_generator(seed: None | int | Generator) -> Generator:
    """Return the generator for a `seed` that gives the same numbers in every call.

    None stands for the default generator, which goes on.
    """
    return Repeated(seed) if seed is not None and not isinstance(seed, Generator) else seeded_generator(seed)


def restart(seed: int) -> None:
    """Restart all sequences, as `set_seed` asks."""
    default_generator.manual_seed(seed)
    for number, generator in _seeded.items():
        generator.manual_seed(number)


def manual_seed(seed: int) -> Generator:
    """Restart the default generator with a seed, and return the generator.

    >>> from mycel.common import generator
    >>> generator.manual_seed(3).initial_seed()
    3
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the default generator with a seed from the operating system, and return that seed.

    >>> from mycel.common import generator
    >>> generator.seed() == generator.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that the default generator was last started with.

    >>> from mycel.common import generator
    >>> _ = generator.manual_seed(3)
    >>> generator.initial_seed()
    3
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator as 16 bytes.

    >>> from mycel.common import generator
    >>> generator.get_rng_state().shape
    (16,)
    """
    return default_generator.get_state()


def set_rng_state(state: Tensor | np.ndarray[Any, Any]) -> None:
    """Continue the default generator from a state that `get_rng_state` returned.

    >>> from mycel.common import generator
    >>> generator.set_rng_state(generator.get_rng_state())
    """
    default_generator.set_state(state)
