"""Interfaces to the operating system: cores, memory, processes, locks that survive a fork."""
