"""Settings of the process."""

from __future__ import annotations

import logging
import pathlib
import runpy
from collections.abc import Iterator
from typing import Any

import pytest

import mycel as ms
from mycel._src.foundation import log
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.ignored_context_options import OPTIONS

_REMOVED = "an option of older releases, which programs still set"
_USED = "it has an effect here, so a value without meaning is refused"
# What `set_context` does otherwise than MindSpore 2.10, and why.
OTHERWISE = {
    "set_context(precompile_only=True)": _REMOVED,
    "set_context(grad_for_scalar=True)": _REMOVED,
    "set_context(enable_dump=True)": _REMOVED,
    "set_context(save_dump_path='x')": _REMOVED,
    "set_context(memory_offload='ON')": _REMOVED,
    "set_context(max_device_memory='x')": _USED,
    "set_context(auto_tune_mode='x')": _USED,
    "set_context(compile_cache_path=3)": "RuntimeError there comes from the core, which no check precedes",
}


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
        ({"mode": "graph"}, "mode must be a int, not str"),
        ({"device_target": "Ascend"}, "device_target 'Ascend' is not available in this build; it runs on 'CPU'"),
        ({"jit_syntax_level": 7}, "must be STRICT"),
        ({"runtime_num_threads": -1}, "must be at least 0, not -1"),
        ({"runtime_num_threads": 1.5}, "not float"),
        ({"enable_compile_cache": "yes"}, "must be a bool, not str"),
        ({"compile_cache_path": 3}, "must be a str, not int"),
        ({"moed": 1}, "there is no option 'moed'; the options are .*mode"),
    ],
)
def test_wrong_settings_are_named(options: dict[str, Any], text: str) -> None:
    before = dict(config._context)
    with pytest.raises((TypeError, ValueError), match=text):
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


def another(name: str) -> Any:
    """A value of an option other than the one that it has at first."""
    option = OPTIONS[name]
    if name == "env_config_path":
        return __file__
    if option.choices or option.low is not None:
        found: list[Any] = [v for v in (*option.choices, option.low, (option.low or 0) + 1) if v is not None]
        return next(v for v in found if v != option.default)
    kind = option.kinds[0] if option.kinds else type(option.default)
    return {bool: not option.default, str: "x", dict: {"job_type": "1"}, int: 7}[kind]


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_options_for_other_hardware_are_kept_and_logged(name: str) -> None:
    assert ms.get_context(name) == OPTIONS[name].default
    value = {"jit_config": {"jit_level": "O1"}, "save_graphs": 3}.get(name, another(name))
    config._said.clear()
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == (logging.WARNING if name in config._MISSED else logging.INFO):
                records.append(record.getMessage())

    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        ms.set_context(**{name: value})
        ms.set_context(**{name: value})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert ms.get_context(name) == value
    assert len(records) == 1 and f"{name}={value!r}" in records[0] and "no effect" in records[0]


def test_values_are_taken_and_refused_as_by_mindspore() -> None:
    stored = pathlib.Path(__file__).with_name("context_options.txt").read_text(encoding="utf-8")
    wrong = []
    for line in stored.splitlines():
        call, _, outcome = line.partition(" -> ")
        try:
            eval(f"ms.{call}")
            found = "taken"
        except Exception as error:
            found = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
        if (found != outcome) != (call in OTHERWISE):
            wrong.append(f"{call} -> {found}; MindSpore: {outcome}")
    assert not wrong, "\n".join(wrong)


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
            ms.set_context(save_dump_path=value)
    finally:
        logger.removeHandler(caplog.handler)
        logger.setLevel(level)
    assert [r.getMessage() for r in caplog.records if "save_dump_path" in r.getMessage()] == [
        f"set_context(save_dump_path={value!r}) has no effect: there is no Ascend device to dump from"
        for value in ("once", "twice")
    ]


def test_the_documentation_lists_every_option() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for name in config._DEFAULTS:
        assert name in rows
    for name, option in OPTIONS.items():
        logged = "warning" if name in config._MISSED else "info"
        assert rows[name] == f"| `{name}` | `{option.default!r}` | {option.why} | {logged} |"


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
