"""`DatasetCache`: rows that a server keeps, for later epochs and for other pipelines.

A pipeline asks for rows by their numbers in its source, a piece at a time, and computes those that
are missing. Pipelines that compute the same share what is kept: a key made of the datasets, their
arguments and their functions tells them apart (`nodes/cached_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.system import locks
from mycel.dataset.arguments import check_count
from mycel.dataset.caching.client import Client
from mycel.dataset.caching.protocol import DEFAULT_PORT
from mycel.dataset.caching.row_encoding import decoded, encoded
from mycel.dataset.rows.column_blocks import Block, join

__all__ = ["CacheStatistics", "DatasetCache", "check_cache"]

_CONNECTIONS = 12
_PREFETCH = 20
_LOCAL = (None, "localhost", "127.0.0.1")


class CacheStatistics:
    """What a session holds.

    * `avg_cache_sz`: the mean size of a row in bytes.
    * `num_mem_cached`, `num_disk_cached`: how many rows are in memory and on disk.
    """

    def __init__(self, avg_cache_sz: int, num_mem_cached: int, num_disk_cached: int) -> None:
        self.avg_cache_sz, self.num_mem_cached, self.num_disk_cached = avg_cache_sz, num_mem_cached, num_disk_cached


class DatasetCache:
    """A session of a cache server, which keeps rows of `map` and of sources for later epochs.

    Rows before the node with the cache are neither read nor computed again once they are kept, by
    any pipeline of this user that does the same in the same session. ``mycel dataset-cache
    --start`` starts a server, ``--generate_session`` makes a session.

    Args:
        session_id (int): The number of the session.
        size (int): The memory for its rows, in megabytes; 0 sets no limit. Default: 0.
        spilling (bool): Whether rows that do not fit are written to the server's disk. Otherwise
            they are computed in each epoch. Default: False.
        hostname (str | None): Must be this machine. Default: None.
        port (int | None): The server's port, 50052 by default. Default: None.
        num_connections (int | None): How many requests are made at once, 12 by default. Default:
            None.
        prefetch_size (int | None): How many rows are asked for at once, 20 by default. Default:
            None.

    Raises:
        RuntimeError: While iterating where there is no such server or session, where it ends, and
            where its disk is full.

    Examples:
        >>> import mycel.dataset as ds
        >>> cache = ds.DatasetCache(session_id=1, size=100, prefetch_size=8)
        >>> cache.prefetch_size
        8
    """

    def __init__(
        self,
        session_id: int,
        size: int = 0,
        spilling: bool = False,
        hostname: str | None = None,
        port: int | None = None,
        num_connections: int | None = None,
        prefetch_size: int | None = None,
    ) -> None:
        where = "DatasetCache"
        self.session_id = check_count(where, "session_id", session_id, 1)
        self.size = check_count(where, "size", size, 0)
        arguments.flag(where, "spilling", spilling)
        arguments.optional(where, "hostname", hostname, str)
        if hostname not in _LOCAL:
            raise ValueError(f"{where}: hostname must be 127.0.0.1, not {hostname!r}, as rows are shared in memory")
        self.spilling, self.hostname = spilling, hostname
        self.port = DEFAULT_PORT if port is None else check_count(where, "port", port, 1)
        self.num_connections = (
            _CONNECTIONS if num_connections is None else check_count(where, "num_connections", num_connections, 1)
        )
        self.prefetch_size = (
            _PREFETCH if prefetch_size is None else check_count(where, "prefetch_size", prefetch_size, 1)
        )
        self._client: Client | None = None
        self._lock = locks.lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_client", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _client=None, _lock=locks.lock())

    @property
    def client(self) -> Client:
        """The client of the server."""
        with self._lock:
            if self._client is None:
                self._client = Client(self.port, self.num_connections)
            return self._client

    def get_stat(self) -> CacheStatistics:
        """Return how many rows the session has in memory and on disk, and their mean size."""
        return CacheStatistics(**self.client.ask("figures", session=self.session_id))


class Kept:
    """The rows of one pipeline in a cache; `key` tells the pipeline."""

    def __init__(self, cache: DatasetCache, key: str, where: str) -> None:
        self.cache, self.key, self.where = cache, key, where
        self.at_once = cache.prefetch_size
        opened = cache.client.ask("open", session=cache.session_id, key=key, size=cache.size, spilling=cache.spilling)
        self.count: int | None = opened["count"]
        # Whether the last row had no room, and no other will.
        self.full = False

    def find(self, rows: Sequence[int]) -> list[Block | None]:
        """Return a block for each of these rows that is kept."""
        client, session = self.cache.client, self.cache.session_id
        found = client.ask("find", session=session, key=self.key, rows=[int(row) for row in rows])
        self.count = found["count"]
        contents = client.contents(session, found["places"])
        return [None if content is None else Block.from_rows([decoded(content)]) for content in contents]

    def keep(self, rows: Sequence[int], block: Block | None, count: int | None = None) -> None:
        """Keep the rows of a block under these numbers, and note how many rows there are in all."""
        if self.full and count is None:
            return
        contents = [] if block is None or self.full else [encoded(row, self.where) for row in block.rows()]
        answer = self.cache.client.ask(
            "keep",
            b"".join(contents),
            session=self.cache.session_id,
            key=self.key,
            rows=[int(row) for row in rows[: len(contents)]],
            sizes=[len(content) for content in contents],
            count=count,
        )
        self.full = self.full or bool(answer["full"])

    def rows(self, rows: Sequence[int], compute: Callable[[list[int]], Block]) -> Block:
        """Return these rows: those that are kept, and the others as `compute` gives them."""
        blocks = self.find(rows)
        missing = [place for place, block in enumerate(blocks) if block is None]
        if missing:
            numbers = [int(rows[place]) for place in missing]
            made = compute(numbers)
            self.keep(numbers, made)
            for at, place in enumerate(missing):
                blocks[place] = made.slice(at, at + 1)
        return join([block for block in blocks if block is not None])


def check_cache(operation: str, cache: Any) -> None:
    """Raise TypeError for anything but a cache or None."""
    arguments.optional(operation, "cache", cache, DatasetCache)
