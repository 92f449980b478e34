"""Two machines of one: network namespaces that are connected, and sshd in each of them.

Both leave nothing behind: namespaces, processes and files go when their block ends. Where the
system does not allow them they raise `Unavailable`, with the reason.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


class Unavailable(Exception):
    """Raised where the system does not allow what is asked, with the reason."""


def _run(*words: str) -> str:
    try:
        ran = subprocess.run(words, capture_output=True, text=True)
    except FileNotFoundError:
        raise Unavailable(f"there is no command {words[0]}") from None
    if ran.returncode:
        raise Unavailable(f"{shlex.join(words)}: {ran.stderr.strip()}")
    return ran.stdout


@dataclass
class Network:
    """Two namespaces: the address of each, and the words that run a command in it."""

    names: list[str]
    addresses: list[str] = field(default_factory=lambda: ["10.99.0.1", "10.99.0.2"])

    def within(self, node: int) -> list[str]:
        return ["ip", "netns", "exec", self.names[node]]

    def cut(self, node: int) -> None:
        """Take the only link of a namespace down: nothing is told to either side."""
        _run(*self.within(node), "ip", "link", "set", "outer", "down")


@contextmanager
def namespaces() -> Iterator[Network]:
    """Make two namespaces with one link between them."""
    if os.name != "posix" or os.geteuid() != 0:
        raise Unavailable("network namespaces need root")
    made = Network([f"mycel-{os.getpid()}-{time.monotonic_ns()}-{k}" for k in (0, 1)])
    there: list[str] = []
    try:
        for name in made.names:
            _run("ip", "netns", "add", name)
            there.append(name)
        first, second = made.names
        _run(
            *("ip", "link", "add", "outer", "netns", first, "type", "veth"),
            *("peer", "name", "outer", "netns", second),
        )
        for node, address in enumerate(made.addresses):
            within = made.within(node)
            _run(*within, "ip", "address", "add", f"{address}/24", "dev", "outer")
            for link in ("lo", "outer"):
                _run(*within, "ip", "link", "set", link, "up")
        yield made
    finally:
        left = []
        for name in there:
            left += [words for p in _run("ip", "netns", "pids", name).split() if (words := _killed(int(p)))]
            _run("ip", "netns", "delete", name)
        # A session of sshd looks seldom whether its network is still there.
        assert all(words.startswith("sshd") for words in left), left


def _killed(process: int) -> str:
    """Kill a process that is left in a namespace; return its command, empty where it had ended."""
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        os.kill(process, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return words


@dataclass
class Ssh:
    """What runs a command by ssh: `folder` has a command `ssh` that knows key and hosts."""

    folder: str

    @property
    def path(self) -> str:
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"


@contextmanager
def servers(addresses: Sequence[str], within: Sequence[Sequence[str]]) -> Iterator[Ssh]:
    """Have an sshd listen at each address, in the namespace of the words `within`, with keys of
    their own and a user who is let in by a key alone.
    """
    daemon = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    client = shutil.which("ssh")
    if daemon is None or client is None:
        raise Unavailable("there is no sshd, or no ssh")
    separated = pathlib.Path("/run/sshd")
    makes = not separated.exists()
    if makes and os.geteuid() != 0:
        raise Unavailable("sshd needs the folder /run/sshd")
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            if makes:
                separated.mkdir(mode=0o755)
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            for name in ("host", "user"):
                _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}")
            host = pathlib.Path(folder, "host.pub").read_text()
            hosts = "".join(f"[{address}]:{port} {host}" for address in addresses)
            pathlib.Path(folder, "hosts").write_text(hosts)
            shutil.copy(f"{folder}/user.pub", f"{folder}/authorized")
            pathlib.Path(folder, "client").write_text(
                f"Port {port}\nIdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/hosts\n"
                "StrictHostKeyChecking yes\n"
            )
            wrapper = pathlib.Path(folder, "ssh")
            wrapper.write_text(f'#!/bin/sh\nexec {client} -F {folder}/client "$@"\n')
            wrapper.chmod(0o755)
            for k, (address, words) in enumerate(zip(addresses, within)):
                config = pathlib.Path(folder, f"server_{k}")
                config.write_text(
                    f"Port {port}\nListenAddress {address}\nHostKey {folder}/host\nPidFile none\nStrictModes no\n"
                    f"AuthorizedKeysFile {folder}/authorized\nUsePAM no\nPasswordAuthentication no\n"
                    "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
                )
                with open(f"{folder}/log_{k}", "wb") as log:
                    command = [*words, daemon, "-D", "-e", "-f", str(config)]
                    started.append(subprocess.Popen(command, stderr=log, start_new_session=True))
            made = Ssh(folder)
            for k, words in enumerate(within):
                _await(made, addresses[k], words, started[k], f"{folder}/log_{k}")
            yield made
        finally:
            for process in started:
                process.terminate()
                process.wait()
            if makes and separated.exists() and not any(separated.iterdir()):
                separated.rmdir()


def _await(ssh: Ssh, address: str, within: Sequence[str], daemon: subprocess.Popen[bytes], log: str) -> None:
    """Wait until a server lets a user in."""
    limit = time.monotonic() + 60
    while True:
        words = [*within, f"{ssh.folder}/ssh", "-o", "BatchMode=yes", address, "true"]
        ran = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode == 0:
            return
        if daemon.poll() is not None or time.monotonic() > limit:
            raise Unavailable(f"sshd lets nobody in: {pathlib.Path(log).read_text()}{ran.stderr}")
        time.sleep(0.1)
