"""What programs ask about their values, choices by conditions and indices, loops as objects,
environments: against MindSpore 2.10, Python and NumPy.
"""

import math

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

CHECKED = {
    **{
        f"ops.{name}": "MindSpore 2.10"
        for name in (
            "broadcast_gradient_args typeof hastype isconstant is_sequence_value_unknown is_sequence_shape_unknown "
            "is_tensor_bool_cond SliceGetItem switch add_flags DtypeToEnum "
            "ScalarCast ScalarToTensor TupleToArray UpdateState Reusing"
        ).split()
    },
    **{
        f"ops.{name}": "Python"
        for name in (
            "shape_ scalar_to_array ScalarToArray array_to_scalar switch_layer ForiLoop WhileLoop Scan "
            "PyExecute DynamicShape"
        ).split()
    },
    **{
        f"ops.{name}": "the definition"
        for name in (
            "J env_get environ_add environ_create environ_get environ_set ref_to_embed FloatStatus PrimitiveWithCheck "
            "PrimitiveWithInfer prim_attr_register "
            "prim_arg_register"
        ).split()
    },
}


def both(function, *args):
    """The results eagerly and compiled."""
    return function(*args), ms.jit(function)(*args)


def test_types_of_values():
    wanted = {
        "mindspore.int64": 1,
        "mindspore.tensor[float32]": Tensor([1.0]),
        "mindspore.tuple_": (1, 2.0),
        "mindspore.list_": [1, Tensor(1.0)],
        "mindspore.string_": "a",
        "mindspore.type_none": None,
        "mindspore.bool": True,
        "mindspore.float32": 2.0,
        "mindspore.function": both,
        "mindspore.type_type": ms.int32,
    }
    for name, value in wanted.items():
        assert repr(ops.typeof(value)) == name
    assert ms.jit(lambda x: (x, ops.typeof(x) == ms.TensorType(ms.float32)))(Tensor([1.0]))[1]
    with pytest.raises(TypeError):
        ops.typeof(object())


def test_whether_values_are_of_types():
    for value, kind, wanted in (
        ((1, 2.0), ms.int64, False),
        ((1, 2.0), ms.tuple_, True),
        (1, ms.int64, True),
        (1, ms.number, True),
        ((1, 2), ms.TensorType(), False),
        (Tensor([1.0]), ms.TensorType(ms.float32), True),
        ((1, Tensor([1.0])), ms.TensorType(ms.float32), False),
        (Tensor(1), ms.TensorType(), True),
        (1, ms.Int(), True),
        (1.0, ms.Int(), False),
        ("a", ms.string, True),
        (None, ms.type_none, True),
    ):
        assert both(lambda v, kind=kind: ops.hastype(v, kind), value) == (wanted, wanted)
    with pytest.raises(TypeError, match="must be a type"):
        ops.hastype(1, 2)


def test_what_is_known_while_compiling():
    x = Tensor([1.0, 2.0])
    assert both(ops.isconstant, 1) == (True, True) and both(lambda v: ops.isconstant(v), x) == (True, False)
    assert both(lambda v: ops.isconstant((1, v)), x) == (True, False)
    assert both(lambda v: ops.is_sequence_value_unknown(v.shape), x) == (False, False)
    assert both(lambda v: ops.is_sequence_value_unknown((1, v)), x) == (False, True)
    assert both(lambda v: ops.is_sequence_shape_unknown(v.shape), x) == (False, False)
    assert both(ops.is_tensor_bool_cond, Tensor([True])) == (True, True)
    for wrong, error in ((1, TypeError), (x, ValueError)):
        with pytest.raises(error):
            ops.is_tensor_bool_cond(wrong)
    with pytest.raises(TypeError):
        ops.is_sequence_value_unknown(3)


def test_numbers_and_tensors():
    for value, dtype in ((2, ms.int64), (2.5, ms.float32), (True, ms.bool_)):
        for made in (ops.scalar_to_array(value), ops.ScalarToArray()(value)):
            assert (
                made.shape == () and made.dtype is dtype and made.item() == value and ops.array_to_scalar(made) == value
            )
    for value in (2, 2.5, True):
        for made in both(lambda v: ops.ScalarToTensor()(v), value):
            assert made.dtype is ms.float32 and made.shape == () and made.item() == value
    assert ops.ScalarToTensor()(True, ms.int32).dtype is ms.int32
    for value, dtype, wanted in (
        (2.5, ms.int64, 2),
        (-2.5, ms.int64, -2),
        (2, ms.float64, 2.0),
        (2.5, ms.bool_, True),
        (2, ms.float32, 2.0),
    ):
        for found in both(lambda v, dtype=dtype: ops.ScalarCast()(v, dtype), value):
            assert type(found) is type(wanted) and found == wanted
    for value, dtype in (((1, 2, 3), ms.int32), ((1.0, 2.5), ms.float32)):
        for made in both(lambda v: ops.TupleToArray()(v), value):
            assert made.dtype is dtype and made.tolist() == list(value)
    for call, error in (
        (lambda: ops.ScalarToTensor()("a"), TypeError),
        (lambda: ops.ScalarCast()(1, ms.int8), ValueError),
        (lambda: ops.TupleToArray()((1.0, 2)), TypeError),
        (lambda: ops.TupleToArray()((True,)), TypeError),
        (lambda: ops.TupleToArray()(()), ValueError),
        (lambda: ops.TupleToArray()([1]), TypeError),
        (lambda: ops.scalar_to_array("a"), TypeError),
        (lambda: ops.array_to_scalar(1), TypeError),
        (lambda: ops.array_to_scalar(1, 2), TypeError),
    ):
        with pytest.raises(error):
            call()
    assert both(lambda x: ops.SliceGetItem(x, "stop"), slice(1, 5, 2)) == (5, 5)
    with pytest.raises(AttributeError, match="end"):
        ops.SliceGetItem(slice(1, 2), "end")
    for made in both(lambda x: ops.DynamicShape()(x), Tensor(np.ones((2, 3), np.float32))):
        assert made.dtype is ms.int64 and made.tolist() == [2, 3]
    assert ops.PyExecute()("a * b + 1", ("a", "b"), (Tensor([2.0]), 3)).tolist() == [7]


def test_axes_of_gradients():
    # From MindSpore 2.10.
    for x, y, wanted in (
        ((2, 3), (3,), ((), (0,))),
        ((2, 1), (1, 3), ((1,), (0,))),
        ((2, 3), (2, 3), ((), ())),
        ((), (2, 3), ((0, 1), ())),
        ((1, 1), (1,), ((0, 1), (0, 1))),
        ((1,), (1,), ((), ())),
        ((4, 1, 3), (2, 1), ((1,), (0, 2))),
    ):
        assert both(ops.broadcast_gradient_args, x, y) == (wanted, wanted)
    with pytest.raises(ValueError, match="broadcast"):
        ops.broadcast_gradient_args((2, 3), (4,))
    assert both(lambda v: ops.shape_(v), Tensor(np.ones((2, 0, 3), np.float32))) == ((2, 0, 3), (2, 0, 3))


def test_numbers_of_types():
    names = (
        "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128 "
        "float8_e4m3fn float8_e5m2"
    ).split()
    wanted = [30, 32, 33, 34, 35, 37, 38, 39, 40, 42, 43, 44, 45, 51, 52, 46, 47]
    assert [ops.DtypeToEnum()("op", "x", getattr(ms, n)) for n in names] == wanted and ops.DtypeToEnum()(
        "op", "x", ms.string
    ) == 12
    with pytest.raises(TypeError, match="op: x must be an element type"):
        ops.DtypeToEnum()("op", "x", 1)


def test_float_status():
    for values, wanted in (([1.0, 2.0], 0), ([1.0, np.inf], 1), ([-np.inf], 1), ([np.nan, 1.0], 1), ([], 0), (3.0, 0)):
        for dtype in (np.float16, np.float32, np.float64):
            for found in both(lambda x: ops.FloatStatus()(x), Tensor(np.array(values, dtype))):
                assert found.dtype is ms.float32 and found.tolist() == [wanted]
    with pytest.raises(TypeError, match="floating"):
        ops.FloatStatus()(Tensor([1]))


def test_choosing():
    assert both(lambda: ops.switch(True, 1, 2)) == (1, 1) and both(lambda: ops.switch(False, 1, 2)) == (2, 2)
    x = Tensor([2.0, 3.0])
    for truth in (True, False):
        for found in both(lambda c, v: ops.switch(c, v, v * 10), Tensor(truth), x):
            assert found.tolist() == ([2, 3] if truth else [20, 30])
        for found in both(lambda c, v: ops.switch(c, lambda a: a + 1, lambda a: a - 1)(v), Tensor(truth), x):
            assert found.tolist() == ([3, 4] if truth else [1, 2])
    layers = (ms.nn.ReLU(), ms.nn.Tanh(), lambda v: v * 3)
    wanted = [0.0, math.tanh(-2.0), -6.0]
    for index in (0, 1, 2, -1, -2, -3):
        for found in both(lambda i, v: ops.switch_layer(i, layers)(v), Tensor(index), Tensor(-2.0)):
            assert found.item() == pytest.approx(wanted[index], rel=1e-6)
        assert ops.switch_layer(index, layers)(Tensor(-2.0)).item() == pytest.approx(wanted[index], rel=1e-6)
    slope = ms.grad(lambda i, v: ops.switch_layer(i, layers)(v), 1)
    for found in both(slope, Tensor(1), Tensor(-2.0)):
        assert found.item() == pytest.approx(1 - math.tanh(-2.0) ** 2, rel=1e-5)
    with pytest.raises(IndexError):
        ops.switch_layer(3, layers)(Tensor(1.0))
    with pytest.raises(TypeError):
        ops.switch_layer(0, (1, 2))
    with pytest.raises(ValueError):
        ops.switch_layer(0, ())


def test_loops():
    grow = lambda v: ops.WhileLoop()(lambda a: a < 100, lambda a: a * a, v)
    for found in both(grow, Tensor(3.0)):
        assert found.item() == 6561
    compiled = ms.jit(grow)
    compiled(Tensor(3.0))
    assert "while_loop" in str(ms.explain(compiled, Tensor(3.0))) and "0 breaks" in str(
        ms.explain(compiled, Tensor(3.0))
    )
    for found in both(ms.grad(grow), Tensor(3.0)):
        assert found.item() == pytest.approx(8 * 3.0**7)
    assert ops.WhileLoop()(lambda v: v < 10, lambda v: v + 3, 1) == 10
    total = lambda n, v: ops.ForiLoop()(0, n, lambda i, a: a + i * v, v)
    for found in (*both(total, Tensor(5), Tensor(2.0)), *both(total, 5, Tensor(2.0))):
        assert found.item() == 22
    assert ops.ForiLoop()(0, 4, lambda i, v: v + i, 1) == 7 and ops.ForiLoop()(4, 0, lambda i, v: v + i, 1) == 1
    for found in both(lambda v: ops.ForiLoop()(1, 4, lambda i, s: (s[0] + i, s[1] * 2), (v, v)), Tensor(1.0)):
        assert [f.item() for f in found] == [7, 8]
    scan = lambda c, a, b: ops.Scan()(lambda carry, x: (carry + x, carry * x), c, [a, b])
    for carry, ys in both(scan, Tensor(1.0), Tensor(1.0), Tensor(2.0)):
        assert carry.item() == 4 and [y.item() for y in ys] == [1, 4]
    assert ops.Scan()(lambda c, x: (c + 1, c * 2), 1, None, 3) == (4, [2, 4, 6])
    assert ops.Scan()(lambda c, x: (c + 1, x), 1, (), 0) == (1, [])
    for call, error in (
        (lambda: ops.Scan()(lambda c, x: (c, x), 1, Tensor([1.0])), TypeError),
        (lambda: ops.Scan()(lambda c, x: (c, x), 1, (1, 2), 3), ValueError),
        (lambda: ops.Scan()(lambda c, x: (c, x), 1, None), TypeError),
        (lambda: ops.ForiLoop()(0.0, 2, lambda i, v: v, 1), TypeError),
        (lambda: ops.WhileLoop()(1, 2, 3), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_environments():
    w, b = ms.Parameter(Tensor([1.0, 2.0]), name="w"), ms.Parameter(Tensor([1.0, 2.0]), name="b")

    def program(x):
        one = ops.environ_set(ops.environ_create(), ops.ref_to_embed(w), x)
        both_ = ops.environ_add(one, ops.environ_set(one, "k", x * 10))
        return (
            ops.env_get(both_, w),
            ops.env_get(both_, b),
            ops.environ_get(both_, "k", 0),
            ops.environ_get(one, "k", x - 1),
        )

    for found in both(program, Tensor([1.0, 5.0])):
        assert [f.tolist() for f in found] == [[2, 10], [0, 0], [10, 50], [0, 4]]
    assert ops.ref_to_embed(w) == ops.ref_to_embed(w) != ops.ref_to_embed(b)
    for call in (
        lambda: ops.environ_set(1, 2, 3),
        lambda: ops.ref_to_embed(Tensor(1.0)),
        lambda: ops.environ_create(1),
        lambda: ops.environ_add(1, 2),
    ):
        with pytest.raises(TypeError):
            call()


def test_the_derivative_as_a_pair():
    for found in both(lambda x, y: ops.J(lambda a, b: a * a * b)(x, y)[1](x), Tensor(3.0), Tensor(4.0)):
        assert [f.item() for f in found] == [72, 27]
    with pytest.raises(TypeError):
        ops.J(3)


def test_flags_and_what_changes_nothing():
    function = ops.add_flags(lambda x: x + 1, a=1)
    ops.add_flags(b=2)(function)
    assert function._func_graph_flags == {"a": 1, "b": 2} and ops.add_flags(ms.nn.ReLU(), b=2).get_flags() == {"b": 2}
    with pytest.raises(TypeError):
        ops.add_flags(3, a=1)
    x = Tensor([1.0])
    assert ops.UpdateState()(x, Tensor([2.0])) is x and ops.Reusing()(x) is x and ops.Reusing()(both) is both


class Scaled(ops.PrimitiveWithInfer):
    @ops.prim_attr_register
    def __init__(self, factor, keep=False):
        self.seen = self.factor

    def infer_shape(self, x):
        return x

    def infer_dtype(self, x):
        return x

    def infer_value(self, x):
        return x.sum() if self.keep else x * self.factor


class Checked(ops.PrimitiveWithCheck):
    @ops.prim_arg_register
    def __init__(self, size):
        pass

    def check_shape(self, x):
        if x != (self.size,):
            raise ValueError(f"Checked: {x}")

    def check_dtype(self, x):
        if x is not ms.float32:
            raise TypeError(f"Checked: {x}")

    def infer_value(self, x):
        return x + 1


def test_operations_of_the_programs_own():
    scaled = Scaled(3.0)
    assert (
        scaled.name == "Scaled"
        and scaled.attrs == scaled.init_attrs == {"factor": 3.0, "keep": False}
        and scaled.seen == 3.0
    )
    for found in both(lambda x: scaled(x), Tensor([1.0, 2.0])):
        assert found.tolist() == [3, 6]
    with pytest.raises(ValueError, match="infer_shape says"):
        Scaled(3.0, keep=True)(Tensor([1.0, 2.0]))
    with pytest.raises(TypeError):
        Scaled()
    assert Checked(2).size == 2 and Checked(2)(Tensor([1.0, 2.0])).tolist() == [2, 3]
    with pytest.raises(ValueError, match="Checked"):
        Checked(3)(Tensor([1.0, 2.0]))
    with pytest.raises(TypeError, match="Checked"):
        Checked(2)(Tensor([1, 2]))
    with pytest.raises(NotImplementedError, match="infer_value"):
        ops.PrimitiveWithCheck("empty")(Tensor(1.0))
    with pytest.raises(NotImplementedError, match="infer_shape"):
        ops.PrimitiveWithInfer("empty")(Tensor(1.0))
