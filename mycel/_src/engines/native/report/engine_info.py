"""The facts about the native engine that `mycel info` shows."""

from __future__ import annotations

from typing import Any

from llvmlite import binding

from mycel._src.engines.native.llvm.target import processor
from mycel._src.engines.native.onednn import c_interface as dense_library
from mycel._src.engines.native.threads.pool import default_threads, thread_limit

__all__ = ["facts"]


def facts() -> dict[str, Any]:
    """Return LLVM's version and target, the threads, and the dense library or why there is none."""
    reason = dense_library.why_unavailable()
    if reason is None:
        dense = {"found": True, "version": dense_library.version(), "path": dense_library.library().path}
    else:
        dense = {"found": False, "reason": reason}
    try:
        target = processor()[0]
    except ValueError as error:
        target = f"nothing: {error}"
    return {
        "uses": "LLVM " + ".".join(map(str, binding.llvm_version_info)),
        "target": target,
        "threads": min(default_threads(), thread_limit()),
        "onednn": dense,
    }
