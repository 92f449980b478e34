"""The errors of the compiler, each a subclass of the built-in error that MindSpore raises in its place."""

from __future__ import annotations

__all__ = ["CompileError", "NeedsValue", "ShapeError", "Unsupported", "VerifyError"]


class ShapeError(ValueError):
    """Shapes, or parameters that refer to them, do not fit the operation."""


class Unsupported(NotImplementedError):
    """Something that this engine or front end does not do; the message names what it does."""


class CompileError(RuntimeError):
    """A function could not be compiled; the message shows the user's line."""


class NeedsValue(TypeError):
    """Python asked for the value of a tensor that exists only as a node of a graph being built."""


class VerifyError(AssertionError):
    """A graph breaks an invariant of the representation: a defect of a pass, not of the user's program."""
