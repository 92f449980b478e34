"""`mindspore.dataset.engine.iterators`: the iterators that there are, and their end."""

from __future__ import annotations

from mycel.dataset.iteration.iterators import created as ITERATORS_LIST

__all__: list[str] = ["ITERATORS_LIST"]

_state = {"cleaned": False}


def _set_iterator_cleanup() -> None:
    """Note that the iterators are stopped, which `check_iterator_cleanup` tells."""
    _state["cleaned"] = True


def _unset_iterator_cleanup() -> None:
    """Note that iterators may be made again."""
    _state["cleaned"] = False


def check_iterator_cleanup() -> bool:
    """Return whether `_cleanup` was called and `_unset_iterator_cleanup` was not since."""
    return _state["cleaned"]


def _cleanup() -> None:
    """Stop all iterators that are still there, the last one first; they give no more rows."""
    _set_iterator_cleanup()
    for reference in reversed(list(ITERATORS_LIST)):
        iterator = reference()
        if iterator is not None:
            iterator.stop()
    ITERATORS_LIST.clear()
