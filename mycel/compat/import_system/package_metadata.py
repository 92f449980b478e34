"""The installed package that `importlib.metadata` shows for `mindspore`: libraries ask it for the
release by its name.
"""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from mycel.compat.import_system.module_paths import API_VERSION, ROOT

__all__ = ["MindSpore"]


class MindSpore(metadata.Distribution):
    """The package `mindspore` in the release whose interface Mycel follows; it lists no files."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a file of the package's records, None for any but METADATA."""
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: {ROOT}\nVersion: {API_VERSION}\nSummary: Mycel as {ROOT}\n"

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return where a file would lie beside this package's files."""
        return Path(__file__).resolve().parent / path
