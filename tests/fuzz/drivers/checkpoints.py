"""Checkpoints in MindSpore's format, plain, with a checksum, and encrypted: damaged bytes, and
messages whose fields say something else.
"""

from __future__ import annotations

import functools
import random as random_module
import tempfile
import zlib
from pathlib import Path

import numpy as np

import mycel as ms
from mycel.formats.encryption import Encrypted
from mycel.train.checkpoint_format import read_ckpt, write_ckpt
from tests.fuzz.drivers._damage import clear, damage
from tests.fuzz.drivers._messages import mutated

CORPUS = 150
MEMORY = 1 << 30
KEY = b"0123456789abcdef"
_TRAILER = 17
_ENTRIES = {
    "weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "n": np.array(7, np.int64),
    "text": "words",
    "b": np.array([True, False]),
    "half": np.ones((2, 0), np.float16),
}


@functools.cache
def sound(checksum: bool, mode: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.ckpt")
        write_ckpt(path, _ENTRIES, checksum=checksum, key=KEY if mode else None, mode=mode or "AES-GCM")
        return path.read_bytes()


def case(random: random_module.Random) -> tuple[bytes, bool, str]:
    checksum, mode = random.random() < 0.4, random.choice(("", "", "", "AES-GCM", "AES-CBC"))
    content = sound(checksum, mode)
    if random.random() < 0.5:
        return damage(random, content), checksum, mode
    content = sound(False, "")
    for _ in range(random.randint(1, 3)):
        content = mutated(random, content)
    if checksum:
        content += b"crc_num" + zlib.crc32(content).to_bytes(10, "big")
    if mode:
        content = encrypted(content, mode)
    return content, checksum, mode


def encrypted(content: bytes, mode: str) -> bytes:
    import io

    file = io.BytesIO()
    writer = Encrypted(file, KEY, mode)
    writer.write(content)
    writer.close()
    return file.getvalue()


def run(case: tuple[bytes, bool, str]) -> None:
    content, checksum, mode = case
    Path("a.ckpt").write_bytes(content)
    entries = read_ckpt("a.ckpt", verify=checksum, key=KEY if mode else None, mode=mode or "AES-GCM")
    for name, entry in entries.items():
        assert isinstance(name, str)
        # All of it lies in the file, and can be used.
        if isinstance(entry, np.ndarray):
            assert entry.nbytes <= len(content) and entry.copy().nbytes == entry.nbytes
            if entry.dtype == np.bool_:
                assert set(entry.view(np.uint8).ravel().tolist()) <= {0, 1}
        else:
            assert len(entry) <= len(content)
    found = ms.load_checkpoint("a.ckpt", dec_key=KEY if mode else None, dec_mode=mode or "AES-GCM")
    assert set(found) <= set(entries)


def judge(error: BaseException, case: tuple[bytes, bool, str]) -> str:
    return clear(error, ("a.ckpt", "load_checkpoint"))
