"""`load`: a network from a file of any format that there is a reader for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from mycel._src.tensors.cells.cell import Cell
from mycel.formats import mindir, tflite
from mycel.formats.encryption import decrypted, is_encrypted
from mycel.formats.exporting import load as load_own
from mycel.formats.graph_files.graph_file import MAGIC, GraphFileError

__all__ = ["load"]


def load(file_name: Any, **kwargs: Any) -> Cell:
    """Return the network in a file as a Cell; `nn.GraphCell` takes this Cell, too.

    A ".mindir" file is Mycel's own, which `export` wrote, or MindSpore's; an ".onnx" file is an
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
    reader = _reader(os.fspath(file_name)) if isinstance(file_name, (str, os.PathLike)) else None
    if reader is not None:
        for name in kwargs:
            if name not in ("dec_key", "dec_mode") and not (name == "rounding" and reader is tflite.load):
                raise TypeError(f"load: unknown argument {name!r}")
        if kwargs.get("dec_key") is not None:
            raise ValueError(f"load: {os.fspath(file_name)} is not encrypted; leave dec_key out")
        return reader(file_name, **{k: v for k, v in kwargs.items() if k == "rounding"})
    try:
        return load_own(file_name, **kwargs)
    except GraphFileError:
        found = _decrypted_theirs(file_name, **kwargs)
        if found is None:
            raise
        return mindir.of_content(found, os.fspath(file_name))


def _reader(path: Any) -> Callable[..., Cell] | None:
    """Return what reads a file that is not Mycel's own."""
    if str(path).endswith(".onnx"):
        # The rules of some two hundred operators.
        from mycel.formats import onnx

        return onnx.load
    if str(path).endswith(".tflite") and os.path.isfile(path):
        return tflite.load
    return mindir.load if _is_theirs(path) else None


def _decrypted_theirs(path: Any, dec_key: Any = None, dec_mode: str = "AES-GCM") -> bytes | None:
    """Return the content of an encrypted MindIR of MindSpore's; None for any other file."""
    if dec_key is None or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        if not is_encrypted(file):
            return None
        try:
            content = decrypted(file, os.fspath(path), dec_key, dec_mode).getvalue()
        except ValueError:
            return None
    return content if content[:1] == b"\n" and not content.startswith(MAGIC) else None


def _is_theirs(path: Any) -> bool:
    """Return whether a file is a MindIR and has not the beginning of Mycel's own."""
    if not str(path).endswith(".mindir") or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(len(MAGIC))
        # What MindSpore writes begins with the version of the format, a text.
        return head[:1] == b"\n" and head != MAGIC and not is_encrypted(file)
