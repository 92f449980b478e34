"""Lowering of branches, loops, gradients of loops and recursive calls to steps that hold steps."""
