"""`mycel train lenet5`: data, training with a progress bar, accuracy, checkpoint and picture.

An interrupted run stops between two steps, so the checkpoint that it then writes is exact. Before
the end of the first step there is nothing to keep, and an interrupt takes effect at once; so does a
second interrupt. A process that was started with interrupts ignored, as shells do in the
background, keeps ignoring them.
"""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import mycel as ms
from mycel.demo import plot
from mycel.demo.data import DataError, DigitData, bundled, mnist
from mycel.demo.lenet import MAX_STEPS, CheckpointError, Plan, Training

__all__ = ["Options", "run"]

_EPOCHS_BUNDLED, _EPOCHS_MNIST = 20, 2
_BATCH_SIZE, _SEED = 32, 1
INTERRUPTED, USAGE = 130, 2


@dataclass(frozen=True)
class Options:
    """The options of the command line.

    None leaves an option to the demonstration, or to the checkpoint that is resumed.
    """

    mode: str = "graph"
    data: Path | None = None
    epochs: int | None = None
    seed: int | None = None
    batch_size: int | None = None
    out: Path = Path("mycel-demo")
    resume: Path | None = None


class _Refused(ValueError):
    """An error: the options do not fit together, or a file cannot be written; the message is one
    line.
    """


def run(options: Options, console: Console) -> int:
    """Train as `options` say and report to `console`.

    Returns the exit status: 0, 2 for a wrong option, 130 when interrupted.
    """
    try:
        data = bundled() if options.data is None else mnist(options.data)
        ms.set_context(mode=ms.GRAPH_MODE if options.mode == "graph" else ms.PYNATIVE_MODE)
        training = _training(options, data)
        _make_folder(options.out)
    except (DataError, CheckpointError, _Refused) as error:
        _say(Console(stderr=True), f"mycel train: {error}")
        return USAGE
    plan = training.plan
    size = sum(parameter.size for parameter in training.network.trainable_params())
    _say(console, f"LeNet-5, {size:,} parameters, {options.mode} mode, on the {data.name}")
    _say(
        console,
        f"{plan.samples:,} images to learn from, {len(data.held_out_labels):,} held out; "
        f"{plan.epochs} epochs of {plan.steps_per_epoch} steps, batches of {plan.batch_size}",
    )
    checkpoint = options.out / "lenet5.ckpt"
    if training.step:
        _say(console, f"going on from {options.resume} at step {training.step} of {plan.steps}")
    try:
        finished = _train(training, checkpoint, console)
        if finished:
            _report(training, options.out, checkpoint, console)
    except _Refused as error:
        _say(Console(stderr=True), f"mycel train: {error}")
        return USAGE
    if not finished:
        _say(console, f"Stopped after step {training.step} of {plan.steps}; nothing is lost. To go on:")
        places = {"--data": options.data, "--out": options.out, "--resume": checkpoint}
        given = " ".join(f"{option} {shlex.quote(str(path))}" for option, path in places.items() if path is not None)
        _say(console, f"  mycel train lenet5 --mode {options.mode} {given}")
        return INTERRUPTED
    return 0


def _training(options: Options, data: DigitData) -> Training:
    if options.resume is not None:
        training = Training.resume(options.resume, data)
        for name in ("epochs", "batch_size", "seed"):
            asked, planned = getattr(options, name), getattr(training.plan, name)
            if asked is not None and asked != planned:
                option = "--" + name.replace("_", "-")
                raise _Refused(f"{options.resume} is a run with {option} {planned}; resume it without {option} {asked}")
        return training
    batch_size = options.batch_size or _BATCH_SIZE
    if batch_size > len(data.train_images):
        raise _Refused(f"--batch-size {batch_size}: the {data.name} have only {len(data.train_images)} images")
    plan = Plan(
        samples=len(data.train_images),
        fingerprint=data.fingerprint(),
        epochs=options.epochs or (_EPOCHS_BUNDLED if options.data is None else _EPOCHS_MNIST),
        batch_size=batch_size,
        seed=_SEED if options.seed is None else options.seed,
    )
    if plan.steps > MAX_STEPS:
        raise _Refused(f"--epochs {plan.epochs}: that is {plan.steps:,} steps, and a run has at most {MAX_STEPS:,}")
    return Training(plan, data)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _Refused(f"--out {folder}: cannot write there: {error.strerror}") from error


def _train(training: Training, checkpoint: Path, console: Console) -> bool:
    """Take the remaining steps, with a checkpoint after each epoch.

    Returns False when interrupted, after writing the checkpoint.
    """
    plan = training.plan
    live = console.is_terminal
    bar = Progress(
        TextColumn("epoch {task.fields[epoch]:>2}/" + str(plan.epochs)),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("{task.fields[rate]:,.0f} samples/s"),
        TimeRemainingColumn(),
        console=console,
    )
    started = time.perf_counter()
    first_step_done = False
    with _interrupts(lambda: first_step_done) as interrupted, bar if live else nullcontext():
        task = bar.add_task("train", total=plan.steps, completed=training.step, epoch=1, loss=float("nan"), rate=0.0)
        begun_at, begun, loss = training.step, started, float("nan")
        while not training.finished:
            latest = training.advance()
            now = time.perf_counter()
            if not first_step_done:
                first_step_done, begun_at, begun, loss = True, training.step, now, latest
                if not live:
                    _say(console, f"first step, compilation included: {now - started:.2f} s")
            loss = 0.95 * loss + 0.05 * latest
            rate = (training.step - begun_at) * plan.batch_size / max(now - begun, 1e-9)
            epoch, within = divmod(training.step - 1, plan.steps_per_epoch)
            if live:
                bar.update(task, completed=training.step, epoch=epoch + 1, loss=loss, rate=rate)
            if within == plan.steps_per_epoch - 1:
                if not training.finished:
                    _save(training, checkpoint)
                if not live:
                    _say(console, f"epoch {epoch + 1}/{plan.epochs}  loss {loss:.4f}  {rate:,.0f} samples/s")
            if interrupted() and not training.finished:
                _save(training, checkpoint)
                return False
    _save(training, checkpoint)
    _say(console, f"trained in {time.perf_counter() - started:.1f} s")
    return True


def _save(training: Training, checkpoint: Path) -> None:
    try:
        training.save(checkpoint)
    except OSError as error:
        kept = "the one that was there is whole" if checkpoint.is_file() else "there was none before"
        raise _Refused(f"cannot write the checkpoint {checkpoint}: {error.strerror}; {kept}") from error


def _report(training: Training, out: Path, checkpoint: Path, console: Console) -> None:
    data = training.data
    predictions = training.evaluate()
    right = int(np.sum(predictions == data.held_out_labels))
    total = len(data.held_out_labels)
    _say(console, f"held-out accuracy {right / total:.2%} ({right} of {total})", style="bold")
    _say(console, f"wrote {checkpoint}")
    if not plot.available():
        _say(console, "no picture: matplotlib is not installed (pip install 'mycel[plot]')")
        return
    picture = out / "lenet5.png"
    try:
        plot.draw(
            picture,
            training.losses,
            training.plan.steps_per_epoch,
            data.held_out_images,
            data.held_out_labels,
            predictions,
        )
    except OSError as error:
        raise _Refused(f"cannot write the picture {picture}: {error.strerror}") from error
    _say(console, f"wrote {picture}")


@contextmanager
def _interrupts(deferred: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C only set a flag while `deferred()` holds; otherwise it interrupts as
    always.
    """
    seen = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        if seen or not deferred():
            raise KeyboardInterrupt
        seen = True

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: seen
    finally:
        signal.signal(signal.SIGINT, previous)


def _say(console: Console, line: str, style: str | None = None) -> None:
    # A path may hold brackets, which are no markup, and must stay whole to be copied.
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
