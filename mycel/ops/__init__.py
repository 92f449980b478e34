"""Operations on tensors, composed of primitives."""
