"""`dir` and `__getattr__` of public modules: their public names, and those loaded when named."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["lazy", "listing"]

# The modules inside that are public themselves.
_INSIDE = {
    "mycel": "dtype nn ops",
    "mycel.common": "initializer",
    "mycel.dataset": "audio config text transforms vision",
    "mycel.experimental": "optim",
    "mycel.experimental.optim": "lr_scheduler",
    "mycel.mint": "distributed linalg nn optim special",
    "mycel.mint.nn": "functional",
    "mycel.nn": "probability",
    "mycel.nn.probability": "bijector distribution",
    "mycel.ops": "P operations",
    "mycel.scipy": "fft linalg optimize",
    "mycel.train": "callback",
}


def _is_own(value: Any) -> bool:
    """Return whether a value in a module is the package's, rather than imported from elsewhere."""
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or home == "typing":
        home = type(value).__module__
    return home.partition(".")[0] in ("mycel", "builtins")


def lazy(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose names are loaded when they are named.

    `homes` has the module of each name; the package's own modules are found too. Other names raise
    AttributeError.

    >>> find = lazy("mycel.formats", {"listing": "mycel._src.foundation.public_names"})
    >>> find("listing") is listing, find("onnx").__name__
    (True, 'mycel.formats.onnx')
    """

    def __getattr__(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        if not name.startswith("_") and importlib.util.find_spec(f"{module}.{name}") is not None:
            return importlib.import_module(f"{module}.{name}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def listing(module: str, also: Iterable[str] = ()) -> Callable[[], list[str]]:
    """Return the `__dir__` of a module, which names `also` too, that are resolved when named.

    >>> names = listing("mycel._src.foundation.public_names")()
    >>> "listing" in names, "Iterable" in names, "annotations" in names, "_INSIDE" in names
    (True, False, False, False)
    """
    inside = set(_INSIDE.get(module, "").split())

    def __dir__() -> list[str]:
        found = {*also}
        space = vars(sys.modules[module])
        found.update(space.get("__all__", ()))
        for name, value in space.items():
            if name.startswith("__") and name.endswith("__"):
                found.add(name)
            elif isinstance(value, ModuleType):
                if name in inside:
                    found.add(name)
            elif not name.startswith("_") and name != "TYPE_CHECKING" and _is_own(value):
                found.add(name)
        return sorted({*found, *inside})

    return __dir__
