"""Names that are not served: they are there, and say what to use instead where a program uses
them.
"""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from mycel import nn, ops
from mycel._src.foundation.errors import Unsupported
from mycel.compat.unserved import Group, served_on_request, signature_of, unserved_class

find = served_on_request(
    "mindspore.demo",
    (
        Group(
            "runs on Ascend devices only; use ops.matmul",
            functions=("quant_matmul(x, weight, *, scale=None)", "plain"),
            classes=("Queue(size, name='q')",),
            operations=("QuantMatmul(bits=8)",),
        ),
    ),
)
ERROR = r"^mindspore\.demo\.%s runs on Ascend devices only; use ops\.matmul$"


def test_functions() -> None:
    function = find("quant_matmul")
    assert function is find("quant_matmul") and function.__name__ == "quant_matmul"
    assert function.__module__ == "mindspore.demo"
    assert str(inspect.signature(function)) == "(x, weight, *, scale=None)"
    with pytest.raises(Unsupported, match=ERROR % "quant_matmul"):
        function(1, 2)
    with pytest.raises(Unsupported, match=ERROR % "plain"):
        find("plain")()
    with pytest.raises(AttributeError, match="'mindspore.demo' has no attribute 'none'"):
        find("none")


def test_classes() -> None:
    made: Any = find("Queue")
    assert str(inspect.signature(made)) == "(size, name='q')" and not isinstance(3, made)

    class Mine(made):
        pass

    with pytest.raises(Unsupported, match=ERROR % "Queue"):
        Mine(3)
    with pytest.raises(Unsupported, match=ERROR % "Queue"):
        made()


def test_operations() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.matmul = find("QuantMatmul")(bits=4)

        def construct(self, x: object) -> object:
            return self.matmul(x)

    net = Net()
    assert isinstance(net.matmul, ops.Primitive) and net.matmul.name == "QuantMatmul"
    with pytest.raises(Unsupported, match=ERROR % "QuantMatmul"):
        net(ops.ones((2,)))


def test_members() -> None:
    made = unserved_class("mindspore.demo.Table", "is a server's; use nn.Embedding", members={"SLICE": "rows"})
    assert made.SLICE == "rows" and made.__doc__ == "Raise Unsupported when used: this is a server's; use nn.Embedding."
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(made)


@pytest.mark.parametrize("text", ["()", "(a, /, b, *, c=1, **rest)", "(a, b=float32, *args)", "(x=-1, y=(1, 2))"])
def test_signatures(text: str) -> None:
    assert str(signature_of(text)) == text
