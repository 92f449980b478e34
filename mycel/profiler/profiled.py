"""The profiler `mycel.profile`: what ran, for how long, and how near to the machine's limits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.system import locks
from mycel.profiler.collect import Collector
from mycel.profiler.limits import Machine
from mycel.profiler.memory import Memory
from mycel.profiler.report import Kernel, Phase, Place, Report, Segments

__all__ = ["profile"]

_lock = locks.lock()


class profile:
    """A profile of a block, or of every call of a decorated function.

    Everything that runs meanwhile is noted, in eager and in compiled code, in all threads.
    Afterwards `kernels` lists the kernels (with name, source lines, count, seconds, bytes,
    floating-point operations and the bound of each), `lines` and `cells` the same time by source
    line and by Cell, `phases` the wall time, `memory` what was in use; `table()` shows all of it,
    `html(path)` writes a page with pictures, `export_chrome(path)` a trace for Perfetto or
    chrome://tracing. A decorated function has the profile of its last call as ``function.profile``.

    `machine` has the limits that kernels are compared with, by default this machine's, which are
    measured once and kept. With `gradient_lines` gradients of eager code are compiled anew when
    first taken in a profile, so that their kernels know their source lines. Raises RuntimeError
    while another profile is being taken.

    >>> import mycel as ms
    >>> x = ms.ops.ones((1000,))
    >>> with ms.profile() as p:
    ...     y = x + x
    >>> [(k.name, k.count, k.bytes, k.flops) for k in p.kernels]
    [('add', 1, 12000, 1000)]
    """

    def __init__(self, *, machine: Machine | None = None, gradient_lines: bool = True) -> None:
        arguments.optional("profile", "machine", machine, Machine)
        self._limits, self._gradient_lines = machine, gradient_lines
        self._collector: Collector | None = None
        self._report: Report | None = None

    def start(self) -> profile:
        """Begin the profile."""
        global _current
        with _lock:
            if _current is not None:
                raise RuntimeError("profile: another profile is being taken; end it first")
            _current = self
        try:
            self._report = None
            self._collector = Collector(self._gradient_lines)
            self._collector.start()
        except BaseException:
            _current = None
            raise
        return self

    def stop(self) -> profile:
        """End the profile; its results can be read from now on."""
        global _current
        if self._collector is None:
            raise RuntimeError("profile: it has not begun")
        try:
            self._report = Report(self._collector.stop(), self._limits)
        finally:
            self._collector = None
            _current = None
        return self

    def __enter__(self) -> profile:
        return self.start()

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        limits, lines = self._limits, self._gradient_lines

        @functools.wraps(function)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            with profile(machine=limits, gradient_lines=lines) as made:
                result = function(*args, **kwargs)
            profiled.__dict__["profile"] = made
            return result

        return profiled

    @property
    def report(self) -> Report:
        """The whole report, which the other properties are parts of."""
        if self._report is None:
            raise RuntimeError("profile: there is nothing to show before it has ended")
        return self._report

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels, those that took most time first."""
        return self.report.kernels

    @property
    def lines(self) -> list[Place]:
        """Time by source line."""
        return self.report.lines

    @property
    def cells(self) -> list[Place]:
        """Time by Cell."""
        return self.report.cells

    @property
    def phases(self) -> list[Phase]:
        """Wall time by phase."""
        return self.report.phases

    @property
    def memory(self) -> Memory:
        """Memory over time."""
        return self.report.memory

    @property
    def segments(self) -> list[Segments]:
        """The functions that ran as compiled segments with Python in between."""
        return self.report.segments

    @property
    def host_steps(self) -> list[Kernel]:
        """The kernels that ran in NumPy."""
        return self.report.host_steps

    def table(self, rows: int = 20) -> str:
        """Return the profile as tables of at most `rows` rows each."""
        from mycel.profiler.table import as_text

        return as_text(self.report, rows)

    def __str__(self) -> str:
        return self.table() if self._report is not None else "<profile>"

    def export_chrome(self, path: str | Path) -> None:
        """Write a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show."""
        from mycel.profiler.chrome import write

        write(self.report, Path(path))

    def html(self, path: str | Path) -> None:
        """Write a self-contained page with pictures and tables."""
        from mycel.profiler.html import write

        write(self.report, Path(path))


_current: profile | None = None
