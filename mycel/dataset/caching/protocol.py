"""Wire protocol of the cache server: requests and answers as JSON, with bytes behind them.

The server listens at a name of the system that is no file (Linux's abstract sockets), made of the
user's number and the port, so a server that is killed leaves nothing behind. Both sides ask the
system who the other is and go on only with processes of the same user.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from typing import Any

from mycel._src.foundation.errors import Unsupported

DEFAULT_PORT = 50052
VERSION = 1
# Seconds that one answer may take.
PATIENCE = 60.0
_HEAD = struct.Struct("<IQ")
_MOST_WORDS = 16 << 20
# Clients send the rows of a block at a time.
_MOST_BYTES = 1 << 36
_PIECE = 1 << 20
_CREDENTIALS = struct.Struct("3i")

Message = dict[str, Any]


class Ended(Exception):
    """The other side has closed the connection."""


def address(port: int) -> str:
    """Return where the user's server of this port listens; raise Unsupported outside of Linux."""
    if not sys.platform.startswith("linux"):
        raise Unsupported(f"DatasetCache: the cache server runs on Linux, not on {sys.platform}")
    return f"\0mycel-dataset-cache-{os.getuid()}-{port}"


def owner(connection: socket.socket) -> int:
    """Return the number of the user of the process on the other side."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(found)[1])


def send(
    connection: socket.socket, message: Message, content: bytes = b"", descriptors: list[int] | None = None
) -> None:
    """Send a message, bytes that belong to it, and open files.

    * `connection`: where to.
    * `message`, `content`: the message and the bytes.
    * `descriptors`: the files.
    """
    words = json.dumps(message).encode()
    head = _HEAD.pack(len(words), len(content))
    if descriptors:
        socket.send_fds(connection, [head], descriptors)
        connection.sendall(words + content)
    else:
        connection.sendall(head + words)
        if content:
            connection.sendall(content)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    """Return so many bytes. Memory is taken as they come, not for what a header promises."""
    found, at = bytearray(min(size, _PIECE)), 0
    while at < size:
        if at == len(found):
            found += bytes(min(size - at, at))
        with memoryview(found) as view, view[at:] as rest:
            count = connection.recv_into(rest)
        if not count:
            raise Ended
        at += count
    return found


def receive(connection: socket.socket) -> tuple[Message, bytearray, list[int]]:
    """Return the next message, its bytes, and the files that came with it.

    Raises Ended at the end, and ValueError for what is no message.
    """
    head, descriptors, _, _ = socket.recv_fds(connection, _HEAD.size, 4)
    try:
        if not head:
            raise Ended
        if len(head) < _HEAD.size:
            head += bytes(_exactly(connection, _HEAD.size - len(head)))
        words, size = _HEAD.unpack(head)
        if words > _MOST_WORDS or size > _MOST_BYTES:
            raise ValueError(f"a message of {words} and {size} bytes")
        try:
            message = json.loads(bytes(_exactly(connection, words)))
        except RecursionError:
            raise ValueError("a message that nests without end") from None
        if not isinstance(message, dict):
            raise ValueError("a message that is no object")
        return message, _exactly(connection, size), list(descriptors)
    except BaseException:
        for descriptor in descriptors:
            os.close(descriptor)
        raise
