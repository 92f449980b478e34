"""The store of keys and values that processes share, by which ranks find each other too."""

from mycel._src.compiler.transport.tcp_store import TCPStore as TCPStore

__all__ = ["TCPStore"]
