"""The device that programs run on: memory, streams, and settings of the machine."""
