"""`CustomOpBuilder`: modules in C++ that are compiled and imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel.ops.operations.custom_sources import imported, library_of, options_of, paths_for_modules

__all__ = ["CustomOpBuilder"]

_FOREIGN = ("enable_atb", "enable_asdsip", "op_def", "op_doc")


class CustomOpBuilder:
    """A module of Python in C++, which `load` compiles and imports where there is a compiler.

    Sources define a module by Python's own interface, or by pybind11's where it is installed.
    Sources against MindSpore's headers cannot be built here: `build` and `load` raise Unsupported
    for them, for the backend "Ascend", and where no compiler is found.

    Args:
        name (str): The name of the module.
        sources (str | list[str]): The path of a source file, or a list of them.
        backend (str | None): "CPU" or "Ascend"; None for the present one. Default: None.
        include_paths (str | Sequence[str] | None): Folders of headers. Default: None.
        cflags (str | None): Options of the compiler. Default: None.
        ldflags (str | None): Options of the linker. Default: None.
        **kwargs (Any): `build_dir`, the folder of the library; by default one that ends with the
            process. MindSpore's others, for Ascend and graph mode, are refused where they are set.

    Raises:
        TypeError: For a name or sources that are no text.
        ValueError: For a `backend` that is neither "CPU" nor "Ascend".

    Examples:
        >>> import mycel as ms
        >>> ms.ops.CustomOpBuilder("mine", "mine.cpp", backend="CPU").get_sources()
        ['mine.cpp']
    """

    def __init__(
        self,
        name: str,
        sources: Any,
        backend: str | None = None,
        include_paths: str | Sequence[str] | None = None,
        cflags: str | None = None,
        ldflags: str | None = None,
        **kwargs: Any,
    ) -> None:
        owner = "CustomOpBuilder"
        self.name = arguments.text(owner, "name", name)
        self.source = [sources] if isinstance(sources, str) else list(arguments.sequence(owner, "sources", sources))
        for path in self.source:
            arguments.text(owner, "each of sources", path)
        if backend is not None:
            arguments.choice(owner, "backend", backend, ("CPU", "Ascend"))
        for option, given in (("include_paths", include_paths), ("cflags", cflags), ("ldflags", ldflags)):
            arguments.optional(owner, option, given, (str, list, tuple), "a string or a list of them")
        folder = kwargs.get("build_dir")
        arguments.optional(owner, "build_dir", folder, (str, os.PathLike), "a path")
        self.build_dir: str | None = None if folder is None else os.fspath(folder)
        for option, given in kwargs.items():
            if option in _FOREIGN and given:
                raise Unsupported(f"{owner}: {option} is for MindSpore's own operators and devices; leave it out")
            if option not in _FOREIGN and option != "build_dir":
                raise TypeError(f"{owner}: there is no option {option}")
        self.backend, self.include_paths = backend, include_paths
        self.cflags, self.ldflags = cflags, ldflags

    def get_sources(self) -> list[str]:
        """Return the source files."""
        return self.source

    def build(self) -> str:
        """Compile the sources, and return the path of the library."""
        # What starts compilers is loaded when one is needed.
        owner = f"CustomOpBuilder: {self.name!r}"
        if self.backend == "Ascend":
            raise Unsupported(f"{owner} cannot be built for Ascend; leave backend out")
        given = self.include_paths
        folders = [*([given] if isinstance(given, str) else given or ()), *paths_for_modules()]
        target = ""
        if self.build_dir is not None:
            os.makedirs(self.build_dir, exist_ok=True)
            target = os.path.join(os.path.abspath(self.build_dir), f"{self.name}.so")
        options = [*[f"-I{f}" for f in folders], *options_of(self.cflags)]
        return library_of(owner, self.source, options, options_of(self.ldflags), target)

    def load(self) -> ModuleType:
        """Compile the sources, and return the module that they define."""
        return imported(self.name, self.build())
