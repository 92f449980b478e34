"""Base class of all transforms: calls on one array, and on a block of rows at once.

A transform defines `compute(array, lead)`, where the first `lead` axes number rows: 0 for one
sample, 1 for a block. The two must agree row by row. `accepts` says for which shapes and types of a
row the block form may be used; all other rows are computed one at a time, or refused with an error
that names the row. A random transform draws from `random_streams.current_stream()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.engines.routines.call_replay import Kept, kept
from mycel._src.engines.routines.compiled_routines import observers
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as types
from mycel.dataset.constructor_arguments import MadeOf
from mycel.dataset.pipeline_errors import InputValueError, input_refused
from mycel.dataset.rows.column_blocks import Array, Column, as_array, is_picture

Keys = np.ndarray[Any, np.dtype[np.uint64]]


class Joined:
    """Operations of a `map` that follow one another and are computed at once."""

    operations: list[Callable[..., Any]]

    def apply(self, columns: Sequence[Column], count: int, keys: Keys | None) -> list[Column] | None:
        """Return the columns that the operations make, or None where they are to be called.

        * `columns`: the columns that the first receives, of `count` rows.
        * `keys`: the keys of the rows, or None where nothing is random.
        """
        raise NotImplementedError(f"{type(self).__name__} must define apply")


class _Keeper:
    """What a transform keeps of its calls, which begins anew where an attribute of it changes.

    * `calls`: functions that do again what was done for arrays of some type and shape.
    * `whole`: the same, where all that a call of the transform does is to call one of them.
    * `last`, `count`: the type and shape of the last array that none of them took, and how many
      others like it there were just before.
    * `refused`: types and shapes for which there is no such function.
    * `inner`: other transforms that it was made into, by what was drawn for them.
    * `fixed`: whether no attribute may change unseen.
    """

    __slots__ = ("calls", "whole", "keeps", "last", "count", "refused", "inner", "fixed")

    def __init__(self, transform: Transform) -> None:
        self.calls: tuple[Kept, ...] = ()
        self.whole: tuple[Kept, ...] = ()
        self.keeps = transform.keeps
        self.last: Any = None
        self.count = 0
        self.refused: set[Any] = set()
        self.inner: dict[Any, Any] = {}
        # What is in a list may change without a word.
        public = [value for name, value in vars(transform).items() if not name.startswith("_")]
        self.fixed = not any(isinstance(value, _MUTABLE) for value in public)

    def compute(self, function: Callable[..., Any], array: Array, numbers: tuple[float, ...]) -> Any:
        """Return what a function gives for an array and numbers; keep what it does where that is
        asked often.
        """
        key = array.dtype, array.shape
        if key != self.last:
            self.last, self.count = key, 0
        self.count += 1
        if self.count < _OFTEN or not self.fixed or key in self.refused or not are_on() or observers:
            return function(array, 0, *numbers)
        result, found = kept(lambda given, *others: function(given, 0, *others), array, numbers)
        if found is not None:
            self.calls = (found, *self.calls)[:_MOST_KEPT]
            self.whole = self.calls if self.keeps else ()
        elif len(self.refused) < _MOST_REFUSED:
            self.refused.add(key)
        self.count = 0
        return result


# After how many calls with arrays of one type and shape they are kept, which takes as long as tens
# of them; and for how many types and shapes at most.
_OFTEN, _MOST_KEPT, _MOST_REFUSED = 8, 4, 64
# How many transforms one remembers at most that it was made into.
_MOST_INNER = 1024
_MUTABLE = (list, dict, set, np.ndarray)


class Transform(MadeOf):
    """The base class of transforms: callable on an array, returning an array."""

    vectorised = False
    random = False
    # Whether several threads call it where nobody asked for them: not if it keeps Python's lock for
    # most of its time, or if it is not of this package what they call.
    in_threads = True
    # Whether all that `compute` does for an array that routines take, but for their calls, depends
    # on nothing but its type and shape and on the attributes, so that its steps may be kept.
    keeps = False
    # Whether MindSpore computes it in Python only, on pictures. Others receive an array in a `map`
    # where a function before them returned a picture.
    in_python = False
    _keeper: _Keeper | None = None

    def __init__(self) -> None:
        """Make a transform without arguments."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # What users' classes compute is theirs to know.
        cls.keeps = cls.keeps and cls.__module__.startswith("mycel.")

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.__dict__.pop("_keeper", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_keeper"}

    def _kept(self) -> _Keeper:
        keeper: _Keeper = self.__dict__.setdefault("_keeper", _Keeper(self))
        return keeper

    def made_for(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return a transform that this one uses for what it drew, its `key`, as made before."""
        keeper = self._keeper or self._kept()
        found = keeper.inner.get(key)
        if found is None:
            found = make()
            if keeper.fixed and len(keeper.inner) < _MOST_INNER:
                keeper.inner[key] = found
        return found

    def again(self, function: Callable[..., Any], array: Array, *numbers: float) -> Any:
        """Return what `function(array, 0, *numbers)` gives, by a kept call if there is one.

        `function` is always the same one of the transform's, for which holds what `keeps` says, and
        which does nothing with numbers but to give them to routines.
        """
        keeper = self._keeper or self._kept()
        if keeper.calls and are_on() and not observers:
            for call in keeper.calls:
                result = call(array, *numbers)
                if result is not None:
                    return result
        return keeper.compute(function, array, numbers)

    def __call__(self, *inputs: Any) -> Any:
        keeper = self._keeper
        if keeper is not None and keeper.whole and are_on() and not observers:
            for call in keeper.whole:
                result = call(*inputs)
                if result is not None:
                    return result
        return self.called(inputs)

    def called(self, inputs: tuple[Any, ...]) -> Any:
        """Return what a call gives, where none that was kept gives it."""
        if len(inputs) == 1 and type(inputs[0]) is np.ndarray:
            array = inputs[0]
        else:
            arrays = [self.convert(value) for value in inputs]
            if len(arrays) != 1:
                error = TypeError if self.in_python else InputValueError
                raise error(
                    f"{type(self).__name__}: the input must be one array, not {len(inputs)}; use one map for each "
                    "column, or a function"
                )
            array = arrays[0]
        return self.result_of(array)

    def result_of(self, array: Array) -> Any:
        """Compute the result for one sample; errors are those of a call."""
        try:
            made = self.again(self.compute, array) if self.keeps else self.compute(array, 0)
            return np.asarray(made) if isinstance(made, np.generic) else made
        except (RuntimeError, UnicodeError):
            raise
        except (TypeError, ValueError, OverflowError) as error:
            if self.in_python:
                raise
            raise input_refused(error) from None

    def convert(self, value: Any) -> Array:
        """Convert the argument of a call, anything array-like but a dictionary, to an array.

        An array of NumPy's own class is what it is, and not asked for.
        """
        if isinstance(value, dict):
            raise arguments.wrong_type(type(self).__name__, "the input", "an array, a number or text", value)
        return as_array(value)

    def compute(self, array: Array, lead: int) -> Any:
        """Compute the result for one sample, or for samples along the first axis.

        `lead` is 0 for one sample and 1 for several.
        """
        raise NotImplementedError(f"{type(self).__name__} must define compute")

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Return whether `compute` with `lead` 1 is defined for rows of this shape and type."""
        return True

    def chained(self, first: Any, following: Sequence[Any]) -> Joined | None:
        """Return a `Joined` of `first`, this transform, and maybe some of those `following`.

        None where they are not to be computed at once.
        """
        return None

    def apply_block(self, block: Array, keys: Keys | None) -> Array:
        """Return the stacked results for a block of rows.

        `keys` seed the rows of random transforms.
        """
        result: Array = self.compute(block, 1)
        return result

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({arguments})"


def not_random(function: Any) -> Any:
    """Mark a function as one that draws no random numbers, so that `map` prepares none for it.

    It may be used as a decorator.

    >>> from mycel.dataset import transforms
    >>> @transforms.not_random
    ... def double(x):
    ...     return 2 * x
    >>> double.random
    False
    """
    arguments.function("not_random", "function", function)
    try:
        function.random = False
    except (AttributeError, TypeError):
        raise TypeError(
            f"not_random: {function!r:.200} takes no attributes; wrap it in a function of Python's"
        ) from None
    return function


def numpy_type(operation: str, value: Any) -> np.dtype[Any]:
    """Return the NumPy type for a framework type, NumPy type, Python type or name.

    `operation` is named in messages. Raises TypeError for anything else.
    """
    if isinstance(value, np.dtype):
        return value
    try:
        if isinstance(value, (str, type)):
            return np.dtype(value)
    except TypeError:
        pass
    try:
        return types.to_numpy(value)
    except TypeError as error:
        raise TypeError(f"{operation}: {value!r} is not a data type") from error


def check_operations(operation: str, transforms: Any, least: int = 1) -> list[Callable[..., Any]]:
    """Return a list of at least `least` callables; raise TypeError or ValueError otherwise."""
    arguments.sequence(operation, "transforms", transforms, "a list of transforms")
    if len(transforms) < least:
        error = ValueError if isinstance(transforms, list) else TypeError
        raise error(f"{operation}: the list of transforms is empty")
    for transform in transforms:
        arguments.function(operation, "each of transforms", transform, "a transform")
    return list(transforms)


def check_probability(operation: str, prob: Any) -> float:
    """Return a number in [0, 1]; raise TypeError or ValueError otherwise."""
    arguments.number(operation, "prob", prob, numpy=False)
    if not 0 <= prob <= 1:
        raise ValueError(f"{operation}: prob must be within [0, 1], not {prob}")
    return float(prob)


def run_in_turn(transforms: Sequence[Callable[..., Any]], inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call each transform with the result of the one before it; a tuple is several arguments."""
    for transform in transforms:
        result = transform(*inputs)
        inputs = result if isinstance(result, tuple) else (result,)
    return inputs


class Compose(Transform):
    """A sequence of transforms or functions, applied one after the other.

    Called on a Pillow image it gives the tuple of results, as MindSpore's does; otherwise arrays, a
    tuple of them where there are several.

    >>> from mycel.dataset import transforms, vision
    >>> import numpy as np
    >>> both = transforms.Compose([vision.Rescale(0.5, 0.0), vision.HWC2CHW()])
    >>> both(np.ones((2, 3, 1), np.uint8)).shape
    (1, 2, 3)
    """

    random = True

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = check_operations("Compose", transforms)

    def __call__(self, *inputs: Any) -> Any:
        results = run_in_turn(self.transforms, inputs)
        if any(map(is_picture, inputs)):
            return results
        arrays = tuple(as_array(value) for value in results)
        return arrays if len(arrays) > 1 else arrays[0]
