"""The progress bar of a training, and the history that the training returns.

`Model` has one `ProgressBar` for each training, which keeps the history in any case. In a terminal
it draws a bar on the standard error stream, else it writes a line an epoch there, and with
``progress=False`` nothing.

*Cost.* A step adds its loss to a sum, which is read every 256 steps, and looks at the clock; of
sinks few outputs are read. The bar is drawn a few times a second, and no sooner after the last time
than 200 times as long as that took. So all this takes less than half a per cent of small steps.
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any

from mycel._src.compiler.ir.types import tensor_type
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import float32
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_rank
from mycel.dataset.nodes.node import Node
from mycel.train.callback.base import Callback, RunContext, step_loss
from mycel.train.callback.monitor import LossMonitor, TimeMonitor

__all__ = ["ProgressBar", "TrainingHistory", "shown"]

INTERVAL = 0.25
SHARE = 200
LONGEST = 4.0
FOLD = 256
SAMPLES = 32
EACH = 8
_SCALAR = tensor_type((), float32)


class TrainingHistory(dict[str, list[Any]]):
    """The course of a training, which `Model.train` and `Model.fit` return: lists with an entry an
    epoch, as items and as attributes.

    "epoch" has the numbers of the epochs, counted from 1, "loss" the mean loss of their steps (of a
    sink, of at most 32 of its steps, one in eight; None where the network gives no numbers), and
    "seconds" how long they took, without validation. Each metric of validations has a list under
    its name, and their loss as "eval_loss", with None for epochs that were not validated.

    >>> history = TrainingHistory(epoch=[1, 2], loss=[0.5, 0.25])
    >>> history["loss"], history.loss[-1]
    ([0.5, 0.25], 0.25)
    >>> history
    epoch  loss
        1   0.5
        2  0.25
    """

    def __getattr__(self, name: str) -> list[Any]:
        if name in self:
            return self[name]
        raise AttributeError(f"the history has no {name!r}; it has {', '.join(self)}")

    def __repr__(self) -> str:
        columns = [[name, *map(_number, values)] for name, values in self.items()]
        if not columns:
            return "no epochs"
        widths = [max(map(len, column)) for column in columns]
        rows = zip(*columns)
        return "\n".join("  ".join(text.rjust(n) for text, n in zip(row, widths)) for row in rows)

    def add(self, epoch: int, loss: float | None, seconds: float, metrics: dict[str, Any]) -> None:
        """Append the results of an epoch.

        Args:
            epoch (int): Its number.
            loss (float | None): Its mean loss; None for none.
            seconds (float): How long it took.
            metrics (dict[str, Any]): Its metrics by name.
        """
        before = len(self.setdefault("epoch", []))
        row = {"epoch": epoch, "loss": loss, "seconds": seconds}
        row.update(metrics)
        for name in row:
            self.setdefault(name, [None] * before)
        for name, values in self.items():
            values.append(row.get(name))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def shown(progress: bool | None, callbacks: list[Callback]) -> bool:
    """Return whether a training with these callbacks shows its progress.

    By default it does on rank 0, unless a callback shows the course of the run itself.
    """
    if progress is not None:
        return progress and get_rank() == 0
    return get_rank() == 0 and not any(isinstance(c, (LossMonitor, TimeMonitor, ProgressBar)) for c in callbacks)


class ProgressBar(Callback):
    """A callback that shows the course of a training on the standard error stream.

    In a terminal it draws a bar with the loss, the rows (or steps) a second and the time left, and
    a line for each epoch that is done, with the metrics of its validation; where there is no
    terminal it writes only the lines. `Model.train` and `Model.fit` have one by default, and leave
    it out with ``progress=False``, on ranks other than 0, and where a `LossMonitor` or a
    `TimeMonitor` prints. `bar` says whether to draw the bar, by default in a terminal. `history` is
    the `TrainingHistory` of the last run.

    >>> import numpy as np, mycel as ms, mycel.dataset as ds
    >>> from mycel.train import Model, ProgressBar
    >>> ones = np.ones((4, 1), np.float32)
    >>> data = ds.NumpySlicesDataset((ones, ones), ["x", "y"]).batch(2)
    >>> net = ms.nn.Dense(1, 1, weight_init="zeros", bias_init="zeros")
    >>> model = Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.0))
    >>> progress = ProgressBar(bar=False)
    >>> model.train(2, data, progress).loss
    [1.0, 1.0]
    """

    writes_later = True

    def __init__(self, bar: bool | None = None) -> None:
        super().__init__()
        if bar is not None:
            arguments.flag("ProgressBar", "bar", bar)
        self._wanted = bar
        self._shows = True
        self._reset()

    @classmethod
    def silent(cls) -> ProgressBar:
        """Return one that shows nothing and keeps the history."""
        made = cls(False)
        made._shows = False
        return made

    def _reset(self) -> None:
        self.history = TrainingHistory()
        self._display: Any = None
        self._total: Any = None
        self._latest: Any = None
        self._sum, self._count, self._pending = 0.0, 0, 0
        self._last: float | None = None
        self._next = self._begun = self._epoch_begun = 0.0
        self._first_step = self._steps = self._rows = 0
        self._trained: float | None = None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Begin the history, and the bar in a terminal."""
        params = run_context.original_args()
        self._reset()
        self._first_step = self._steps = params.get("cur_step_num", 0)
        self._begun = time.perf_counter()
        bar = _is_terminal() if self._wanted is None else self._wanted
        if bar and self._shows:
            self._display = _Display()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Start the epoch's clock and its mean loss."""
        self._sum, self._count, self._pending, self._trained = 0.0, 0, 0, None
        self._epoch_begun = time.perf_counter()
        self._epoch_first = run_context.original_args().get("cur_step_num", 0)
        if self._display is not None:
            self._draw(run_context.original_args())

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Keep the loss, and draw the bar if it is due."""
        params = run_context.original_args()
        outputs = params.get("sink_outputs")
        if outputs is None:
            self._enter(params.get("net_outputs"))
        else:
            count = len(outputs)
            samples = min(SAMPLES, max(1, count // EACH))
            for i in range(samples):
                self._enter(outputs[(i + 1) * count // samples - 1])
        self._steps = params.cur_step_num
        if self._display is not None and time.perf_counter() >= self._next:
            self._draw(params)

    def on_stretch_end(self, params: Any, steps: int, outputs: Any) -> None:
        """Draw the bar within a sink, of which `steps` are done in all."""
        self._steps = steps
        if self._display is not None and time.perf_counter() >= self._next:
            self._last = _number_of(_first(outputs))
            self._draw(params)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Stop the epoch's clock, where this is a validation."""
        if "train_network" in run_context.original_args() and self._trained is None:
            self._trained = time.perf_counter()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Enter the epoch into the history, and show its line."""
        params = run_context.original_args()
        seconds = (self._trained or time.perf_counter()) - self._epoch_begun
        self._fold()
        loss = self._sum / self._count if self._count else None
        # The loss of a validation has the name by which callbacks watch it.
        metrics = {"eval_loss" if n == "loss" else n: v for n, v in (params.get("metrics") or {}).items()}
        self.history.add(params.get("cur_epoch_num", 1), loss, seconds, metrics)
        if not self._shows:
            return
        parts = [] if loss is None else [f"loss {loss:.4g}"]
        parts += [f"{name} {_number(value)}" for name, value in metrics.items()]
        steps = self._steps - self._epoch_first
        parts += [self._rate(params, steps, seconds), f"{seconds:.3g} s"]
        line = f"{_epoch(params)}: {', '.join(parts)}"
        if self._display is not None:
            self._display.line(line)
        else:
            run_context.later(_write, sys.stderr, line)

    def on_train_end(self, run_context: RunContext) -> None:
        """Take the bar away."""
        self._close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._display is not None:
            self._display.close()
            self._display = None

    def _enter(self, outputs: Any) -> None:
        """Add a step's loss to the epoch's sum."""
        output = _first(outputs)
        if type(output) is not Tensor or output._type is not _SCALAR:
            loss = _number_of(output)
            if loss is not None:
                self._sum += loss
                self._count += 1
                self._last = loss
            return
        self._latest = output
        self._total = output if self._pending == 0 else self._total + output
        self._pending += 1
        if self._pending >= FOLD:
            self._fold()

    def _fold(self) -> None:
        """Read the sum of the steps since the last time."""
        if self._pending:
            self._sum += float(self._total)
            self._count += self._pending
            self._pending = 0

    def _rate(self, params: Any, steps: int, seconds: float) -> str:
        rows = _rows(params)
        rate = steps / max(seconds, 1e-9) * (rows or 1)
        return f"{rate:,.{0 if rate >= 10 else 2}f} {'rows' if rows else 'steps'}/s"

    def _draw(self, params: Any) -> None:
        begun = time.perf_counter()
        if self._latest is not None:
            self._last = float(self._latest)
        done, steps = self._steps - self._first_step, params.batch_num
        epochs = params.epoch_num * steps
        total = epochs - self._first_step % steps
        elapsed = begun - self._begun
        within = self._steps - self._epoch_first
        parts = [] if self._last is None else [f"loss {self._last:.4g}"]
        if within:
            parts.append(self._rate(params, within, begun - self._epoch_begun))
        left = f"{_clock(elapsed / done * max(total - done, 0))} left" if done else ""
        at = (self._steps - 1) % steps + 1 if within else 0
        self._display.draw(_epoch(params), at, steps, " ".join([*parts, left]).strip())
        taken = time.perf_counter() - begun
        self._next = begun + min(max(INTERVAL, SHARE * taken), LONGEST)


def _rows(params: Any) -> int:
    """Return how many rows a step has, or 0 where that is not known."""
    dataset = params.get("train_dataset")
    if isinstance(dataset, Node):
        return max(dataset.get_batch_size(), 0)
    batch = params.get("train_dataset_element")
    first = batch[0] if isinstance(batch, (tuple, list)) and batch else None
    shape = getattr(first, "shape", ())
    return int(shape[0]) if shape else 0


def _first(outputs: Any) -> Any:
    """Return the first of several outputs, which is the loss."""
    while isinstance(outputs, (tuple, list)) and outputs:
        outputs = outputs[0]
    return outputs


def _number_of(output: Any) -> float | None:
    found = step_loss(output)
    return float(found) if isinstance(found, (int, float)) else None


def _epoch(params: Any) -> str:
    """Return "epoch 2/10", where the last number is that of the run's last epoch."""
    steps = max(params.batch_num, 1)
    last = params.get("first_row", 0) // steps + params.epoch_num
    return f"epoch {params.get('cur_epoch_num', 1)}/{last}"


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}"


def _write(stream: Any, line: str) -> None:
    if stream is not None:
        print(line, file=stream, flush=True)


def _is_terminal() -> bool:
    stream = sys.stderr
    if os.environ.get("TERM") == "dumb" or stream is None:
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        # The program has put an object in its place, or closed it.
        return False


class _Display:
    """The bar in a terminal. What the program prints meanwhile appears above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=1, facts="")
        self._progress.start()

    def draw(self, title: str, done: int, total: int, facts: str) -> None:
        """Show the bar with `done` of `total` steps between its `title` and `facts`."""
        self._progress.update(self._task, description=title, completed=done, total=total, facts=facts)
        self._progress.refresh()

    def line(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._progress.stop()
