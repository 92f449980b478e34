"""The operations that are objects are classes in files: `inspect`, `help` and editors find where
each is defined.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import mycel as ms
from mycel.ops import operations

CLASSES = sorted(name for name in operations.__all__ if isinstance(getattr(operations, name), type))


@pytest.mark.parametrize("name", CLASSES)
def test_source_is_the_class_statement(name: str) -> None:
    cls = getattr(operations, name)
    source = inspect.getsource(cls)
    assert f"class {name}" in source
    lines, first = inspect.getsourcelines(cls)
    file = inspect.getsourcefile(cls)
    assert file is not None and Path(file).parent.name == "operations"
    found = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 : first - 1 + len(lines)]
    assert found == lines


@pytest.mark.parametrize("name", CLASSES)
def test_class_is_where_it_says(name: str) -> None:
    cls = getattr(operations, name)
    module: Any = __import__(cls.__module__, fromlist=[name])
    assert getattr(module, name) is cls and cls.__qualname__ == name
    assert inspect.getdoc(cls)


def test_help_names_parameters_and_purpose() -> None:
    text = inspect.getsource(ms.ops.Logit)
    assert "eps=-1.0" in text and "math.logit" in text
    assert str(inspect.signature(ms.ops.Logit)) == "(eps=-1.0)"
    assert ms.ops.ReLU.__doc__ == "`mycel.ops.relu` as an object."


def test_subclasses_of_operations_are_plain_classes() -> None:
    class Doubled(ms.ops.ReLU):
        def __call__(self, x: Any) -> Any:
            return 2 * super().__call__(x)

    assert Doubled()(ms.Tensor([-1.0, 3.0])).tolist() == [0.0, 6.0]
    assert Doubled.__doc__ is None
    with pytest.raises(TypeError):

        class _Wrong(ms.ops.Primitive, eps=1.0):
            pass
