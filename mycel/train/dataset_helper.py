"""DatasetHelper: a dataset's batches for training loops written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel.dataset import offloading
from mycel.dataset.pipeline import Dataset, TransferDataset
from mycel.train._batches import LONGEST, Epochs, check_dataset

__all__ = ["DatasetHelper", "connect_network_with_dataset"]


class DatasetHelper:
    """An iterable over a dataset, one epoch for each ``for``; without sinking its elements are the
    batches.

    Args:
        dataset (Dataset): The dataset.
        dataset_sink_mode (bool): Whether the loop gives empty tuples, and the network made by
            `connect_network_with_dataset` takes a batch at each call. Default: True.
        sink_size (int): The number of empty tuples; -1 for the dataset's size. Default: -1.
        epoch_num (int): The number of epochs, -1 for any. Default: 1.

    Raises:
        TypeError, ValueError: For other arguments.

    Examples:
        >>> import numpy as np, mycel.dataset as ds
        >>> data = ds.NumpySlicesDataset((np.arange(4),), ["x"], shuffle=False).batch(2)
        >>> [batch[0].asnumpy().tolist() for batch in DatasetHelper(data, dataset_sink_mode=False)]
        [[0, 1], [2, 3]]
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        check_dataset(dataset, "DatasetHelper", "dataset")
        arguments.flag("DatasetHelper", "dataset_sink_mode", dataset_sink_mode)
        for name, value in (("sink_size", sink_size), ("epoch_num", epoch_num)):
            if not isinstance(value, int) or isinstance(value, bool) or value == 0 or value < -1:
                raise ValueError(f"DatasetHelper: {name} must be -1 or a positive integer, not {value!r}")
        self._dataset, self._sinks, self._size = dataset, dataset_sink_mode, sink_size
        self._epoch_num = epoch_num
        self._queue: Any = None
        if dataset_sink_mode and isinstance(dataset, Dataset):
            self._queue = dataset if isinstance(dataset, TransferDataset) else dataset.device_que()
        self._split: offloading.Split | None = None
        self._epochs: Epochs | None = None
        self._ready: Iterator[tuple[Any, ...]] | None = None

    @property
    def dataset(self) -> Any:
        """The dataset."""
        return self._dataset

    def sink_size(self) -> int:
        """Return the number of steps of the loop in one epoch."""
        return self._size if self._sinks and self._size > 0 else int(self._dataset.get_dataset_size())

    def types_shapes(self) -> tuple[Any, Any]:
        """Return the element types and the shapes of the columns."""
        return self._dataset.output_types(), self._dataset.output_shapes()

    def get_data_info(self) -> tuple[Any, Any]:
        """Return the element types and the shapes of the columns."""
        return self.types_shapes()

    def get_send_info(self) -> Any:
        """Return how many batches were sent, and how long that took: see `Dataset.device_que`.

        Raises RuntimeError unless the helper sinks.
        """
        return self._queue_of("get_send_info").get_send_info()

    def get_mbuf_queue_size(self) -> int:
        """Return how many batches wait in the queue; RuntimeError unless the helper sinks."""
        return int(self._queue_of("get_mbuf_queue_size").get_mbuf_queue_size())

    def _queue_of(self, name: str) -> Any:
        if self._queue is None:
            raise RuntimeError(
                f"DatasetHelper.{name}: there is no queue of batches; use dataset_sink_mode=True and a dataset of mycel"
            )
        return self._queue

    def _offloaded(self, network: Cell) -> Callable[..., Any]:
        """Return what is called on batches: `network`, after the operations that leave the
        dataset. Batches that are being sent already have all of them.
        """
        if self._split is None and self._epochs is None and not isinstance(self._dataset, TransferDataset):
            self._split = offloading.split(self._dataset)
            if self._split is not None:
                self._queue = self._split.dataset.device_que()
        return network if self._split is None else self._split.before(network)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self._epochs is None:
            count = None if self._epoch_num == -1 else self._epoch_num
            size = self.sink_size() if self._sinks else -1
            source = self._dataset if self._queue is None else self._queue
            self._epochs = Epochs(source, size, count, most=min(size, LONGEST) if size > 0 else 0)
        for _ in self._ready or ():
            pass
        self._ready = iter(self._epochs.epoch())
        return iter([()] * self.sink_size()) if self._sinks else self._ready

    def next_batch(self) -> tuple[Any, ...]:
        """Return the next batch of the current epoch.

        Raises RuntimeError if no loop over the helper has begun, or its batches are used up.
        """
        batch = next(self._ready, None) if self._ready is not None else None
        if batch is None:
            raise RuntimeError(
                "DatasetHelper: there is no batch; call the connected network once in each round of a loop over the "
                "helper"
            )
        return batch

    def stop_send(self) -> None:
        """Let the thread that sends batches pause; without sinking, end the one that reads them."""
        if self._queue is not None:
            self._queue.stop_send()
        else:
            self.release()

    def continue_send(self) -> None:
        """Let sending go on after `stop_send`; without sinking the next loop reads again."""
        if self._queue is not None:
            self._queue.continue_send()

    def release(self) -> None:
        """End the threads that read the dataset."""
        if self._queue is not None:
            self._queue.release()
        if self._epochs is not None:
            self._epochs.close()
            self._epochs = self._ready = None


class _Connected(Cell):
    """A network that takes its inputs from a DatasetHelper."""

    def __init__(self, network: Cell, helper: DatasetHelper) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self._helper = helper
        front = helper._offloaded(network)
        # In a function, as the network is a Cell of this one once.
        self._called: Callable[..., Any] = lambda *batch: front(*batch)

    def __call__(self) -> Any:
        return self._called(*self._helper.next_batch())


def connect_network_with_dataset(network: Cell, dataset_helper: DatasetHelper) -> Cell:
    """Return a network without inputs, which runs `network` on the next batch of a helper that
    sinks. Operations of the dataset with `offload=True` come before it, unless batches are being
    sent already. Raises TypeError for other arguments.

    >>> import numpy as np, mycel as ms, mycel.dataset as ds
    >>> data = ds.NumpySlicesDataset((np.ones((4, 2), np.float32),), ["x"]).batch(2)
    >>> helper = DatasetHelper(data)
    >>> net = connect_network_with_dataset(ms.nn.ReLU(), helper)
    >>> [net().shape for _ in helper]
    [(2, 2), (2, 2)]
    """
    arguments.instance("connect_network_with_dataset", "network", network, Cell)
    if not isinstance(dataset_helper, DatasetHelper) or not dataset_helper._sinks:
        raise TypeError(
            "connect_network_with_dataset: dataset_helper must be a DatasetHelper with dataset_sink_mode=True"
        )
    return _Connected(network, dataset_helper)
