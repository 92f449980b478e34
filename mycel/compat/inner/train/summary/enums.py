"""`mindspore.train.summary.enums`: kinds of values in summaries."""

from __future__ import annotations

import enum

__all__ = ["BaseEnum", "ModeEnum", "PluginEnum", "WriterPluginEnum"]


class BaseEnum(enum.Enum):
    """An enumeration that knows its values."""

    @classmethod
    def to_list(cls) -> list[str]:
        """Return the values."""
        return [member.value for member in cls]


class PluginEnum(BaseEnum):
    """What is recorded."""

    GRAPH = "graph"
    SCALAR = "scalar"
    IMAGE = "image"
    TENSOR = "tensor"
    HISTOGRAM = "histogram"
    TRAIN_LINEAGE = "train_lineage"
    EVAL_LINEAGE = "eval_lineage"
    CUSTOM_LINEAGE_DATA = "custom_lineage_data"
    DATASET_GRAPH = "dataset_graph"
    EXPLAINER = "explainer"
    LANDSCAPE = "landscape"


class WriterPluginEnum(BaseEnum):
    """What writes it."""

    EXPORTER = "exporter"
    EXPLAINER = "explainer"
    LINEAGE = "lineage"
    SUMMARY = "summary"


class ModeEnum(BaseEnum):
    """When it is recorded."""

    TRAIN = "train"
    EVAL = "eval"
