"""Files and their formats: written whole, bounded, remote, and caches of compiled code."""
