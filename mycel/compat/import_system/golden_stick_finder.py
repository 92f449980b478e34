"""The finder that answers imports of `mindspore_gs` with the modules of `compat.golden_stick`.

A path below `mindspore_gs` is the module of the same path there; its classes are the same objects
under both names. Other paths are refused with what there is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
from collections.abc import Sequence
from types import ModuleType

__all__ = ["GOLDEN", "GoldenFinder"]

GOLDEN = "mindspore_gs"
_HOME = "mycel.compat.golden_stick"


class GoldenFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The finder and loader of `mindspore_gs`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module; None for paths of other packages.

        Raises ModuleNotFoundError for a path below `mindspore_gs` that is not there.
        """
        if fullname.partition(".")[0] != GOLDEN:
            return None
        home = _home(fullname)
        try:
            found = importlib.util.find_spec(home)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(
                f"Mycel does not have {fullname}; of {GOLDEN} it has quantization, ptq, pruner and common, and "
                "mycel.quantisation and mycel.compression have more"
            )
        return importlib.machinery.ModuleSpec(fullname, self, origin=f"mycel ({home})", is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return None: Python creates an ordinary module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give a module the public names of its home."""
        home = importlib.import_module(_home(module.__name__))
        names = list(home.__all__)
        vars(module).update({name: getattr(home, name) for name in names}, __all__=names, __doc__=home.__doc__)
        if hasattr(home, "__version__"):
            vars(module)["__version__"] = home.__version__


def _home(name: str) -> str:
    return _HOME + name[len(GOLDEN) :]
