"""`mindspore.version`: the release whose interface Mycel follows, also as `__version__`."""

from __future__ import annotations

from mycel.compat.import_system.module_paths import API_VERSION as version

__all__ = ["version"]
