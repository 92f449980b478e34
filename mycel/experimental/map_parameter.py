"""Parameters with a key for each row, which MindSpore keeps in hash tables of other devices."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation.errors import Unsupported

__all__ = ["MapParameter"]


class MapParameter:
    """A parameter whose rows are found by keys; MindSpore has operations on it for other devices
    only.

    Making one raises Unsupported.
    """

    def __init__(self, name: Any = None, requires_grad: bool = True, **kwargs: Any) -> None:
        raise Unsupported(
            "MapParameter: tables of keys have no operations on a CPU, here as in MindSpore; number the keys (with a "
            "dict or ops.unique) and use nn.Embedding"
        )
