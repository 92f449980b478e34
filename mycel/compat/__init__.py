"""MindSpore's import paths, answered by Mycel.

After `install()` every ``import mindspore``, also of paths that only older releases had, returns
Mycel's classes and functions: the same objects as under Mycel's own paths, so that `isinstance`,
pickling and compiled code see no difference. Old names that today's interface lacks
(`c_transforms`, `nn.metrics`) are in this package only.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from types import ModuleType

from mycel._src.foundation.log import logger
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.import_system.finder import Finder
from mycel.compat.import_system.golden_stick_finder import GOLDEN, GoldenFinder
from mycel.compat.import_system.module_paths import API_VERSION, ROOT

__all__ = ["API_VERSION", "install", "is_installed", "uninstall"]

_finder = Finder()
_golden = GoldenFinder()
_HOME = Tensor.__module__
_replaced: dict[str, ModuleType] = {}


def install() -> None:
    """Answer imports of `mindspore` with Mycel from now on; a second call has no effect.

    Mycel takes precedence over an installed MindSpore, which is logged at the level "debug";
    modules of MindSpore that were imported already are set aside until `uninstall`. Until then the
    class of tensors is shown under MindSpore's path. As with MindSpore, protobuf runs in Python
    unless the environment says otherwise: libraries bring messages that it reads in no other way.
    `mindspore.__version__` is the release whose interface Mycel follows. ``import mindspore_gs``
    gives the golden stick's interface to Mycel's quantisation.

    >>> from mycel import compat
    >>> compat.install()
    >>> import mindspore, mycel
    >>> mindspore.Tensor is mycel.Tensor
    True
    >>> compat.uninstall()
    """
    if is_installed():
        return
    _replaced.update(_take())
    os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
    Tensor.__module__ = f"{ROOT}.common.tensor"
    real = importlib.machinery.PathFinder.find_spec(ROOT)
    sys.meta_path[:0] = [_finder, _golden]
    if real is not None or _replaced:
        where = real.origin if real is not None else "imported already"
        logger.debug(
            "compat: import mindspore gives Mycel, which takes precedence over the MindSpore installed (%s)", where
        )
    else:
        logger.debug("compat: import mindspore gives Mycel")


def uninstall() -> None:
    """Undo `install`: later imports of `mindspore` find an installed MindSpore, or nothing.

    Modules that a program has imported already do not change.
    """
    if not is_installed():
        return
    sys.meta_path.remove(_finder)
    sys.meta_path.remove(_golden)
    Tensor.__module__ = _HOME
    _take()
    sys.modules.update(_replaced)
    _replaced.clear()


def is_installed() -> bool:
    """Return whether `import mindspore` imports Mycel."""
    return _finder in sys.meta_path


def _take() -> dict[str, ModuleType]:
    """Remove all modules of `mindspore` and `mindspore_gs` from the imported ones; return them."""
    names = [name for name in sys.modules if name.partition(".")[0] in (ROOT, GOLDEN)]
    return {name: sys.modules.pop(name) for name in names}


__dir__ = _listing(__name__)
