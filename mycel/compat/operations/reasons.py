"""Why a name that MindSpore has is not served, and what to use instead."""

from __future__ import annotations

from mycel.compat.operations.private_reasons import PRIVATE

__all__ = ["advice_for"]


def advice_for(name: str) -> str:
    """Return what goes on after the name in an error: what it is tied to, and what to use."""
    return PRIVATE.get(
        name, "is an inner part of MindSpore that Mycel does not have; use the public functions of mindspore.ops"
    )
