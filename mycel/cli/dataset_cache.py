"""The command `dataset-cache`: a server that keeps rows of pipelines, and its sessions.

Options and what is printed are those of MindSpore's command of this name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mycel.cli.parsing import Parser

__all__ = ["add_options", "command", "main"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to a parser."""
    actions = parser.add_mutually_exclusive_group(required=True)
    actions.add_argument("--start", action="store_true", help="start a server of this user")
    actions.add_argument("--stop", action="store_true", help="stop the server")
    actions.add_argument("-g", "--generate_session", action="store_true", help="make a session, and print its number")
    actions.add_argument("-d", "--destroy_session", type=int, metavar="ID", help="end a session")
    actions.add_argument("--list_sessions", action="store_true", help="show the sessions and what they hold")
    actions.add_argument("--server_info", action="store_true", help="show the server")
    parser.add_argument(
        "-p", "--port", type=int, default=50052, metavar="N", help="tells servers apart (default: 50052)"
    )
    parser.add_argument(
        "-w", "--workers", type=int, default=32, metavar="N", help="requests answered at once (default: 32)"
    )
    parser.add_argument("-s", "--spilldir", metavar="DIR", help="folder for rows without room in memory")


def command(options: argparse.Namespace) -> int:
    """Do what the options say, and return the exit status."""
    from mycel.dataset.caching import admin
    from mycel.dataset.caching.client import CacheError

    port = options.port
    if not 1 <= port <= 65535 or options.workers < 1:
        print("dataset-cache: the port must be within [1, 65535], and there must be a worker", file=sys.stderr)
        return 2
    try:
        if options.start:
            process = admin.start(port, options.workers, options.spilldir)
            print("Cache server startup completed successfully!")
            print(f"The cache server daemon has been created as process id {process} and listening on port {port}")
        elif options.stop:
            admin.stop(port)
            print(f"Cache server on port {port} has been stopped successfully.")
        elif options.generate_session:
            print(f"Session created for server on port {port}: {admin.generate_session(port)}")
        elif options.destroy_session is not None:
            admin.destroy_session(options.destroy_session, port)
            print(f"Drop session successfully for server on port {port}")
        elif options.list_sessions:
            _list(port)
        else:
            _describe(port)
    except (CacheError, ValueError, NotImplementedError) as error:
        print(f"dataset-cache: {error}", file=sys.stderr)
        return 2
    return 0


def _list(port: int) -> None:
    from mycel.dataset.caching import admin

    print(f"Listing sessions for server on port {port}\n")
    print(f"{'Session':>12}{'Mem cached':>12}{'Disk cached':>12}{'Avg cache size':>16}")
    for number, figures in admin.list_sessions(port):
        print(
            f"{number:>12}{figures['num_mem_cached']:>12}{figures['num_disk_cached']:>12}{figures['avg_cache_sz']:>16}"
        )


def _describe(port: int) -> None:
    from mycel.dataset.caching import admin

    found = admin.server_info(port)
    print("Cache Server Configuration:")
    for name, value in (
        ("process", found["process"]),
        ("port", found["port"]),
        ("number of workers", found["workers"]),
        ("spill", found["spilldir"] or "disabled"),
        ("sessions", found["sessions"]),
        ("connections", found["connections"]),
        ("bytes in memory", found["memory"]),
        ("bytes on disk", found["disk"]),
    ):
        print(f"  {name:<18}{value}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process).

    >>> main(["--stop", "--port", "50999"])
    2
    """
    parser = Parser(prog="dataset-cache", description="A server that keeps rows of pipelines.")
    add_options(parser)
    return command(parser.parse_args(arguments))
