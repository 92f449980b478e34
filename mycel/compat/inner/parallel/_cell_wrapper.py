"""`mindspore.parallel._cell_wrapper`: Cells that gather what ranks have in parts."""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.tensors.cells.cell import Cell

__all__: list[str] = []


class AllGatherCell(Cell):
    """A Cell that joins the ranks' tensors along the first axis.

    `group` is a group of ranks. With `do_reshape` each tensor has the shape
    `after_reshape_slice_shape` before.
    """

    def __init__(self, group: str, do_reshape: bool, after_reshape_slice_shape: tuple[int, ...]) -> None:
        super().__init__(auto_prefix=False)
        made: Any = ops
        self.allgather = made.AllGather(group)
        self.do_reshape, self.after_reshape_slice_shape = do_reshape, tuple(after_reshape_slice_shape)

    def construct(self, x: Any) -> Any:
        """Return the tensors of all ranks, one behind the other."""
        return self.allgather(ops.reshape(x, self.after_reshape_slice_shape) if self.do_reshape else x)


class SaveOptShardCkptCell(AllGatherCell):
    """A Cell that joins what an optimizer's ranks have, as `AllGatherCell` does."""


_known: dict[Any, Cell] = {}


def get_allgather_cell(
    group: str, need_merge_twice: bool = False, do_reshape: bool = False, after_reshape_slice_shape: Any = ()
) -> Cell:
    """Return the Cell that joins the tensors of a group's ranks.

    Args:
        group: The group of ranks.
        need_merge_twice: Whether what the optimizer cuts is joined, which is the same here.
        do_reshape: Whether tensors take another shape before.
        after_reshape_slice_shape: That shape.
    """
    key = (group, need_merge_twice, do_reshape, tuple(after_reshape_slice_shape))
    if key not in _known:
        kind = SaveOptShardCkptCell if need_merge_twice else AllGatherCell
        _known[key] = kind(group, do_reshape, key[3])
    return _known[key]


def destroy_allgather_cell() -> None:
    """Forget the Cells that `get_allgather_cell` made."""
    _known.clear()
