"""`load`: a network from a file of any format that there is a reader for."""

from __future__ import annotations

import os
from typing import Any

from mycel._src.tensors.cells.cell import Cell
from mycel.formats import tflite
from mycel.formats.exporting import load as load_graph

__all__ = ["load"]


def load(file_name: Any, **kwargs: Any) -> Cell:
    """Return the network in a file as a Cell; `nn.GraphCell` takes this Cell, too.

    A ".mindir" file is MindSpore's, or a graph file of Mycel's own as ".mycel" files are, which
    `export` writes; an ".onnx" file is an
    ONNX model (`mycel.formats.onnx.load`), and a ".tflite" file TensorFlow Lite's, of which
    ``rounding="tflite"`` gives the bits of its kernels. `dec_key` and `dec_mode` are those of
    `load_checkpoint`, for encrypted files of `export`. Raises ValueError
    for a file that is missing, damaged or of another format, and Unsupported, naming the operator,
    for a network that Mycel cannot compute.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "square.mindir"
    >>> ms.export(ms.ops.square, ms.Tensor([1.0]), file_name=path, file_format="MINDIR")
    >>> ms.load(path)(ms.Tensor([3.0])).asnumpy()
    array([9.], dtype=float32)
    """
    path = os.fspath(file_name) if isinstance(file_name, (str, os.PathLike)) else ""
    if not str(path).endswith((".onnx", ".tflite")):
        return load_graph(file_name, **kwargs)
    rounds = str(path).endswith(".tflite")
    for name in kwargs:
        if name not in ("dec_key", "dec_mode") and not (name == "rounding" and rounds):
            raise TypeError(f"load: unknown argument {name!r}")
    if kwargs.get("dec_key") is not None:
        raise ValueError(f"load: {path} is not encrypted; leave dec_key out")
    if rounds:
        return tflite.load(file_name, **{k: v for k, v in kwargs.items() if k == "rounding"})
    # The rules of some two hundred operators.
    from mycel.formats import onnx

    return onnx.load(file_name)
