"""MindSpore's profilers: schedules, steps, handlers, files, marks, monitors, and options of other
hardware.
"""

from __future__ import annotations

import inspect
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import profiler
from mycel.profiler import (
    AicoreMetrics,
    DynamicProfilerMonitor,
    EnvProfiler,
    ExportType,
    Machine,
    Profiler,
    ProfilerAction,
    ProfilerActivity,
    ProfilerLevel,
    mstx,
    profile,
    schedule,
    tensorboard_trace_handler,
)
from mycel.profiler.output import OUTPUT

LIMITS = Machine("a test", 1, (1 << 16, 1 << 24), {1: (1e10, 1e9)}, {1: 1e10})


@pytest.fixture(autouse=True)
def limits(monkeypatch: Any) -> None:
    """Let no test measure the machine."""
    monkeypatch.setattr("mycel.profiler.report.this_machine", lambda: LIMITS)


def work() -> None:
    ms.Tensor(np.ones(4, np.float32)) + 1


# What MindSpore 2.10 answers for the same schedules.
@pytest.mark.parametrize(
    "options,expected",
    [
        (dict(wait=1, active=2, warmup=1, repeat=2, skip_first=1), "N N W R S N W R S N N N N N"),
        (dict(wait=1, active=1, warmup=0, repeat=0), "N S N S N S"),
        (dict(wait=0, active=1), "S S S S S S"),
    ],
)
def test_schedules(options: Any, expected: str) -> None:
    plan = schedule(**options)
    letters = {"NONE": "N", "WARM_UP": "W", "RECORD": "R", "RECORD_AND_SAVE": "S"}
    assert [letters[plan(k).name] for k in range(len(expected.split()))] == expected.split()
    assert plan.to_dict() == {"wait": 0, "active": 1, "warmup": 0, "repeat": 0, "skip_first": 0, **options}


@pytest.mark.parametrize(
    "options,expected",
    [
        (dict(wait=-1, active=1), dict(wait=0, active=1)),
        (dict(wait=0, active=0), dict(wait=0, active=1)),
        (dict(wait="a", active=1), dict(wait=0, active=1)),
        (dict(wait=1, active=1, repeat=-2), dict(wait=1, active=1, repeat=0)),
        (dict(wait=1.5, active=1), dict(wait=0, active=1)),
    ],
)
def test_wrong_numbers_of_a_schedule_become_the_defaults(options: Any, expected: Any, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")
    assert expected.items() <= schedule(**options).to_dict().items()
    assert "must be a whole number" in caplog.text
    assert repr(schedule(wait=1, active=2)) == "Schedule(wait=1, active=2, warmup=0, repeat=0, skip_first=0)"


def test_a_loop_is_recorded_as_its_schedule_says() -> None:
    found: list[Any] = []

    def handler(session: Any) -> None:
        names = [name for _, _, name in session.result.report.recording.marks]
        found.append((sum(k.count for k in session.result.kernels), names))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=handler) as p:
        for _ in range(10):
            work()
            p.step()
    assert found == [(2, ["step 2", "step 3"]), (2, ["step 6", "step 7"])]


def test_an_unfinished_recording_is_given_at_the_end() -> None:
    found: list[int] = []
    with profile(
        schedule=schedule(wait=1, active=5), on_trace_ready=lambda s: found.append(s.result.kernels[0].count)
    ) as p:
        for _ in range(3):
            work()
            p.step()
    assert found == [2]


def test_without_a_schedule_all_is_recorded(tmp_path: Path) -> None:
    made = profile(start_profile=False, on_trace_ready=tensorboard_trace_handler(str(tmp_path), "me"))
    work()
    made.start()
    made.add_metadata("who", "a test")
    made.add_metadata_json("what", '{"a": [1]}')
    work()
    made.stop()
    assert [k.count for k in made.result.kernels] == [1]
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("me_") and (folder / OUTPUT / "trace_view.json").is_file()
    assert json.loads((folder / "profiler_metadata.json").read_text()) == {"who": "a test", "what": {"a": [1]}}
    with pytest.raises(RuntimeError, match="has not begun"):
        made.stop()
    with pytest.raises(RuntimeError, match="before start"):
        made.step()


def test_profiler_begins_at_once_and_writes_when_analysed(tmp_path: Path, monkeypatch: Any) -> None:
    made = Profiler(output_path=str(tmp_path), profiler_level=ProfilerLevel.Level1, activities=[ProfilerActivity.CPU])
    with pytest.raises(RuntimeError, match="begun already"):
        made.start()
    for _ in range(3):
        work()
        made.step()
    made.analyse(step_list=[1], pretty=True)
    (folder,) = tmp_path.iterdir()
    assert made.written == [folder]
    lines = (folder / OUTPUT / "kernel_details.csv").read_text().splitlines()
    assert len(lines) == 2 and lines[1].startswith("add,kernel")
    steps = (folder / OUTPUT / "step_trace_time.csv").read_text().splitlines()
    assert len(steps) == 2 and steps[1].startswith("1,")
    (statistics,) = json.loads(made.op_analyse("add"))["add"]
    assert statistics["op_occurrences"] == 3 and statistics["bytes"] == 3 * (16 + 4 + 16)
    assert json.loads(made.op_analyse(["conv"])) == {"conv": []}
    said: list[str] = []
    monkeypatch.setattr(profiler.session.logger, "error", lambda text, *parts: said.append(text % parts))
    for look in (Profiler.offline_analyse, profiler.analyse):
        look(str(tmp_path))
        assert not said
        look(str(tmp_path / "nothing"))
        assert said.pop().endswith("there is no profile under " + str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="mode"):
        made.analyse(mode="later")
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        Profiler(start_profile=False).analyse()


def test_marks_appear_only_in_profiles() -> None:
    assert mstx.range_start("outside") == 0
    mstx.range_end(0)
    with ms.profile(machine=LIMITS) as p:
        number = mstx.range_start("inside", domain="data")
        mstx.mark("now")
        mstx.range_end(number)
    marks = p.report.recording.marks
    assert [name for _, _, name in marks] == ["now", "data: inside"]
    assert marks[0][0] == marks[0][1] and marks[1][0] <= marks[0][0] <= marks[1][1]
    for wrong in ("", 3):
        with pytest.raises(TypeError, match="message must be a text"):
            mstx.mark(wrong)


@pytest.mark.parametrize(
    "options,said",
    [
        (dict(activities=[ProfilerActivity.NPU]), "ProfilerActivity.NPU has no effect"),
        (dict(hbm_ddr=True), "hbm_ddr has no effect: there is no HBM"),
        (dict(pcie=True), "pcie has no effect"),
        (dict(parallel_strategy=True), "parallel_strategy has no effect"),
        (
            dict(experimental_config=profiler._ExperimentalConfig(aic_metrics=AicoreMetrics.Memory)),
            "aic_metrics has no effect",
        ),
        (dict(experimental_config=profiler._ExperimentalConfig(l2_cache=True)), "l2_cache has no effect"),
        (
            dict(experimental_config=profiler._ExperimentalConfig(export_type=[ExportType.Db])),
            "ExportType.Db has no effect",
        ),
    ],
)
def test_options_of_other_hardware_say_so(options: Any, said: str, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "mycel")
    profile(start_profile=False, **options)
    assert said in caplog.text
    caplog.clear()
    Profiler(start_profile=False, **options)
    assert said in caplog.text


def test_wrong_options_are_refused() -> None:
    with pytest.raises(TypeError, match="no option 'colour'"):
        Profiler(start_profile=False, colour="red")
    with pytest.raises(TypeError, match="activities"):
        profile(start_profile=False, activities=["CPU"])
    with pytest.raises(TypeError, match="schedule must be a function"):
        profile(start_profile=False, schedule=3)
    with pytest.raises(TypeError, match="dir_name"):
        tensorboard_trace_handler(3)


def test_the_environment_can_ask(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MS_PROFILER_OPTIONS", json.dumps({"start": True, "output_path": str(tmp_path)}))
    EnvProfiler.init_profiler()
    work()
    EnvProfiler().analyse()
    assert len(list(tmp_path.glob(f"*/{OUTPUT}/trace_view.json"))) == 1 and EnvProfiler.profiler is None
    monkeypatch.setenv("MS_PROFILER_OPTIONS", json.dumps({"start": True, "schedule": 1}))
    with pytest.raises(ValueError, match="schedule"):
        EnvProfiler.init_profiler()


def test_a_monitor_profiles_the_steps_that_its_file_names(tmp_path: Path) -> None:
    config = tmp_path / "config"
    monitor = DynamicProfilerMonitor(str(config), str(tmp_path / "out"), poll_interval=1e-9)
    assert json.loads((config / "profiler_config.json").read_text()) == {"start_step": -1, "stop_step": -1}
    for step in range(1, 8):
        if step == 2:
            (config / "profiler_config.json").write_text('{"start_step": 4, "stop_step": 5}')
        if step == 6:
            (config / "profiler_config.json").write_text("{")
        work()
        monitor.step()
    (folder,) = monitor.written
    assert folder.name.startswith("start4_stop5_")
    assert len((folder / OUTPUT / "kernel_details.csv").read_text().splitlines()) == 3
    with pytest.raises(ValueError, match="cfg_path"):
        DynamicProfilerMonitor()
    with pytest.raises(ValueError, match="poll_interval"):
        DynamicProfilerMonitor(str(config), poll_interval=0)


def test_a_monitor_is_a_callback_of_training(tmp_path: Path) -> None:
    (tmp_path / "profiler_config.json").write_text('{"start_step": 2, "stop_step": 3}')
    data = ms.dataset.NumpySlicesDataset(
        (np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)), shuffle=False
    ).batch(2)
    net = ms.nn.Dense(3, 2)
    monitor = DynamicProfilerMonitor(str(tmp_path), str(tmp_path / "out"))
    model = ms.train.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1))
    model.train(1, data, callbacks=[monitor], dataset_sink_mode=False)
    (folder,) = monitor.written
    assert (folder / "report.html").is_file()


def test_names_are_found_under_mindspore(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import mindspore as ms\n"
        "from mindspore import Profiler\n"
        "from mindspore.profiler import profile, schedule, mstx, ProfilerLevel, tensorboard_trace_handler\n"
        "from mindspore.profiler.common.constant import ProfilerLevel as Level\n"
        "assert Level is ProfilerLevel and ms.Profiler is Profiler and ms.profiler.profile is profile\n"
        "x = ms.Tensor([1.0, 2.0])\n"
        "print((x + x).tolist())\n"
        "raise SystemExit(3)\n"
    )
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    command = [
        sys.executable,
        "-m",
        "mycel",
        "profile",
        "--rows",
        "3",
        "--html",
        str(page),
        "--chrome",
        str(trace),
        str(script),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("[2.0, 4.0]\nwall time") and "add" in done.stdout and "script.py:7" in done.stdout
    assert page.read_text().startswith("<!DOCTYPE html>") and json.loads(trace.read_text())["traceEvents"]


def test_the_command_refuses_what_is_not_there(tmp_path: Path, capsys: Any) -> None:
    from mycel.cli import main

    assert main(["profile", str(tmp_path / "nothing.py")]) == 2
    script = tmp_path / "script.py"
    script.write_text("pass\n")
    assert main(["profile", "--html", str(tmp_path / "no" / "page.html"), str(script)]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_actions_and_options_have_mindspores_values() -> None:
    assert [a.value for a in ProfilerAction] == [0, 1, 2, 3]
    assert AicoreMetrics.AiCoreNone.value == "None" and ExportType.Text.value == "text"
    assert list(inspect.signature(profile).parameters) == [
        "activities",
        "with_stack",
        "profile_memory",
        "data_process",
        "parallel_strategy",
        "start_profile",
        "hbm_ddr",
        "pcie",
        "sync_enable",
        "record_shapes",
        "schedule",
        "on_trace_ready",
        "experimental_config",
    ]
    assert list(inspect.signature(schedule).parameters) == ["wait", "active", "warmup", "repeat", "skip_first"]
    assert list(inspect.signature(Profiler.analyse).parameters)[1:] == ["offline_path", "pretty", "step_list", "mode"]
