"""The pages of the interface, written from the running package.

What documents itself by reading source files misses the names that a package makes when it is
imported: operations that are rows of a table, methods that are attached to tensors, attributes of
modules that are resolved when first named. So the package is imported and asked: `PAGES` says which
modules are public, `names` what each of them has, `topics` puts those that were defined in one file
on one page, and `entry` writes a name with its signature and its docstring, which is
reStructuredText as it stands. An object that several modules have is written out where it comes
first, and refers to there from the others. Invariant: every name of `names` is on exactly one page
of its module.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# Public modules, those first where an object that several of them have is at home, with a title
# each.
PAGES = {
    "mycel.ops": "Operations",
    "mycel.nn": "Layers, losses, optimizers",
    "mycel.nn.probability.distribution": "Probability distributions",
    "mycel.nn.probability.bijector": "Bijectors",
    "mycel.common.initializer": "Initializers",
    "mycel.experimental.optim": "Optimizers of groups",
    "mycel.experimental.optim.lr_scheduler": "Schedulers of learning rates",
    "mycel.train": "Training",
    "mycel.train.callback": "Callbacks",
    "mycel.amp": "Mixed precision",
    "mycel.boost": "Boost",
    "mycel.dataset": "Data pipelines",
    "mycel.dataset.transforms": "Transforms of data",
    "mycel.dataset.vision": "Transforms of images",
    "mycel.dataset.audio": "Transforms of sound",
    "mycel.dataset.text": "Transforms of text",
    "mycel.mindrecord": "Record files",
    "mycel.communication": "Communication",
    "mycel.parallel": "Parallel training",
    "mycel.rewrite": "Rewriting networks",
    "mycel.te": "Operators of your own",
    "mycel.profiler": "Profiling",
    "mycel.runtime": "Memory",
    "mycel.hal": "Devices",
    "mycel.utils": "Utilities",
    "mycel.compat": "MindSpore programs",
    "mycel": "Tensors, gradients, compilation",
    "mycel.mint": "mint",
    "mycel.mint.nn": "mint.nn",
    "mycel.mint.nn.functional": "mint.nn.functional",
    "mycel.mint.optim": "mint.optim",
    "mycel.mint.linalg": "mint.linalg",
    "mycel.mint.special": "mint.special",
    "mycel.numpy": "numpy",
    "mycel.scipy.linalg": "scipy.linalg",
    "mycel.scipy.optimize": "scipy.optimize",
}
# Classes with a page of their own.
CLASSES = {"mycel": ("Tensor", "Parameter"), "mycel.nn": ("Cell",)}
OPERATIONS = "mycel.ops.operations"
# Where the names of `write` that refer to another are written out.
ALIASES: dict[str, str] = {}


def public_modules() -> dict[str, ModuleType]:
    """Return the modules of `PAGES` that the package has."""
    found = {}
    for name in PAGES:
        try:
            found[name] = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    return found


def of_the_package(value: Any) -> bool:
    """Return whether an attribute of a module is the package's, rather than something that its
    source imports from elsewhere.
    """
    home = getattr(value, "__module__", None)
    if isinstance(value, (type, *FUNCTIONS)):
        return isinstance(home, str) and home.split(".")[0] == "mycel"
    return type(value).__module__.split(".")[0] == "mycel" or isinstance(
        value, (int, float, str, tuple)
    )


FUNCTIONS = (type(of_the_package), type(len), type(str.upper))


@functools.cache
def _reference_names() -> dict[str, list[str]]:
    """Return the names of MindSpore's modules, some of which a module has without listing them."""
    path = (
        Path(__file__).resolve().parent.parent / "tests" / "data" / "public_names.json"
    )
    return {
        k.replace("mindspore", "mycel", 1): v.split()
        for k, v in json.loads(path.read_text(encoding="utf-8")).items()
    }


def names(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module in order, those that are resolved when first named among
    them; not modules, nor what its source only imports.
    """
    found = {}
    followed = [
        n for n in _reference_names().get(module.__name__, ()) if hasattr(module, n)
    ]
    listed = {*getattr(module, "__all__", dir(module)), *followed}
    for name in sorted({*dir(module), *listed}, key=lambda n: (n.lower(), n)):
        if name.startswith("_"):
            continue
        value = getattr(module, name)
        own = getattr(value, "__module__", None) == module.__name__
        if name not in listed and not own:
            continue
        if not inspect.ismodule(value) and of_the_package(value):
            found[name] = value
    return found


def topic(module: str, value: Any) -> str:
    """Return the name of the page of a module on which an object is: the last part of where it was
    defined.
    """
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or not isinstance(value, (type, *FUNCTIONS)):
        return "constants"
    if home.startswith(OPERATIONS):
        return "operations." + home.rpartition(".")[2]
    last = home.rpartition(".")[2].strip("_")
    return "general" if home == module else last


def topics(module: str, members: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the members of a module by page; all on one page where they are few."""
    if len(members) <= 40:
        return {"": members}
    pages: dict[str, dict[str, Any]] = {}
    for name, value in members.items():
        pages.setdefault(topic(module, value), {})[name] = value
    # A page for one or two names is no page.
    kept = {k: v for k, v in pages.items() if len(v) > 2 or k.startswith("operations.")}
    for key in pages.keys() - kept.keys():
        kept.setdefault("general", {}).update(pages[key])
    return {
        k: dict(sorted(kept[k].items(), key=lambda item: item[0].lower()))
        for k in sorted(kept)
    }


# Signatures.


def _expression(value: Any) -> str:
    """Return a default as source text; an ellipsis where it has none."""
    if isinstance(value, (type, *FUNCTIONS)):
        return value.__qualname__.rpartition(".")[2]
    text = repr(value)
    if type(value).__name__ in ("DType", "_Number"):
        return str(getattr(value, "name", text))
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return "..."
    return text if len(text) < 60 else "..."


def _annotation(value: Any, scope: dict[str, Any] | None = None) -> str:
    """Return an annotation as source text; empty where it says nothing.

    `scope` has the names that its module gives to types.
    """
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    for name in set(re.findall(r"\b[A-Z]\w+", text)):
        meant = (scope or {}).get(name)
        if (
            getattr(meant, "__origin__", None) is not None
            and not isinstance(meant, type)
            and hasattr(meant, "__args__")
        ):
            text = re.sub(rf"\b{name}\b", inspect.formatannotation(meant), text)
    text = re.sub(r"\b(?:typing|collections\.abc|mycel(?:\.\w+)*)\.", "", text)
    # Several modules have these names, so a link needs all of the name; Sphinx shows the last part.
    text = re.sub(r"\b(Tensor|Parameter|Generator)\b", r"mycel.\1", text)
    text = re.sub(r"\b(Cell)\b", r"mycel.nn.\1", text)
    return "" if text in ("Any", "inspect._empty") else text


def parameters(
    signature: inspect.Signature,
    drop_self: bool = False,
    scope: dict[str, Any] | None = None,
) -> str:
    """Return a signature as the source of a parameter list, without uninformative annotations."""
    listed, previous = [], None
    given = list(signature.parameters.values())
    if (
        drop_self
        and given
        and given[0].kind in (given[0].POSITIONAL_ONLY, given[0].POSITIONAL_OR_KEYWORD)
    ):
        given = given[1:]
    for p in given:
        if previous is p.POSITIONAL_ONLY and p.kind is not p.POSITIONAL_ONLY:
            listed.append("/")
        if p.kind is p.KEYWORD_ONLY and previous not in (
            p.KEYWORD_ONLY,
            p.VAR_POSITIONAL,
        ):
            listed.append("*")
        previous = p.kind
        kind = _annotation(p.annotation, scope)
        text = (
            {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            + p.name
            + (f": {kind}" if kind else "")
        )
        if p.default is not p.empty:
            text += (" = " if kind else "=") + _expression(p.default)
        listed.append(text)
    if previous is inspect.Parameter.POSITIONAL_ONLY:
        listed.append("/")
    result = _annotation(signature.return_annotation, scope)
    return f"({', '.join(listed)})" + (
        f" -> {result}" if result and result != "None" else ""
    )


def signature_of(value: Any, drop_self: bool = False) -> str:
    """Return the parameter list of something that can be called.

    Empty where Python does not know it.
    """
    try:
        scope = getattr(inspect.unwrap(value), "__globals__", None)
        return parameters(inspect.signature(value), drop_self, scope)
    except (TypeError, ValueError):
        return ""


# Entries.


def documentation(value: Any) -> str:
    """Return the docstring of an object, or none where it has only that of its type.

    Its own parameters are no links.
    """
    text = prose(inspect.getdoc(value) or "")
    if not isinstance(value, (type, property, *FUNCTIONS)) and text == prose(
        inspect.getdoc(type(value)) or ""
    ):
        return ""
    try:
        own = set(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return text
    return re.sub(
        r"(?<![`\w])`(\w+)`(?![`\w])",
        lambda found: f"`{found[0]}`" if found[1] in own else found[0],
        text,
    )


_LITERAL = re.compile(
    r"(``.+?``|(?<!\w)`[^`]+`(?:__?)?|(?<!\w)\*\*[^\s*][^*]*\*\*|(?<![\w*])\*[^\s*](?:[^*]*[^\s*])?\*(?![\w*]))",
    re.DOTALL,
)


def _escaped(text: str) -> str:
    """Return text whose marks that mean nothing as markup, such as |x|, a * b and add_, stand for
    themselves.
    """
    parts = _LITERAL.split(text)
    parts[::2] = [
        re.sub(r"(?<!\\)([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]
    ]
    # A mark of markup ends where a word does: `Node`s.
    parts[1::2] = [
        part + ("\\ " if after[:1].isalnum() else "")
        for part, after in zip(parts[1::2], parts[2::2])
    ]
    return "".join(parts)


def prose(text: str) -> str:
    """Return a docstring as reStructuredText: its paragraphs escaped.

    Examples, literal blocks and bullets as they are.
    """
    made, literal = [], None
    for paragraph in re.split(r"\n[ \t]*\n", text):
        indent = len(paragraph) - len(paragraph.lstrip())
        if literal is not None and indent > literal:
            made.append(paragraph)
            continue
        literal = None
        first = paragraph.lstrip()
        if first.startswith("Examples:\n"):
            made += ["Examples:", textwrap.dedent(first.partition("\n")[2])]
        elif first.startswith(">>>"):
            made.append(textwrap.dedent(paragraph))
        elif first.startswith("Args:\n"):
            made.append(_listed("Parameters:", first))
        elif first.startswith("Raises:\n"):
            made.append(_listed("Raises:", first))
        elif first.startswith("Returns:\n"):
            made.append(_returned(first))
        elif indent and made and not made[-1].lstrip().startswith(("* ", "- ")):
            # Formulas and tables.
            made[-1] += ":" if made[-1].endswith(":") else "\n\n::"
            made.append(paragraph)
        elif first.startswith(("* ", "- ")):
            made.append(
                re.sub(
                    r"(?m)^(\s*[*-] )((?:.|\n(?!\s*[*-] ))*)",
                    lambda m: m[1] + _escaped(m[2]),
                    paragraph,
                )
            )
        else:
            made.append(_escaped(paragraph))
        if paragraph.rstrip().endswith("::"):
            literal = indent
    return "\n\n".join(made)


def _listed(title: str, section: str) -> str:
    """Return the entries of a section of a docstring ("name (type): meaning") as bullets."""
    lines = textwrap.dedent(section.partition("\n")[2]).split("\n")
    found: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            found[-1].append(line.strip())
        else:
            found.append([line])
    rows = [_entry("\n".join(lines)).replace("\n", "\n  ") for lines in found]
    return "\n".join([title, "", *[f"* {row}" for row in rows]])


def _entry(text: str) -> str:
    """Return a line of a section, in which its name and its type are code."""
    found = re.match(
        r"(\*{0,2}\w+(?:, \w+)*)(?:\s\(([^()]*)\))?:\s(.*)", text, re.DOTALL
    )
    if found is None:
        return _escaped(text)
    kind = " ".join((found[2] or "").split())
    return (
        f"``{found[1]}``"
        + (f" (``{kind}``)" if kind else "")
        + f": {_escaped(found[3])}"
    )


def _returned(section: str) -> str:
    """Return what a docstring says under "Returns:" ("type: meaning") as a paragraph."""
    text = textwrap.dedent(section.partition("\n")[2])
    kind, colon, meaning = text.partition(": ")
    if not colon or not re.fullmatch(r"[\w\[\], .|\n]+", kind):
        return "Returns: " + _escaped(text)
    return f"Returns (``{' '.join(kind.split())}``): {_escaped(meaning)}"


def _indented(text: str) -> str:
    return textwrap.indent(text.rstrip(), "   ")


def _block(kind: str, head: str, body: str, options: list[str] | None = None) -> str:
    lines = [f".. py:{kind}:: {head}", *[f"   {option}" for option in options or ()]]
    return (
        "\n".join(lines) + "\n\n" + (_indented(body) + "\n\n" if body.strip() else "")
    )


def own_members(cls: type, documented: set[type]) -> Iterator[tuple[str, Any]]:
    """Yield the public attributes that a class has from itself or from bases that have no entry."""
    seen: set[str] = set()
    elsewhere = {
        base
        for owner in cls.__mro__[1:]
        if owner in documented
        for base in owner.__mro__
    }
    for owner in cls.__mro__:
        if owner in elsewhere or owner.__module__.split(".")[0] != "mycel":
            continue
        for name, value in sorted(
            vars(owner).items(), key=lambda item: (item[0] != "construct", item[0])
        ):
            if name in seen or (name.startswith("_") and name != "__call__"):
                continue
            seen.add(name)
            yield name, value


def _inputs(cls: type) -> str:
    """Return what the objects of an operation's class are called with."""
    call = vars(cls)["__call__"]
    cells = dict(
        zip(
            call.__code__.co_freevars, [c.cell_contents for c in call.__closure__ or ()]
        )
    )
    if "compute" in cells:
        return signature_of(cells["compute"], drop_self=bool(cells["parameters"]))
    return signature_of(call, drop_self=True)


def _member(name: str, value: Any) -> str:
    """Return an attribute of a class."""
    if isinstance(value, property) or inspect.isdatadescriptor(value):
        return _block("property", name, documentation(value))
    options = []
    if isinstance(value, (staticmethod, classmethod)):
        options.append(
            ":staticmethod:" if isinstance(value, staticmethod) else ":classmethod:"
        )
        value = value.__func__
        return _block(
            "method",
            name + signature_of(value, options == [":classmethod:"]),
            documentation(value),
            options,
        )
    if callable(value) and not isinstance(value, type):
        return _block("method", name + signature_of(value, True), documentation(value))
    return ""


def class_entry(name: str, cls: type, documented: dict[type, str]) -> str:
    """Return a class with its constructor and what it adds to its bases."""
    made_by_row = "__call__" in vars(cls) and cls.__module__.startswith(OPERATIONS)
    body = [documentation(cls)] if cls.__doc__ else []
    bases = [f"`{documented[b]}`" for b in cls.__bases__ if b in documented]
    if made_by_row:
        body.append(f"Called with ``{_inputs(cls).replace('mycel.', '')}``.")
    elif bases:
        body.append(f"Bases: {', '.join(bases)}.")
    head = name + (signature_of(cls) if not issubclass(cls, BaseException) else "")
    if issubclass(cls, _enumeration()):
        body.append(
            "Members: " + ", ".join(f"``{member.name}``" for member in cls) + "."
        )
        return _block("class", name, "\n\n".join(body))
    members = [
        _member(n, v)
        for n, v in own_members(cls, set(documented) - {cls})
        if not (made_by_row and n == "__call__")
        and not (n in ("extend_repr", "__call__") and not made_by_row)
    ]
    return _block("class", head, "\n\n".join([*body, *filter(None, members)]))


def _enumeration() -> type:
    return importlib.import_module("enum").Enum


def entry(
    module: str,
    name: str,
    value: Any,
    homes: dict[int, str],
    documented: dict[type, str],
) -> str:
    """Return a name of a module."""
    full = f"{module}.{name}"
    home = homes.get(id(value), full)
    if isinstance(value, (type, *FUNCTIONS)):
        kind = "class" if isinstance(value, type) else "function"
        if home != full:
            first = documentation(value).partition("\n\n")[0] if value.__doc__ else ""
            head = name + signature_of(value)
            return _block(
                kind,
                head,
                f"{first}\n\nThe same as `{home}`."
                if first
                else f"The same as `{home}`.",
            )
        if isinstance(value, type):
            return class_entry(name, value, documented)
        return _block("function", name + signature_of(value), documentation(value))
    shown = _expression(value)
    options = [f":value: {shown}"] if shown not in ("...", name) else []
    return _block(
        "data",
        name,
        documentation(value) or f"Of type ``{type(value).__name__}``.",
        options,
    )


def _heading(text: str, mark: str) -> str:
    return f"{text}\n{mark * max(3, len(text))}\n\n"


def _intro(module: ModuleType | None) -> str:
    text = inspect.getdoc(module) if module is not None else None
    return f"{prose(text)}\n\n" if text else ""


def _home(value: Any) -> ModuleType | None:
    home = getattr(value, "__module__", None)
    return importlib.import_module(home) if isinstance(home, str) else None


def homes_of(modules: dict[str, dict[str, Any]]) -> dict[int, str]:
    """Return the full name under which each class and function is written out, by identity.

    `modules` has the public names of each public module.
    """
    homes: dict[int, str] = {}
    ranks: dict[int, tuple[int, bool]] = {}
    for name, members in modules.items():
        for member, value in members.items():
            if not isinstance(value, (type, *FUNCTIONS)):
                continue
            # At home is an object in the public module nearest to where it was defined, under the
            # name that it was defined with.
            near = len(name) if f"{value.__module__}.".startswith(f"{name}.") else 0
            rank = near, value.__name__ == member
            if id(value) not in homes or rank > ranks[id(value)]:
                homes[id(value)], ranks[id(value)] = f"{name}.{member}", rank
        for member in CLASSES.get(name, ()):
            homes[id(members[member])] = f"{name}.{member}"
    return homes


class Pages:
    """The pages in a folder; what is there with the same text is left alone."""

    def __init__(self, folder: Path, modules: dict[str, dict[str, Any]]) -> None:
        self.folder = folder
        self.written: list[Path] = []
        self.homes = homes_of(modules)
        classes = [v for members in modules.values() for v in members.values()]
        self.documented = {c: self.homes[id(c)] for c in classes if isinstance(c, type)}

    def write(self, path: str, text: str) -> None:
        """Write a page, unless it says that already and need not be read again."""
        target = self.folder / f"{path}.rst"
        self.written.append(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")

    def module(self, name: str, members: dict[str, Any]) -> None:
        """Write the page of a module, and those of its topics."""
        short = name.removeprefix("mycel.")
        lone = CLASSES.get(name, ())
        current = f".. py:currentmodule:: {name}\n\n"
        text = _heading(f"{name}: {PAGES[name]}" if PAGES[name] != short else name, "=")
        text += f".. py:module:: {name}\n\n" + _intro(importlib.import_module(name))
        listed = []
        for member in lone:
            body = _heading(f"{short}.{member}", "=") + current
            body += class_entry(member, members[member], self.documented)
            self.write(f"{short}/{member}", body)
            listed.append(member)
        parts = topics(name, {k: v for k, v in members.items() if k not in lone})
        for part, inside in parts.items():
            entries = "".join(
                entry(name, k, v, self.homes, self.documented)
                for k, v in inside.items()
            )
            if not part:
                text += entries
                continue
            label = part.replace("operations.", "As objects: ").replace("_", " ")
            body = _heading(label[0].upper() + label[1:], "=") + current
            sources = {id(m): m for m in map(_home, inside.values()) if m is not None}
            if len(sources) == 1 and part not in ("general", "constants"):
                body += _intro(next(iter(sources.values())))
            self.write(f"{short}/{part}", body + entries)
            listed.append(part)
        if listed:
            text += _contents(f"{short}/{part}" for part in listed)
        self.write(short, text)


def _contents(pages: Iterable[str]) -> str:
    """Return a table of contents of pages."""
    return ".. toctree::\n   :maxdepth: 1\n\n" + "".join(
        f"   {page}\n" for page in pages
    )


def write(folder: Path) -> list[Path]:
    """Write all pages, and return their paths."""
    modules = {name: names(module) for name, module in public_modules().items()}
    pages = Pages(folder, modules)
    ALIASES.clear()
    for name, members in modules.items():
        known = {f"{name}.{k}": pages.homes.get(id(v)) for k, v in members.items()}
        ALIASES.update(
            {k: home for k, home in known.items() if home is not None and home != k}
        )
    for name, members in modules.items():
        pages.module(name, members)
    order = sorted(modules, key=lambda n: (n != "mycel", n))
    text = _heading("API reference", "=") + (
        "Every public module, as the package has it when it is imported. Names and parameters are MindSpore's; "
        "what is left out is on :doc:`a page of its own <left_out>`.\n\n"
    )
    pages.write(
        "index", text + _contents(name.removeprefix("mycel.") for name in order)
    )
    return pages.written
