"""How microcontrollers multiply int8: in vectors, in pairs, or one by one."""

from __future__ import annotations

from mycel._src.engines.native.llvm.target import target

__all__ = ["PAIRS", "PLAIN", "VECTORS", "byte_machine", "has_many_registers"]

# Sixteen at once (Helium), two at once (the DSP extension), and one.
VECTORS, PAIRS, PLAIN = "vectors", "pairs", "plain"


def byte_machine() -> str:
    """Return how the processor in force multiplies bytes; nothing for those with other kernels."""
    t = target()
    if has_many_registers():
        return PLAIN
    if t.threads or t.index_bits != 32 or t.copies:
        return ""
    if "mve.fp" in t.feature_set:
        return VECTORS
    return PAIRS if "dsp" in t.feature_set else PLAIN


def has_many_registers() -> bool:
    """Return whether the processor in force has thirty registers of 64 bits, and no vectors."""
    return target().is_family("riscv64") and target().scalar
