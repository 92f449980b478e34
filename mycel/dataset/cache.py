"""`DatasetCache`: MindSpore's handle of a cache server, which pipelines here do without."""

from __future__ import annotations

from typing import Any

from mycel.base.errors import Unsupported
from mycel.dataset.arguments import check_count
from mycel.dataset.notices import no_effect

__all__ = ["DatasetCache", "accept_cache"]


class DatasetCache:
    """The handle of a session of MindSpore's cache server.

    A pipeline with a cache gives the same rows as without: MindSpore's only spares it from reading
    and computing rows again in later epochs. Here they are read again, ahead of their use.

    * `session_id`: the number of the session.
    * `size`: the memory for it, in megabytes; 0 sets no limit.
    * `spilling`: whether rows that do not fit are written to files.
    * `hostname`, `port`: where the server is.
    * `num_connections`, `prefetch_size`: how rows are sent.
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
        if not isinstance(spilling, bool):
            raise TypeError(f"{where}: spilling must be a bool, got {spilling!r}")
        if hostname is not None and not isinstance(hostname, str):
            raise TypeError(f"{where}: hostname must be text, got {hostname!r}")
        for argument, value in (
            ("port", port),
            ("num_connections", num_connections),
            ("prefetch_size", prefetch_size),
        ):
            if value is not None:
                check_count(where, argument, value, 1)
        self.spilling, self.hostname, self.port = spilling, hostname, port
        self.num_connections, self.prefetch_size = num_connections, prefetch_size

    def get_stat(self) -> Any:
        """Raise Unsupported: without a server there are no figures of it."""
        raise Unsupported("DatasetCache.get_stat: there is no cache server, so there are no figures of it")


def accept_cache(operation: str, cache: Any) -> None:
    """Say once that a cache changes nothing; raise TypeError for anything but a cache."""
    if cache is None:
        return
    if not isinstance(cache, DatasetCache):
        raise TypeError(f"{operation}: cache must be a DatasetCache, got {cache!r} of type {type(cache).__name__}")
    no_effect(operation, "cache", "DatasetCache", "rows are read again in every epoch, ahead of their use")
