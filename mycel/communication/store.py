"""The store of keys and values that processes share; it lies below, as ranks find each other by it."""

from mycel.transport.store import TCPStore as TCPStore

__all__ = ["TCPStore"]
