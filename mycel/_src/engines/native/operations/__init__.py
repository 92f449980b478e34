"""Operations: of each its rules (what is claimed), its steps (how it is lowered) and its
kernels.
"""
