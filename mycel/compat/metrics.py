"""`mindspore.nn.metrics`: metrics under the path and names of older releases."""

from __future__ import annotations

from mycel.train.metrics import TopKCategoricalAccuracy

__all__ = ["TopK"]

TopK = TopKCategoricalAccuracy
