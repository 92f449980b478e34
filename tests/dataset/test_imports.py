"""What `import mycel.dataset` does not load: extras, and modules that few pipelines need."""

from __future__ import annotations

import subprocess
import sys

_LATE = "PIL av pyarrow fsspec datasets tarfile ssl urllib.request http xml sqlite3 uuid wave zipfile multiprocessing"
_PROGRAM = """
import sys
import mycel.nn
before = set(sys.modules)
for name in {missing!r}:
    sys.modules[name] = None
import mycel.dataset as ds
ds.ArrowDataset, ds.WebDataset, ds.vision.Decode, ds.utils.LineReader
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}} | (set(sys.modules) - before)
print(*sorted(loaded & set({late!r}) - set({missing!r})))
"""


def test_what_is_loaded_later() -> None:
    missing = ["PIL", "av", "pyarrow", "fsspec", "datasets"]
    program = _PROGRAM.format(late=_LATE.split(), missing=missing)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
