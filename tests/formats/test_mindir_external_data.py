"""MindIR files of MindSpore's with values in further files, and encrypted ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.files.protobuf_wire import field
from mycel.formats.encryption import Encrypted
from mycel.formats.mindir.external_data import fetch
from mycel.formats.mindir.messages import Function, MindIRError, Model, TensorInfo

SAMPLES = Path(__file__).parent.parent / "data" / "mindir" / "beside"
KEPT = np.load(SAMPLES / "values.npz")
KEY = b"0123456789abcdef"


def unpacked(name: str, to: Path) -> Path:
    to.parent.mkdir(exist_ok=True)
    to.write_bytes(gzip.decompress((SAMPLES / f"{name}.gz").read_bytes()))
    return to


def test_values_are_read_from_the_file_beside(tmp_path: Path) -> None:
    path = unpacked("net_graph.mindir", tmp_path / "net_graph.mindir")
    with pytest.raises(MindIRError, match="net_graph.mindir: tensor '0.weight' lies in another file.* is missing"):
        ms.load(path)
    data = unpacked("data_0", tmp_path / "net_variables" / "data_0")
    found = ms.load(path)(ms.Tensor(KEPT["x0"]))
    np.testing.assert_allclose(found.asnumpy(), KEPT["y0"], atol=1e-6)
    content = data.read_bytes()
    for damaged, what in (
        (b"\0" + content[1:], "mark of little-endian"),
        (content[:5000], "5000 bytes, and its values are"),
        (b"", "mark of little-endian"),
    ):
        data.write_bytes(damaged)
        with pytest.raises(MindIRError, match=what):
            ms.load(path)
    with open(data, "wb") as file:
        writer = Encrypted(file, KEY, "AES-GCM")
        writer.write(content)
        writer.close()
    with pytest.raises(MindIRError, match="is encrypted, which is not supported"):
        ms.load(path)


@pytest.mark.parametrize("place", ["../secret", "/etc/hostname", "a/../../secret", "..\\secret", "link", "a\0b", "."])
def test_no_file_outside_of_the_folder_is_read(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"\1" * 64)
    (folder / "link").symlink_to(tmp_path / "secret")
    info = TensorInfo("w", (1,), 1, elsewhere=place, offset=0, length=4)
    with pytest.raises(MindIRError, match="is not in the folder of the model"):
        fetch(Model(Function(parameters=[info]), {}, {}), str(folder))


def test_offsets_and_lengths_are_not_believed(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\1" * 64)
    for offset, length in ((-1, 4), (0, -4), (61, 4), (1 << 62, 4), (0, 1 << 62)):
        info = TensorInfo("w", (1,), 1, elsewhere="data", offset=offset, length=length)
        with pytest.raises(MindIRError, match="has 64 bytes, and its values are"):
            fetch(Model(Function(parameters=[info]), {}, {}), str(tmp_path))
    info = TensorInfo("w", (2,), 1, elsewhere="data", offset=60, length=4)
    fetch(Model(Function(parameters=[info]), {}, {}), str(tmp_path))
    with pytest.raises(MindIRError, match="has 4 bytes, not those of"):
        info.array()


@pytest.mark.parametrize("mode", ["AES-GCM", "AES-CBC"])
def test_encrypted_files_are_read_with_their_key(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("cryptography")
    path = unpacked(f"{mode}.mindir", tmp_path / "net.mindir")
    found = ms.load(path, dec_key=KEY, dec_mode=mode)(ms.Tensor(KEPT["encrypted_x"]))
    np.testing.assert_allclose(found.asnumpy(), KEPT["encrypted_y"], atol=1e-6)
    with pytest.raises(ValueError, match="it is encrypted; give its key as dec_key"):
        ms.load(path)
    with pytest.raises(ValueError, match="is not the key of this file"):
        ms.load(path, dec_key=KEY[::-1], dec_mode=mode)
    with open(path, "wb") as file:
        writer = Encrypted(file, KEY, mode)
        writer.write(field(1, "1.1") + b"\xff" * 40)
        writer.close()
    with pytest.raises(MindIRError, match="it is no MindIR, or damaged"):
        ms.load(path, dec_key=KEY, dec_mode=mode)
