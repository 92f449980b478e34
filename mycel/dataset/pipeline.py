"""The pipeline: `Dataset`, whose methods chain nodes, and the classes that these methods make.

Each class below `Dataset` combines a node, which computes the rows, with `Dataset`, which has the
methods. `Dataset` makes these classes and they inherit from it, so they share one module.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count
from mycel.dataset.iteration import elastic_resumption
from mycel.dataset.iteration.device_queue import Received, TransferNode
from mycel.dataset.iteration.iterators import DictIterator, TupleIterator
from mycel.dataset.iteration.rank_exchange import SendsRows
from mycel.dataset.nodes.batching import BatchNode, BucketBatchNode, PaddedBatchNode
from mycel.dataset.nodes.graph_description import written
from mycel.dataset.nodes.mapping import MapNode
from mycel.dataset.nodes.row_selection import (
    FilterNode,
    ProjectNode,
    RenameNode,
    RepeatNode,
    ShuffleNode,
    SkipNode,
    TakeNode,
)
from mycel.dataset.nodes.saving import check_files, save
from mycel.dataset.nodes.splitting import PartNode, Places, draw_parts
from mycel.dataset.nodes.sync_wait import SyncWaitNode, update, waits
from mycel.dataset.nodes.zip_and_concat import ConcatNode, FlatMapNode, ZipNode, several
from mycel.dataset.text.vocab_from_dataset import MakesVocabularies


class Dataset(MakesVocabularies, SendsRows):
    """A sequence of rows with named columns, and the operations that make new datasets of it.

    Iterating over a dataset gives one epoch, in which each row is a list of tensors. `children` are
    the datasets that this one reads.

    >>> import mycel.dataset as ds
    >>> numbers = ds.NumpySlicesDataset([1, 2, 3, 4], ["x"], shuffle=False)
    >>> doubled = numbers.map(lambda x: 2 * x, "x").batch(2)
    >>> [row["x"].tolist() for row in doubled.create_dict_iterator(num_epochs=1, output_numpy=True)]
    [[2, 4], [6, 8]]
    """

    # Positions.

    def state_at(self, step: int) -> dict[str, Any]:
        """Return the position after `step` rows, counted as by `set_init_step`: for
        `set_init_state`, and for `load_state_dict` of an iterator.

        With shards, all of them have to be there. Raises ValueError for a step that lies before the
        one where this dataset begins.

        >>> import mycel.dataset as ds
        >>> ds.config.set_seed(5)
        >>> def part(shard, shards):
        ...     data = ds.NumpySlicesDataset(list(range(20)), num_shards=shards, shard_id=shard)
        ...     return data.batch(2)
        >>> state = part(0, 4).state_at(2)
        >>> rest = []
        >>> for shard in range(2):
        ...     data = part(shard, 2)
        ...     data.set_init_state(state)
        ...     for rows, in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        ...         rest += rows.tolist()
        >>> len(rest)
        4
        """
        return elastic_resumption.state_at(self, check_count("state_at", "step", step, 0))

    def set_init_state(self, state: dict[str, Any] | str) -> None:
        """Start later iterators where others were that had a dataset equal to this one, or the same
        with another number of shards.

        `state` is what `state_at` or an iterator's `state_dict` returned, or that as JSON, as in
        checkpoints with "dataset_state". The rows of the epoch that none of those shards had read
        are dealt out among these. If a seed was set there, it is used here. Raises ValueError for
        what is no position, and where the rows that were read are not known
        (`Iterator.load_state_dict` says when).
        """
        self._init_state, self._init_step = elastic_resumption.begun(self, state)

    # Operations.

    def map(
        self,
        operations: Callable[..., Any] | Sequence[Callable[..., Any]],
        input_columns: str | Sequence[str] | None = None,
        output_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
        *,
        python_multiprocessing: bool = False,
        cache: Any = None,
        callbacks: Any = None,
        max_rowsize: Any = None,
        offload: bool | None = None,
    ) -> Dataset:
        """Apply functions to some columns of every row.

        Once a seed is set, what an operation draws from `np.random` and `random` is a function of
        the seed, the epoch and the row. It does not advance the generators that the rest of the
        program uses. The exception is a name imported from `random` beforehand, as in ``from random
        import random``: it goes on drawing from the program's generator.

        Args:
            operations (Callable[..., Any] | Sequence[Callable[..., Any]]): One function or
                transform, or a list of them. Each receives the arrays that the one before it
                returned.
            input_columns (str | Sequence[str] | None): The columns that the first operation
                receives; None for the first column. Default: None.
            output_columns (str | Sequence[str] | None): The names of the columns that the last
                operation returns; None for those of `input_columns`. As many outputs as inputs take
                the inputs' places; otherwise the outputs come first. Default: None.
            num_parallel_workers (int | None): The number of workers; None for that of the settings.
                Default: None.
            python_multiprocessing (bool): Whether workers are processes, each with its copy of the
                operations; TypeError where one cannot be sent to a process. Default: False.
            cache (DatasetCache | None): What keeps the rows for later epochs. Default: None.
            callbacks (DSCallback | list[DSCallback] | None): A `DSCallback` or a list of them.
                Default: None.
            max_rowsize (int | list[int] | None): Changes nothing, which is said once. Default:
                None.
            offload (bool | None): Whether the last operations of the `map` become the beginning of
                the compiled step of `Model`, `data_sink` or a `DatasetHelper` that sinks where they
                are Rescale, Normalize, HWC2CHW, TypeCast or ToType below one `batch`, with the same
                values; other iterators and `device_que` have them in the pipeline. By default
                `config.get_auto_offload` says so. Default: None.

        Returns:
            Dataset: The pipeline.

        Raises:
            RuntimeError: From the consumer's `next` when an operation fails; the message names the
                operation, its columns and the row.

        Examples:
            >>> import mycel.dataset as ds
            >>> pairs = ds.NumpySlicesDataset({"a": [1, 2], "b": [10, 20]}, shuffle=False)
            >>> total = pairs.map(lambda a, b: a + b, ["a", "b"], ["sum"])
            >>> [int(s) for s, in total.create_tuple_iterator(num_epochs=1, output_numpy=True)]
            [11, 22]
        """
        columns = (input_columns, output_columns)
        more = (python_multiprocessing, cache, callbacks, max_rowsize, offload)
        return MapDataset(self, operations, *columns, num_parallel_workers, *more)

    def batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        *,
        per_batch_map: Callable[..., Any] | None = None,
        input_columns: str | Sequence[str] | None = None,
        output_columns: str | Sequence[str] | None = None,
        python_multiprocessing: bool = False,
        max_rowsize: Any = None,
    ) -> Dataset:
        """Stack `batch_size` consecutive rows into one, along a new first axis.

        Args:
            batch_size (int | Callable[[Any], int]): The number of rows, or a function that computes
                it from a `BatchInfo`.
            drop_remainder (bool): Whether to leave out the last batch if it has fewer rows.
                Default: False.
            num_parallel_workers (int | None): The number of workers that make batches; one by
                default. Default: None.
            per_batch_map (Callable[..., Any] | None): A function of columns and a `BatchInfo` that
                receives each column as a list of arrays and returns the new columns. Default: None.
            input_columns (str | Sequence[str] | None): The columns that `per_batch_map` receives;
                None for all. Default: None.
            output_columns (str | Sequence[str] | None): The columns that it returns, as in `map`.
                Default: None.
            python_multiprocessing (bool): Whether processes call it, as in `map`. Default: False.
            max_rowsize (int | list[int] | None): Changes nothing, which is said once. Default:
                None.

        Returns:
            Dataset: The pipeline.

        Raises:
            ValueError: While iterating where rows differ in shape or type (`padded_batch` accepts
                rows of different shapes).
            RuntimeError: If `per_batch_map` fails.

        Examples:
            >>> import mycel.dataset as ds
            >>> numbers = ds.NumpySlicesDataset([1, 2, 3], shuffle=False)
            >>> batches = numbers.batch(2)
            >>> [x.tolist() for x, in batches.create_tuple_iterator(num_epochs=1,
            ...     output_numpy=True)]
            [[1, 2], [3]]
        """
        more = (per_batch_map, input_columns, output_columns, python_multiprocessing, max_rowsize)
        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, *more)

    def padded_batch(
        self,
        batch_size: int | Callable[[Any], int],
        drop_remainder: bool = False,
        num_parallel_workers: int | None = None,
        pad_info: dict[str, Any] | None = None,
    ) -> Dataset:
        """Pad rows to one shape and stack them.

        Args:
            batch_size (int | Callable[[Any], int]): The number of rows of a batch.
            drop_remainder (bool): Whether a last group that is not full is left out. Default:
                False.
            num_parallel_workers (int | None): The number of workers; None for that of the settings.
                Default: None.
            pad_info (dict[str, Any] | None): A dictionary from columns to `(shape, value)`. A None
                in `shape`, or in its place, stands for the greatest length in the batch. Longer
                rows are cut. Without it, or where it is empty, every column is padded to its
                longest row. Default: None.

        Returns:
            Dataset: The pipeline.

        Examples:
            >>> import numpy as np
            >>> import mycel.dataset as ds
            >>> ragged = ds.GeneratorDataset([np.ones(1), np.ones(2)], ["x"], shuffle=False)
            >>> padded = ragged.padded_batch(2, pad_info={"x": ([None], -1)})
            >>> next(iter(padded.create_tuple_iterator(output_numpy=True)))[0].tolist()
            [[1.0, -1.0], [1.0, 1.0]]
        """
        return PaddedBatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info)

    def bucket_batch_by_length(
        self,
        column_names: Sequence[str],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        element_length_function: Callable[..., int] | None = None,
        pad_info: dict[str, Any] | None = None,
        pad_to_bucket_boundary: bool = False,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batch rows of similar length together.

        Args:
            column_names (Sequence[str]): The columns that determine the length of a row.
            bucket_boundaries (Sequence[int]): Increasing lengths. Bucket i takes the lengths in
                [boundary i - 1, boundary i), and one more bucket takes the rest.
            bucket_batch_sizes (Sequence[int]): The batch size of each bucket, one more than there
                are boundaries.
            element_length_function (Callable[..., int] | None): Computes the length from the
                columns; by default it is the length of the only column's first axis. Default: None.
            pad_info (dict[str, Any] | None): As in `padded_batch`; without it, every column is
                padded to the longest row. Default: None.
            pad_to_bucket_boundary (bool): Whether a None in a shape of `pad_info` stands for the
                greatest length of the bucket instead. Default: False.
            drop_remainder (bool): Whether to leave out batches that are not full when the rows end.
                Default: False.

        Returns:
            Dataset: The pipeline.

        Examples:
            >>> import numpy as np
            >>> import mycel.dataset as ds
            >>> words = [np.full(n, n) for n in (1, 4, 2, 5)]
            >>> data = ds.GeneratorDataset([(word,) for word in words], ["word"], shuffle=False)
            >>> data = data.bucket_batch_by_length(["word"], [3], [2, 2])
            >>> [x.tolist() for x, in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
            [[[1, 0], [2, 2]], [[4, 4, 4, 4, 0], [5, 5, 5, 5, 5]]]
        """
        return BucketBatchByLengthDataset(
            self,
            column_names,
            bucket_boundaries,
            bucket_batch_sizes,
            element_length_function,
            pad_info,
            pad_to_bucket_boundary,
            drop_remainder,
        )

    def shuffle(self, buffer_size: int) -> Dataset:
        """Emit rows in random order from a buffer of `buffer_size` rows.

        A row that leaves the buffer is replaced by the next one. With a buffer as large as the
        dataset every order is equally likely. Each epoch has its own order.
        """
        return ShuffleDataset(self, buffer_size)

    def repeat(self, count: int | None = None) -> Dataset:
        """Repeat the rows `count` times, or without end if `count` is None or -1.

        Each pass shuffles anew.
        """
        return RepeatDataset(self, count)

    def take(self, count: int = -1) -> Dataset:
        """Keep the first `count` rows; all of them if `count` is -1."""
        return self if count == -1 else TakeDataset(self, count)

    def skip(self, count: int) -> Dataset:
        """Leave out the first `count` rows."""
        return SkipDataset(self, count)

    def filter(
        self,
        predicate: Callable[..., Any],
        input_columns: str | Sequence[str] | None = None,
        num_parallel_workers: int | None = None,
    ) -> Dataset:
        """Keep the rows for which `predicate` returns true.

        * `predicate`: a function of the columns; its answer is true or false as Python has it.
        * `input_columns`: the columns that it receives; all of them by default.
        * `num_parallel_workers`: the number of threads that call the function; one by default.

        >>> import mycel.dataset as ds
        >>> even = ds.NumpySlicesDataset([1, 2, 3, 4], shuffle=False).filter(lambda x: x % 2 == 0)
        >>> [int(x) for x, in even.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [2, 4]
        """
        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def project(self, columns: str | Sequence[str]) -> Dataset:
        """Keep only these columns, in this order."""
        return ProjectDataset(self, columns)

    def rename(self, input_columns: str | Sequence[str], output_columns: str | Sequence[str]) -> Dataset:
        """Give columns new names and leave them in their places."""
        return RenameDataset(self, input_columns, output_columns)

    def zip(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Put the columns of several datasets side by side, until the shortest dataset ends."""
        return ZipDataset((self, *several("zip", datasets)))

    def concat(self, datasets: Dataset | Sequence[Dataset]) -> Dataset:
        """Append the rows of other datasets that have the same columns; `a + b` does the same."""
        return ConcatDataset((self, *several("concat", datasets)))

    def __add__(self, datasets: Dataset) -> Dataset:
        return self.concat(datasets)

    def flat_map(self, func: Callable[..., Dataset]) -> Dataset:
        """Concatenate the datasets that `func` makes of the columns of each row.

        >>> import mycel.dataset as ds
        >>> counts = ds.NumpySlicesDataset([2, 1], shuffle=False)
        >>> each = counts.flat_map(lambda n: ds.NumpySlicesDataset([int(n)] * int(n)))
        >>> [int(n) for n, in each.create_tuple_iterator(num_epochs=1, output_numpy=True)]
        [2, 2, 1]
        """
        return FlatMapDataset(self, func)

    def apply(self, apply_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return the dataset that `apply_func` makes of this one."""
        arguments.function("apply", "apply_func", apply_func, "a function of a dataset")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(
                f"apply: the result of the function must be a dataset, not {result!r} of type {type(result).__name__}"
            )
        return result

    def split(self, sizes: Sequence[int] | Sequence[float], randomize: bool = True) -> tuple[Dataset, ...]:
        """Split into datasets that share no row, of the given sizes or fractions.

        With `randomize` rows are assigned at random, in the same way in every epoch, and each part
        is shuffled in each epoch. Apply random transforms to the parts: what comes before the split
        is the same in every epoch.

        >>> import mycel.dataset as ds
        >>> a, b = ds.NumpySlicesDataset(list(range(10)), shuffle=False).split([0.8, 0.2])
        >>> a.get_dataset_size(), b.get_dataset_size()
        (8, 2)
        """
        return tuple(self._part(part, randomize) for part in draw_parts(self, sizes, randomize))

    def _part(self, part: Places, randomize: bool) -> Dataset:
        """Return the dataset of the rows at these positions, shuffled where `randomize` is True."""
        return PartDataset(self, part, randomize)

    def sync_wait(
        self, condition_name: str, num_batch: int = 1, callback: Callable[[Any], Any] | None = None
    ) -> Dataset:
        """Let rows wait for the consumer's `sync_update`.

        * `condition_name`: the name that `sync_update` releases rows by.
        * `num_batch`: how many rows come before the first update, and with every one. A later
          `batch` of a fixed size makes them batches.
        * `callback`: a function that receives the data of an update, in the thread that gives it.

        The pipeline stops at this place until rows are released, with whatever workers it has.
        Raises RuntimeError where that takes longer than `config.set_callback_timeout` says, and
        where there is the same condition or a `shuffle` afterwards.

        >>> import mycel.dataset as ds
        >>> scale = [1]
        >>> numbers = ds.NumpySlicesDataset([1, 1, 1], ["x"], shuffle=False)
        >>> data = numbers.sync_wait("step", callback=lambda value: scale.append(value))
        >>> data = data.map(lambda x: x * scale[-1], "x")
        >>> for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        ...     print(int(x))
        ...     data.sync_update("step", data=scale[-1] * 10)
        1
        10
        100
        """
        return SyncWaitDataset(self, condition_name, num_batch, callback)

    def sync_update(self, condition_name: str, num_batch: int | None = None, data: Any = None) -> None:
        """Release rows that wait for a condition of `sync_wait`.

        * `condition_name`: the name of the condition; RuntimeError where there is none.
        * `num_batch`: how many rows; by default as many as `sync_wait` says.
        * `data`: what the callback receives.
        """
        update(self, condition_name, num_batch, data)

    def is_sync(self) -> bool:
        """Return whether rows wait for `sync_update`."""
        return self.is_synced

    def disable_sync(self) -> None:
        """Release all rows that wait for `sync_update`, now and later."""
        for node, _ in waits(self):
            node.release_all()

    # Storing, sending.

    def save(self, file_name: str, num_files: int = 1, file_type: str = "mindrecord") -> None:
        """Write the rows of one epoch to MindRecord or TFRecord files.

        * `file_name`: the name of the file.
        * `num_files`: the number of files; of several the names end in their numbers.
        * `file_type`: "mindrecord", which `MindDataset` reads, or "tfrecord". Types and shapes of
          the latter are in a schema, the name and ".schema.json", for `TFRecordDataset`.

        In MindRecord files integers become int32, or int64 where they are unsigned and long or
        longer; half-precision numbers become float32. In TFRecord files rows alternate between
        several files, and bytes become uint8. Raises RuntimeError for columns of other types, and
        where a TFRecord file exists; where one of MindRecord does, mindrecord.MRMOpenError.
        """
        check_files(file_name, num_files, file_type)
        save(self, file_name, num_files, file_type)

    def to_json(self, filename: str = "") -> dict[str, Any]:
        """Return the description of this pipeline as a dictionary, as `serialize` does.

        `filename` is that of a file to write it to as JSON; none is written where it is empty.

        >>> import mycel.dataset as ds
        >>> ds.FakeImageDataset(3, (2, 2, 3), 3).repeat(2).to_json()["op_type"]
        'Repeat'
        """
        return written(self, filename)

    def device_que(
        self, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = ""
    ) -> TransferDataset:
        """Return a queue that the rows of this dataset are sent to.

        * `send_epoch_end`: whether an iterator over the queue stops at the end of each epoch.
        * `create_data_info_queue`: whether `get_data_info` is to be asked.
        * `queue_name`: its name; by default a new one.

        Give it to `Model.train`, `data_sink` or `DatasetHelper` in the dataset's place. A thread
        sends rows from `send` on, or from when they are asked for.

        >>> import mycel.dataset as ds
        >>> queue = ds.NumpySlicesDataset([1, 2, 3], ["x"], shuffle=False).batch(2).device_que()
        >>> queue.send(num_epochs=1)
        >>> [x.tolist() for (x,) in queue.create_tuple_iterator()]
        [[1, 2], [3]]
        >>> queue.release()
        """
        return TransferDataset(self, send_epoch_end, create_data_info_queue, queue_name)

    # Iterating.

    def create_tuple_iterator(
        self,
        columns: str | Sequence[str] | None = None,
        num_epochs: int = -1,
        output_numpy: bool = False,
        do_copy: bool = False,
    ) -> TupleIterator:
        """Return an iterator whose rows are lists.

        Args:
            columns (str | Sequence[str] | None): The columns to give, in this order; all of them by
                default. Default: None.
            num_epochs (int): The number of epochs; -1 sets no limit. A `for` over the iterator is
                one epoch, and the next `for` is the next one. Default: -1.
            output_numpy (bool): Whether to give NumPy arrays instead of tensors. Default: False.
            do_copy (bool): Whether tensors of large batches are copies, too. Otherwise they have
                the batch's memory, where `batch` is the last operation that makes rows, and nobody
                else has. Default: False.

        Returns:
            TupleIterator: The iterator.
        """
        return TupleIterator(self, columns, num_epochs, output_numpy, do_copy)

    def create_dict_iterator(
        self, num_epochs: int = -1, output_numpy: bool = False, do_copy: bool = False
    ) -> DictIterator:
        """Return an iterator whose rows are dictionaries by column name.

        `create_tuple_iterator` explains the parameters.
        """
        return DictIterator(self, num_epochs, output_numpy, do_copy)

    def __iter__(self) -> TupleIterator:
        return self.create_tuple_iterator(num_epochs=1)


class MapDataset(MapNode, Dataset):
    """Rows with operations applied to some columns; `Dataset.map` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        operations (Callable[..., Any] | list[Callable[..., Any]]): One function or transform, or a
            list of them. Default: None.
        input_columns (str | Sequence[str] | None): The columns that a function receives. Default:
            None.
        output_columns (str | Sequence[str] | None): The columns that it returns. Default: None.
        num_parallel_workers (int | None): The number of workers; None for that of the settings.
            Default: None.
        python_multiprocessing (bool): Whether functions of Python run in processes instead of
            threads. Default: False.
        cache (DatasetCache | None): What keeps the rows. Default: None.
        callbacks (Callback | list[Callback] | None): A `DSCallback` or a list of them. Default:
            None.
        max_rowsize (int | list[int] | None): Changes nothing. Default: None.
        offload (bool | None): Whether the operations become the beginning of a compiled step.
            Default: None.
    """


class BatchDataset(BatchNode, Dataset):
    """Rows stacked in groups; `Dataset.batch` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        batch_size (int | Callable[[BatchInfo], int]): The number of rows of a batch.
        drop_remainder (bool): Whether a last group that is not full is left out. Default: False.
        num_parallel_workers (int | None): The number of workers; None for that of the settings.
            Default: None.
        per_batch_map (Callable[..., Any] | None): A function that the columns of a batch go
            through; None for none. Default: None.
        input_columns (str | Sequence[str] | None): The columns that a function receives. Default:
            None.
        output_columns (str | Sequence[str] | None): The columns that it returns. Default: None.
        python_multiprocessing (bool): Whether functions of Python run in processes instead of
            threads. Default: False.
        max_rowsize (int | list[int] | None): Changes nothing. Default: None.
    """


class PaddedBatchDataset(PaddedBatchNode, BatchDataset):
    """Rows padded to one shape and stacked; `Dataset.padded_batch` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        batch_size (int | Callable[[BatchInfo], int]): The number of rows of a batch.
        drop_remainder (bool): Whether a last group that is not full is left out. Default: False.
        num_parallel_workers (int | None): The workers; None for those of settings. Default: None.
        pad_info (dict[str, tuple | None] | None): For columns the shape to pad to, and the value;
            None to pad every column to its longest row. Default: None.
    """


class BucketBatchByLengthDataset(BucketBatchNode, Dataset):
    """Batches of rows of similar length.

    `Dataset.bucket_batch_by_length` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        column_names (Sequence[str]): The columns that determine the length of a row.
        bucket_boundaries (Sequence[int]): The lengths at which the next bucket begins, increasing.
        bucket_batch_sizes (Sequence[int]): The batch size of each bucket, one more than boundaries.
        element_length_function (Callable[..., int] | None): Computes the length from the columns;
            None for the length of the only column's first axis. Default: None.
        pad_info (dict[str, tuple | None] | None): For columns the shape to pad to, and the value;
            None to pad every column to its longest row. Default: None.
        pad_to_bucket_boundary (bool): Whether a None in a shape of `pad_info` stands for the
            greatest length of the bucket. Default: False.
        drop_remainder (bool): Whether batches that are not full are left out. Default: False.
    """


class ShuffleDataset(ShuffleNode, Dataset):
    """Rows in random order from a buffer of `buffer_size`; see `Dataset.shuffle`."""


class RepeatDataset(RepeatNode, Dataset):
    """The rows `count` times over; see `Dataset.repeat`."""


class TakeDataset(TakeNode, Dataset):
    """The first `count` rows; see `Dataset.take`."""


class SkipDataset(SkipNode, Dataset):
    """All but the first `count` rows; see `Dataset.skip`."""


class FilterDataset(FilterNode, Dataset):
    """The rows that satisfy a predicate; `Dataset.filter` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        predicate (Callable[..., Any]): Says whether a row stays.
        input_columns (str | Sequence[str] | None): The columns that a function receives. Default:
            None.
        num_parallel_workers (int | None): The number of workers; None for that of the settings.
            Default: None.
    """


class ProjectDataset(ProjectNode, Dataset):
    """Some of the columns, in a given order; see `Dataset.project`."""


class RenameDataset(RenameNode, Dataset):
    """The same rows under other column names; see `Dataset.rename`."""


class ZipDataset(ZipNode, Dataset):
    """The columns of several datasets side by side, until the shortest ends; see `Dataset.zip`."""


class ConcatDataset(ConcatNode, Dataset):
    """The rows of several datasets, one after the other; see `Dataset.concat`."""


class FlatMapDataset(FlatMapNode, Dataset):
    """The datasets that a function makes of the rows in turn; see `Dataset.flat_map`."""


class PartDataset(PartNode, Dataset):
    """One part of a dataset; see `Dataset.split`."""


class TransferDataset(TransferNode, Dataset):
    """A queue that the rows of a dataset are sent to; see `Dataset.device_que`.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        send_epoch_end (bool): Whether iterators stop at the end of each epoch. Default: True.
        create_data_info_queue (bool): Whether `get_data_info` is to be asked. Default: False.
        queue_name (str): The name of the queue; "" for a new one. Default: "".
    """

    def send(self, num_epochs: int = -1) -> None:  # type: ignore[override]
        """Begin to send the rows of so many epochs; -1 sets no limit."""
        self._sends(check_count("send", "num_epochs", num_epochs, 1, (-1,)))

    def create_tuple_iterator(self, *options: Any, **named: Any) -> Any:
        """Return an iterator over the rows of the queue, as lists of NumPy arrays.

        It takes the parameters of `Dataset.create_tuple_iterator`, of which `num_epochs` counts.
        """
        asked = inspect.signature(Dataset.create_tuple_iterator).bind(self, *options, **named).arguments
        for name in ("columns", "do_copy"):
            if asked.get(name):
                raise ValueError(f"device_que: an iterator over a queue has no {name}; choose in the dataset")
        return Received(self._sends(asked.get("num_epochs", -1)), self.send_epoch_end, self._columns())

    def create_dict_iterator(self, *options: Any, **named: Any) -> Any:
        """Raise RuntimeError: the rows of a queue are lists."""
        raise RuntimeError("device_que: the rows of a queue are lists; use create_tuple_iterator")


class SyncWaitDataset(SyncWaitNode, Dataset):
    """Rows that wait for the consumer; `Dataset.sync_wait` explains the parameters.

    Args:
        input_dataset (Node): The pipeline whose rows are taken.
        condition_name (str): The name that `sync_update` releases rows by.
        num_batch (int): How many rows come before the first update, and with every one. Default: 1.
        callback (Callable | None): A function that receives the data of an update. Default: None.
    """


def zip_datasets(datasets: Sequence[Dataset]) -> Dataset:
    """Put the columns of several datasets side by side; see `Dataset.zip`.

    >>> import mycel.dataset as ds
    >>> x = ds.NumpySlicesDataset([1, 2], ["x"], shuffle=False)
    >>> y = ds.NumpySlicesDataset([3, 4], ["y"], shuffle=False)
    >>> ds.zip((x, y)).get_col_names()
    ['x', 'y']
    """
    return ZipDataset(datasets)
