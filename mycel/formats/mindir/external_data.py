"""External data: tensors that MindSpore stores in files beside a MindIR file, from a gigabyte on.

A tensor then has a place in a file of the folder ``NAME_variables``: an offset and a length. Such a
file begins with a byte that is 1 where its numbers are little-endian.
"""

from __future__ import annotations

import os

from mycel.formats.encryption import is_encrypted
from mycel.formats.mindir.messages import MindIRError, Model, TensorInfo

__all__ = ["fetch"]


def fetch(model: Model, folder: str) -> None:
    """Give the parameters of a model their values from files in a folder.

    Raises MindIRError for a file that is missing, too short, encrypted, or not in the folder.
    """
    for info in model.main.parameters:
        if info.elsewhere:
            info.content = _content(info, folder)
            info.elsewhere = ""


def _content(info: TensorInfo, folder: str) -> bytes:
    title = f"tensor {info.parameter or info.name!r} lies in another file, {info.elsewhere!r}, which"
    parts = info.elsewhere.replace("\\", "/").split("/")
    root = os.path.realpath(folder)
    inside = "\0" not in info.elsewhere and not os.path.isabs(info.elsewhere) and ".." not in parts
    path = os.path.realpath(os.path.join(root, *parts)) if inside else root
    if not path.startswith(root + os.sep):
        raise MindIRError(f"{title} is not in the folder of the model")
    if not os.path.isfile(path):
        raise MindIRError(f"{title} is missing")
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if is_encrypted(file):
            raise MindIRError(f"{title} is encrypted, which is not supported; export it again without a key")
        file.seek(0)
        if file.read(1) != b"\x01":
            raise MindIRError(f"{title} does not begin with the mark of little-endian numbers")
        if info.offset < 0 or info.length < 0 or info.offset + info.length > size:
            raise MindIRError(f"{title} has {size} bytes, and its values are {info.length} from {info.offset} on")
        file.seek(info.offset)
        return file.read(info.length)
