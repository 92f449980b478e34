"""Cells and settings whose classes have attributes by the user's own code, as those of model
libraries.
"""

from __future__ import annotations

from typing import Any

import mycel as ms
from mycel import nn


class Settings:
    """Settings with further names for some of them, and settings that follow from others."""

    names = {"width": "hidden_size"}

    def __init__(self) -> None:
        self.hidden_size = 2
        self.pair = False

    def __getattribute__(self, key: str) -> Any:
        names = super().__getattribute__("names")
        return super().__getattribute__(names.get(key, key))


class Asked(nn.Cell):
    """A Cell that looks up unknown names in its settings."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()
        self.dense = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")
        self.layers = nn.CellList([nn.ReLU()])

    def __getattr__(self, name: str) -> Any:
        if "settings" in self.__dict__ and name in vars(self.__dict__["settings"]):
            return getattr(self.__dict__["settings"], name)
        return super().__getattr__(name)

    def construct(self, x: Any) -> Any:
        x = self.dense(x) * self.settings.width
        for layer in self.layers:
            x = layer(x)
        return (x, x) if self.settings.pair else (x,)


class Outer(nn.Cell):
    """A Cell around one that has settings."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Asked()

    def construct(self, x: Any) -> Any:
        return self.inner(x)[0] + self.inner.hidden_size


def test_they_are_one_graph() -> None:
    x = ms.ops.ones((1, 2))
    for net, expected in ((Asked(), [4.0, 4.0]), (Outer(), [6.0, 6.0])):
        assert ms.explain(net, x).breaks == []
        result = ms.jit(net, fullgraph=True)(x)
        assert (result[0] if isinstance(result, tuple) else result)[0].tolist() == expected


def test_what_they_read_is_guarded() -> None:
    net = Asked()
    run = ms.jit(net)
    assert len(run(ms.ops.ones((1, 2)))) == 1
    net.settings.pair = True
    net.settings.hidden_size = 3
    first, second = run(ms.ops.ones((1, 2)))
    assert first.tolist() == second.tolist() == [[6.0, 6.0]]
