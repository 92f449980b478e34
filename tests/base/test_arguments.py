"""Check the checks: what each takes, what it gives back, and the words for what it refuses."""

import enum
import os
import pathlib
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError

Colour = enum.IntEnum("Colour", "RED GREEN")
NAN = float("nan")


def check(function: str, *args: Any, **options: Any) -> Callable[[], Any]:
    """A call with the owner "f" and the parameter "x"."""
    return lambda: getattr(arguments, function)("f", "x", *args, **options)


ACCEPTED = [
    (check("integer", 3), 3),
    (check("integer", np.int8(3)), 3),
    (check("integer", Colour.GREEN), 2),
    (check("integer", 3, 3, 3), 3),
    (check("integer", True, flags=True), 1),
    (check("integer", 3, numpy=False), 3),
    (check("index", np.uint8(3)), 3),
    (check("index", True), 1),
    (check("index", ms.Tensor(3)), 3),
    (check("int64", -(2**63 - 1)), -(2**63 - 1)),
    (check("number", 2), 2.0),
    (check("number", np.float32(0.5), 0.5, None, 0.5), 0.5),
    (check("number", Fraction(1, 2), None, 0.0, None, 1.0), 0.5),
    (check("number", NAN), NAN),
    (check("number", np.float64(0.5), numpy=False), 0.5),
    (check("number", 2, numpy=False), 2.0),
    (check("real", np.float32(0.5), 0.5, below=1), 0.5),
    (check("real", NAN), NAN),
    (check("flag", False), False),
    (check("flag", 2, integers=True), True),
    (check("flag", np.False_, integers=True), False),
    (check("text", ""), ""),
    (check("text", np.str_("a")), "a"),
    (check("choice", "a", ("a", "b")), "a"),
    (check("one_of", None, ("a", None)), None),
    (check("one_of", "a", {"a": 1}), "a"),
    (check("sequence", [1]), [1]),
    (check("mapping", OrderedDict(a=1)), {"a": 1}),
    (check("sizes", 2, 3), (2, 2, 2)),
    (check("sizes", [2], 3), (2, 2, 2)),
    (check("sizes", (1, 2), 2), (1, 2)),
    (check("sizes", (2,), 2, lists=False), (2, 2)),
    (check("sizes", 0, 1, at_least=0), (0,)),
    (check("instance", "a", (int, str)), "a"),
    (check("optional", None, int), None),
    (check("optional", 1, (int, str)), 1),
    (check("function", abs), abs),
    (check("path", pathlib.Path("a")), pathlib.Path("a")),
]

REFUSED = [
    (check("integer", "3"), TypeError, "an int, not str"),
    (check("integer", 3.0), TypeError, "an int, not float"),
    (check("integer", True), TypeError, "an int, not bool"),
    (check("integer", None, error=ValueError), ValueError, "an int, not NoneType"),
    (check("integer", np.int8(3), numpy=False), TypeError, "an int, not numpy.int8"),
    (check("integer", ms.Tensor(3)), TypeError, "an int, not Tensor"),
    (check("integer", 0, 1), ValueError, "at least 1, not 0"),
    (check("integer", np.int8(0), 1), ValueError, "at least 1, not 0"),
    (check("integer", 9, None, 8), ValueError, "at most 8, not 9"),
    (check("integer", 9, None, 8, error=KeyError), KeyError, "at most 8, not 9"),
    (check("integer", -(10**5000), 0), ValueError, "at least 0, not int of too many digits"),
    (check("index", 1.0), TypeError, "an int, not float"),
    (check("index", ms.Tensor(1.0)), TypeError, "an int, not Tensor"),
    (check("int64", 2**63), OverflowError, f"within 2**63 - 1, not {2**63}"),
    (check("int64", "a"), TypeError, "an int, not str"),
    (check("number", True), TypeError, "a number, not bool"),
    (check("number", "1"), TypeError, "a number, not str"),
    (check("number", 1j), TypeError, "a number, not complex"),
    (check("number", Fraction(1, 2), numpy=False), TypeError, "a number, not fractions.Fraction"),
    (check("number", -1, 0.0), ValueError, "at least 0.0, not -1"),
    (check("number", 0.0, None, 0), ValueError, "above 0, not 0.0"),
    (check("number", np.float32(2), None, None, 1), ValueError, "at most 1, not 2.0"),
    (check("number", 1, None, None, None, 1), ValueError, "below 1, not 1"),
    (check("number", NAN, 0), ValueError, "at least 0, not nan"),
    (check("real", 1), TypeError, "a float, not int"),
    (check("real", True), TypeError, "a float, not bool"),
    (check("real", 1.0, above=0, below=1), ValueError, "below 1, not 1.0"),
    (check("flag", 1), TypeError, "a bool, not int"),
    (check("flag", np.True_), TypeError, f"a bool, not numpy.{np.bool_.__name__}"),
    (check("flag", 1.0, integers=True), TypeError, "a bool, not float"),
    (check("flag", "a", error=ValueError), ValueError, "a bool, not str"),
    (check("text", b"a"), TypeError, "a string, not bytes"),
    (check("text", 1, what="a name"), TypeError, "a name, not int"),
    (check("text", "", empty=False), ValueError, "a string that is not empty, not ''"),
    (check("text", 1, empty=False, error=ValueError), ValueError, "a string, not int"),
    (check("choice", 1, ("a", "b")), TypeError, "a string, not int"),
    (check("choice", "c", ("a", "b")), ValueError, "one of 'a', 'b', not 'c'"),
    (check("choice", "c", ("a",)), ValueError, "'a', not 'c'"),
    (check("one_of", 1, ("a", None)), ValueError, "one of 'a', None, not 1"),
    (check("one_of", [], {"a": 1}), ValueError, "'a', not []"),
    (check("one_of", "x" * 99, ("a",)), ValueError, f"'a', not '{'x' * 76}..."),
    (check("sequence", {1}), TypeError, "a tuple or a list, not set"),
    (check("sequence", "ab", "a list of names"), TypeError, "a list of names, not str"),
    (check("mapping", [1]), TypeError, "a dict, not list"),
    (check("sizes", 0, 2), ValueError, "at least 1, not 0"),
    (check("sizes", (1, 2, 3), 2), ValueError, "an int or 2 of them, not (1, 2, 3)"),
    (check("sizes", "a", 2), TypeError, "an int, not str"),
    (check("sizes", [1, 2], 2, lists=False), TypeError, "an int or a tuple of ints, not list"),
    (check("sizes", (1, 2, 3), 2, miscounted=TypeError), TypeError, "an int or 2 of them, not (1, 2, 3)"),
    (check("instance", 1, str), TypeError, "a string, not int"),
    (check("instance", 1, ms.nn.Cell), TypeError, "a Cell, not int"),
    (
        check("instance", 1, (np.ndarray, OrderedDict, bytes)),
        TypeError,
        "a NumPy array, an OrderedDict or bytes, not int",
    ),
    (check("instance", 1, str, "a name"), TypeError, "a name, not int"),
    (check("optional", 1, str), TypeError, "a string or None, not int"),
    (check("function", 1), TypeError, "a function, not int"),
    (check("path", 1), TypeError, "a path, not int"),
]


@pytest.mark.parametrize("call, result", ACCEPTED)
def test_what_is_accepted(call: Callable[[], Any], result: Any) -> None:
    found = call()
    assert found == result or found is result
    assert type(found) is type(result) or isinstance(found, (str, float, dict, os.PathLike))


@pytest.mark.parametrize("call, error, text", REFUSED)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert caught.value.args == (f"f: x must be {text}",)


def test_sizes_name_the_one_that_is_refused() -> None:
    with pytest.raises(ValueError, match="^f: each of x must be at least 1, not 0$"):
        arguments.sizes("f", "x", (1, 0), 2)
    with pytest.raises(TypeError, match="^f: each of x must be an int, not float$"):
        arguments.sizes("f", "x", (1, 0.5), 2)


def test_an_index_that_is_not_known_while_staging_is_asked_for() -> None:
    @ms.jit(fullgraph=True)
    def f(x: Any) -> Any:
        arguments.index("f", "x", x)
        return x

    with pytest.raises(CompileError, match="use as an index needs the value of a tensor"):
        f(ms.Tensor(3))


def test_the_caller_raises_the_errors_for_what_has_no_check() -> None:
    assert str(arguments.wrong_type("f", "x", "a pair", 1)) == "f: x must be a pair, not int"
    found = arguments.wrong_value("f", "x", "0 or 1", np.int64(2), TypeError)
    assert type(found) is TypeError and str(found) == "f: x must be 0 or 1, not 2"
