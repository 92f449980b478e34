"""Iterators over the rows of one epoch after the other, prefetched in a background thread.

The thread runs the pipeline and puts rows into a bounded queue. It holds no reference to the
iterator, and ends when the iterator is released or collected. An error in the pipeline, of whatever
class, follows the rows before it through the queue, and the consumer's `next` raises it with its
own traceback. The position is (epoch, step): `state_dict` returns it with the seed, and
`load_state_dict` starts a new thread there, which gives exactly the rows that would have followed.
In a forked child, which has no threads, an iterator continues in the same way.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import ref

import numpy as np

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.engines import buffers
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.spans import timed
from mycel._src.foundation.system import locks
from mycel._src.foundation.system.malloc_arenas import share_heaps
from mycel._src.tensors.core.tensor import Tensor, make
from mycel.dataset import config
from mycel.dataset.arguments import check_count, is_hidden, names
from mycel.dataset.arguments import positions as places_of
from mycel.dataset.execution import threaded_stages, worker_pool
from mycel.dataset.execution.iterator_scope import Scope, watching
from mycel.dataset.execution.pass_context import FRESH, Run
from mycel.dataset.iteration import elastic_resumption, iterator_seeds
from mycel.dataset.iteration.worker_autotune import Tuner
from mycel.dataset.nodes.node import Node
from mycel.dataset.pipeline_errors import of_pipeline
from mycel.dataset.rows.column_blocks import Array, Row, as_array

_EPOCH_END = object()
# The iterators that were made, of which some are gone; those are forgotten now and then.
created: list[ref[_Iterator]] = []
_MANY = 64


# Smaller arrays are copied in less time than is needed to share them.
_SHARED = 1 << 14


def tensor_of(array: Array, shared: bool) -> Tensor:
    """Return the tensor of an array of a row.

    With `shared` it has the array's memory, which nobody else may have then.
    """
    if array.dtype.kind not in "biufc" or not array.dtype.isnative:
        return Tensor(array)
    made = buffers.share(array) if shared and array.nbytes >= _SHARED else buffers.from_array(array)
    return make(tensor_type(array.shape, from_any(array.dtype)), made)


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Queue:
    """A bounded queue between one producer and one consumer, which either side can close.

    Adding and removing take no lock, as those of a `deque` are whole. Whoever has to wait says so
    (`reads`, `writes`) before it looks for the last time, so that the other side cannot miss it. A
    producer that waits goes on when half of the items are gone: not for each of them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.items: deque[Any] = deque()
        self.closed = False
        self.reads = self.writes = False
        # Reentrant, as a collection of garbage within `put` may close this very queue.
        lock = locks.reentrant()
        self.may_read = locks.condition(lock)
        self.may_write = locks.condition(lock)

    def put(self, item: Any) -> bool:
        """Wait for room and add an item; return False once the queue is closed."""
        if len(self.items) >= self.size:
            self._wait_for_room()
        if self.closed:
            return False
        self.items.append(item)
        if self.reads:
            with self.may_read:
                self.may_read.notify()
        return True

    def _wait_for_room(self) -> None:
        with self.may_write:
            self.writes = True
            while len(self.items) >= self.size and not self.closed:
                self.may_write.wait()
            self.writes = False

    def get(self) -> Any:
        """Wait for an item and remove it."""
        try:
            item = self.items.popleft()
        except IndexError:
            item = self._awaited()
        if self.writes and 2 * len(self.items) <= self.size:
            with self.may_write:
                self.may_write.notify()
        return item

    def _awaited(self) -> Any:
        with self.may_read:
            self.reads = True
            while not self.items:
                if self.closed:
                    raise RuntimeError("the iterator was stopped")
                self.may_read.wait()
            self.reads = False
            return self.items.popleft()

    def close(self) -> None:
        """Close the queue and wake whoever waits."""
        with self.may_read:
            self.closed = True
            self.items.clear()
            self.may_read.notify_all()
            self.may_write.notify_all()


_open_queues: finalization.Living[_Queue] = finalization.Living()
_threads: finalization.Living[threading.Thread] = finalization.Living()
_LAST_WAIT = 2.0


@locks.in_child
def _in_child() -> None:
    _open_queues.clear()
    _threads.clear()


@atexit.register
def _close_all() -> None:
    """Close all queues when the program ends, and give the threads a moment to stop.

    A thread that is stuck in a user's function is left behind.
    """
    for queue in _open_queues:
        queue.close()
    threaded_stages.cancel_all()
    worker_pool.hurry()
    deadline = time.monotonic() + _LAST_WAIT
    for thread in _threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, deadline - time.monotonic()))


def _epochs(
    dataset: Node, scope: Scope, seed: int, seeded: bool, begin: elastic_resumption.Position, last: int
) -> Iterator[Any]:
    """Yield the rows from a position on, with a mark after every epoch.

    The last epoch is the one before `last`; -1 sets no limit.
    """
    size = config.get_prefetch_size()
    tuner = Tuner(dataset, scope) if scope.ahead and config.get_enable_autotune() else None
    interval = config.get_autotune_interval()
    epoch, begun, step = begin
    while last == -1 or epoch < last:
        run = Run(seed, epoch, max(1, min(32, size)) if scope.ahead else 1, seeded, scope=scope)
        run.begun = begun
        again = False
        blocks, tuned = dataset._blocks(run, step), step
        for block in blocks:
            yield from block.rows()
            step += block.count
            if tuner is not None and interval and step - tuned >= interval:
                tuned = step
                again = tuner.tune()
                if again:
                    break
        _closed(blocks)
        if again:
            # The same pass goes on, with other numbers of workers.
            continue
        if tuner is not None:
            tuner.tune()
            tuner.save()
        yield _EPOCH_END
        epoch, step, begun = epoch + 1, 0, FRESH


def _closed(blocks: Any) -> None:
    """Close a generator, unless a thread is within it, which closes it when it comes out."""
    close = getattr(blocks, "close", None)
    if close is not None:
        try:
            close()
        except ValueError as error:
            if str(error) != "generator already executing":
                raise


def _produce(queue: _Queue, items: Iterator[Any]) -> None:
    try:
        for item in items:
            if not queue.put(item):
                break
    except Exception as error:
        queue.put(_Failure(of_pipeline(error)))
    except BaseException as error:
        # Whatever a user's function raises, even `SystemExit`, belongs to the waiting consumer.
        queue.put(_Failure(error))
    finally:
        _closed(items)


def _close(queue: _Queue, scope: Scope) -> None:
    queue.close()
    scope.close()


def _end(items: Iterator[Any], scope: Scope) -> None:
    scope.close()
    _closed(items)


class _Iterator:
    """The base class of both kinds of iterator over `dataset`, which differ in the form of a row.

    `num_epochs`, `output_numpy` and `do_copy` are those of `Dataset.create_tuple_iterator`.
    """

    def __init__(self, dataset: Node, num_epochs: int, output_numpy: bool, do_copy: bool) -> None:
        arguments.instance("create_iterator", "dataset", dataset, Node, "a dataset")
        for argument, value in (("output_numpy", output_numpy), ("do_copy", do_copy)):
            arguments.flag("create_iterator", argument, value)
        self.dataset = dataset
        self.num_epochs = check_count("create_iterator", "num_epochs", num_epochs, 1, (-1,))
        self.output_numpy = output_numpy
        # A step to begin at is one of the first iterator's.
        initial = dataset.get_init_step()
        self._number = 0 if initial else iterator_seeds.number(dataset)
        self._seed = iterator_seeds.seed_of(self._number)
        self._seeded = config.is_seeded()
        self._counts = False
        self._epoch = 0
        self._step = 0
        self._begun = FRESH
        self._rows: Iterator[Any] | None = None
        self._queue: _Queue | None = None
        self._thread: threading.Thread | None = None
        self._finalizer: finalization.Task | None = None
        self._stopped = False
        # Other threads may stop an iterator while it starts.
        self._lock = locks.reentrant()
        self._here = False
        copies = do_copy or config.get_iterator_mode()["do_copy"]
        self._hands_over = not copies and dataset.hands_over()
        self.scope: Scope | None = None
        self._process = os.getpid()
        if len(created) >= _MANY:
            created[:] = [known for known in created if known() is not None]
        created.append(ref(self))
        if dataset._init_state is not None:
            self._begin(dataset._init_state, "set_init_state")
        elif initial:
            size = dataset.get_dataset_size()
            if not size:
                raise ValueError("set_init_step: the dataset has no rows to leave out")
            self._epoch, self._step = divmod(initial, size)

    def begin_after(self, rows: int) -> None:
        """Start this many rows further on, counted over epochs.

        A consumer that resumes has had these rows in an earlier run.
        """
        iterator_seeds.train(self.dataset, self._seed, self._number)
        size = self.dataset.get_dataset_size()
        if rows and self.dataset._init_state is not None:
            raise ValueError(
                f"set_init_state says where the dataset begins, so {rows} rows before that, of initial_epoch, cannot "
                "be left out as well"
            )
        if rows and size:
            epochs, self._step = divmod(self._step + rows, size)
            self._epoch += epochs

    # Producing.

    def produce_here(self) -> None:
        """Run the pipeline in the thread that asks for rows, without reading ahead.

        This is for a consumer that is a background thread itself.
        """
        if self._rows is None and self._queue is None:
            self._here = True

    def _start(self) -> None:
        with self._lock:
            if not self._stopped:
                self._begin_pass()
        if self._stopped:
            # By another thread, or by a collection of garbage within the lines above.
            self._shut()
            raise RuntimeError("the iterator was stopped")

    def _begin_pass(self) -> None:
        self._process = os.getpid()
        if self._epoch or self._step >= 2:
            # It goes on from a position behind more than one row.
            self._counted()
        ahead = not config.get_debug_mode()
        if ahead:
            share_heaps()
        self.scope = scope = Scope(ahead)
        for begun in watching:
            begun.append((self.dataset, scope))
        begin = elastic_resumption.Position(self._epoch, self._begun, self._step)
        items = _epochs(self.dataset, scope, self._seed, self._seeded, begin, self.num_epochs)
        if self._here or not ahead:
            self._rows = items
            self._finalizer = finalization.when_gone(self, _end, items, scope)
            return
        queue = _Queue(config.get_prefetch_size())
        _open_queues.add(queue)
        self._queue = queue
        self._finalizer = finalization.when_gone(self, _close, queue, scope)
        thread = threading.Thread(target=_produce, args=(queue, items), name="mycel-dataset", daemon=True)
        thread.start()
        _threads.add(thread)
        self._thread = thread

    @timed("dataset")
    def _next_item(self) -> Any:
        if self._process != os.getpid():
            # In a forked child, which has neither the threads nor the workers.
            self._rows = self._queue = self._thread = None
        if self._rows is None and self._queue is None:
            self._start()
        queue, rows, scope = self._queue, self._rows, self.scope
        assert scope is not None
        begin = time.perf_counter()
        if queue is not None:
            item = queue.get()
        elif rows is not None:
            try:
                item = next(rows)
            except (ValueError, TypeError) as error:
                raise of_pipeline(error) from error.__cause__
        else:
            raise RuntimeError("the iterator was stopped")
        scope.asked += time.perf_counter() - begin
        if isinstance(item, _Failure):
            self.stop()
            raise item.error
        return item

    def _next_row(self) -> Row:
        if self._stopped:
            raise RuntimeError("the dataset iterator was stopped, by stop() or by an error; create a new one")
        if self.num_epochs != -1 and self._epoch >= self.num_epochs:
            self.stop()
            raise RuntimeError(
                f"the dataset iterator was created for num_epochs={self.num_epochs}, and they are over; "
                "create a new one, or ask for more epochs"
            )
        item = self._next_item()
        if item is _EPOCH_END:
            if self._step < 2:
                self._counted()
            self._epoch, self._step, self._begun = self._epoch + 1, 0, FRESH
            if self._epoch == self.num_epochs:
                self._shut()
            raise StopIteration
        step = self._step = self._step + 1
        if step == 2:
            self._counted()
        row: Row = item
        return row

    def _counted(self) -> None:
        if not self._counts:
            self._counts = True
            iterator_seeds.begin(self.dataset, self._number + 1)

    def _convert(self, row: Row) -> list[Any]:
        if self.output_numpy and "O" not in {array.dtype.char for array in row}:
            return list(row)
        return [self._given(array) for array in row]

    def _given(self, array: Any) -> Any:
        """Return what a consumer receives for an array, or for what is in a dictionary.

        Tensors hold numbers; text and bytes stay NumPy arrays.
        """
        if isinstance(array, dict):
            return {key: self._given(value) for key, value in array.items()}
        if isinstance(array, (list, tuple)):
            return type(array)(self._given(value) for value in array)
        if not isinstance(array, np.ndarray):
            try:
                array = as_array(array)
            except TypeError:
                # In a dictionary there may be anything, as in MindSpore.
                return array
        kind = array.dtype.kind
        if kind == "O":
            # Arrays of objects are only within dictionaries.
            return array if array.ndim else self._given(array.item())
        if self.output_numpy or kind in "US":
            return array
        return tensor_of(array, self._hands_over)

    # For consumers.

    def __iter__(self) -> Any:
        return self

    def get_col_names(self) -> list[str]:
        """Return the names of the columns, in order."""
        return self.dataset.get_col_names()

    def state_dict(self) -> dict[str, Any]:
        """Return the position of this iterator: the seed, the epoch, and the rows read in it.

        With shards it also says what all of them have read, if each has taken as many steps.
        """
        state = {"seed": self._seed, "seeded": int(self._seeded), "epoch": self._epoch, "step": self._step}
        return elastic_resumption.saved(self.dataset, iterator_seeds.with_number(state, self._number), self._begun)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where another iterator over an equal dataset was.

        The next row is the one that would have followed there, as far as the dataset's own
        functions are deterministic. A dataset with another number of shards goes on with the rows
        of the epoch that none of the shards before has read. Raises ValueError for a dictionary
        that `state_dict` did not make, and where that is another number of shards, and the rows
        that have been read are not known: only `map`, `project`, `rename`, batches of fixed sizes,
        `repeat`, `skip` and `take` may be between the source and the iterator, and right above the
        source, with a seed, `shuffle`.

        >>> import mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset(list(range(100)))
        >>> first = data.create_tuple_iterator(output_numpy=True)
        >>> _ = [next(first) for _ in range(10)]
        >>> second = data.create_tuple_iterator(output_numpy=True)
        >>> second.load_state_dict(first.state_dict())
        >>> [next(first) for _ in range(5)] == [next(second) for _ in range(5)]
        True
        """
        found = elastic_resumption.position(
            "load_state_dict", self.dataset, elastic_resumption.checked("load_state_dict", state)
        )
        self._shut()
        self._seed, self._seeded = state["seed"], bool(state["seeded"])
        self._number, self._counts = state.get("before", 0), False
        self._epoch, self._begun, self._step = found
        self._stopped = False

    def _begin(self, state: dict[str, Any], where: str) -> None:
        """Begin at a position; `where` is named in messages."""
        if state["seeded"]:
            self._seed, self._seeded, self._number = state["seed"], True, state.get("before", 0)
        self._epoch, self._begun, self._step = elastic_resumption.position(where, self.dataset, state)

    def _shut(self) -> None:
        with self._lock:
            finalizer, thread, rows = self._finalizer, self._thread, self._rows
            self._rows = self._queue = self._thread = self._finalizer = None
        if finalizer is not None:
            finalizer()
        if thread is not None and thread is not threading.current_thread():
            thread.join(config.get_callback_timeout())
        if self._process == os.getpid():
            _closed(rows)

    def cancel(self) -> None:
        """Wake whoever waits in the pipeline, in whatever thread, to stop the iterator soon."""
        if self.scope is not None:
            self.scope.close()

    def stop(self) -> None:
        """End the background thread; the iterator cannot be used afterwards."""
        self._stopped = True
        self._shut()

    def release(self) -> None:
        """Do the same as `stop`."""
        self.stop()


class TupleIterator(_Iterator):
    """An iterator over `dataset` whose rows are lists.

    Args:
        dataset (Node): The last node of the pipeline.
        columns (str | Sequence[str] | None): As in `Dataset.create_tuple_iterator`. Default: None.
        num_epochs (int): As in `Dataset.create_tuple_iterator`. Default: -1.
        output_numpy (bool): As in `Dataset.create_tuple_iterator`. Default: False.
        do_copy (bool): As in `Dataset.create_tuple_iterator`. Default: False.

    Examples:
        >>> import mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset({"x": [1, 2], "y": [3, 4]}, shuffle=False)
        >>> [[int(y), int(x)] for y, x in ds.TupleIterator(data, ["y", "x"], num_epochs=1)]
        [[3, 1], [4, 2]]
    """

    def __init__(
        self,
        dataset: Node,
        columns: str | Sequence[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> None:
        super().__init__(dataset, num_epochs, output_numpy, do_copy)
        self._places: list[int] | None = None
        wanted: list[str] | None
        if columns is not None:
            wanted = names(columns, "create_tuple_iterator: columns")
        elif any(map(is_hidden, dataset.get_col_names())):
            wanted = [name for name in dataset.get_col_names() if not is_hidden(name)]
        else:
            wanted = None
        if wanted is not None:
            self._places = places_of("create_tuple_iterator", wanted, dataset.get_col_names())
            self._wanted = wanted

    def get_col_names(self) -> list[str]:
        return super().get_col_names() if self._places is None else list(self._wanted)

    def __next__(self) -> list[Any]:
        try:
            row = self._next_row()
            return self._convert(row if self._places is None else tuple(row[p] for p in self._places))
        except Exception as error:
            at_border(error)
            raise


class DictIterator(_Iterator):
    """An iterator over `dataset` whose rows are dictionaries.

    Args:
        dataset (Node): The last node of the pipeline.
        num_epochs (int): As in `Dataset.create_tuple_iterator`. Default: -1.
        output_numpy (bool): As in `Dataset.create_tuple_iterator`. Default: False.
        do_copy (bool): As in `Dataset.create_tuple_iterator`. Default: False.
    """

    def __init__(self, dataset: Node, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False) -> None:
        super().__init__(dataset, num_epochs, output_numpy, do_copy)
        self._names = dataset.get_col_names()

    def __next__(self) -> dict[str, Any]:
        try:
            pairs = zip(self._names, self._convert(self._next_row()))
            return {name: value for name, value in pairs if not is_hidden(name)}
        except Exception as error:
            at_border(error)
            raise
