"""A reader of TensorFlow Lite's files.

`schema` parses a file into records, `rules` compute its operators with Mycel's operations, and
`network` makes a Cell of it.
"""

from __future__ import annotations

from mycel.formats.tflite.network import TFLiteGraph as TFLiteGraph
from mycel.formats.tflite.network import load as load

__all__ = ["TFLiteGraph", "load"]
