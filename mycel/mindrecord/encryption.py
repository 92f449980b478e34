"""Encrypt record files by a key and a pair of functions.

An encrypted file consists of what the function wrote, four zero bytes, the mode's name in seven
letters, and the word ENCRYPT. Decrypted copies are kept in a temporary folder, readable only by
their owner, while a reader is open.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import IO, Any

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.atomic_files import Draft

_END = b"ENCRYPT"
_OWN = b"UDF-ENC"
Function = Callable[[IO[bytes], int, IO[bytes], str], Any]
Mode = str | Function

_settings: dict[str, Any] = {"key": None, "encrypt": "AES-GCM", "decrypt": None}


def set_enc_key(enc_key: str | None) -> None:
    """Set the key that encrypts record files written from now on, and decrypts those read.

    It has 16, 24 or 32 letters; None turns both off. Raises ValueError for other keys.
    """
    if enc_key is not None:
        arguments.text("set_enc_key", "the key", enc_key, error=ValueError)
    if enc_key is not None and len(enc_key) not in (16, 24, 32):
        raise ValueError(f"set_enc_key: the key must have 16, 24 or 32 letters, not {len(enc_key)}")
    _settings["key"] = enc_key


def _check_mode(operation: str, mode: Any) -> Any:
    if not callable(mode) and mode != "AES-GCM":
        raise arguments.wrong_value(operation, "the mode", "a function or 'AES-GCM'", mode)
    return mode


def set_enc_mode(enc_mode: Mode = "AES-GCM") -> None:
    """Set how to encrypt: a function of (open file, its size, open file to write, key).

    "AES-GCM" is accepted, but files cannot be written with it: Mycel has no cipher of its own.
    Raises ValueError for other values.
    """
    _settings["encrypt"] = _check_mode("set_enc_mode", enc_mode)


def set_dec_mode(dec_mode: Mode | None = "AES-GCM") -> None:
    """Set how to decrypt: a function of (open file, its size, open file to write, key).

    None stands for what `set_enc_mode` sets. The size leaves out the word at the file's end; the
    eleven bytes before it are not the function's own either. Raises ValueError for other values.
    """
    _settings["decrypt"] = None if dec_mode is None else _check_mode("set_dec_mode", dec_mode)


def encryption_key() -> str | None:
    """Return the key, or None."""
    key: str | None = _settings["key"]
    return key


def encrypted(draft: Draft) -> Draft:
    """Return a draft with the content of another, encrypted if a key is set.

    The other draft is discarded then.
    """
    key = encryption_key()
    if key is None:
        return draft
    function = encryption_function()
    hidden = Draft(draft.target, "record file", 0o600)
    try:
        with open(draft.path, "rb") as source, open(hidden.path, "wb") as target:
            function(source, os.path.getsize(draft.path), target, key)
            target.write(bytes(4) + _OWN + _END)
    except BaseException:
        hidden.discard()
        raise
    draft.discard()
    return hidden


def encryption_function() -> Function:
    """Return the function that encrypts; raise Unsupported for the built-in cipher."""
    mode = _settings["encrypt"]
    if not callable(mode):
        raise Unsupported(
            f"set_enc_mode: {mode!r} is not built in; give set_enc_mode and set_dec_mode functions that encrypt and "
            "decrypt"
        )
    function: Function = mode
    return function


class Plain:
    """Give record files as plain files: themselves, or decrypted copies that `close` removes."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def path(self, path: str) -> str:
        """Return where the plain content of a file is.

        Raises RuntimeError where the file is encrypted and no key is set, or the other way round.
        """
        with open(path, "rb") as handle:
            size = os.path.getsize(path)
            handle.seek(max(0, size - len(_END) - len(_OWN)))
            tail = handle.read()
        hidden = tail.endswith(_END)
        key = encryption_key()
        if key is None:
            if hidden:
                raise RuntimeError(f"the record file {path!r} is encrypted; call set_enc_key and set_dec_mode")
            return path
        if not hidden:
            raise RuntimeError(f"the record file {path!r} is not encrypted; call set_enc_key(None)")
        mode = _settings["decrypt"]
        if mode is None:
            mode = _settings["encrypt"]
            if callable(mode):
                raise RuntimeError(
                    "files are encrypted by a function of yours; give set_dec_mode the one that decrypts them"
                )
        if not callable(mode) or tail[: len(_OWN)] != _OWN:
            raise Unsupported(
                f"the record file {path!r} is encrypted with {tail[: len(_OWN)].decode(errors='replace')}; only "
                "files encrypted by a function of yours can be read"
            )
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="mycel-records-")
        copy = os.path.join(self._folder.name, os.path.basename(path))
        with open(path, "rb") as source, open(copy, "wb") as target:
            mode(source, size - len(_END), target, key)
        return copy

    def close(self) -> None:
        """Remove the copies."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
