"""The native runtime: memory, the step machine, and the door from Python."""
