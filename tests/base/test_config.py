"""Settings of the process."""

from __future__ import annotations

import logging
import pathlib
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

import mycel as ms
from mycel.base import config, log
from mycel.base.log import logger


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Every test starts from the settings as they are, and gives them back."""
    before = dict(config._context)
    yield
    config._context.clear()
    config._context.update(before)


def test_what_is_set_is_got() -> None:
    for name, value in [
        ("mode", ms.GRAPH_MODE),
        ("max_call_depth", 50),
        ("jit_syntax_level", ms.STRICT),
        ("op_timeout", 9),
    ]:
        ms.set_context(**{name: value})
        assert ms.get_context(name) == value
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU", device_id=0)
    assert (ms.get_context("mode"), ms.get_context("device_target")) == (1, "CPU")
    assert (ms.GRAPH_MODE, ms.PYNATIVE_MODE, ms.STRICT, ms.COMPATIBLE, ms.LAX) == (0, 1, 0, 1, 2)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"mode": 2}, r"mode must be GRAPH_MODE \(0\) or PYNATIVE_MODE \(1\), not 2"),
        ({"mode": "graph"}, "not 'graph'"),
        ({"device_target": "Ascend"}, "device_target 'Ascend' is not available in this build; it runs on 'CPU'"),
        ({"jit_syntax_level": 7}, "must be STRICT"),
        ({"runtime_num_threads": -1}, "must be at least 0, not -1"),
        ({"runtime_num_threads": 1.5}, "not float"),
        ({"enable_compile_cache": "yes"}, "must be a bool, not str"),
        ({"compile_cache_path": 3}, "must be a string, not int"),
        ({"moed": 1}, "there is no option 'moed'; the options are .*mode"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], text: str) -> None:
    before = dict(config._context)
    with pytest.raises(ValueError, match=text):
        ms.set_context(**options)
    assert config._context == before


def test_a_call_with_one_wrong_option_changes_nothing() -> None:
    before = ms.get_context("runtime_num_threads")
    with pytest.raises(ValueError):
        ms.set_context(runtime_num_threads=before + 1, mode=9)
    assert ms.get_context("runtime_num_threads") == before


def test_an_option_that_does_not_exist_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="there is no option 'colour'; the options are .*device_target"):
        ms.get_context("colour")


@pytest.mark.parametrize("name", sorted(config._NO_EFFECT))
def test_options_for_other_hardware_are_kept_and_logged(name: str) -> None:
    assert ms.get_context(name) == config._NO_EFFECT[name][0]
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == (logging.WARNING if name in config._MISSED else logging.INFO):
                records.append(record.getMessage())

    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        ms.set_context(**{name: "x"})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert ms.get_context(name) == "x"
    assert len(records) == 1 and f"{name}='x'" in records[0] and "no effect" in records[0]


def test_the_mode_decides_how_cells_run() -> None:
    class Probe(ms.nn.Cell):
        def construct(self, x: Any) -> Any:
            return x + 1

    ms.set_context(mode=ms.GRAPH_MODE)
    cell = Probe()
    assert float(cell(ms.Tensor(1.0))) == 2 and cell.__dict__["_compiled_call"] is not None
    ms.set_context(mode=ms.PYNATIVE_MODE)
    cell = Probe()
    assert float(cell(ms.Tensor(1.0))) == 2 and cell.__dict__["_compiled_call"] is None


def test_where_compiled_objects_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("MYCEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert config.cache_directory() == tmp_path / "mycel"
    config._context["compile_cache_path"] = str(tmp_path / "chosen")
    assert config.cache_directory() == tmp_path / "chosen"
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "environment"))
    assert config.cache_directory() == tmp_path / "environment"
    monkeypatch.delenv("MYCEL_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    config._context["compile_cache_path"] = ""
    assert config.cache_directory() == tmp_path / ".cache" / "mycel"


def test_listeners_hear_of_changes() -> None:
    heard: list[dict[str, Any]] = []
    config.listeners.append(heard.append)
    try:
        ms.set_context(mode=ms.PYNATIVE_MODE, device_id=0)
    finally:
        config.listeners.remove(heard.append)
    assert heard == [{"mode": 1, "device_id": 0}]


def test_an_option_without_effect_is_logged_once_for_each_value(caplog: pytest.LogCaptureFixture) -> None:
    logger.addHandler(caplog.handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        for value in ("once", "twice", "once"):
            ms.set_context(env_config_path=value)
    finally:
        logger.removeHandler(caplog.handler)
        logger.setLevel(level)
    assert [r.getMessage() for r in caplog.records if "env_config_path" in r.getMessage()] == [
        f"set_context(env_config_path={value!r}) has no effect: there is no Ascend runtime"
        for value in ("once", "twice")
    ]


def test_the_documentation_lists_every_option() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for name in config._DEFAULTS:
        assert name in rows
    for name, (value, why) in config._NO_EFFECT.items():
        logged = "warning" if name in config._MISSED else "info"
        assert rows[name] == f"| `{name}` | `{value!r}` | {why} | {logged} |"


@pytest.mark.parametrize(
    "given, level",
    [
        ({}, 30),
        ({"GLOG_v": "1"}, 20),
        ({"GLOG_v": "4"}, 50),
        ({"GLOG_v": "x"}, 30),
        ({"GLOG_v": "1", "MYCEL_LOG": "error"}, 40),
    ],
)
def test_the_environment_sets_the_level(given: dict[str, str], level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GLOG_v", "MYCEL_LOG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    handlers, before = list(logger.handlers), logger.level
    logger.handlers.clear()
    try:
        runpy.run_path(str(log.__file__))
        assert logger.level == level
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(before)
