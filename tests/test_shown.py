"""What is shown of objects and of common mistakes: hints, types, HTML, and public names."""

from __future__ import annotations

import html
import importlib
import inspect
import types

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation import logged_once, migration_hints, notebook_html
from mycel._src.foundation.log import logger
from mycel.train import Model

X = ms.Tensor(np.ones((1, 3), np.float32))


class Tensor:
    """Another framework's tensor."""


Tensor.__module__ = "torch.nested"


@pytest.mark.parametrize("name", migration_hints.OF_TENSORS)
def test_names_of_tensors_elsewhere(name: str) -> None:
    assert not hasattr(X, name) and getattr(X, name, 7) == 7 and name not in dir(X)
    with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'; "):
        getattr(X, name)


@pytest.mark.parametrize("name", migration_hints.OF_CELLS)
def test_names_of_cells_elsewhere(name: str) -> None:
    layer = nn.ReLU()
    assert not hasattr(layer, name) and name not in dir(layer)
    with pytest.raises(AttributeError, match=f"ReLU has no attribute '{name}'; "):
        getattr(layer, name)


@pytest.mark.parametrize("name", migration_hints.OF_OPTIMIZERS)
def test_names_of_optimizers_elsewhere(name: str) -> None:
    optimizer = nn.SGD(nn.Dense(1, 1).trainable_params())
    with pytest.raises(AttributeError, match=f"SGD has no attribute '{name}'; "):
        getattr(optimizer, name)


@pytest.mark.parametrize(
    ("module", "table"), [(ms, migration_hints.OF_PACKAGE), (nn, migration_hints.OF_NN)], ids=["mycel", "mycel.nn"]
)
def test_names_of_packages_elsewhere(module, table: dict[str, str]) -> None:
    for name in table:
        assert not hasattr(module, name), name
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; "):
            getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'$"):
        module.nothing_like_it


def test_hints_name_what_there_is() -> None:
    for name, hint in migration_hints.OF_PACKAGE.items():
        if hint.startswith("it is in mycel.ops"):
            assert hasattr(ms.ops, name), name


def test_forward_is_construct() -> None:
    class Net(nn.Cell):
        def forward(self, x):
            return x

    with pytest.raises(AttributeError, match="does not define construct.*forward"):
        Net()(X)


NOT_TENSORS = {
    "numpy.ndarray; give mycel.Tensor": np.ones((1, 3), np.float32),
    "numpy.float32; give mycel.Tensor": np.float32(1),
    "list; give mycel.Tensor": [1.0, 2.0],
    "torch.Tensor; give mycel.Tensor": Tensor(),
    "str$": "text",
    "NoneType$": None,
}


@pytest.mark.parametrize("said", NOT_TENSORS)
@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_what_is_no_tensor_is_named_with_its_package(said: str, mode: int) -> None:
    ms.set_context(mode=mode)
    for called in (nn.Dense(3, 2), ms.ops.exp):
        with pytest.raises(TypeError, match=f"an operand must be a tensor, not {said}"):
            called(NOT_TENSORS[said])


def test_predictions_take_arrays() -> None:
    layer = nn.Dense(3, 2)
    np.testing.assert_array_equal(Model(layer).predict(X.asnumpy()).asnumpy(), layer(X).asnumpy())


@pytest.mark.parametrize(
    ("kind", "shape", "order"),
    [
        (nn.Conv1d, (2, 8, 3), "(0, 2, 1)"),
        (nn.Conv2d, (2, 8, 9, 3), "(0, 3, 1, 2)"),
        (nn.Conv3d, (2, 8, 9, 7, 3), "(0, 4, 1, 2, 3)"),
    ],
)
def test_images_with_channels_last(kind, shape: tuple[int, ...], order: str) -> None:
    with pytest.raises(ValueError) as info:
        kind(3, 4, 3)(ms.ops.ones(shape))
    assert f"channels of the input seem to be last: transpose it by {order}" in str(info.value)


def warned(make, monkeypatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(logger, "warning", lambda text, *values: said.append(text % values))
    monkeypatch.setattr(logged_once, "_said", set())
    make()
    return said


def holder(value):
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.layers = value()

    return Net


@pytest.mark.parametrize(
    ("value", "mend"),
    [
        (lambda: [nn.Dense(2, 2), nn.ReLU()], "mycel.nn.CellList"),
        (lambda: (nn.Dense(2, 2),), "mycel.nn.CellList"),
        (lambda: {"a": nn.Dense(2, 2)}, "mycel.nn.CellDict"),
        (lambda: [ms.Parameter(X, name="w")], "mycel.ParameterTuple"),
    ],
)
def test_sequences_that_hide_parameters_are_told_once(value, mend: str, monkeypatch) -> None:
    net = holder(value)
    (said,) = warned(lambda: (net(), net()), monkeypatch)
    assert said.startswith("Net.layers is a ") and mend in said


def registered() -> nn.Cell:
    net = nn.Cell()
    net.layer = nn.Dense(2, 2)
    net.layers = [net.layer]
    return net


@pytest.mark.parametrize(
    "make",
    [holder(lambda: [1, 2]), holder(lambda: [nn.ReLU()]), holder(lambda: nn.CellList([nn.Dense(1, 1)])), registered],
)
def test_sequences_that_hide_nothing_are_not_told(make, monkeypatch) -> None:
    assert warned(make, monkeypatch) == []


def test_html_is_small_and_escaped() -> None:
    class Net(nn.Cell):
        def extend_repr(self) -> str:
            return "<script>&"

    shown = [
        X._repr_html_(),
        ms.Tensor(np.zeros((9, 9, 9, 9, 9), np.float32))._repr_html_(),
        ms.Tensor(np.zeros((0, 3), np.float32))._repr_html_(),
        ms.Parameter(X, name="w")._repr_html_(),
        Net()._repr_html_(),
        nn.SequentialCell(*[nn.Dense(2, 2) for _ in range(200)])._repr_html_(),
        Model(nn.Dense(2, 1), nn.MSELoss(), metrics={"mse"})._repr_html_(),
    ]
    for text in shown:
        assert text.startswith("<div><b>") and text.endswith("</pre></div>")
        assert len(text) < notebook_html.LINES * notebook_html.COLUMNS and "<script>" not in text
    assert html.escape("<script>&") in shown[4]
    assert "1,200 parameters, 1,200 of them trained" in shown[5] and "more lines" in shown[5]
    assert "loss MSELoss; metrics mse" in shown[6]


def test_layers_are_one_line() -> None:
    weight = ms.Tensor(np.ones((4, 2, 3, 3), np.float32))
    for layer in (nn.Conv2d(2, 4, 3, weight_init=weight), nn.Dense(2, 2), nn.BatchNorm2d(3), nn.Embedding(3, 2)):
        assert "\n" not in repr(layer) and repr(layer).startswith(f"{type(layer).__name__}(")


PACKAGES = (
    "mycel mycel.amp mycel.boost mycel.common mycel.common.initializer mycel.communication mycel.compat mycel.dataset "
    "mycel.dataset.audio mycel.dataset.text mycel.dataset.transforms mycel.dataset.vision mycel.experimental "
    "mycel.experimental.optim mycel.formats mycel.hal mycel.log mycel.mindrecord mycel.mint mycel.mint.nn "
    "mycel.mint.optim mycel.models mycel.nn mycel.nn.probability mycel.numpy mycel.ops mycel.parallel mycel.profiler "
    "mycel.rewrite mycel.runtime mycel.scipy mycel.scipy.linalg mycel.search mycel.te mycel.train mycel.train.callback"
).split()
PUBLIC_INSIDE = {f"{name}." for name in PACKAGES} | {
    "mycel.errors.",
    "mycel.dataset.utils.",
    "mycel.dataset.debug.",
    "mycel.dtype.",
    "mycel.dataset.config.",
    "mycel.mint.distributed.",
    "mycel.mint.linalg.",
    "mycel.mint.special.",
    "mycel.mint.nn.functional.",
    "mycel.nn.probability.bijector.",
    "mycel.nn.probability.distribution.",
    "mycel.ops.operations.",
    "mycel.scipy.fft.",
    "mycel.scipy.optimize.",
    "mycel.experimental.optim.lr_scheduler.",
}


ALIASES = {("mycel.ops", "P")}


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_shows_public_names(package: str) -> None:
    module = importlib.import_module(package)
    shown = dir(module)
    assert shown == sorted(set(shown)) and len(shown) > 3
    for name in shown:
        value = getattr(module, name)
        if name.startswith("__"):
            continue
        assert not name.startswith("_"), name
        if inspect.ismodule(value):
            assert f"{package}.{name}." in PUBLIC_INSIDE or (package, name) in ALIASES, name
        elif isinstance(value, (type, types.FunctionType)):
            assert str(value.__module__).startswith(("mycel", "builtins")), name
        assert type(value).__module__ not in ("typing", "__future__"), name


def test_dir_leaves_nothing_out() -> None:
    assert {"Tensor", "Model", "GRAPH_MODE", "float32", "int", "nn", "ops", "train", "dataset"} <= set(dir(ms))
    assert {"Dense", "Accuracy", "Cell", "probability"} <= set(dir(nn))
    assert {"pi", "ones", "concatenate", "float32"} <= set(dir(ms.numpy))
    assert {"Event", "device_count"} <= set(dir(ms.hal)) and "memory_stats" in dir(ms.runtime)
