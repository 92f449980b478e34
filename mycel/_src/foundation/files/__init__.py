"""File access: atomic writes, bounded reads, formats, remote files, the cache of compiled code."""
