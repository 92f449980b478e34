"""The checks of arguments and the decorators that libraries import from inside MindSpore."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import mycel as ms
from mycel import nn
from mycel.compat import checkparam, deprecated_names

# What MindSpore 2.10 says to the same calls.
REFUSED: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (
        checkparam.check_positive_int,
        (-1, "n", "Dense"),
        ValueError,
        "For 'Dense', the 'n' must be int and must > 0, but got '-1' with type 'int'.",
    ),
    (
        checkparam.check_positive_int,
        (1.5, "n", "Dense"),
        TypeError,
        "For 'Dense', the 'n' must be int, but got 'float'",
    ),
    (checkparam.check_positive_int, (True, "n", "Dense"), TypeError, "must be int"),
    (
        checkparam.check_value_type,
        ("x", 1, [str], "Dense"),
        TypeError,
        "For 'Dense', the type of 'x' should be 'str', but got type 'int'.",
    ),
    (
        checkparam.check_string,
        ("a", ["b", "c"], "mode", "Conv"),
        ValueError,
        "For 'Conv', the 'mode' must be str and must be in '['b', 'c']', but got 'a'.",
    ),
    (
        checkparam.check_float_range,
        (2.0, 0, 1, checkparam.INC_LEFT, "p", "Dropout"),
        ValueError,
        "For 'Dropout', the 'p' must be in range of [0, 1), but got 2.0 with type 'float'.",
    ),
    (checkparam.check_bool, (1, "b", "C"), TypeError, "For 'C', the 'b' must be a bool, but got int."),
    (
        checkparam.check_int,
        (3, 4, checkparam.GE, "v", "P"),
        ValueError,
        "For 'P', the 'v' must be int and must >= 4, but got '3' with type 'int'.",
    ),
    (checkparam.check, ("n", 3, "size", 4, checkparam.EQ, "P"), ValueError, "'n' must be = 'size' 4"),
    (checkparam.check, ("n", 3, "", [4, 5], checkparam.INC_BOTH, "P"), ValueError, "in range of [4, 5]"),
    (
        checkparam.check_type_name,
        ("x", ms.int32, [ms.float32], "P"),
        TypeError,
        "should be one of (Float32), but got Int32",
    ),
    (
        checkparam.check_types_same_and_valid,
        ({"x": ms.int32, "y": ms.float32}, [ms.float32, ms.int32], "P"),
        TypeError,
        "must be the same",
    ),
    (checkparam.check_subclass, ("x", int, (str,), "P"), TypeError, "subclass"),
    (checkparam.check_positive_int_sequence, ([1, 0], "sizes"), ValueError, "sizes[1]"),
    (checkparam.check_is_int, (1.0, "n"), TypeError, "must be int"),
]


@pytest.mark.parametrize("check, args, error, text", REFUSED)
def test_refused(check: Any, args: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        check(*args)
    assert text in str(caught.value)


def test_values_are_given_back() -> None:
    assert checkparam.check_positive_int(3, "n") == 3 and checkparam.check_non_negative_float(0) == 0
    assert (
        checkparam.check_float_range(0.0, 0.0, 1.0, checkparam.Rel.INC_LEFT) == 0.0
        and checkparam.check_int_range(3, 1, 3, checkparam.INC_RIGHT) == 3
    )
    assert (
        checkparam.check_value_type("x", None, [int, type(None)]) is None
        and checkparam.check_value_type("b", True, [bool]) is True
    )
    assert checkparam.check_string("b", ["b"], "m") == "b" and checkparam.check_bool(False) is False
    assert (
        checkparam.check_subclass("x", nn.Dense, nn.Cell, "P") is nn.Dense
        and checkparam.check_type_name("x", ms.int8, ms.int8, "P") == ms.int8
    )
    assert (checkparam.once(1), checkparam.twice(2), checkparam.triple((1, 2, 3))) == ((1,), (2, 2), (1, 2, 3))
    assert checkparam.Validator.check_positive_int(2, "n") == 2 and list(checkparam.Rel) == list(range(1, 13))
    # The class of older releases and the function of today take the same arguments.
    for check in (checkparam.Validator.check_number, checkparam.check_number):
        assert check("clip_norm", 1.5, 0.0, checkparam.Rel.GT, "Clip") == 1.5
        with pytest.raises(ValueError, match="'clip_norm' must be > '' 0.0, but got -1"):
            check("clip_norm", -1, 0.0, checkparam.Rel.GT, "Clip")


def test_types_of_arguments() -> None:
    @checkparam.args_type_check(x=int, name=str)
    def f(x: Any, name: Any = None) -> Any:
        return x, name

    assert f(1) == (1, None) and f(1, name="a") == (1, "a")
    with pytest.raises(TypeError, match="'name'"):
        f(1, name=2)


def test_decorated_constructors_keep_what_they_were_given() -> None:
    class Mine(nn.SGD):
        @deprecated_names.opt_init_args_register
        def __init__(self, params: Any, learning_rate: float = 0.1, extra: int = 3) -> None:
            super().__init__(params, learning_rate)

    weights = list(nn.Dense(1, 1).get_parameters())
    made = Mine(weights, extra=4)
    assert made.init_learning_rate == 0.1 and made.init_params == {"params": weights} and made.init_args == {"extra": 4}

    class Layer(nn.Cell):
        @deprecated_names.cell_attr_register(attrs="width")
        def __init__(self, width: int, depth: int = 2) -> None:
            super().__init__()

    layer = Layer(5)
    assert layer.width == 5 and not hasattr(layer, "depth") and "'depth': 2" in layer.cell_init_args
    assert list(inspect.signature(Layer).parameters) == ["width", "depth"]


def test_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    from mycel import compat

    compat.install()
    try:
        import mindspore
        from mindspore import log
        from mindspore._checkparam import Validator
        from mindspore.nn.cell import Cell
        from mindspore.nn.optim.optimizer import opt_init_args_register
        from mindspore.ops.auto_generate import Transpose
        from mindspore.ops.function.array_func import reshape
        from mindspore.version import __version__

        assert (
            mindspore.ms_function is ms.jit
            and Cell is nn.Cell
            and Transpose is ms.ops.Transpose
            and reshape is ms.ops.reshape
        )
        assert (
            Validator is checkparam.Validator
            and opt_init_args_register is deprecated_names.opt_init_args_register
            and __version__ == "2.10.0"
        )
        heard: list[str] = []
        monkeypatch.setattr(ms.log.logger.handlers[0], "emit", lambda record: heard.append(record.getMessage()))
        log.warning("%d of %d", 1, 2)
        assert heard == ["1 of 2"]
    finally:
        compat.uninstall()
