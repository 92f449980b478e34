"""Data sinking: many training steps per call, in a native loop over batches of a dataset.

`data_sink` makes a function that runs such steps of a step function and a dataset. It and `Model`
use `Runner`, which runs rounds of a native loop (`compiled.repeated_execution`), with no Python in
between, over the batches that are ready, in stretches of at most `STRETCH` seconds, so that Ctrl-C
takes effect. The division of a sink into stretches changes no result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.foundation import arguments
from mycel._src.foundation.pytree import flatten
from mycel._src.foundation.settings.jit_config import JitConfig
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.compiled.repeated_execution import Repeater, Results
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.dataset import offloading
from mycel.train._background import BYTES
from mycel.train._batches import LONGEST, Epochs, check_dataset

__all__ = ["Runner", "data_sink"]

STRETCH = 0.25


class Runner:
    """A compiled function, run on many batches at once.

    `stretch` is the number of batches that take about `STRETCH` seconds, and whose results fit into
    `BYTES` if they are kept.
    """

    def __init__(self, function: Jit, keep: bool = False) -> None:
        self._repeater = Repeater(function)
        self._keep = keep
        self.stretch = 2

    def run(self, batches: Sequence[tuple[Any, ...]]) -> Results:
        """Return the results on the batches, in order.

        Without `keep`, of large results only the last is kept.
        """
        begun = time.perf_counter()
        results = self._repeater(batches, self._keep)
        taken = max((time.perf_counter() - begun) / len(batches), 1e-7)
        # The first stretches take longer than later ones will, as things are compiled in them.
        self.stretch = max(1, min(LONGEST, 4 * self.stretch, int(STRETCH / taken)))
        if self._keep:
            size = sum(int(t.nbytes) for t in flatten(results[-1])[0] if isinstance(t, Tensor))
            self.stretch = max(1, min(self.stretch, BYTES // max(size, 1)))
        return results


class _DataSink:
    """A callable that runs the next `sink_size` steps of `function`, which is `fn` compiled, on
    `dataset`; `results` are those of the last call.

    Batches are checked against `signature`, tensors whose types and shapes count, unless it is
    None.
    """

    def __init__(self, fn: Any, function: Jit, dataset: Any, sink_size: int, signature: tuple[Any, ...] | None) -> None:
        self.__wrapped__ = fn.__wrapped__ if isinstance(fn, Jit) else fn
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = getattr(fn, "__doc__", None)
        self.dataset, self.sink_size = dataset, sink_size
        self.results = Results()
        self._signature = signature
        self._runner = Runner(function)
        self._epochs: Epochs | None = None

    def __call__(self) -> Any:
        """Run the steps and return the result of the last one.

        Raises what a step or the dataset raises.
        """
        if self._epochs is None:
            self._epochs = Epochs(self.dataset, self.sink_size, None, most=min(self.sink_size, LONGEST))
        self._epochs.begin()
        results = Results()
        while batches := self._epochs.take(self._runner.stretch):
            if self._signature is not None:
                for batch in batches:
                    _check_signature(self._signature, batch)
            results.extend(self._runner.run(batches))
        self.results = results
        return results[-1]

    def close(self) -> None:
        """End the thread that reads the dataset; a later call starts it again."""
        if self._epochs is not None:
            self._epochs.close()
            self._epochs = None


def data_sink(
    fn: Any, dataset: Any, sink_size: int = 1, jit_config: JitConfig | None = None, input_signature: Any = None
) -> Any:
    """Return a function without arguments that calls `fn` on the next batches of a dataset, in one
    native loop, and returns the result of the last call.

    The dataset is read ahead by a thread, which ends with the returned function or by its
    `close()`. Operations of the dataset with `offload=True` become the beginning of the loop's
    body, unless there is a signature.

    Args:
        fn (Callable[..., Any]): Takes the dataset's columns.
        dataset (Dataset): The dataset, which begins again at its end.
        sink_size (int): The number of batches of a call. Default: 1.
        jit_config (JitConfig | None): The options with which `fn` is compiled; a function that
            cannot be one graph runs batch by batch. Default: None.
        input_signature (Tensor | tuple[Tensor, ...] | None): Types and shapes of the columns (sizes
            of None are any). Default: None.

    Returns:
        Callable[[], Any]: The function, whose `results` are those of all batches of its last call.

    Raises:
        TypeError, ValueError: For arguments that do not fit.
        ValueError: For batches that do not fit the signature.

    Examples:
        >>> import numpy as np, mycel as ms, mycel.dataset as ds
        >>> total = ms.Parameter(ms.Tensor(0.0), name="total")
        >>> def step(x):
        ...     ms.ops.assign_add(total, x.sum())
        ...     return x.sum()
        >>> numbers = ds.NumpySlicesDataset(np.float32([1, 2, 3, 4]), ["x"], shuffle=False).batch(1)
        >>> sink = ms.data_sink(step, numbers, sink_size=3)
        >>> float(sink()), float(total)
        (3.0, 6.0)
        >>> float(sink()), float(total), [float(r) for r in sink.results]
        (2.0, 13.0, [4.0, 1.0, 2.0])
        >>> sink.close()
    """
    arguments.function("data_sink", "fn", fn, "a function or a Cell")
    arguments.integer("data_sink", "sink_size", sink_size, 1, numpy=False)
    arguments.optional("data_sink", "jit_config", jit_config, JitConfig)
    check_dataset(dataset, "data_sink", "dataset")
    signature = None
    if input_signature is not None:
        signature = tuple(input_signature) if isinstance(input_signature, (tuple, list)) else (input_signature,)
        for value in signature:
            arguments.instance("data_sink", "input_signature", value, Tensor, "a tensor or a tuple of them")
    found = offloading.split(dataset, "input_signature is of what the pipeline gives" if signature else "")
    function = _compiled(fn, jit_config, found)
    return _DataSink(fn, function, dataset if found is None else found.dataset, sink_size, signature)


def _compiled(fn: Any, jit_config: JitConfig | None, end: offloading.Split | None) -> Jit:
    """Return `fn` compiled, behind the `end` of a pipeline, if that is given."""
    if isinstance(fn, Cell) and jit_config is None:
        return (fn if end is None else end.before(fn))._compiled()
    options: dict[str, Any] = {} if jit_config is None else {"jit_config": jit_config}
    if isinstance(fn, Jit):
        options = {"fullgraph": fn.fullgraph, **fn.options}
    function = fn if isinstance(fn, (Cell, Jit)) else Jit(fn, **options)
    if end is not None:
        return Jit(end.before(function), **options)
    return function if isinstance(function, Jit) else Jit(function, **options)


def _check_signature(signature: tuple[Any, ...], batch: Sequence[Any]) -> None:
    if len(batch) != len(signature):
        raise ValueError(
            f"data_sink: input_signature has {len(signature)} tensors, and the dataset gives {len(batch)} columns"
        )
    if Binder([t._type for t in signature])([t._type for t in batch]) is None:
        wanted, given = (", ".join(repr(t._type) for t in ts) for ts in (signature, batch))
        raise ValueError(f"data_sink: the dataset does not fit input_signature: expected {wanted}, got {given}")
