"""The reference engine: NumPy, one primitive at a time."""

from mycel.engines.reference.evaluation import apply, evaluate

__all__ = ["apply", "evaluate"]
