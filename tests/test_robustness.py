"""What goes wrong around the program: interrupts, full disks, damaged and hostile files.

Each is one clear line and a whole checkpoint.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.files.idx_format import write_idx
from mycel.cli import main
from mycel.demo import data, lenet

COMMAND = (sys.executable, "-m", "mycel", "train", "lenet5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in MNIST's form: 256 images, each with a bright bar whose row tells the digit."""
    made = tmp_path / "digits"
    made.mkdir()
    random = np.random.default_rng(3)
    labels = random.integers(0, 10, 256).astype(np.uint8)
    images = random.integers(0, 60, (256, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[2 * label + 4 : 2 * label + 6, 4:24] = 250
    write_idx(made / "train-images-idx3-ubyte", images)
    write_idx(made / "train-labels-idx1-ubyte", labels)
    return made


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        **options,
    )


def resumed(checkpoint: Path, folder: Path) -> lenet.Training:
    return lenet.Training.resume(checkpoint, data.mnist(folder))


# Interrupts


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_ctrl_c_stops_between_two_steps(mode: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("--data", folder, "--mode", mode, "--epochs", 20000, "--out", out)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1/"):
            break
    process.send_signal(signal.SIGINT)
    told, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert error == ""
    found = re.search(r"Stopped after step (\d+) of 120000; nothing is lost", told)
    assert found is not None, told
    assert [path.name for path in out.iterdir()] == ["lenet5.ckpt"]
    run = resumed(out / "lenet5.ckpt", folder)
    assert run.step == int(found[1]) >= 6
    assert np.isfinite(run.advance())


def test_ctrl_c_while_a_checkpoint_is_written_leaves_a_whole_one(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start("--data", folder, "--batch-size", 128, "--epochs", 20000, "--out", out)
    deadline = time.monotonic() + 60
    while not (out / "lenet5.ckpt").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    # The second takes effect at once, wherever that is.
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert resumed(out / "lenet5.ckpt", folder).step >= 1
    assert [path.name for path in out.iterdir()] == ["lenet5.ckpt"]


def test_a_run_in_the_background_ignores_ctrl_c(folder: Path, tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = start("--data", folder, "--epochs", 40, "--out", tmp_path / "out", preexec_fn=ignore)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1/"):
            break
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert resumed(tmp_path / "out" / "lenet5.ckpt", folder).finished


# Full disks and unwritable places


def test_a_full_disk_keeps_the_old_checkpoint(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["train", "lenet5", "--data", str(folder), "--epochs", "1", "--out", str(out)]) == 0
    before = (out / "lenet5.ckpt").read_bytes()

    def limit() -> None:
        # A file that grows beyond this fails as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = start("--data", folder, "--epochs", 2, "--out", out, preexec_fn=limit)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    said = f"mycel train: cannot write the checkpoint {out / 'lenet5.ckpt'}: "
    assert error.startswith(said) and error.endswith("; the one that was there is whole\n") and error.count("\n") == 1
    assert (out / "lenet5.ckpt").read_bytes() == before
    assert sorted(path.name for path in out.iterdir() if path.suffix != ".png") == ["lenet5.ckpt"]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a refused command says."""
    capsys.readouterr()
    assert main(["train", "lenet5", *map(str, arguments)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0].removeprefix("mycel train: ")


def test_a_folder_that_cannot_be_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "--data", folder, "--out", "/proc/none") == (
        "--out /proc/none: cannot write there: No such file or directory"
    )


def test_a_run_without_end(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--data", folder, "--epochs", 10**15)
    assert said.startswith("--epochs 1000000000000000: that is ") and said.endswith("a run has at most 10,000,000")


# Checkpoints


@pytest.fixture
def good(folder: Path, tmp_path: Path) -> Path:
    """A checkpoint after one of two epochs."""
    digits = data.mnist(folder)
    plan = lenet.Plan(len(digits.train_images), digits.fingerprint(), epochs=2, batch_size=64, seed=1)
    run = lenet.Training(plan, digits)
    for _ in range(plan.steps_per_epoch):
        run.advance()
    path = tmp_path / "good.ckpt"
    run.save(path)
    return path


def test_no_cut_of_a_checkpoint_is_resumed(
    good: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut = good.read_bytes(), tmp_path / "cut.ckpt"
    for length in [0, 1, 2, 10, 100, *np.linspace(101, len(whole) - 1, 20).astype(int)]:
        cut.write_bytes(whole[:length])
        assert str(cut) in refusal(capsys, "--data", folder, "--resume", cut)


def test_bytes_that_are_no_checkpoint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise.ckpt"
    random = np.random.default_rng(0)
    for size in (1, 17, 1000):
        path.write_bytes(b"\x0a\xff\xff\xff\xff\xff\xff\xff\x7f" + random.bytes(size))
        assert refusal(capsys, "--data", folder, "--resume", path).startswith(f"{path}: cannot be loaded: ")


Change = Callable[[dict[str, Any]], None]


def plan_with(name: str, value: Any) -> Change:
    return lambda entries: entries.update({f"demo.plan.{name}": value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (plan_with("epochs", 0), "no run has Plan"),
        (plan_with("epochs", -3), "no run has Plan"),
        (plan_with("epochs", 2**62), "no run has Plan"),
        (plan_with("batch_size", 0), "no run has Plan"),
        (plan_with("seed", -1), "no run has Plan"),
        (plan_with("epochs", 2.5), "its plan holds float32 numbers of shape (), not whole numbers"),
        (plan_with("epochs", "two"), "not a checkpoint of this demonstration: its plan holds"),
        (plan_with("epochs", ms.Tensor([1, 2])), "its plan holds int64 numbers of shape (2,)"),
        (lambda entries: entries.update({"demo.losses": "none"}), "its losses are"),
        (lambda entries: entries.update({"demo.losses": ms.Tensor(np.ones((2, 2), np.float32))}), "its losses are"),
        (lambda entries: entries.update({"demo.losses": ms.Tensor(np.ones(99, np.float32))}), "99 steps behind it"),
        (lambda entries: entries.update({"conv1.weight": ms.Tensor(np.ones((1, 2), np.float32))}), "does not fit"),
        (lambda entries: entries.pop("conv1.weight"), "lacks the parameters"),
    ],
)
def test_entries_that_make_no_run(
    change: Change, message: str, good: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries: dict[str, Any] = ms.load_checkpoint(str(good))
    names = [name for name in entries if name.endswith("conv1.weight")]
    assert names
    entries["conv1.weight"] = entries.pop(names[0])
    change(entries)
    if "conv1.weight" in entries:
        entries[names[0]] = entries.pop("conv1.weight")
    path = tmp_path / "hostile.ckpt"
    ms.save_checkpoint({}, str(path), append_dict=entries)
    assert message in refusal(capsys, "--data", folder, "--resume", path)


def test_a_folder_as_checkpoint(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "--data", folder, "--resume", tmp_path) == f"no such checkpoint: {tmp_path}"


# Data


def test_no_cut_of_the_images_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        path = folder / name
        whole = path.read_bytes()
        for length in (0, 3, 4, 7, 10, len(whole) - 1):
            path.write_bytes(whole[:length])
            assert str(path) in refusal(capsys, "--data", folder)
        path.write_bytes(whole)


def test_an_idx_file_that_promises_more_memory_than_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(b"\0\0\x08\x03" + b"\xff\xff\xff\xff" * 3 + bytes(100))
    assert refusal(capsys, "--data", folder).startswith(f"{path}: cannot be read: ")


def test_a_file_in_place_of_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "train-labels-idx1-ubyte"
    assert refusal(capsys, "--data", path).startswith(f"no such folder: {path}")


def test_an_unknown_mode_and_an_unknown_model(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["lenet5", "--mode", "fast"], ["lenet6"]):
        with pytest.raises(SystemExit) as stopped:
            main(["train", *arguments])
        assert stopped.value.code == 2
        assert "invalid choice" in capsys.readouterr().err


def test_an_unknown_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MYCEL_CPU", "x86-64-v9")
    said = refusal(capsys, "--data", folder)
    assert said.startswith("MYCEL_CPU=x86-64-v9: ")
    assert main(["info"]) == 0
    assert f"code for  nothing: {said}" in capsys.readouterr().out


def test_a_reader_that_goes_away() -> None:
    head = shutil.which("head")
    assert head is not None
    done = subprocess.run(
        f"{sys.executable} -m mycel info | {head} -c 1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("m", "")
