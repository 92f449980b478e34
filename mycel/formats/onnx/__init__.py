"""ONNX models: `load` makes a Cell of a file, which `mycel.export` writes.

`messages` reads the file, `tensors` its arrays, `program` makes steps of its nodes by the rules of
`rules` (`operation` has what they share, `opset_versions` what older files differ in), and
`network` is the Cell that runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycel._src.foundation.public_names import lazy as _lazy

__all__ = ["OnnxError", "OnnxNetwork", "load", "loads"]

# Where each name is, loaded when it is named: files of one format need no readers of others.
_HOMES = {
    "OnnxError": "mycel.formats.onnx.messages",
    "OnnxNetwork": "mycel.formats.onnx.network",
    "load": "mycel.formats.onnx.network",
    "loads": "mycel.formats.onnx.network",
}

# Type checkers see what is found when it is first named.
if TYPE_CHECKING:
    from mycel.formats.onnx.messages import OnnxError as OnnxError
    from mycel.formats.onnx.network import OnnxNetwork as OnnxNetwork
    from mycel.formats.onnx.network import load as load
    from mycel.formats.onnx.network import loads as loads
else:
    __getattr__ = _lazy(__name__, _HOMES)
