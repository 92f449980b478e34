"""The native engine: graphs compiled to machine code, with dense work done by oneDNN."""
