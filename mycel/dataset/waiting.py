"""`sync_wait`: rows that wait for what the consumer tells the pipeline.

A pipeline that waits runs in the consumer's own thread, one row at a time: so an update that the
consumer gives is there before the next row is made, and a row that nothing has released is an error
at once instead of a wait without end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mycel.dataset.arguments import check_count
from mycel.dataset.blocks import Block
from mycel.dataset.node import Node
from mycel.dataset.run import Run


class SyncWaitNode(Node):
    """The rows of `input_dataset`, of which no more come than have been released.

    `condition_name`, `num_batch` and `callback` are those of `Dataset.sync_wait`.
    """

    in_step = True

    def __init__(
        self,
        input_dataset: Node,
        condition_name: str,
        num_batch: int = 1,
        callback: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(input_dataset)
        if not isinstance(condition_name, str):
            raise TypeError(f"sync_wait: condition_name must be text, got {condition_name!r}")
        if condition_name in {node.condition_name for node in waits(input_dataset)}:
            raise RuntimeError(f"sync_wait: there is a condition {condition_name!r} already")
        if callback is not None and not callable(callback):
            raise TypeError(f"sync_wait: callback must be a function, got {callback!r}")
        self.condition_name: str = condition_name
        self.num_batch = check_count("sync_wait", "num_batch", num_batch, 1)
        self.callback = callback
        # What was released and is not taken yet; copies of the pipeline share it. None: all rows.
        self._released: list[int | None] = [num_batch]

    def release(self, num_batch: int | None, data: Any) -> None:
        """Release more rows, and hand `data` to the callback."""
        if self.callback is not None:
            self.callback(data)
        if self._released[0] is not None:
            self._released[0] += self.num_batch if num_batch is None else num_batch

    def release_all(self) -> None:
        """Release all rows from now on."""
        self._released[0] = None

    def _count(self) -> int:
        return self.children[0]._count()

    def _blocks(self, run: Run, skip: int) -> Iterator[Block]:
        if not run.epoch and not run.probes and self._released[0] is not None:
            self._released[0] = self.num_batch
        for block in self.children[0]._blocks(run.with_block(1), skip):
            for index in range(block.count):
                left = self._released[0]
                if left is not None and not run.probes:
                    if left < 1:
                        raise RuntimeError(
                            f"sync_wait: no row is released for condition {self.condition_name!r}; call "
                            "sync_update before the next row is needed"
                        )
                    self._released[0] = left - 1
                yield block.slice(index, index + 1)


def waits(node: Node) -> Iterator[SyncWaitNode]:
    """Return the nodes of a pipeline that wait."""
    if isinstance(node, SyncWaitNode):
        yield node
    for child in node.children:
        yield from waits(child)


def update(dataset: Node, condition_name: str, num_batch: int | None, data: Any) -> None:
    """Release rows of a dataset; see `Dataset.sync_update`.

    * `dataset`: the dataset.
    * `condition_name`, `num_batch`, `data`: as there.
    """
    if num_batch is not None:
        check_count("sync_update", "num_batch", num_batch, 1)
    found = [node for node in waits(dataset) if node.condition_name == condition_name]
    if not found:
        known = [node.condition_name for node in waits(dataset)]
        raise RuntimeError(f"sync_update: there is no condition {condition_name!r}; the conditions are {known}")
    for node in found:
        node.release(num_batch, data)
