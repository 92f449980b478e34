"""The names of MindSpore that recover the work of clusters after one of their devices failed."""

from __future__ import annotations

from typing import Any, NoReturn

from mycel._src.foundation.errors import Unsupported
from mycel.compat.unserved import signature_of, unserved_class
from mycel.train.callback.base import Callback

__all__ = ["TrainFaultTolerance"]

_ADVICE = "recovers the work of clusters; save and load checkpoints with mindspore.train.ModelCheckpoint"


def _refuse(*args: Any, **named: Any) -> NoReturn:
    raise Unsupported(f"mindspore.train.TrainFaultTolerance {_ADVICE}")


TrainFaultTolerance = unserved_class(
    "mindspore.train.TrainFaultTolerance",
    _ADVICE,
    signature_of("(ckpt_save_path=None, **kwargs)"),
    Callback,
    {"get_optimizer_wrapper": classmethod(_refuse)},
)


class TftHandle:
    """The handle of MindIO, a service of clusters; each method raises Unsupported."""

    init = enable_mindx = get_tft = unregister_tft = staticmethod(_refuse)


_tft_handler = TftHandle()
