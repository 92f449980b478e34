"""Operations of the native engine: their rules (what is claimed), steps (lowering) and kernels."""
