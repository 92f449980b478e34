"""Encrypted files in MindSpore's form: blocks, each encrypted with a random initial vector.

All integers are little-endian and take 4 bytes; at most 64 MiB of plain content make a block::

    AES-GCM    magic 0x7F3A5ED8, tag (16 bytes), then as below
    AES-CBC    magic 0x7F3A5ED9, then as below
    SM4-CBC    magic 0x7F3A5EDA, then as below
               length, 16, vector (16 bytes), length of the content, content

`length` counts the bytes behind it up to the end of the block. GCM (NIST SP 800-38D) takes the
first 12 bytes of the vector and keeps the content's length, and its tag tells a wrong key or a
changed byte. CBC pads to 16 bytes (PKCS #7) and has no tag, so that a wrong key shows in the
padding or, where that fits by chance, in the decrypted content. No mode links blocks: only the
content shows that a file was cut between two of them.

The ciphers are those of the package `cryptography`, which nothing else needs.
"""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from mycel._src.foundation import arguments

__all__ = ["BLOCK", "Encrypted", "check_key", "decrypted", "is_encrypted"]

BLOCK = 64 << 20
_MAGIC = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9, "SM4-CBC": 0x7F3A5EDA}
_MODE = {magic: mode for mode, magic in _MAGIC.items()}
_VECTOR = 16
_NONCE = 12
_TAG = 16


def check_key(key: Any, mode: Any, function: str, prefix: str) -> None:
    """Check the arguments `<prefix>_key` and `<prefix>_mode` of a function.

    Raises ValueError for a key that is not bytes, an unknown mode, or a length of key that it does
    not take, ImportError without `cryptography`.
    """
    if not isinstance(key, bytes):
        raise arguments.wrong_type(function, f"{prefix}_key", "bytes", key, ValueError)
    if mode not in _MAGIC:
        raise arguments.wrong_value(function, f"{prefix}_mode", f"one of {', '.join(map(repr, _MAGIC))}", mode)
    lengths = (16,) if mode == "SM4-CBC" else (16, 24, 32)
    if len(key) not in lengths:
        known = " or ".join(map(str, lengths))
        raise ValueError(f"{function}: {prefix}_key must have {known} bytes for {mode}, not {len(key)}")
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{function}: {prefix}_key needs the package cryptography: pip install 'mycel[encrypt]'"
        ) from error


class Encrypted:
    """A writer of a file in encrypted blocks; `close` writes the last block and leaves the file
    open.
    """

    def __init__(self, file: BinaryIO, key: bytes, mode: str) -> None:
        self.file, self.key, self.mode = file, key, mode
        self.waiting = bytearray()

    def write(self, content: bytes | memoryview) -> None:
        view = memoryview(content)
        while len(view):
            count = min(len(view), BLOCK - len(self.waiting))
            self.waiting += view[:count]
            view = view[count:]
            if len(self.waiting) == BLOCK:
                self._block()

    def close(self) -> None:
        if self.waiting:
            self._block()

    def _block(self) -> None:
        vector = os.urandom(_VECTOR)
        encryptor = _cipher(self.key, self.mode, vector).encryptor()
        tag = b""
        if self.mode == "AES-GCM":
            content = encryptor.update(bytes(self.waiting)) + encryptor.finalize()
            tag = encryptor.tag
        else:
            missing = _VECTOR - len(self.waiting) % _VECTOR
            content = encryptor.update(bytes(self.waiting) + bytes([missing]) * missing) + encryptor.finalize()
        length = 4 + _VECTOR + 4 + len(content)
        self.file.write(_number(_MAGIC[self.mode]) + tag + _number(length) + _number(_VECTOR) + vector)
        self.file.write(_number(len(content)))
        self.file.write(content)
        self.waiting.clear()


def is_encrypted(file: BinaryIO) -> bool:
    """Return whether an open file begins as an encrypted one, and go back to its start."""
    file.seek(0)
    magic = file.read(4)
    file.seek(0)
    return int.from_bytes(magic, "little") in _MODE


def decrypted(file: BinaryIO, path: str, key: bytes, mode: str) -> io.BytesIO:
    """Return the decrypted content of an open file, from its start on, as a file in memory. Errors
    name the file as `path`; `key` and `mode` are those it was encrypted with.

    Raises ValueError for a file that is not encrypted, is encrypted in another mode, is damaged, or
    has another key.

    >>> file = io.BytesIO()
    >>> writer = Encrypted(file, b"0123456789abcdef", "AES-GCM")
    >>> writer.write(b"secret")
    >>> writer.close()
    >>> decrypted(file, "it", b"0123456789abcdef", "AES-GCM").getvalue()
    b'secret'
    """
    from cryptography.exceptions import InvalidTag

    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    plain = io.BytesIO()
    while file.tell() < size:
        start = file.tell()

        def take(count: int, start: int = start) -> bytes:
            if count > size - file.tell():
                raise ValueError(f"{path}: damaged: the encrypted block at byte {start} of {size} is not whole")
            return file.read(count)

        found = _MODE.get(int.from_bytes(take(4), "little"))
        if found is None:
            what = "damaged: no encrypted block begins" if start else "not encrypted: no block begins"
            raise ValueError(f"{path}: {what} at byte {start} of {size}")
        if found != mode:
            raise ValueError(f"{path}: it is encrypted in the mode {found}, not {mode}; give that as dec_mode")
        tag = take(_TAG) if mode == "AES-GCM" else b""
        length, vector_length = _count(take(4)), _count(take(4))
        if vector_length != _VECTOR or length < 8 + _VECTOR:
            raise ValueError(f"{path}: damaged: the encrypted block at byte {start} of {size} has impossible lengths")
        vector = take(_VECTOR)
        count = _count(take(4))
        if count != length - 8 - _VECTOR or (mode != "AES-GCM" and (count % _VECTOR or not count)):
            raise ValueError(f"{path}: damaged: the encrypted block at byte {start} of {size} has impossible lengths")
        decryptor = _cipher(key, mode, vector, tag).decryptor()
        try:
            content = decryptor.update(take(count)) + decryptor.finalize()
        except InvalidTag:
            raise ValueError(f"{path}: dec_key is not the key of this file, or the file was changed") from None
        plain.write(content if mode == "AES-GCM" else _unpadded(content, path))
    return plain


def _cipher(key: bytes, mode: str, vector: bytes, tag: bytes = b"") -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if mode == "AES-GCM":
        return Cipher(algorithms.AES(key), modes.GCM(vector[:_NONCE], tag or None))
    return Cipher(algorithms.AES(key) if mode == "AES-CBC" else algorithms.SM4(key), modes.CBC(vector))


def _unpadded(content: bytes, path: str) -> bytes:
    count = content[-1]
    if not 1 <= count <= _VECTOR or content[-count:] != bytes([count]) * count:
        raise ValueError(f"{path}: dec_key is not the key of this file, or the file was changed")
    return content[:-count]


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _count(content: bytes) -> int:
    return int.from_bytes(content, "little")
