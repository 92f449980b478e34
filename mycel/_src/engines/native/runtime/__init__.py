"""The native runtime: memory, the machine that runs steps, and the calls from Python."""
