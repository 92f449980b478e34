"""`mindspore.common.sparse_tensor`: rows of a larger tensor."""

from __future__ import annotations

from mycel.ops.sparse.tensors import COOTensor as COOTensor_
from mycel.ops.sparse.tensors import CSRTensor as CSRTensor_
from mycel.ops.sparse.tensors import RowTensor as RowTensorInner
from mycel.ops.sparse.tensors import RowTensor as RowTensor_

__all__: list[str] = []
