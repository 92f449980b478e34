"""Element-wise functions under all of their names against NumPy and SciPy: three shapes, eager and
compiled, with derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import mycel as ms
from mycel import Tensor, ops
from tests.meaning import A, B, Checks, I

from .checks import add_everywhere

checks = Checks("NumPy")


def one(names: str, expected: Any, low: float = -2.0, high: float = 2.0, **more: Any) -> None:
    """A function of one operand."""
    oracle = "SciPy" if expected.__class__.__name__ == "ufunc" and expected.__name__ not in vars(np) else "NumPy"
    cases = [(A(*shape, low=low, high=high),) for shape in ((3, 4), (1, 5, 2), (0, 3))]
    add_everywhere(checks, names, expected, *cases, dtypes="float32", oracle=oracle, **more)


def two(names: str, expected: Any, low: float = 0.3, high: float = 2.5, **more: Any) -> None:
    """A function of two operands that broadcast."""
    oracle = "SciPy" if expected.__class__.__name__ == "ufunc" and expected.__name__ not in vars(np) else "NumPy"
    shapes = (((3, 4), (4,)), ((2, 1, 3), (5, 1)), ((0, 3), (1, 3)))
    cases = [tuple(A(*shape, low=low, high=high) for shape in pair) for pair in shapes]
    add_everywhere(checks, names, expected, *cases, dtypes="float32", oracle=oracle, **more)


one("abs absolute Abs fabs", np.abs)
one("exp Exp tensor_exp", np.exp)
one("exp2", np.exp2)
one("expm1 Expm1 tensor_expm1", np.expm1)
one("log Log", np.log, 0.2, 3)
one("log2", np.log2, 0.2, 3)
one("log10", np.log10, 0.2, 3)
one("log1p Log1p", np.log1p, -0.8, 3)
one("sqrt Sqrt", np.sqrt, 0.2, 3)
one("cbrt", np.cbrt, 0.2, 3)
one("rsqrt Rsqrt", lambda x: 1 / np.sqrt(x), 0.2, 3)
one("square Square", np.square)
one("reciprocal Reciprocal inv Inv", np.reciprocal, 0.3, 3)
one("neg negative Neg", np.negative)
one("positive", np.positive)
one("sin Sin", np.sin)
one("cos Cos", np.cos)
one("tan Tan", np.tan, -1.3, 1.3)
one("asin arcsin Asin", np.arcsin, -0.9, 0.9)
one("acos arccos ACos", np.arccos, -0.9, 0.9)
one("atan arctan Atan", np.arctan)
one("sinh Sinh", np.sinh)
one("cosh Cosh", np.cosh)
one("tanh Tanh", np.tanh)
one("asinh arcsinh Asinh", np.arcsinh)
one("acosh arccosh Acosh", np.arccosh, 1.2, 4)
one("atanh arctanh Atanh", np.arctanh, -0.9, 0.9)
one("sigmoid Sigmoid", scipy.special.expit)
one("erf Erf", scipy.special.erf)
one("erfc Erfc", scipy.special.erfc)
one("erfinv Erfinv", scipy.special.erfinv, -0.9, 0.9)
one("lgamma Lgamma", scipy.special.gammaln, 0.3, 4)
one("digamma Digamma", scipy.special.psi, 0.3, 4)
one("deg2rad radians", np.deg2rad)
one("rad2deg", np.rad2deg)
one("sinc Sinc", np.sinc)
one("frac", lambda x: x - np.trunc(x))
one("floor Floor", np.floor)
one("ceil Ceil", np.ceil)
one("trunc Trunc fix", np.trunc)
one("round Round rint Rint around", np.round)
one("sign Sign", np.sign)
one("signbit", np.signbit, grad=())
one("isfinite IsFinite", np.isfinite, grad=())
one("nan_to_num NanToNum", np.nan_to_num)
checks.add(
    "ops.Identity Tensor.copy Tensor.clone Tensor.contiguous numpy.copy ops.deepcopy",
    lambda x: x,
    (A(3, 4),),
    (A(0, 2),),
    (A(),),
    dtypes="float32",
)
checks.add(
    "ops.logit Tensor.logit",
    scipy.special.logit,
    (A(3, 4, low=0.1, high=0.9),),
    (A(5, low=0.1, high=0.9),),
    (A(0, 2, low=0.1),),
    dtypes="float32",
    oracle="SciPy",
)
checks.add(
    "ops.logit",
    lambda x, eps: scipy.special.logit(np.clip(x, eps, 1 - eps)),
    (A(3, 4, low=-0.5, high=1.5),),
    (A(5, low=0, high=1),),
    (A(1, 1),),
    kwargs={"eps": 0.2},
    dtypes="float32",
)
checks.add(
    "ops.Logit",
    lambda x: scipy.special.logit(np.clip(x, 0.2, 0.8)),
    (A(3, 4, low=-0.5, high=1.5),),
    (A(5, low=0, high=1),),
    (A(1, 1),),
    init={"eps": 0.2},
    dtypes="float32",
)
checks.add(
    "ops.round Tensor.round",
    lambda x, decimals: np.round(x, decimals),
    (A(3, 4),),
    (A(5),),
    (A(0, 2),),
    kwargs={"decimals": 1},
    dtypes="float32",
)
checks.add("numpy.around numpy.round", np.round, (A(3, 4), 1), (A(5), 2), (A(0, 2), 1), dtypes="float32", grad=())

EDGES = A(7, values=np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0]))
ENDS = ((EDGES,), (A(3, 4),), (A(0, 2),))
for names, expected in (
    ("isnan IsNan", np.isnan),
    ("isinf IsInf", np.isinf),
    ("isposinf", np.isposinf),
    ("isneginf", np.isneginf),
    ("isfinite", np.isfinite),
    ("isreal", np.isreal),
    ("signbit", np.signbit),
    ("logical_not LogicalNot", np.logical_not),
):
    add_everywhere(checks, names, expected, *ENDS, dtypes="float32", grad=())
checks.add(
    "ops.nan_to_num Tensor.nan_to_num",
    lambda x, nan, posinf, neginf: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
    *ENDS,
    kwargs={"nan": 1.5, "posinf": 7.0, "neginf": -8.0},
    dtypes="float32",
    grad=(),
)

two("add Add TensorAdd tensor_add", np.add)
two("sub Sub subtract tensor_sub", np.subtract)
two("mul Mul multiply tensor_mul", np.multiply)
two("div Div divide RealDiv true_divide tensor_div", np.divide)
two("pow Pow pows tensor_pow power float_power", np.power)
two("maximum Maximum", np.maximum)
two("minimum Minimum", np.minimum)
two("fmax Fmax", np.fmax)
two("fmin Fmin", np.fmin)
two("atan2 Atan2 arctan2", np.arctan2)
two("hypot Hypot", np.hypot)
two("logaddexp", np.logaddexp)
two("logaddexp2", np.logaddexp2)
two("copysign", np.copysign)
two("fmod", np.fmod)
two("remainder mod floor_mod floormod FloorMod tensor_mod", np.mod)
two("floor_divide floor_div floordiv FloorDiv tensor_floordiv", np.floor_divide)
two("truncate_div TruncateDiv", lambda x, y: np.trunc(x / y), grad=())
two("truncate_mod TruncateMod Mod", np.fmod)
two("xlogy Xlogy", scipy.special.xlogy)
two("xdivy Xdivy DivNoNan", np.divide)
two("MulNoNan", np.multiply)
two("SquaredDifference", lambda x, y: (x - y) ** 2)
two("ldexp", lambda x, y: x * 2**y)
checks.add(
    "ops.DivNoNan ops.xdivy",
    lambda x, y: np.divide(x, y, out=np.zeros_like(x), where=(x * y) != 0),
    (A(4, values=np.array([1.0, 0.0, 3.0, -2.0])), A(4, values=np.array([2.0, 0.0, 4.0, 5.0]))),
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.MulNoNan",
    lambda x, y: np.array([2.0, 0.0, 0.0, 0.0]),
    (A(4, values=np.array([1.0, np.nan, np.inf, 3.0])), A(4, values=np.array([2.0, 0.0, 0.0, 0.0]))),
    dtypes="float32",
    grad=(),
)
checks.add(
    "numpy.divmod",
    lambda x, y: (np.floor_divide(x, y), np.mod(x, y)),
    (A(3, 4), A(4, low=0.5)),
    (A(5), A(5, low=0.5)),
    (A(0, 2), A(2, low=0.5)),
    dtypes="float32",
    grad=(0,),
)
SIGNED = (
    (A(3, 4), A(4, values=np.array([-1.5, 0.7, 1.1, -0.4]))),
    (A(2, 1, 2), A(3, 1, values=np.array([[0.9], [-0.8], [1.7]]))),
    (A(5), A(1, values=np.array([-0.6]))),
)
for names, expected in (
    ("remainder floor_mod FloorMod mod", np.mod),
    ("fmod truncate_mod TruncateMod Mod", np.fmod),
    ("floor_divide floor_div FloorDiv", np.floor_divide),
    ("truncate_div TruncateDiv", lambda x, y: np.trunc(x / y)),
    ("atan2 Atan2 arctan2", np.arctan2),
    ("copysign", np.copysign),
):
    add_everywhere(checks, names, expected, *SIGNED, dtypes="float32", grad=())
for mode, expected in (("floor", np.floor), ("trunc", np.trunc)):
    checks.add(
        "ops.div Tensor.div ops.divide",
        lambda x, y, rounding_mode, expected=expected: expected(x / y),
        *SIGNED,
        kwargs={"rounding_mode": mode},
        dtypes="float32",
        grad=(),
    )
checks.add(
    "ops.subtract Tensor.subtract", lambda x, y, alpha: x - alpha * y, *SIGNED, kwargs={"alpha": 2.5}, dtypes="float32"
)

PAIRS = (
    (A(5, values=np.array([1.0, 2.0, np.nan, np.inf, -0.0])), A(5, values=np.array([1.0, 3.0, np.nan, -np.inf, 0.0]))),
    (A(3, 1, values=np.array([[1.0], [2.0], [3.0]])), A(4, values=np.array([1.0, 2.0, 3.0, 4.0]))),
    (A(0, 3), A(3)),
)
for names, expected in (
    ("eq equal Equal", np.equal),
    ("ne not_equal NotEqual", np.not_equal),
    ("lt less Less tensor_lt", np.less),
    ("le less_equal LessEqual tensor_le", np.less_equal),
    ("gt greater Greater tensor_gt", np.greater),
    ("ge greater_equal GreaterEqual tensor_ge", np.greater_equal),
    ("isclose IsClose", np.isclose),
    ("logical_and LogicalAnd", np.logical_and),
    ("logical_or LogicalOr", np.logical_or),
    ("logical_xor LogicalXor", np.logical_xor),
):
    add_everywhere(checks, names, expected, *PAIRS, dtypes="float32", grad=())
for kwargs in ({"rtol": 0.35, "atol": 0.1}, {"rtol": 0.0, "atol": 0.5, "equal_nan": True}):
    checks.add(
        "ops.isclose Tensor.isclose numpy.isclose",
        np.isclose,
        *PAIRS,
        (A(6, 5), A(5)),
        kwargs=kwargs,
        dtypes="float32",
        grad=(),
    )
    checks.add(
        "Tensor.allclose",
        lambda *a, **k: np.allclose(*a, **k),
        (A(3), A(3)),
        (PAIRS[0][0], PAIRS[0][0]),
        (A(0, 2), A(2)),
        kwargs=kwargs,
        dtypes="float32",
        grad=(),
        jit=False,
    )
checks.add(
    "ops.approximate_equal Tensor.approximate_equal",
    lambda x, y, tolerance: np.abs(x - y) < tolerance,
    (A(3, 4), A(3, 4)),
    (A(5), A(5)),
    (A(0, 2), A(0, 2)),
    kwargs={"tolerance": 0.8},
    dtypes="float32",
    grad=(),
)
checks.add(
    "ops.ApproximateEqual",
    lambda x, y: np.abs(x - y) < 0.8,
    (A(3, 4), A(3, 4)),
    (A(5), A(5)),
    (A(0, 2), A(0, 2)),
    init={"tolerance": 0.8},
    dtypes="float32",
    grad=(),
)
add_everywhere(
    checks,
    "heaviside Heaviside",
    np.heaviside,
    (A(3, values=np.array([-1.0, 0.0, 2.0])), A(3)),
    (A(2, 3), A(3)),
    (A(0, 3), A(1)),
    dtypes="float32",
    grad=(),
)

TRUTHS = ((B(3, 4), B(4)), (B(5), B(5)), (B(0, 2), B(2)))
for names, expected in (
    ("logical_and LogicalAnd", np.logical_and),
    ("logical_or LogicalOr", np.logical_or),
    ("logical_xor LogicalXor", np.logical_xor),
):
    add_everywhere(checks, names, expected, *TRUTHS, dtypes="float32", grad=())
INTEGERS = (
    (I(3, 4, low=-9, high=9), I(4, low=1, high=9)),
    (I(5, low=-9, high=9, dtype="int64"), I(5, low=1, high=9, dtype="int64")),
    (I(0, 2), I(2)),
)
for names, expected in (
    ("bitwise_and BitwiseAnd", np.bitwise_and),
    ("bitwise_or BitwiseOr", np.bitwise_or),
    ("bitwise_xor BitwiseXor", np.bitwise_xor),
    ("gcd Gcd", np.gcd),
    ("lcm Lcm", np.lcm),
    ("add Add", np.add),
    ("mul Mul", np.multiply),
    ("sub Sub", np.subtract),
    ("maximum Maximum", np.maximum),
):
    add_everywhere(checks, names, expected, *INTEGERS, dtypes="int32", grad=())
for names, expected in (
    ("floor_divide FloorDiv", np.floor_divide),
    ("remainder FloorMod mod", np.mod),
    ("fmod TruncateMod", np.fmod),
):
    add_everywhere(checks, names, expected, *INTEGERS[:2], dtypes="int32", grad=())
SHIFTS = (
    (I(3, 4, low=-9, high=99), I(4, high=5)),
    (I(5, high=99, dtype="int64"), I(5, high=5, dtype="int64")),
    (I(0, 2), I(2)),
)
checks.add(
    "ops.bitwise_left_shift Tensor.bitwise_left_shift ops.LeftShift", np.left_shift, *SHIFTS, dtypes="int32", grad=()
)
checks.add(
    "ops.bitwise_right_shift Tensor.bitwise_right_shift ops.RightShift",
    np.right_shift,
    *SHIFTS,
    dtypes="int32",
    grad=(),
)
add_everywhere(
    checks,
    "bitwise_not invert Invert",
    np.bitwise_not,
    (I(3, 4, low=-9, high=9),),
    (I(5, dtype="int64"),),
    (I(0, 2),),
    dtypes="int32",
    grad=(),
)
add_everywhere(
    checks,
    "abs Abs sign square",
    lambda x: x,
    (I(3, 4, high=2),),
    (I(5, high=2, dtype="int64"),),
    (I(0, 2),),
    dtypes="int32",
    grad=(),
)

THREE = ((A(3, 4), A(4), A(3, 1, low=0.5)), (A(5), A(1), A(5, low=0.5)), (A(0, 2), A(2), A(1, low=0.5)))
for value in (1, -0.7):
    checks.add(
        "ops.addcmul Tensor.addcmul",
        lambda x, a, b, value: x + value * a * b,
        *THREE,
        kwargs={"value": value},
        dtypes="float32",
    )
    checks.add(
        "ops.addcdiv Tensor.addcdiv",
        lambda x, a, b, value: x + value * a / b,
        *THREE,
        kwargs={"value": value},
        dtypes="float32",
    )
    checks.add("ops.Addcmul", lambda x, a, b, v: x + v * a * b, *[(*t, A(1)) for t in THREE], dtypes="float32")
    checks.add("ops.Addcdiv", lambda x, a, b, v: x + v * a / b, *[(*t, A(1)) for t in THREE], dtypes="float32")
checks.add(
    "ops.lerp Tensor.lerp ops.Lerp",
    lambda x, y, w: x + w * (y - x),
    (A(3, 4), A(4), A(3, 1)),
    (A(5), A(5), 0.3),
    (A(0, 2), A(2), A(1)),
    dtypes="float32",
)
checks.add(
    "ops.where numpy.where ops.select ops.Select",
    np.where,
    (B(3, 4), A(3, 4), A(3, 4)),
    (B(5), A(5), A(5)),
    (B(0, 2), A(0, 2), A(0, 2)),
    dtypes="float32",
)
checks.add(
    "ops.where numpy.where",
    np.where,
    (B(3, 1), A(3, 4), A(4)),
    (B(5), A(5), 2.0),
    (B(2), 1.0, A(3, 2)),
    dtypes="float32",
)
checks.add(
    "Tensor.where",
    lambda x, c, y: np.where(c, x, y),
    (A(3, 4), B(3, 1), A(4)),
    (A(5), B(5), 2.0),
    (A(0, 2), B(2), A(2)),
    dtypes="float32",
)
LIMITS = ((A(3, 4), -0.5, 0.8), (A(5), None, 0.3), (A(0, 2), 0.1, None))
checks.add(
    "ops.clamp Tensor.clamp ops.clip Tensor.clip numpy.clip ops.clip_by_value",
    lambda x, low, high: np.clip(x, low, high),
    *LIMITS,
    (A(2, 3), A(3, low=-1, high=0), A(2, 1, low=0.1, high=1)),
    dtypes="float32",
)
MANY = (([A(3, 4), A(3, 4), A(3, 4)],), ([A(5), A(5)],), ([A(0, 2)],))
checks.add("ops.addn ops.accumulate_n ops.AddN ops.AccumulateNV2", sum, *MANY, dtypes="float32", grad=())
checks.add(
    "ops.SquareSumAll",
    lambda x, y: (np.sum(x * x), np.sum(y * y)),
    (A(3, 4), A(3, 4)),
    (A(5), A(5)),
    (A(1), A(1)),
    dtypes="float32",
)
checks.add(
    "numpy.interp",
    np.interp,
    (A(3, 4), A(4, values=np.array([-1.0, 0.2, 0.7, 1.5])), A(4)),
    (A(5), A(2, values=np.array([-1.0, 1.0])), A(2)),
    (A(2, 2), A(3, values=np.array([-1.0, 0.0, 2.0])), A(3)),
    dtypes="float32",
)
checks.add("numpy.polyval", np.polyval, (A(3), A(3, 4)), (A(1), A(5)), (A(4), A(2, 2)), dtypes="float32")
checks.add(
    "numpy.select",
    lambda c, v, default=0: np.select(c, v, default),
    ([B(3, 4), B(3, 4)], [A(3, 4), A(3, 4)], 0.5),
    ([B(5)], [A(5)]),
    ([B(2, 1), B(2, 1)], [A(2, 1), A(2, 1)], -1.0),
    dtypes="float32",
    grad=(),
)
test_values, test_gradients = checks.tests()

INPLACE = {
    "add_": np.add,
    "sub_": np.subtract,
    "mul_": np.multiply,
    "div_": np.divide,
    "pow_": np.power,
    "floor_divide_": np.floor_divide,
    "remainder_": np.mod,
}
ALONE = {
    "exp_": np.exp,
    "log_": np.log,
    "floor_": np.floor,
    "relu_": lambda x: np.maximum(x, 0),
    "sigmoid_": scipy.special.expit,
    "tanh_": np.tanh,
    "sign_": np.sign,
    "zero_": np.zeros_like,
    "erfinv_": scipy.special.erfinv,
}
CHECKED = {f"Tensor.{n}": "NumPy" for n in (*INPLACE, *ALONE)}


@pytest.mark.parametrize("name", [*INPLACE, *ALONE])
@pytest.mark.parametrize("shape", [(3, 4), (5,), (0, 2)])
def test_writes_in_place(name: str, shape: tuple[int, ...]) -> None:
    x, y = (np.random.default_rng(k).uniform(0.2, 0.9, shape) for k in (1, 2))
    t = Tensor(x)
    more = () if name in ALONE else (y,)
    assert getattr(t, name)(*map(Tensor, more)) is t
    np.testing.assert_allclose(t.asnumpy(), {**INPLACE, **ALONE}[name](x, *more), rtol=1e-10)


def test_element_types_of_results() -> None:
    for name in ("isnan", "isinf", "isfinite", "logical_not", "signbit"):
        assert getattr(ops, name)(Tensor([1.0])).dtype is ms.bool_
    for name in ("exp", "sin", "sqrt", "tanh", "erf", "sigmoid", "rsqrt", "log2"):
        assert getattr(ops, name)(Tensor(np.array([1], np.int32))).dtype is ms.float32
