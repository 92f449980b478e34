"""Files on a web server, also one that drops connections, cuts answers off and fails: right rows,
or an error that names the file.
"""

from __future__ import annotations

import http.server
import os
import random
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mycel.dataset as ds
from mycel._src.foundation.files import fsspec_files
from mycel.mindrecord.errors import MRMOpenError
from tests.dataset.test_remote import KINDS, rows

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install mycel[remote]")
pytest.importorskip("aiohttp", reason="aiohttp, which fsspec needs for http, is not installed")

FAULTS = ("drops", "cuts", "shortens", "fails", "whole", "changes")


class Server(http.server.ThreadingHTTPServer):
    """A server of the files of a folder; `fault` is what it does to every `every`th range."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.fault, self.every, self.ranges = folder, "", 1, 0
        self.over = threading.Event()
        self.place = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that have gone are no trouble here."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *about: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, body: bool) -> None:
        path = self.server.folder / self.path.strip("/")
        if not path.is_file():
            listed = "".join(f'<a href="{name}">{name}</a>' for name in sorted(os.listdir(self.server.folder)))
            found = listed.encode() if self.path == "/" else b""
            self._send(200 if self.path == "/" else 404, found if body else b"", len(found), {})
            return
        content = path.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        self.server.ranges += body and asked is not None
        fault = self.server.fault if body and asked and self.server.ranges % self.server.every == 0 else ""
        if self.server.fault == "silent" or fault == "silent later":
            self.server.over.wait()
        if fault == "fails":
            self._send(500, b"", 0, {})
            return
        if asked is None or fault == "whole":
            self._send(200, content if body else b"", len(content), {"Accept-Ranges": "bytes"})
            return
        start = int(asked[1])
        end = min(len(content), int(asked[2]) + 1 if asked[2] else len(content))
        part = content[start:end]
        about = {"Accept-Ranges": "bytes", "Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}
        if fault == "drops":
            self._end()
            return
        if fault == "shortens":
            part = part[: len(part) // 2]
        if fault == "changes":
            part = bytes(len(part))
        self._send(206, part[: len(part) // 2] if fault == "cuts" else part, len(part), about)
        if fault == "cuts":
            self._end()

    def _end(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _send(self, status: int, content: bytes, size: int, about: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(size), **about}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("MYCEL_CACHE", os.fspath(tmp_path / "cache"))
    folder = tmp_path / "files"
    folder.mkdir()
    with Server(folder) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.over.set()
        made.shutdown()
        thread.join()


def files(kind: str, place: str) -> Any:
    """Return the names at a place, as servers do not list folders in one form."""
    ending = {"text": "txt", "feather": "arrow", "mindrecord": "mindrecord"}.get(kind, kind)
    return f"{place}/rows.mindrecord0" if kind == "mindrecord" else [f"{place}/{n}.{ending}" for n in range(2)]


def opened(kind: str, names: Any, **options: Any) -> Any:
    if kind in ("parquet", "feather"):
        return ds.ArrowDataset(names, **options)
    own = {"txt": lambda content: int(content[:2].decode()) if content[:2].decode().isdigit() else -1}
    return {
        "text": lambda: ds.TextFileDataset(names, **options),
        "csv": lambda: ds.CSVDataset(names, column_defaults=[0, ""], **options),
        "tar": lambda: ds.WebDataset(names, ["txt", "bin"], decode=own, **options),
        "tfrecord": lambda: ds.TFRecordDataset(names, **options),
        "mindrecord": lambda: ds.MindDataset(names, **options),
    }[kind]()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_or_an_error_that_names_the_file(kind: str, server: Server) -> None:
    KINDS[kind](server.folder)
    ds.config.set_seed(3)
    draw = random.Random(kind)
    expected = {
        shuffle: rows(opened(kind, files(kind, os.fspath(server.folder)), shuffle=shuffle))
        for shuffle in (False, ds.Shuffle.PARTIAL)
    }
    for shuffle, found in expected.items():
        assert rows(opened(kind, files(kind, server.place), shuffle=shuffle)) == found and len(found) == 60
    refused = 0
    # MindRecord reads copies, and one of a sound file is made above.
    for trial in range(2 * len(FAULTS)):
        server.fault, server.every, server.ranges = FAULTS[trial % len(FAULTS)], draw.choice((1, 2, 3, 7)), 0
        shuffle = draw.choice((False, ds.Shuffle.PARTIAL))
        try:
            options = {"shuffle": shuffle, "num_parallel_workers": draw.choice((1, 3))}
            found = rows(opened(kind, files(kind, server.place), **options))
        except (ValueError, RuntimeError, OSError, MRMOpenError) as error:
            # What came whole but is something else is an error of the reader.
            clear = server.fault == "changes" and "Dataset: " in str(error)
            assert clear or server.place in f"{error} {error.__cause__}", (server.fault, error)
            refused += 1
        else:
            # Text has no checksums.
            assert found == expected[shuffle] or server.fault == "changes", server.fault
    assert refused or kind == "mindrecord"


@pytest.mark.parametrize("fault", ["silent", "silent later"])
@pytest.mark.parametrize("kind", ["parquet", "tar", "text", "mindrecord"])
def test_a_server_that_says_nothing_is_waited_for_as_long_as_users_say(
    kind: str, fault: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    KINDS[kind](server.folder)
    monkeypatch.setenv("MYCEL_REMOTE_WAIT", "0.5")
    # Seconds for the bytes that are asked for come on top.
    monkeypatch.setattr(fsspec_files, "_BYTES_A_SECOND", 1 << 30)
    server.fault = fault
    with pytest.raises((ValueError, RuntimeError, OSError, MRMOpenError)) as caught:
        rows(opened(kind, files(kind, server.place), shuffle=False))
    text = f"{caught.value} {caught.value.__cause__}"
    assert server.place in text and "did not answer within" in text and "MYCEL_REMOTE_WAIT" in text


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "nan", "1e300"])
def test_the_time_to_wait_is_checked(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_REMOTE_WAIT", wrong)
    with pytest.raises(ValueError, match="MYCEL_REMOTE_WAIT: expected a number of seconds above 0, got"):
        fsspec_files.wait()
