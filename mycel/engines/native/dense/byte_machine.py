"""How small processors multiply bytes: in vectors, in pairs, or one by one."""

from __future__ import annotations

from mycel.engines.native.llvm.target import target

__all__ = ["PAIRS", "PLAIN", "VECTORS", "byte_machine"]

# Sixteen at once (Helium), two at once (the DSP extension), and one.
VECTORS, PAIRS, PLAIN = "vectors", "pairs", "plain"


def byte_machine() -> str:
    """Return how the processor in force multiplies bytes; nothing for those with other kernels."""
    t = target()
    if t.threads or t.index_bits != 32 or t.copies:
        return ""
    if "mve.fp" in t.feature_set:
        return VECTORS
    return PAIRS if "dsp" in t.feature_set else PLAIN
