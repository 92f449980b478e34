"""The finder that answers imports of `mindspore` and of every path below it.

Each path is one module object, a *view*, that offers the objects of Mycel's modules themselves:
classes and functions are the same under both names. A view is filled when it is imported and asks
its source modules for names that appear later. Views of Mycel's modules lead to views:
`mindspore.nn` is the same object however it is reached. What a module of MindSpore only imports
from another one of its modules is looked up there, and what no source has is answered by its name
(`mycel.compat.names`). A path or name that MindSpore lacks is refused with a list of similar names,
also in ``from mindspore.x import name``, where Python looks for a submodule if there is no such
attribute.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mycel.compat import names
from mycel.compat.import_system.hints import missing
from mycel.compat.import_system.module_paths import API_VERSION, MODULES_FIRST, ROOT, is_absent, sources
from mycel.compat.import_system.modules import is_module
from mycel.compat.operations.facts import facts_of, has_facts

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

__all__ = ["Finder"]


class _MissingAttribute(AttributeError):
    """An error for an attribute that Mycel lacks; the message is composed only when it is read."""

    def __init__(self, parent: str, name: str) -> None:
        super().__init__(parent, name)

    def __str__(self) -> str:
        parent, name = self.args
        return missing(parent, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The finder and loader of views; see the module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a view; None for paths of other packages.

        Raises ModuleNotFoundError for a path that Mycel lacks.
        """
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        found = _answers(fullname)
        if not found and not _is_there(fullname):
            parent, _, name = fullname.rpartition(".")
            # Without a `name`, which would make Python replace the message by its own in `from
            # parent import name`.
            raise ModuleNotFoundError(missing(parent, name))
        origin = ", ".join(found) or "mycel.compat.names"
        return importlib.machinery.ModuleSpec(fullname, self, origin=f"mycel ({origin})", is_package=True)

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Return the package `mindspore`, where `importlib.metadata` asks for it or for all."""
        if context is not None and context.name not in (None, ROOT):
            return []
        from mycel.compat.import_system.package_metadata import (
            MindSpore,  # needs what only `importlib.metadata` imports
        )

        return [MindSpore()]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return None: Python creates an ordinary module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill a view from its source modules, of which the first with a name counts."""
        parts = [importlib.import_module(name) for name in _answers(module.__name__)]
        path = module.__name__[len(ROOT) + 1 :]
        if has_facts(path):
            _by_rule(module, path, parts)
            return
        content: dict[str, Any] = {}
        public: dict[str, None] = {}
        for part in parts:
            for name, value in vars(part).items():
                if not name.startswith("__") and not isinstance(value, ModuleType):
                    content.setdefault(name, value)
            listed = getattr(part, "__all__", None)
            if listed is None:
                listed = [n for n in dir(part) if not n.startswith("_")]
            public.update(dict.fromkeys(n for n in listed if not _is_foreign_module(module, part, n)))
        view = vars(module)
        _enter_modules(module, path, content)
        view.update(content)
        for name in MODULES_FIRST.get(path, ()):
            view[name] = importlib.import_module(f"{module.__name__}.{name}")
        first = parts[0] if parts else names
        view["__doc__"] = first.__doc__
        view["__file__"] = first.__file__
        view["__all__"] = list(public) if parts else names.public_names(path)
        view["__getattr__"] = _later(module, parts)
        view["__dir__"] = lambda: sorted({*vars(module), *public})
        if module.__name__ in (ROOT, f"{ROOT}.version"):
            view["__version__"] = API_VERSION


def _enter_modules(module: ModuleType, path: str, names: Iterable[str]) -> None:
    """Import the modules below a view that have the name of something in it.

    Python enters a module into its parent when it imports it for the first time: this is before the
    function or class of the same name, which then stays.
    """
    for name in names:
        if name not in MODULES_FIRST.get(path, ()) and is_module(f"{path}.{name}"):
            importlib.import_module(f"{module.__name__}.{name}")


def _by_rule(module: ModuleType, path: str, parts: list[ModuleType]) -> None:
    """Let a view answer by the table of its module's names first, and then from its sources.

    Public names of a module that Mycel has by the same path come before.
    """
    later = _later(module, parts)
    same = [part for part in parts if part.__name__ == f"mycel.{path}"]
    content = {n: getattr(part, n) for part in same for n in getattr(part, "__all__", ())}
    _enter_modules(module, path, content)
    vars(module).update(content)

    def find(name: str) -> Any:
        from mycel.compat.operations.name_resolution import find as find_by_rule  # brings much with it

        try:
            value = find_by_rule(path, name)
        except AttributeError:
            return later(name)
        vars(module)[name] = value
        return value

    public = facts_of(path).public
    listed = sorted({*public, *(n for part in parts for n in dir(part) if not n.startswith("_"))})
    vars(module).update(__all__=public, __getattr__=find, __dir__=lambda: sorted({*vars(module), *listed}))
    vars(module)["__doc__"] = f"Names of `{module.__name__}`, by rule: `mycel.compat.operations`."


def _is_foreign_module(view: ModuleType, part: ModuleType, name: str) -> bool:
    """Return whether a public name of a source module is a module that is not below the view's
    path.

    `import *` must not import such a module.
    """
    return isinstance(vars(part).get(name), ModuleType) and not _answers(f"{view.__name__}.{name}")


def _answers(fullname: str) -> list[str]:
    path = fullname[len(ROOT) + 1 :]
    return [] if is_absent(path) else sources(path)


def _is_there(fullname: str) -> bool:
    """Return whether there is a view of a path: of Mycel's modules, or of names alone."""
    path = fullname[len(ROOT) + 1 :]
    return not is_absent(path) and (bool(sources(path)) or names.has_module(path))


def _at(home: str) -> Any:
    """Return what a path means: a module, or what a module has; "/" is in front of those of other
    packages.

    Raises AttributeError where it is not there.
    """
    path = home.removeprefix("/")
    owner, _, name = path.rpartition(".")
    try:
        if home.startswith("/") and (not owner or not hasattr(importlib.import_module(owner), name)):
            return importlib.import_module(path)
        if home.startswith("/"):
            return getattr(importlib.import_module(owner), name)
        return importlib.import_module(path) if _is_there(path) else getattr(importlib.import_module(owner), name)
    except ModuleNotFoundError:
        raise _MissingAttribute(owner, name) from None


def _later(module: ModuleType, parts: list[ModuleType]) -> Any:
    """Return the `__getattr__` of a view: for names that its sources got later, and for views below
    it.
    """

    def find(name: str) -> Any:
        if not (name.startswith("__") and name.endswith("__")):
            for part in parts:
                value = getattr(part, name, None)
                if value is not None and not isinstance(value, ModuleType):
                    vars(module)[name] = value
                    return value
            if _is_there(f"{module.__name__}.{name}"):
                return importlib.import_module(f"{module.__name__}.{name}")
            for part in parts:
                if name in vars(part):
                    return vars(part)[name]
            path = module.__name__[len(ROOT) + 1 :]
            home = names.home_of(path, name)
            try:
                vars(module)[name] = value = _at(home) if home else names.made(path, name)
            except AttributeError:
                raise _MissingAttribute(module.__name__, name) from None
            return value
        raise _MissingAttribute(module.__name__, name)

    return find
