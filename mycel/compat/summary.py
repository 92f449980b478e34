"""`mindspore.train.summary.summary_record`: the values of summary operations, for programs that
inspect a network by them.
"""

from __future__ import annotations

import numpy as np

from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.summaries import Collected

__all__: list[str] = []

_KINDS = {"scalar": "Scalar", "tensor": "Tensor", "image": "Image", "histogram": "Histogram"}
# Whoever imports this wants the values of what runs afterwards.
_latest = Collected()


def _get_summary_tensor_data() -> dict[str, Tensor]:
    """Return the latest value of each summary operation that ran since the last call, under its
    name and kind, such as "conv[:Tensor]".
    """
    return {f"{name}[:{_KINDS[plugin]}]": Tensor(np.asarray(value)) for plugin, name, value in _latest.take()}
