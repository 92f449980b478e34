"""The reference engine: NumPy, one primitive at a time."""

from mycel._src.engines.reference.evaluation import apply, evaluate

__all__ = ["apply", "evaluate"]
