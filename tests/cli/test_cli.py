"""The command line: `info`, `run`, and `train lenet5` with its checkpoints, interruptions and
refusals.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.files import code_cache
from mycel._src.foundation.files.idx_format import write_idx
from mycel.cli import main, msrun
from mycel.demo import command, data, lenet, plot

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def same_mode() -> Iterator[None]:
    """Give back the mode that a command sets."""
    before = ms.get_context("mode")
    yield
    ms.set_context(mode=before)


def bars(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Easy images: digit d is a bright bar in row 2 d + 4."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count).astype(np.uint8)
    images = random.integers(0, 60, (count, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2 * label + 4 : 2 * label + 6, 4:24] = 250
    return images, labels


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in MNIST's form: 128 training and 40 test images."""
    made = tmp_path / "digits"
    made.mkdir()
    for stem, (images, labels) in {"train": bars(128, 1), "t10k": bars(40, 2)}.items():
        write_idx(made / f"{stem}-images-idx3-ubyte", images)
        write_idx(made / f"{stem}-labels-idx1-ubyte.gz", labels)
    return made


def train(*arguments: object) -> int:
    return main(["train", "lenet5", *map(str, arguments)])


def losses_of(checkpoint: Path, folder: Path) -> list[float]:
    return lenet.Training.resume(checkpoint, data.mnist(folder)).losses


# info


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["version"] == ms.__version__
    assert facts["python"]["version"] == platform.python_version()
    assert facts["libraries"]["numpy"] == np.__version__
    assert 1 <= facts["cpu"]["usable"] <= facts["cpu"]["logical"]
    dense = facts["engines"]["native"]["onednn"]
    assert Path(dense["path"]).is_file() if dense["found"] else "oneDNN" in dense["reason"]


def test_info_counts_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mycel._src.foundation.settings.config.cache_directory", lambda: tmp_path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.bin").write_bytes(b"x" * 1_500_000)
    (tmp_path / "b.bin").write_bytes(b"y" * 500_000)
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    assert f"{tmp_path} (2 files, 2.0 MB)" in shown
    assert f"mycel     {ms.__version__}" in shown


# cache


def test_cache_is_shown_and_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path))
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "100")
    code_cache.write("objects-0123456789abcdef", "ab" * 32, b"x" * 2_000_000)
    code_cache.write("programs-0123456789abcdef", "cd" * 32, b"y" * 500_000)
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(tmp_path),
        "objects         1 files        2.0 MB",
        "programs        1 files        0.5 MB",
        "2.5 MB of 105 MB; `mycel cache --clear` deletes them",
    ]
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"deleted 2 files (2.5 MB) in {tmp_path}\n"
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["mine.txt"]
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "much")
    assert main(["cache"]) == 2
    assert "MYCEL_CACHE_SIZE=much: give a whole number of MiB" in capsys.readouterr().err


# run


def test_run_gives_mycel_for_mindspore_and_passes_arguments_on(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    (tmp_path / "beside.py").write_text("value = 7\n")
    script.write_text(
        "import sys\nimport beside\nimport mindspore\nfrom mindspore import Tensor\nimport mycel\n"
        "assert Tensor is mycel.Tensor\n"
        "print(__name__, sys.argv[1:], beside.value)\nsys.exit(5)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mycel", "run", str(script), "--epochs", "3", "x"], capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == "__main__ ['--epochs', '3', 'x'] 7\n"
    assert done.returncode == 5


def test_run_of_a_missing_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere/program.py"]) == 2
    assert capsys.readouterr().err == "mycel run: no such script: nowhere/program.py\n"


# arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "lenet5", "--epochs", "0"], "--epochs: 0: must be at least 1"),
        (["train", "lenet5", "--seed", "-1"], "--seed: '-1' is not a whole number"),
        (["train", "lenet5", "--seed", "4294967296"], "--seed: 4294967296: must be below 2**32"),
        (["train", "vgg"], "invalid choice: 'vgg'"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


# train


def test_the_bundled_digits_are_learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--out", tmp_path) == 0
    shown = capsys.readouterr().out
    accuracy = float(shown.split("held-out accuracy ")[1].split("%")[0])
    assert accuracy >= 98.0
    assert (tmp_path / "lenet5.png").read_bytes().startswith(PNG)
    network = lenet.LeNet5()
    missing, _ = ms.load_param_into_net(network, ms.load_checkpoint(str(tmp_path / "lenet5.ckpt")))
    assert missing == []


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_training_on_idx_files(mode: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "here"
    assert train("--data", folder, "--mode", mode, "--epochs", 1, "--batch-size", 16, "--out", out) == 0
    shown = capsys.readouterr().out
    assert "128 images to learn from, 40 held out; 1 epochs of 8 steps, batches of 16" in shown
    assert "of 40)" in shown
    assert sorted(path.name for path in out.iterdir()) == ["lenet5.ckpt", "lenet5.png"]
    losses = losses_of(out / "lenet5.ckpt", folder)
    assert len(losses) == 8
    assert losses[0] == pytest.approx(np.log(10), abs=0.8)


def test_both_modes_take_the_same_steps(folder: Path, tmp_path: Path) -> None:
    runs = []
    for mode in ("graph", "pynative"):
        assert train("--data", folder, "--mode", mode, "--epochs", 1, "--batch-size", 16, "--out", tmp_path / mode) == 0
        runs.append(losses_of(tmp_path / mode / "lenet5.ckpt", folder))
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-3)


def test_without_matplotlib_all_but_the_picture_is_done(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not plot.available()
    assert train("--data", folder, "--epochs", 1, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "no picture: matplotlib is not installed (pip install 'mycel[plot]')" in shown
    assert "held-out accuracy" in shown
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lenet5.ckpt"]


def test_an_interrupted_run_goes_on_to_the_same_losses(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = ("--data", folder, "--epochs", 2, "--batch-size", 16, "--seed", 3)
    assert train(*options, "--out", whole) == 0

    advance = lenet.Training.advance

    def interrupted_in_the_fifth_step(self: lenet.Training) -> float:
        if self.step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(lenet.Training, "advance", interrupted_in_the_fifth_step)
        assert train(*options, "--out", broken) == 130
    assert "Stopped after step 5 of 16" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    expected = losses_of(whole / "lenet5.ckpt", folder)
    assert losses_of(broken / "lenet5.ckpt", folder) == expected[:5]

    assert train("--data", folder, "--out", broken, "--resume", broken / "lenet5.ckpt") == 0
    assert "at step 5 of 16" in capsys.readouterr().out
    assert losses_of(broken / "lenet5.ckpt", folder) == expected
    finished = {name: value.asnumpy() for name, value in ms.load_checkpoint(str(whole / "lenet5.ckpt")).items()}
    resumed = {name: value.asnumpy() for name, value in ms.load_checkpoint(str(broken / "lenet5.ckpt")).items()}
    assert finished.keys() == resumed.keys()
    assert any(name.startswith("moments.") for name in finished)
    for name, value in finished.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


def test_an_interrupt_before_the_first_step_is_through_takes_effect_at_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lenet.Training, "advance", lambda self: os.kill(os.getpid(), signal.SIGINT))
    assert train("--data", folder, "--out", tmp_path / "out") == 130
    assert capsys.readouterr().err.strip() == "mycel: interrupted"
    assert list((tmp_path / "out").iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a refused command says."""
    assert train(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    return lines[0].removeprefix("mycel train: ")


def test_a_missing_data_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none"
    said = refusal(capsys, "--data", missing)
    assert said == f"no such folder: {missing} (--data takes the folder of the MNIST IDX files)"


def test_a_data_folder_without_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--data", tmp_path, "--out", tmp_path)
    assert said == f"no train-images-* file in {tmp_path} (MNIST calls it train-images-idx3-ubyte)"


def test_a_damaged_data_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-100])
    said = refusal(capsys, "--data", folder)
    assert said.startswith(f"{path}: cannot be read: ") and "is truncated" in said


def test_a_batch_of_more_than_there_is(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "--data", folder, "--batch-size", 129, "--out", tmp_path)
    assert said.startswith("--batch-size 129: the digits in ") and said.endswith("have only 128 images")


def test_an_output_folder_that_is_a_file(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert "cannot write there" in refusal(capsys, "--data", folder, "--out", tmp_path / "taken")


def test_checkpoints_that_cannot_be_resumed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, good = tmp_path / "out", tmp_path / "out" / "lenet5.ckpt"
    options = ("--data", folder, "--out", out)
    missing = tmp_path / "none.ckpt"
    assert refusal(capsys, *options, "--resume", missing) == f"no such checkpoint: {missing}"
    assert train(*options, "--epochs", 1, "--batch-size", 64) == 0
    capsys.readouterr()

    said = refusal(capsys, *options, "--resume", good, "--epochs", 4)
    assert said == f"{good} is a run with --epochs 1; resume it without --epochs 4"
    assert "was trained on other digits than the bundled digits" in refusal(capsys, "--out", out, "--resume", good)

    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(good.read_bytes()[:-1000])
    assert f"{cut}: " in refusal(capsys, *options, "--resume", cut)

    foreign = tmp_path / "foreign.ckpt"
    ms.save_checkpoint(lenet.LeNet5(), str(foreign))
    assert "not a checkpoint of this demonstration" in refusal(capsys, *options, "--resume", foreign)


def test_resuming_a_finished_run_only_evaluates(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train("--data", folder, "--epochs", 1, "--out", out) == 0
    before = losses_of(out / "lenet5.ckpt", folder)
    assert train("--data", folder, "--out", tmp_path / "again", "--resume", out / "lenet5.ckpt") == 0
    assert losses_of(tmp_path / "again" / "lenet5.ckpt", folder) == before


# data


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train-images.txt", b"hello, world", "is not an IDX file"),
        ("train-images.gz", b"\0\0\x08\x01\0\0\0\x01a", "cannot be read"),
        ("train-images.gz", gzip.compress(bytes(500), mtime=0)[:-12] + bytes(12), "cannot be read"),
        ("train-images", b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", "holds >f4 numbers"),
        ("train-images", b"\0\0\x08\x01\0\0\0\x01a", r"shape \(1,\); expected \[N, H, W\]"),
    ],
)
def test_files_that_are_no_images(name: str, content: bytes, message: str, folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(data.DataError, match=message):
        data.mnist(folder)


def test_mnist_images_are_centred_and_fifths_held_out(folder: Path) -> None:
    images, labels = bars(128, 1)
    both = data.mnist(folder)
    assert both.train_images.shape == (128, 32, 32)
    np.testing.assert_array_equal(both.train_images[:, 2:30, 2:30], images)
    assert both.train_images.sum() == images.sum()
    np.testing.assert_array_equal(both.train_labels, labels)
    assert len(both.held_out_labels) == 40

    for path in folder.glob("t10k*"):
        path.unlink()
    split = data.mnist(folder)
    assert len(split.train_labels) + len(split.held_out_labels) == 128
    for digit, count in enumerate(np.bincount(labels)):
        assert np.sum(split.held_out_labels == digit) == pytest.approx(count / 5, abs=0.51)


def test_labels_that_are_no_digits(folder: Path) -> None:
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    write_idx(folder / "train-labels-idx1-ubyte", np.full(128, 11, np.uint8))
    with pytest.raises(data.DataError, match="expected labels 0 to 9, found 11"):
        data.mnist(folder)


def test_shifts_move_the_image_and_fill_with_black() -> None:
    images = np.random.default_rng(0).integers(1, 255, (3, 6, 6)).astype(np.uint8)
    moved = lenet._shifted(images, np.array([[2, 2], [0, 4], [3, 1]]), 2)
    np.testing.assert_array_equal(moved[0], images[0])
    np.testing.assert_array_equal(moved[1][2:, :-2], images[1][:-2, 2:])
    assert not moved[1][:2].any() and not moved[1][:, -2:].any()
    np.testing.assert_array_equal(moved[2][:-1, 1:], images[2][1:, :-1])


def test_an_epoch_shows_every_image_at_most_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenet, "SHIFT", 0)
    digits = data.mnist(folder)
    plan = lenet.Plan(samples=128, fingerprint=0, epochs=2, batch_size=30, seed=5)
    run = lenet.Training(plan, digits)
    assert plan.steps_per_epoch == 4
    seen = np.concatenate([run._batch(step)[0] for step in range(4)])
    assert len(np.unique(seen.reshape(120, -1), axis=0)) == 120
    again = np.concatenate([run._batch(step)[0] for step in range(4, 8)])
    assert not np.array_equal(seen, again)


def test_a_live_bar_and_plain_lines_tell_the_same(folder: Path, tmp_path: Path) -> None:
    from io import StringIO

    from rich.console import Console

    told = StringIO()
    console = Console(file=told, force_terminal=True, width=120)
    options = command.Options(data=folder, epochs=1, batch_size=16, out=tmp_path)
    assert command.run(options, console) == 0
    assert "8/8" in told.getvalue()
    assert "samples/s" in told.getvalue()


def test_the_program_alone_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: mycel") and "train a bundled model" in shown.out and shown.err == ""


@pytest.mark.parametrize("program", [main, msrun.main])
def test_the_version(program, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        program(["--version"])
    assert stop.value.code == 0 and capsys.readouterr().out.startswith(f"mycel {ms.__version__} ")


MEANT = [
    (main, ["trian", "lenet5"], "train"),
    (main, ["Train", "lenet5"], "train"),
    (main, ["lanch", "x.py"], "launch"),
    (main, ["dataset-cash"], "dataset-cache"),
    (main, ["--verison"], "--version"),
    (main, ["train", "lenet"], "lenet5"),
    (main, ["train", "lenet5", "--epchs", "3"], "--epochs"),
    (main, ["train", "lenet5", "--batchsize=3"], "--batch-size"),
    (main, ["train", "lenet5", "--mode", "grpah"], "graph"),
    (main, ["info", "--jsn"], "--json"),
    (main, ["build", "net.onnx", "--targt", "cortex-m4", "--out", "x"], "--target"),
    (msrun.main, ["--worker_nun=2", "x.py"], "--worker_num"),
    (msrun.main, ["--wroker_num", "2", "x.py"], "--worker_num"),
    (msrun.main, ["--log-dir=x", "x.py"], "--log_dir"),
]


@pytest.mark.parametrize(("program", "arguments", "meant"), MEANT, ids=[" ".join(a) for _, a, _ in MEANT])
def test_a_mistyped_word_is_answered_by_what_was_meant(
    program, arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        program(arguments)
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.rstrip().endswith(f"; did you mean {meant}?"), error


def test_what_is_like_nothing_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "lenet5", "--zzzz"])
    assert "did you mean" not in capsys.readouterr().err
