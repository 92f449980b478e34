"""`mindspore.common.np_dtype`: NumPy's bfloat16."""

from __future__ import annotations

from mycel.compat.inner.common.dtype import np_dtype_valid

__all__: list[str] = []
