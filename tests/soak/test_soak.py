"""Whether growth is found, on series that are known; `make soak` measures real ones."""

from __future__ import annotations

from tests.soak.__main__ import growth, verdict


def history(**series):
    return [dict(zip(series, values)) for values in zip(*series.values())]


def test_growth_is_what_a_line_rises():
    assert growth([5.0] * 20) == 0
    assert abs(growth([float(k) for k in range(100)]) - 100) < 1


def test_what_grows_is_named():
    flat = [100.0 + k % 3 for k in range(60)]
    leak = [3.0 + k // 10 for k in range(60)]
    grown, lines = verdict(history(**{"resident MiB": flat, "descriptors": leak, "threads": [2.0] * 60}))
    assert grown == ["descriptors"]
    assert len(lines) == 3
