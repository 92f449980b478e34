"""Every public function and class is checked against an oracle; build/coverage_of_meaning.json says
which against what.

An object that has several names is checked when one of them is.
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import mycel as ms

HERE = Path(__file__).parent
MODULES = (
    "",
    "amp",
    "common.initializer",
    "experimental.optim",
    "experimental.optim.lr_scheduler",
    "mint",
    "mint.linalg",
    "mint.nn",
    "mint.nn.functional",
    "mint.optim",
    "mint.special",
    "nn",
    "nn.probability.bijector",
    "nn.probability.distribution",
    "numpy",
    "ops",
    "scipy.linalg",
    "scipy.optimize",
    "train",
)


def public_objects() -> dict[str, Any]:
    """Every public function and class, and every public method and property of Tensor, by its name
    below `mycel`.
    """
    found: dict[str, Any] = {}
    for module in MODULES:
        try:
            space = importlib.import_module(f"mycel.{module}" if module else "mycel")
        except ModuleNotFoundError:
            continue
        for name in getattr(space, "__all__", None) or dir(space):
            value = None if name.startswith("_") else getattr(space, name)
            if callable(value) and str(getattr(value, "__module__", "")).startswith("mycel"):
                if not (isinstance(value, type) and issubclass(value, Exception)):
                    found[f"{module}.{name}" if module else name] = value
    for name in dir(ms.Tensor):
        if not name.startswith("_") and hasattr(ms.Tensor, name):
            method = inspect.getattr_static(ms.Tensor, name)
            found[f"Tensor.{name}"] = getattr(method, "method_of", method)
    return found


def checked_names() -> dict[str, str]:
    """The names that the test files say they check, with the oracles."""
    checked: dict[str, str] = {}
    for path in sorted(HERE.rglob("test_*.py")):
        text = path.read_text()
        if path.name != "test_meaning.py" and ("= Checks(" in text or "\nCHECKED" in text):
            module = importlib.import_module(".".join(path.relative_to(HERE.parent).with_suffix("").parts))
            checked |= getattr(module, "CHECKED", {})
            if hasattr(module, "checks"):
                checked |= module.checks.checked
    return checked


def oracles() -> dict[str, str | None]:
    """The oracle of every public name, None where there is none."""
    objects, checked = public_objects(), checked_names()
    unknown = sorted(name for name in checked if name not in objects)
    assert not unknown, f"checks of what is not public: {unknown}"
    by_identity = {id(objects[name]): oracle for name, oracle in checked.items()}
    return {name: checked.get(name) or by_identity.get(id(value)) for name, value in objects.items()}


def test_every_public_name_is_checked() -> None:
    found = oracles()
    report = HERE.parent / "build" / "coverage_of_meaning.json"
    report.parent.mkdir(exist_ok=True)
    report.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")
    missing = sorted(name for name, oracle in found.items() if oracle is None)
    assert not missing, f"no oracle checks {missing}; say what does in `Checks` or CHECKED of a test file"
