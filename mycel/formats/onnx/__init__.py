"""ONNX models: `load` makes a Cell of a file, which `mycel.export` writes.

`messages` reads the file, `tensors` its arrays, `program` makes steps of its nodes by the rules of
`rules` (`operation` has what they share, `versions` what older files differ in), and `network` is
the Cell that runs them.
"""

from __future__ import annotations

from mycel.formats.onnx.messages import OnnxError as OnnxError
from mycel.formats.onnx.network import OnnxNetwork as OnnxNetwork
from mycel.formats.onnx.network import load as load
from mycel.formats.onnx.network import loads as loads

__all__ = ["OnnxError", "OnnxNetwork", "load", "loads"]
