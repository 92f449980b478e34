"""Programs of datasets as text, and what they give with MindSpore or with Mycel in its place.

`dataset_programs.json` has a program a line, with what MindSpore 2.10 showed and the class of the
error that ended it, or null.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

STORED = Path(__file__).parent / "dataset_programs.json"


def _plain(value: Any, package: Any) -> Any:
    """Return a value as JSON."""
    if isinstance(value, package.Tensor):
        return ["tensor", *_plain(value.asnumpy(), package)]
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        kind = {"U": "text", "S": "bytes"}.get(array.dtype.kind, array.dtype.name)
        items = array.reshape(-1).tolist()
        return [kind, list(array.shape), [str(v) if kind in ("text", "bytes") else round(v, 3) for v in items]]
    if isinstance(value, dict):
        return {str(k): _plain(v, package) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, package) for v in value]
    return value if isinstance(value, (int, str, float, type(None))) else type(value).__name__


def run(package: Any, source: str) -> tuple[list[Any], Exception | None]:
    """Run a program; return what it showed, and the error that ended it."""
    ds = package.dataset
    shown: list[Any] = []

    def rows(data: Any, named: bool = False) -> list[Any]:
        make = data.create_dict_iterator if named else data.create_tuple_iterator
        return [_plain(row, package) for row in make(num_epochs=1, output_numpy=True)]

    def facts(data: Any) -> None:
        shown.append([data.get_dataset_size(), data.get_col_names(), data.output_shapes()])
        shown.append([data.get_batch_size(), data.get_repeat_count(), list(map(str, data.output_types()))])

    names = {"ms": package, "ds": ds, "np": np, "rows": rows, "facts": facts}
    names.update(show=lambda value: shown.append(_plain(value, package)))
    for room in ("transforms", "vision", "text", "audio"):
        names[room] = importlib.import_module(f"{ds.__name__}.{room}")
    try:
        exec(source, names)
    except Exception as error:
        return shown, error
    return shown, None
