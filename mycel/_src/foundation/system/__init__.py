"""What is asked of the operating system: cores, memory, processes, locks that survive a fork."""
