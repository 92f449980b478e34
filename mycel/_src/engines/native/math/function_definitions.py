"""Elementary and special functions as LLVM IR text over vectors of float32 or float64.

Every definition is straight-line code without memory accesses or calls other than to the intrinsics
fmuladd, sqrt, fabs and copysign, which are instructions on every machine with floating point; so it
vectorises at any width. sin, cos and tan have one branch: where any lane is large, a separate
function, which is not inlined, computes those lanes. The functions are in `exponential`,
`logarithm`, `trigonometric` and `special`, written with `build`; each definition is complete in
itself.

Errors, with fused multiply-add and without: at most 2 units in the last place in float32 and 4 in
float64 (2 for pow, sin, cos and tan), except lgamma and digamma, whose error is absolute near their
zeros and 1e-13 relative elsewhere in float64. Special values follow Annex F of C: NaN for NaN and
outside the domain, signed zeros kept, infinities where the limit is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from mycel._src.engines.native.math import exponential as _exp
from mycel._src.engines.native.math import logarithm as _log
from mycel._src.engines.native.math import special as _special
from mycel._src.engines.native.math import trigonometric as _trig
from mycel._src.engines.native.math.expression_builder import FORMATS, INF, NAN, Builder, Value, fabs, select, type_text
from mycel._src.engines.native.math.range_reduction import TABLE
from mycel._src.foundation.bounded_caches import SOME, Remembered

_BODIES: dict[str, Callable[..., Value]] = {
    "exp": _exp.exp,
    "exp2": _exp.exp2,
    "expm1": _exp.expm1,
    "sigmoid": _exp.sigmoid,
    "sinh": _exp.sinh,
    "cosh": _exp.cosh,
    "tanh": _exp.tanh,
    "log": _log.log_,
    "log2": _log.log2,
    "log10": _log.log10,
    "log1p": _log.log1p,
    "asinh": _log.asinh,
    "acosh": _log.acosh,
    "atanh": _log.atanh,
    "pow": _log.power,
    "rsqrt": _log.reciprocal_sqrt,
    "hypot": _log.two_norm,
    "sin": _trig.sin,
    "cos": _trig.cos,
    "tan": _trig.tan,
    "asin": _trig.asin,
    "acos": _trig.acos,
    "atan": _trig.atan,
    "atan2": _trig.atan2,
    "erf": _special.erf,
    "erfc": _special.erfc,
    "erfinv": _special.erfinv,
    "lgamma": _special.lgamma,
    "digamma": _special.digamma,
}
# Functions with a second definition for arguments beyond a limit.
_LARGE = {name: _trig.LARGE for name in ("sin", "cos", "tan")}
_BINARY = frozenset({"pow", "hypot", "atan2"})

FUNCTIONS: Mapping[str, int] = MappingProxyType({name: 2 if name in _BINARY else 1 for name in _BODIES})
"""The functions and their numbers of arguments: atan2(y, x), pow(x, y) and hypot(x, y) take two."""


def _check(name: str, element: str, lanes: int) -> None:
    if name not in _BODIES:
        raise ValueError(f"no elementary function {name!r}; there are {', '.join(sorted(_BODIES))}")
    if element not in FORMATS:
        raise ValueError(f"{name}: element {element!r} is not supported; widen to 'f32' or 'f64'")
    if lanes < 1 or lanes & (lanes - 1):
        raise ValueError(f"{name}: {lanes} lanes; the number of lanes must be a power of two")


def symbol(name: str, element: str, lanes: int) -> str:
    """Return the name of a function over `lanes` elements of 'f32' or 'f64', without the leading @.

    Raises ValueError for a function, an element or a number of lanes that is not supported.

    >>> symbol("exp", "f32", 16), symbol("exp", "f64", 1)
    ('mycel.exp.v16f32', 'mycel.exp.f64')
    """
    _check(name, element, lanes)
    return f"mycel.{name}.{element}" if lanes == 1 else f"mycel.{name}.v{lanes}{element}"


@Remembered("definitions of vector functions", SOME).calls
def _build(name: str, element: str, lanes: int) -> tuple[str, frozenset[str]]:
    """Return the definition, and the declarations of the functions and tables that it uses."""
    builder = Builder(lanes)
    parameters = ["%x", "%y"][: FUNCTIONS[name]]
    result = _BODIES[name](*[Value(builder, p, element) for p in parameters])
    text = type_text(element, lanes)
    arguments = ", ".join(f"{text} {p}" for p in parameters)
    own = symbol(name, element, lanes)
    if name in _LARGE:
        return _with_large(name, builder, result)
    lines = [
        f"define internal {text} @{own}({arguments}) alwaysinline nounwind {{",
        *builder.lines,
        f"  ret {text} {result.name}",
        "}",
    ]
    return "\n".join(lines) + "\n", frozenset(builder.declarations)


def _with_large(name: str, near: Builder, result: Value) -> tuple[str, frozenset[str]]:
    """Return a definition that calls another one where a lane is large.

    The other lanes keep the results of this one.
    """
    lanes, element = near.lanes, result.kind
    text, own = type_text(element, lanes), symbol(name, element, lanes)
    limit = _LARGE[name]
    beyond = fabs(Value(near, "%x", element)) > limit
    some = beyond.name
    if lanes > 1:
        reduction = f"llvm.vector.reduce.or.v{lanes}i1"
        near.declarations.add(f"declare i1 @{reduction}({near.type('i1')})")
        some = "%some"
        near.lines.append(f"  {some} = call i1 @{reduction}({near.type('i1')} {beyond.name})")
    far = Builder(lanes)
    x = Value(far, "%x", element)
    y = select(fabs(x) < INF, _BODIES[name](x, large=True), NAN)
    y = select(fabs(x) > limit, y, Value(far, "%near", element))
    # Vectors are passed as the caller passes them.
    width = lanes * FORMATS[element].width
    passing = f'"prefer-vector-width"="{width}" "min-legal-vector-width"="{width}"' if lanes > 1 else ""
    lines = [
        f"define internal {text} @{own}({text} %x) alwaysinline nounwind {{",
        "near:",
        *near.lines,
        f"  br i1 {some}, label %far, label %done",
        "far:",
        f"  %large = call {text} @{own}.large({text} %x, {text} {result.name})",
        "  br label %done",
        "done:",
        f"  %result = phi {text} [ {result.name}, %near ], [ %large, %far ]",
        f"  ret {text} %result",
        "}",
        f"define internal {text} @{own}.large({text} %x, {text} %near) noinline cold nounwind {passing} {{",
        *far.lines,
        f"  ret {text} {y.name}",
        "}",
    ]
    return "\n".join(lines) + "\n", frozenset(near.declarations | far.declarations | {TABLE})


def definition(name: str, element: str, lanes: int) -> str:
    """Return the LLVM IR of one function, without the declarations of the intrinsics that it calls.

    Raises ValueError for a function, an element or a number of lanes that is not supported.

    >>> print(definition("rsqrt", "f32", 1))
    define internal float @mycel.rsqrt.f32(float %x) alwaysinline nounwind {
      %t0 = call float @llvm.sqrt.f32(float %x)
      %t1 = fdiv float 0x3FF0000000000000, %t0
      ret float %t1
    }
    <BLANKLINE>
    """
    _check(name, element, lanes)
    return _build(name, element, lanes)[0]


def definitions(requests: Iterable[tuple[str, str, int]]) -> str:
    """Return the LLVM IR of functions requested as (name, element, lanes).

    Each function, and each declaration of an intrinsic, appears once. Raises ValueError for a
    function, an element or a number of lanes that is not supported.

    >>> requests = [("exp", "f32", 8), ("log", "f32", 8), ("exp", "f32", 8)]
    >>> definitions(requests).count("define internal")
    2
    """
    unique = list(dict.fromkeys(requests))
    for request in unique:
        _check(*request)
    built = [_build(*request) for request in unique]
    declarations = sorted(set().union(*[declared for _, declared in built]))
    return "\n".join([*[text for text, _ in built], *declarations, ""])
