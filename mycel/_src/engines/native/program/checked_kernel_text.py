"""The LLVM IR of a kernel as it is compiled: with bounds checks where the process asks for them."""

from __future__ import annotations

from mycel._src.engines.native.kernels.bounds_instrumentation import with_checks
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.runtime.bounds_check_setting import is_on
from mycel._src.foundation.bounded_caches import SOME, Remembered

__all__ = ["text_of"]

_texts = Remembered[bytes, str]("kernels with checks of bounds", SOME)


def text_of(kernel: Kernel) -> str:
    """Return the text that is compiled for a kernel."""
    if not is_on():
        return kernel.text
    found = _texts.get(kernel.digest)
    if found is None:
        pointers, records = (
            [k for k, (kind, _) in enumerate(kernel.words) if kind == name] for name in ("pointer", "site")
        )
        found = _texts.enter(kernel.digest, with_checks(kernel.text, len(kernel.words), pointers, records))
    return found
