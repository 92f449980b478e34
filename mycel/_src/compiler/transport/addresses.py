"""The addresses of this machine: which one others reach, and whether one is here."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys

__all__ = ["EVERY", "INTERFACE", "chosen", "is_here", "is_loopback", "listening", "towards"]

INTERFACE = "MYCEL_INTERFACE"
EVERY = "0.0.0.0"
_ADDRESS_OF = 0x8915  # SIOCGIFADDR


def chosen() -> str:
    """Return the address that MYCEL_INTERFACE chooses, empty where it is not set.

    It is an address of this machine, or the name of a network interface as `ip address` shows it.
    Raises RuntimeError where there is none.
    """
    text = os.environ.get(INTERFACE, "").strip()
    if not text:
        return ""
    found = _of_interface(text) if text in {name for _, name in socket.if_nameindex()} else text
    if not is_here(found):
        names = ", ".join(name for _, name in socket.if_nameindex())
        raise RuntimeError(
            f"communication.init: {INTERFACE} must be an address of this machine or one of its interfaces ({names}), "
            f"not {text!r}"
        )
    return found


def _of_interface(name: str) -> str:
    """Return the IPv4 address of an interface, on Linux; empty where it has none."""
    if sys.platform != "linux":
        return ""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            told = fcntl.ioctl(asked.fileno(), _ADDRESS_OF, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return ""
    return socket.inet_ntoa(told[20:24])


def is_loopback(address: str) -> bool:
    """Return whether an address is reached from its own machine alone.

    >>> is_loopback("127.0.1.1"), is_loopback("::1"), is_loopback("10.0.0.1")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_here(address: str) -> bool:
    """Return whether a numeric address belongs to this machine.

    >>> is_here("127.0.0.1"), is_here("no address")
    (True, False)
    """
    try:
        ipaddress.ip_address(address.partition("%")[0])
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as tried:
            tried.bind((address, 0))
    except (OSError, ValueError):
        return False
    return True


def towards(address: str) -> str:
    """Return the address of this machine from which it reaches another; nothing is sent.

    >>> towards("127.0.0.1")
    '127.0.0.1'
    """
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((address, 9))
        return str(asked.getsockname()[0])


def listening(host: str) -> str:
    """Return the address at which the first of several machines listens: that of its name `host`.

    Only where that is none of this machine, as that of a router in front of it is not, or is known
    to this machine as its own inner one, the others have to be awaited at all addresses: `EVERY`.

    >>> listening("127.0.0.1"), listening("no-such-host.invalid")
    ('127.0.0.1', '0.0.0.0')
    """
    try:
        found = str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return EVERY
    outer = not is_loopback(found) or host in (found, "localhost")
    return found if outer and is_here(found) else EVERY
