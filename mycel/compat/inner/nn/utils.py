"""`mindspore.nn.utils`: parameters whose first values are drawn when they are needed."""

from __future__ import annotations

from mycel._src.tensors.core.parameter import no_init_parameters

__all__ = ["no_init_parameters"]
