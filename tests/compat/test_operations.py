"""Names that MindSpore generates: by rule, from tables of the real package."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import mycel as ms
from mycel import compat
from mycel.base.errors import Unsupported
from mycel.compat.operations.binding import parsed
from mycel.compat.operations.facts import facts_of
from mycel.ops import Primitive

MODULES = [p.stem for p in sorted((importlib.resources.files("mycel") / "compat/operations/facts").iterdir())]

# Modules under names of their own that Mycel does not have.
ABSENT = {"_constants", "_inner", "const_utils", "op_enum", "security", "typing"}


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def tensor(*values: float) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float32))


def signature(value: object) -> list[tuple[str, str]]:
    return [(p.name, repr(p.default)) for p in inspect.signature(value).parameters.values() if p.name != "self"]


def same(found: list[tuple[str, str]], known: list[tuple[str, str]]) -> bool:
    """Return whether signatures are the same, but for defaults that the table cannot write."""
    return [n for n, _ in found] == [n for n, _ in known] and all(
        b in (a, "Ellipsis") for (_, a), (_, b) in zip(found, known)
    )


@pytest.mark.parametrize("path", MODULES)
def test_every_name_is_there_with_its_parameters(path: str) -> None:
    module = importlib.import_module(f"mindspore.{path}")
    for name, fact in facts_of(path).names.items():
        if name in ABSENT and not hasattr(module, name):
            continue
        value = getattr(module, name)
        assert value is getattr(module, name)
        if fact.kind == "classes":
            assert issubclass(value, Primitive) and value.__name__ == name
            assert signature(value) == signature(parsed_function(fact.content[0])), name
            if len(fact.content) > 1:
                assert signature(value.__call__) == signature(parsed_function(fact.content[1])), name
        elif fact.kind == "functions":
            assert callable(value) and same(signature(value), signature(parsed_function(fact.content))), name
        elif fact.kind == "instances":
            assert isinstance(value, Primitive) or callable(value), name


def parsed_function(parameters: str) -> object:
    def function() -> None: ...

    function.__signature__ = parsed(parameters)  # type: ignore[attr-defined]
    return function


def test_classes_work_at_once_compiled_and_under_gradients() -> None:
    from mindspore.ops.auto_generate import AddExt, gen_ops_prim

    assert gen_ops_prim.AddExt is AddExt and gen_ops_prim.Abs is ms.ops.Abs
    x = tensor(1.0, 2.0)

    @ms.jit
    def compiled(x: ms.Tensor) -> ms.Tensor:
        return gen_ops_prim.AddExt()(x, x, alpha=3) + gen_ops_prim.sum_ext_op(x)

    assert compiled(x).tolist() == [7.0, 11.0]
    assert ms.grad(lambda x: AddExt()(x, x * x, 3).sum())(x).tolist() == [7.0, 13.0]


def test_a_class_can_be_a_base() -> None:
    from mindspore.ops.auto_generate import AddExt

    class Twice(AddExt):
        def __call__(self, input: ms.Tensor) -> ms.Tensor:
            return super().__call__(input, input)

    assert Twice()(tensor(1.5)).tolist() == [3.0]


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    from mindspore.ops.auto_generate import AddExt

    with pytest.raises(TypeError, match="AddExt: .*input, other, alpha=1"):
        AddExt()(tensor(1.0))


def test_what_is_not_served_says_so_when_it_is_used() -> None:
    from mindspore.ops.auto_generate import MlaPreprocess

    operation = MlaPreprocess()
    with pytest.raises(Unsupported, match=r"mindspore\.ops\.auto_generate\.gen_ops_prim\.MlaPreprocess "):
        operation()
