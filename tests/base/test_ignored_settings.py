"""What programs ask for and what changes nothing is said once: that values be on the host."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.settings import config, ignored_settings
from mycel.compat import deprecated_names


def parameter() -> ms.Parameter:
    return ms.Parameter(ms.Tensor([1.0]), name="w")


ASKING: list[tuple[str, Callable[[], Any]]] = [
    ("Parameter(device='CPU')", lambda: ms.Parameter(ms.Tensor([1.0]), name="w", device="CPU")),
    ("Cell.offload", lambda: nn.Dense(2, 2).offload()),
    ("Adam(use_offload=True)", lambda: nn.Adam([parameter()], use_offload=True)),
    ("AdamOffload", lambda: nn.AdamOffload([parameter()])),
    ("set_offload_context(hbm_ratio=...)", lambda: deprecated_names.set_offload_context({"hbm_ratio": 1.0})),
]


@pytest.mark.parametrize("target", ["CPU", "GPU"])
@pytest.mark.parametrize(("what", "ask"), ASKING, ids=[what for what, _ in ASKING])
def test_who_asks_for_the_hosts_memory_is_told_once(
    what: str, ask: Callable[[], Any], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, str]] = []
    for level, name in ((logging.INFO, "info"), (logging.WARNING, "warning")):
        monkeypatch.setattr(
            ignored_settings.logger, name, lambda text, *given, level=level: told.append((level, text % given))
        )
    monkeypatch.setattr(ignored_settings, "_said", set())
    monkeypatch.setitem(config._context, "device_target", target)
    ask()
    ask()
    expected = (logging.INFO, "all values are in the host's memory")
    if target == "GPU":
        expected = (logging.WARNING, "values stay in the memory of the GPU")
    found = [(level, text) for level, text in told if text.startswith(f"{what} has no effect: {expected[1]}")]
    assert len(found) == 1 and found[0][0] == expected[0], told
