"""A derivative that differs from that of what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.tensors.core.autograd.gradient_hooks import attach_bprop

__all__ = ["with_gradient"]


class _WithoutParameters:
    """What a derivative belongs to: it has no parameters of its own."""

    name = "a private primitive"

    def get_parameters(self) -> list[Any]:
        """Return no parameters."""
        return []


_OWNER = _WithoutParameters()


def with_gradient(bprop: Callable[..., Any], inputs: tuple[Any, ...], found: Any) -> Any:
    """Return `found`, computed of `inputs`, with a derivative.

    `bprop` is called as ``bprop(*inputs, found, cotangent)`` and returns the cotangents.
    """
    return attach_bprop(_OWNER, bprop, inputs, found)
