"""Docstrings of public names with more than three parameters have one form.

A sentence says what the name is for. Then come the sections, each of which a blank line precedes::

    Args:
        name (type): What it means. Default: 1.

    Returns:
        type: What it is.

    Raises:
        ValueError: For what.

    Examples:
        (programs as they are typed, which the tests run)

`Args` has the parameters of the signature, in its order, with types that say what is accepted (not
`Any`, but for `*args` and the like), and defaults as they are there; `Returns` is missing where
nothing is returned, `Raises` and `Examples` where there are none.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import mycel
from tests.test_left_out import load

reference = load("reference")
# Packages whose names are those of other interfaces, or commands.
NOT_OURS = {"_src", "cli", "compat", "demo"}
SECTIONS = ["Args", "Returns", "Raises", "Examples"]
ENTRY = re.compile(r"(\*{0,2}\w+) \(([^()]+)\):\s+(\S.*)", re.DOTALL)


def modules() -> dict[str, ModuleType]:
    """The public modules: those of the reference, and all packages."""
    found = dict(reference.public_modules())
    for module in pkgutil.walk_packages(mycel.__path__, "mycel."):
        parts = module.name.split(".")[1:]
        if module.ispkg and parts[0] not in NOT_OURS and not any(part.startswith("_") for part in parts):
            found.setdefault(module.name, importlib.import_module(module.name))
    return found


def parameters(function: Any) -> list[inspect.Parameter]:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in given if p.name not in ("self", "cls") and not p.name.startswith("_")]


def described() -> Iterator[tuple[str, Any]]:
    """Yield public functions, classes and methods with more than three parameters, each once."""
    seen: set[int] = set()
    for module, content in modules().items():
        for name, value in reference.names(content).items():
            found = [(name, value)]
            if isinstance(value, type):
                found = [] if issubclass(value, enum.Enum) else found
                methods = {k: getattr(v, "__func__", v) for k, v in vars(value).items() if not k.startswith("_")}
                # What an operation computes as an object is said of its class.
                methods.pop("compute", None) if issubclass(value, mycel.ops.Primitive) else None
                found += [(f"{name}.{k}", v) for k, v in methods.items() if inspect.isfunction(v)]
            for path, member in found:
                if callable(member) and id(member) not in seen:
                    seen.add(id(member))
                    if len(parameters(member)) > 3:
                        yield f"{getattr(member, '__module__', None) or module}.{path}", member


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring by name, dedented; what precedes them by an empty name."""
    parts = re.split(r"(?m)^(\w+):\n(?=    \S)", text)
    found = {"": parts[0]}
    for name, content in zip(parts[1::2], parts[2::2], strict=True):
        found[name] = textwrap.dedent(content).strip("\n")
    return found


def entries(section: str) -> list[str]:
    return re.split(r"\n(?!\s)", section)


def default(parameter: inspect.Parameter) -> str | None:
    """How a default is written, or None where it has no short form."""
    value = parameter.default
    quoted = isinstance(value, str) and not isinstance(value, enum.Enum)
    text = '"' + value + '"' if quoted else reference._expression(value)
    return None if value is parameter.empty or text == "..." or "\\" in repr(text) else text


def faults(value: Any) -> list[str]:
    """What the docstring of something that can be called lacks of the form."""
    found = sections(inspect.getdoc(value) or "")
    wanted = [p.name for p in parameters(value)]
    if "Args" not in found:
        return ["it has no Args"]
    wrong = []
    if not found[""].strip():
        wrong.append("it does not say what it is for")
    order = [name for name in found if name in SECTIONS]
    if order != [name for name in SECTIONS if name in found]:
        wrong.append(f"its sections are in the order {', '.join(order)}")
    given = [ENTRY.fullmatch(entry) for entry in entries(found["Args"])]
    if None in given:
        wrong.append("an entry of Args is not 'name (type): meaning'")
    matched = [m for m in given if m is not None]
    if [m[1].lstrip("*") for m in matched] != wanted:
        wrong.append(f"Args has {', '.join(m[1] for m in matched)} where the signature has {', '.join(wanted)}")
    for match, parameter in zip(matched, parameters(value)):
        if match[2] == "Any" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            wrong.append(f"the type of {parameter.name} is not said")
        said = re.search(r"Default:\s(.*?)\.?$", match[3], re.DOTALL)
        text = default(parameter)
        if said and text is not None and " ".join(said[1].split()) != text:
            wrong.append(f"the default of {parameter.name} is {text}, not {said[1]}")
        if said and parameter.default is parameter.empty:
            wrong.append(f"{parameter.name} has no default")
    if not isinstance(value, type):
        result = inspect.signature(value).return_annotation
        nothing = result is None or str(result) in ("None", "NoReturn")
        if nothing is ("Returns" in found):
            wrong.append("it has Returns, and returns nothing" if nothing else "it has no Returns")
    if "Returns" in found and not re.match(r"\S[^:]*: \S", found["Returns"]):
        wrong.append("Returns is not 'type: meaning'")
    if "Raises" in found and not all(re.match(r"[A-Z]\w+(, [A-Z]\w+)*:\s\S", e) for e in entries(found["Raises"])):
        wrong.append("an entry of Raises is not 'Error: when'")
    if ">>>" in "".join(text for name, text in found.items() if name != "Examples"):
        wrong.append("an example is not under Examples")
    return wrong


def test_docstrings_have_the_sections_of_their_parameters() -> None:
    assert not [f"{name}: {'; '.join(found)}" for name, value in described() if (found := faults(value))]


def test_faults_are_found() -> None:
    def plain(a: int, b: int = 1) -> int:
        """Return a.

        Args:
            a (int): A.
            b (int): B. Default: 2.
        """
        return a

    assert faults(plain) == ["the default of b is 1, not 2", "it has no Returns"]
    plain.__doc__ = "Return a.\n\nReturns:\n    int: A.\n\nArgs:\n    b (int): B.\n    a: A.\n"
    assert len(faults(plain)) == 3
    plain.__doc__ = "Return a.\n\nArgs:\n    a (int): A.\n    b (int): B. Default: 1.\n\nReturns:\n    int: A.\n"
    assert faults(plain) == []
    plain.__doc__ = plain.__doc__.replace("a (int)", "a (Any)")
    assert faults(plain) == ["the type of a is not said"]
