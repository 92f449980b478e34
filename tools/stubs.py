"""Write the stubs of what is made at run time.

These are the methods that tensors get from the public libraries, and the operations that are
objects.

    python tools/stubs.py            write them (`make stubs`)
    python tools/stubs.py --check    fail where they are not what would be written

Signatures and first paragraphs of docstrings are those of the functions behind; what a function
does not annotate is `Any`.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import mycel as ms
from mycel.ops.operations.primitive import NEEDED, Primitive

ROOT = Path(__file__).resolve().parents[1] / "mycel"
WIDTH = 100
# Annotations that a stub can name, and where from. Anything else is written as Any.
IMPORTS = {
    "Tensor": "mycel._src.tensors.core.tensor",
    "DType": "mycel._src.foundation.dtype",
    "COOTensor": "mycel.ops.sparse.tensors",
    "CSRTensor": "mycel.ops.sparse.tensors",
    "UntypedStorage": "mycel._src.tensors.core.storage",
    "TensorHookHandle": "mycel._src.tensors.core.autograd.gradient_hooks",
    "Chosen": "mycel.ops.sorting",
    "Callable": "collections.abc",
    "Sequence": "collections.abc",
    "Any": "typing",
    "Optional": "typing",
    "Union": "typing",
}
SHORT = {"Pair": "tuple[Tensor, Tensor]", "storage.UntypedStorage": "UntypedStorage"}
BUILT_IN = {"int", "float", "bool", "str", "bytes", "None", "tuple", "list", "dict", "type", "complex"}
HEADER = '"""{what} `make stubs` writes this file."""\n\n'


class Writer:
    """The text of a stub, and the names that it needs from elsewhere."""

    def __init__(self, hidden: frozenset[str] = frozenset(), taken: Iterable[str] = ()) -> None:
        self.lines: list[str] = []
        self.needed: set[str] = set()
        # Built-in types that the class has methods of the same name as.
        self.hidden = hidden
        self.names = (BUILT_IN | set(IMPORTS)) - set(taken)

    def kind(self, annotation: Any) -> str:
        """Return an annotation as the stub has it."""
        if annotation is inspect.Parameter.empty:
            return self.kind("Any")
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        text = SHORT.get(text, text).replace("NoneType", "None")
        names = set(re.findall(r"[A-Za-z_][\w.]*", text))
        if not names <= self.names:
            return self.kind("Any")
        self.needed |= names & set(IMPORTS)
        return re.sub(r"[A-Za-z_]\w*", lambda m: f"builtins.{m[0]}" if m[0] in self.hidden else m[0], text)

    def parameter(self, p: inspect.Parameter, typed: str = "") -> str:
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = typed or self.kind(p.annotation)
        return f"{star}{p.name}: {kind}" + ("" if p.default is p.empty else " = ...")

    def parameters(self, given: list[inspect.Parameter]) -> list[str]:
        written: list[str] = []
        for p in given:
            if p.kind is p.KEYWORD_ONLY and not any(w.startswith("*") for w in written):
                written.append("*")
            written.append(self.parameter(p))
        return written

    def function(self, name: str, parameters: list[str], result: str, doc: str, decorator: str = "") -> None:
        if decorator:
            self.lines.append(f"    @{decorator}")
        head = f"    def {name}({', '.join(parameters)}) -> {result}:"
        if len(head) > WIDTH:
            head = f"    def {name}(\n        " + ",\n        ".join(parameters) + f",\n    ) -> {result}:"
        self.lines.append(f"{head}\n{docstring(doc, 8)}\n")

    def text(self, what: str) -> str:
        origins: dict[str, list[str]] = {}
        for name in sorted(self.needed):
            origins.setdefault(IMPORTS[name], []).append(name)
        imports = ["import builtins"] if self.hidden else []
        imports += [f"from {module} import {', '.join(names)}" for module, names in sorted(origins.items())]
        return HEADER.format(what=what) + "\n".join(imports) + "\n\n" + "\n".join(self.lines)


def docstring(text: str, indent: int) -> str:
    """Return the first paragraph of a docstring, quoted and indented."""
    first = " ".join((text or "").strip().partition("\n\n")[0].split())
    room = " " * indent
    if not first:
        return f"{room}..."
    first = first.replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(first, WIDTH - indent - 6)
    return f'{room}"""' + f"\n{room}".join(lines) + (' """' if lines[-1].endswith('"') else '"""')


def declared() -> set[str]:
    """Return what the source of `Tensor` declares itself."""
    tree = ast.parse((ROOT / "_src" / "tensors" / "core" / "tensor.py").read_text())
    (own,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]

    def names(body: list[ast.stmt]) -> Iterator[str]:
        for n in body:
            if isinstance(n, ast.FunctionDef):
                yield n.name
            elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
                yield n.target.id
            elif isinstance(n, ast.Assign):
                yield from [t.id for t in n.targets if isinstance(t, ast.Name)]
            elif isinstance(n, ast.If):
                yield from names(n.body)

    return set(names(own.body))


def tensor_methods() -> str:
    """Return the stub of `core.tensor_methods`."""
    own = declared()
    out = Writer(frozenset(BUILT_IN & set(dir(ms.Tensor))))
    out.lines.append('class TensorMethods:\n    """What tensors get from the public libraries."""\n')
    for name, value in sorted(vars(ms.Tensor).items()):
        if name in own or name.startswith("_") or not hasattr(ms.Tensor, name):
            continue
        if isinstance(value, property):
            result = inspect.signature(value.fget).return_annotation if callable(value.fget) else "Any"
            out.function(name, ["self"], out.kind(result), value.__doc__ or "", "property")
            if value.fset is not None:
                out.lines.append(f"    @{name}.setter\n    def {name}(self, value: {out.kind('Any')}) -> None: ...\n")
        elif isinstance(value, staticmethod):
            signature = inspect.signature(value.__func__)
            given = out.parameters(list(signature.parameters.values()))
            out.function(
                name, given, out.kind(signature.return_annotation), value.__func__.__doc__ or "", "staticmethod"
            )
        elif callable(value):
            signature = inspect.signature(value)
            given = out.parameters(list(signature.parameters.values())[1:])
            out.function(name, ["self", *given], out.kind(signature.return_annotation), value.__doc__ or "")
        else:
            out.lines.append(f"    {name}: {out.kind(type(value).__name__)}\n")
    return out.text("What tensors get from the public libraries, for editors and type checkers.")


def of_default(value: Any) -> str:
    """Return the type of a parameter by its default."""
    if value is NEEDED or value is None:
        return "Any"
    kind = type(value)
    # Numbers are given as int or float, sizes as one or several.
    return {bool: "bool", str: "str", float: "float"}.get(kind, "Any")


def operations() -> str:
    """Return the stub of `mycel.ops.operations`."""
    out = Writer(taken=ms.ops.operations.__all__)
    known: list[str] = []
    out.needed.add("Any")
    for name in sorted(set(ms.ops.operations.__all__)):
        value = getattr(ms.ops.operations, name)
        compute: Callable[..., Any] | None = getattr(value, "compute", None)
        if name == "Primitive":
            continue
        if not isinstance(value, type) or compute is None:
            known.append(name)
            continue
        out.lines.append(f"class {name}(Primitive):\n{docstring(value.__doc__ or '', 4)}\n")
        given = inspect.signature(value).parameters.values()
        written = [f"{p.name}: {of_default(p.default)}" + ("" if p.default is p.empty else " = ...") for p in given]
        out.function("__init__", ["self", *written], "None", "")
        signature = inspect.signature(compute)
        inputs = list(signature.parameters.values())[1 if written else 0 :]
        out.function("__call__", ["self", *out.parameters(inputs)], out.kind(signature.return_annotation), "")
    elsewhere: dict[str, list[str]] = {}
    for name in known:
        value = getattr(ms.ops.operations, name)
        elsewhere.setdefault(value.__module__, []).append(name)
    lines = [f"from mycel.ops.operations.primitive import Primitive as {Primitive.__name__}"]
    for module, names in sorted(elsewhere.items()):
        lines += [f"from {module} import {n} as {n}" for n in names]
    listed = ",\n    ".join(f'"{n}"' for n in sorted(set(ms.ops.operations.__all__)))
    out.lines.insert(0, "\n".join(lines) + f"\n\n__all__ = [\n    {listed},\n]\n")
    return out.text("Operations as objects, for editors and type checkers.")


def lazy_names(modules: Iterable[str], names: dict[str, str]) -> str:
    """Return a stub of names that a package loads when they are first asked for: modules of
    `mycel`, and names by where they are.
    """
    lines = [f"from mycel import {m} as {m}" for m in sorted(modules)]
    lines += [f"from {module} import {name} as {name}" for name, module in sorted(names.items(), key=lambda e: e[::-1])]
    return HEADER.format(what="Names that are loaded when they are first asked for.") + "\n".join(lines) + "\n"


def lazy_layers() -> str:
    """Return the stub of `mycel.nn.lazy_names`."""
    space = vars(ms.nn)
    text = lazy_names((), dict.fromkeys(space["_METRICS"], "mycel.train"))
    rows = []
    for name, own in sorted(space["_MINT"].items()):
        typed = own in vars(ms.mint.nn) and isinstance(vars(ms.mint.nn)[own], type) and own not in _UNTYPED
        rows.append(f"{name} = mint.{own}" if typed else f"{name}: Any")
    return f"{text}from typing import Any\nfrom mycel.mint import nn as mint\n" + "\n".join(rows) + "\n"


# Classes that `mycel.mint.nn` makes at run time.
_UNTYPED = ("Dropout", "Dropout2d", "LogSoftmax")

STUBS: dict[str, Callable[[], str]] = {
    "_src/tensors/core/tensor_methods.pyi": tensor_methods,
    "ops/operations/__init__.pyi": operations,
    "lazy_names.pyi": lambda: lazy_names(vars(ms)["_MODULES"], vars(ms)["_LAZY"]),
    "nn/lazy_names.pyi": lazy_layers,
}


def main() -> int:
    stale = []
    for place, make in STUBS.items():
        path = ROOT / place
        text = "\n".join(line.rstrip() for line in make().splitlines()) + "\n"
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(place)
    if stale:
        print(f"these stubs are not what would be written; run `make stubs`: {', '.join(stale)}", file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
