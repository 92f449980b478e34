"""The native runtime: memory, the interpreter of steps, and the calls from Python."""
