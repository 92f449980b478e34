"""BLAS libraries that compute in the thread which asks them, while several threads make rows.

OpenBLAS shares out what it computes among threads of its own, as many as there are cores. Where the
threads of a pipeline do so at once, all wait for each other. The number of its threads is one
setting for the whole process: it is one while any flow has more than one thread at work, and what
it was before afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Keep BLAS libraries from using threads of their own within."""
    yield
