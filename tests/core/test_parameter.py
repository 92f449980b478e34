"""Parameters and tuples of them."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import Parameter, ParameterTuple, Tensor, nn
from mycel._src.tensors.core.parameter import types_only
from mycel.common.initializer import Zero, initializer


def parameter(name: Any = None, value: Any = (1.0, 2.0), **options: Any) -> Parameter:
    return Parameter(Tensor(np.asarray(value, np.float32)), name=name, **options)


@pytest.mark.parametrize(
    "data, dtype, values",
    [
        (1, "int32", 1),
        (1.5, "float32", 1.5),
        ([1, 2], "int64", [1, 2]),
        ([1.0, 2.0], "float32", [1, 2]),
        (np.ones(2), "float64", [1, 1]),
        (Tensor([1], ms.int8), "int8", [1]),
        (initializer("ones", (2,), ms.float16), "float16", [1, 1]),
        (np.float32(2), "float32", 2),
    ],
    ids=str,
)
def test_types_and_values(data: Any, dtype: str, values: Any) -> None:
    p = Parameter(data, name="p")
    assert (
        isinstance(p, Tensor) and p.dtype.name == dtype and p.tolist() == values and p.name == "p" and p.requires_grad
    )
    assert type(p + 1) is Tensor and p.init_data() is p and p.data is p and not p.has_init


def test_a_parameter_has_its_own_memory() -> None:
    t = Tensor([1.0, 2.0])
    p = Parameter(t)
    t[0] = 9
    assert p.tolist() == [1, 2]


def test_unnamed_parameters_have_names_of_their_own() -> None:
    p, q = parameter(), parameter("")
    assert p.name != q.name and re.fullmatch(r"Parameter#\d+", p.name) and re.fullmatch(r"Parameter#\d+", q.name)
    cell = nn.Cell()
    cell.w, cell.v = p, parameter("v0")
    assert (p.name, cell.v.name) == ("w", "v0")
    s = parameter(value=(3.0, 4.0))
    f = ms.grad(lambda x: (x * q * q * s).sum(), None, [q, s], return_ids=True)
    assert ms.get_grad(f(Tensor([1.0, 1.0])), s).tolist() == [1, 4]


def test_printing() -> None:
    assert repr(parameter("w")) == "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    assert (
        str(Parameter(1.0, "s", requires_grad=False))
        == "Parameter (name=s, shape=(), dtype=Float32, requires_grad=False)"
    )
    assert f"{parameter('w', np.ones((2, 3)))}".startswith("Parameter (name=w, shape=(2, 3), dtype=")


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: Parameter("a"), "the value must be a tensor, an array or a number, not str"),
        (lambda: Parameter(None), "not NoneType"),
        (lambda: Parameter(1j), "not complex"),
        (lambda: Parameter(1.0, requires_grad="yes"), "requires_grad must be a bool, not str"),
        (lambda: ParameterTuple([Tensor(1.0)]), "every member must be a Parameter, not Tensor"),
        (lambda: ParameterTuple(parameter("x")), "give a list or tuple of parameters, not one Parameter"),
    ],
)
def test_what_is_no_parameter_is_named(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=re.escape(text)):
        make()


def test_a_name_of_another_type_is_a_wrong_value() -> None:
    with pytest.raises(ValueError, match="the name must be a string or None, not int"):
        name: Any = 3
        Parameter(1.0, name=name)


def test_clone() -> None:
    p = parameter("w", requires_grad=False)
    same, zeros = p.clone(), p.clone("zeros")
    p.set_data(Tensor([5.0, 6.0]))
    assert (same.name, same.requires_grad, same.tolist()) == ("w", False, [1, 2]) and type(same) is Parameter
    assert (zeros.name, zeros.tolist(), zeros.dtype) == ("w", [0, 0], ms.float32)


@pytest.mark.parametrize("p", [parameter("w", requires_grad=False), Parameter(Tensor([1], ms.bfloat16), "b")])
def test_copies_and_pickles_keep_the_attributes(p: Parameter) -> None:
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p)), copy.copy(p)):
        assert type(other) is Parameter and other is not p
        assert (other.name, other.requires_grad, other.dtype, other.tolist()) == (
            p.name,
            p.requires_grad,
            p.dtype,
            p.tolist(),
        )
    other = copy.deepcopy(p)
    other.set_data(other * 0)
    assert p.tolist() != other.tolist()


@pytest.mark.parametrize(
    "dtype, value, want",
    [
        (ms.float32, Tensor([5.0, 6.0]), [5, 6]),
        (ms.float32, Tensor(np.array([5.0, 6.0])), [5, 6]),
        (ms.float32, Tensor([5, 6]), [5, 6]),
        (ms.float16, Tensor([5.0, 6.0]), [5, 6]),
        (ms.float32, [5, 6], [5, 6]),
        (ms.float32, np.array([5.0, 6.0]), [5, 6]),
        (ms.float32, parameter("z", (5.0, 6.0)), [5, 6]),
        (ms.int32, Tensor([5, 6]), [5, 6]),
        (ms.int8, Tensor([True, False]), [1, 0]),
        (ms.float32, initializer("ones", (2,), ms.float32), [1, 1]),
    ],
    ids=str,
)
def test_set_data_converts(dtype: Any, value: Any, want: Any) -> None:
    p = Parameter(Tensor([1, 2], dtype), name="p")
    assert p.set_data(value) is p and p.tolist() == want and p.dtype is dtype


def test_set_data_copies() -> None:
    p, value = parameter("p"), Tensor([5.0, 6.0])
    p.set_data(value)
    value[0] = 9
    assert p.tolist() == [5, 6]
    value.asnumpy()[:] = 3
    assert p.tolist() == [5, 6]
    loss, _ = ms.value_and_grad(lambda x: x * 2)(Tensor([1.0, 1.0]))
    p.set_data(loss)
    loss.asnumpy()[:] = 7
    assert p.tolist() == [2, 2]


@pytest.mark.parametrize(
    "dtype, value, error, text",
    [
        (
            ms.float32,
            Tensor([1.0, 2.0, 3.0]),
            ValueError,
            "parameter 'p' has shape (2,), the new value (3,); reshape it",
        ),
        (ms.float32, 3.0, ValueError, "has shape (2,), the new value ()"),
        (
            ms.int32,
            Tensor([1.0, 2.0]),
            TypeError,
            "has type int32, which does not hold values of type float32; cast them with .astype(mindspore.int32)",
        ),
        (ms.bool_, Tensor([1, 2]), TypeError, "has type bool"),
        (ms.float32, Tensor([1j, 1]), TypeError, "does not hold values of type complex128"),
        (ms.float32, None, TypeError, "parameter 'p' takes a tensor, an array or a number, not NoneType (None)"),
        (ms.float32, "a", TypeError, "not str ('a')"),
    ],
)
def test_set_data_refuses(dtype: Any, value: Any, error: type[Exception], text: str) -> None:
    p = Parameter(Tensor([1, 2], dtype), name="p")
    with pytest.raises(error, match=re.escape(text)):
        p.set_data(value)
    assert p.tolist() == Tensor([1, 2], dtype).tolist()


def test_set_data_with_another_shape() -> None:
    p = parameter("p")
    assert p.set_data(Tensor([1.0, 2.0, 3.0]), slice_shape=True).shape == (3,) and p.tolist() == [1, 2, 3]


def test_set_dtype() -> None:
    p = parameter("p")
    assert p.set_dtype(ms.float16) is p and p.dtype is ms.float16 and p.tolist() == [1, 2]


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimizer_updates_the_parameter_itself(compiled: bool) -> None:
    p = parameter("p")
    network = nn.Cell()
    network.p = p
    optimizer = nn.SGD(network.trainable_params(), 0.5)
    step = ms.jit(lambda g: optimizer((g,))) if compiled else (lambda g: optimizer((g,)))
    copied = p.asnumpy().copy()
    step(Tensor([1.0, 1.0]))
    assert network.p is p and optimizer.parameters[0] is p and p.tolist() == [0.5, 1.5] and copied.tolist() == [1, 2]
    p.asnumpy()[0] = 10
    step(Tensor([1.0, 1.0]))
    assert p.tolist() == [9.5, 1.0]


# Tuples.


def test_a_tuple_holds_parameters_of_distinct_names() -> None:
    p, q = parameter("x"), parameter("y", requires_grad=False)
    t = ParameterTuple(r for r in (p, q))
    assert (
        isinstance(t, tuple)
        and t[0] is p
        and len(t) == 2
        and len(ParameterTuple([p, p])) == 2
        and len(ParameterTuple([])) == 0
    )
    assert len(ParameterTuple([parameter(), parameter()])) == 2
    with pytest.raises(ValueError, match="two parameters are named 'x'; give each its own name"):
        ParameterTuple([p, parameter("x")])


def test_clones_of_a_tuple() -> None:
    t = ParameterTuple([parameter("a.x"), parameter("y", requires_grad=False)])
    made = t.clone("m", init="zeros")
    assert [(p.name, p.tolist(), p.requires_grad) for p in made] == [("m.a.x", [0, 0], True), ("m.y", [0, 0], False)]
    assert [p.name for p in t.clone("m").clone("n")] == ["n.m.a.x", "n.m.y"] and t.clone("m")[0].tolist() == [1, 2]
    for prefix in ("", 3):
        with pytest.raises(ValueError, match="prefix must be a string"):
            t.clone(prefix)


def test_operations_that_update_give_tensors_that_share_the_values() -> None:
    w = ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
    for made in (
        ms.ops.assign_add(w, 1.0),
        ms.ops.AssignSub()(w, 0.5),
        ms.ops.scatter_update(w, ms.Tensor([0]), ms.Tensor([7.0])),
        w.value(),
    ):
        assert type(made) is ms.Tensor and made.tolist() == w.tolist()
    held = w.value()
    w.set_data(ms.Tensor([5.0, 6.0]))
    assert held.tolist() == [5.0, 6.0] and repr(held).startswith("Tensor")
    held.add_(1)
    assert w.tolist() == [6.0, 7.0]


def test_functions_of_declared_parameters_are_staged_by_their_types():
    with ms.nn.no_init_parameters():
        net = ms.nn.Dense(1 << 20, 1 << 20)  # 4 TiB
    x = ms.Tensor(shape=(2, 1 << 20), dtype=ms.float32, init=Zero())
    step = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    with types_only():
        graph = ms.explain(step, x).graphs[0]
    assert [n.type.shape for n in graph.inputs] == [(2, 1 << 20), (1 << 20, 1 << 20), (1 << 20,)]
    assert net.weight.has_init and net.bias.has_init and x.has_init


def test_what_was_staged_by_types_runs_with_values():
    with ms.nn.no_init_parameters():
        net = ms.nn.Dense(2, 3, weight_init="ones")
    run = ms.jit(lambda x: net(x))
    with types_only():
        ms.explain(run, ms.ops.ones((1, 2)))
    assert net.weight.has_init
    assert run(ms.ops.ones((1, 2))).asnumpy().tolist() == (2 + net.bias.asnumpy()[None]).tolist()
