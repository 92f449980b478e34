"""Settings of the process, and options that are checked and have no effect."""
