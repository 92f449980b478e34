"""SummaryRecord: the values of a training run, written step by step into a file for TensorBoard."""

from __future__ import annotations

import os
import socket
import time
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings.ignored_settings import unused
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.summaries import Collected
from mycel.train.metrics.base import as_array
from mycel.train.summary import events

__all__ = ["SummaryRecord"]

_PLUGINS = ("scalar", "tensor", "image", "histogram")


class SummaryRecord:
    """A writer of scalars, tensors, images and histograms of training steps into an event file.

    Values come from `add_value` and from the operations `ScalarSummary`, `TensorSummary`,
    `ImageSummary` and `HistogramSummary` of the program, and are written by the next `record`. The
    file is ``file_prefix.out.tfevents.summary.<time>.<host>file_suffix``: TensorBoard takes names
    with "tfevents", MindInsight those with ".summary.<time>". A record is a context manager that
    closes the file.

    Args:
        log_dir (str): The folder, which is created if it is missing.
        file_prefix (str): The beginning of the file's name. Default: "events".
        file_suffix (str): Its end. Default: "_MS".
        num_process (int): Has no effect: one process writes. Default: 32.
        network (Cell | None): Has no effect: graphs are not shown. Default: None.
        max_file_size (int | None): The bytes at which no more is written, which is logged once;
            None for no limit. Default: None.
        raise_exception (bool): Whether more bytes raise RuntimeError instead. Default: False.
        export_options (dict[str, Any] | None): Must be None. Default: None.

    Raises:
        TypeError, ValueError: For other arguments.
        Unsupported: For `export_options`.

    Examples:
        >>> import tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with SummaryRecord(folder) as record:
        ...         record.add_value("scalar", "loss", 0.5)
        ...         written = record.record(1)
        ...     name, = os.listdir(folder)
        >>> written, name.startswith("events.out.tfevents.summary.")
        (True, True)
    """

    def __init__(
        self,
        log_dir: str,
        file_prefix: str = "events",
        file_suffix: str = "_MS",
        num_process: int = 32,
        network: Any = None,
        max_file_size: int | None = None,
        raise_exception: bool = False,
        export_options: Any = None,
    ) -> None:
        for name, text in (("log_dir", log_dir), ("file_prefix", file_prefix), ("file_suffix", file_suffix)):
            if not isinstance(text, (str, os.PathLike)) or (name != "log_dir" and "/" in str(text)):
                raise ValueError(
                    f"SummaryRecord: {name} must be a {'path' if name == 'log_dir' else 'name without /'}, not {text!r}"
                )
        if max_file_size is not None and (
            not isinstance(max_file_size, int) or isinstance(max_file_size, bool) or max_file_size <= 0
        ):
            raise ValueError(f"SummaryRecord: max_file_size must be a positive integer or None, not {max_file_size!r}")
        arguments.flag("SummaryRecord", "raise_exception", raise_exception)
        unused("SummaryRecord", "one thread writes the file", num_process=(num_process, 32))
        unused("SummaryRecord", "networks are not drawn", network=(network, None))
        if export_options is not None:
            raise Unsupported("SummaryRecord: export_options is not supported; write arrays with numpy.save")
        self._dir = os.path.realpath(log_dir)
        os.makedirs(self._dir, exist_ok=True)
        second = f"{time.time():.6f}"
        name = f"{file_prefix}.out.tfevents.summary.{second}.{socket.gethostname()}{file_suffix}"
        self._path = os.path.join(self._dir, name)
        self._limit, self._raises, self._full = max_file_size, raise_exception, False
        self._mode = "train"
        self._waiting: list[tuple[str, bytes]] = []
        self._collected = Collected()
        self._file: Any = open(self._path, "wb")
        self._write(events.event(time.time(), version="brain.Event:2"))

    @property
    def log_dir(self) -> str:
        """The path of the event file."""
        return self._path

    def set_mode(self, mode: str) -> None:
        """Set the mode, "train" or "eval".

        Raises ValueError for other words.
        """
        arguments.one_of("SummaryRecord.set_mode", "mode", mode, ("train", "eval"))
        self._mode = mode

    def add_value(self, plugin: str, name: str, value: Any) -> None:
        """Add a value, under a name, for the next `record`.

        `plugin` is "scalar" (one number), "tensor" (any), "histogram" (numbers) or "image": [N, C,
        H, W] with 1 or 3 channels, of which the first picture is shown; floats from 0 to 1, or
        integers from 0 to 255. Raises ValueError for others and for shapes that do not fit.
        """
        arguments.one_of("SummaryRecord.add_value", "plugin", plugin, _PLUGINS)
        arguments.text("SummaryRecord.add_value", "name", name, empty=False, error=ValueError)
        given = value if isinstance(value, Tensor) else np.asarray(value)
        array = as_array(given, "SummaryRecord.add_value", "value")
        if plugin == "scalar":
            if array.size != 1:
                raise ValueError(
                    f"SummaryRecord.add_value: the scalar {name!r} has shape {array.shape}; give one number"
                )
            content = events.scalar(name, float(array.reshape(())))
        elif plugin == "tensor":
            content = events.tensor(name, array)
        elif plugin == "histogram":
            content = events.histogram(name, array)
        else:
            content = events.image(name, _pixels(name, array))
        self._waiting.append((plugin, content))

    def record(self, step: int, train_network: Any = None, plugin_filter: Any = None) -> bool:
        """Write the values added since the last call as those of a step, and return whether they
        were written.

        `plugin_filter`, called with the name of a plugin, says which are written; the others are
        dropped. `train_network` has no effect.
        """
        arguments.integer("SummaryRecord.record", "step", step, numpy=False)
        if self._file is None:
            raise RuntimeError("SummaryRecord.record: the file is closed; make a new SummaryRecord")
        for plugin, name, value in self._collected.take():
            self.add_value(plugin, name, value)
        values = [c for plugin, c in self._waiting if plugin_filter is None or plugin_filter(plugin)]
        self._waiting.clear()
        return self._write(events.event(time.time(), step, b"".join(values))) if values else not self._full

    def _write(self, data: bytes) -> bool:
        framed = events.record(data)
        if self._limit is not None and self._file.tell() + len(framed) > self._limit:
            text = f"SummaryRecord: {self._path} has reached max_file_size ({self._limit} bytes); no more is written"
            if self._raises:
                raise RuntimeError(text)
            if not self._full:
                logger.warning("%s", text)
            self._full = True
        if self._full:
            return False
        self._file.write(framed)
        return True

    def flush(self) -> None:
        """Flush the file to the operating system."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._file is not None:
            self._collected.close()
            self._file.close()
            self._file = None

    def __enter__(self) -> SummaryRecord:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _pixels(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 4 or array.shape[1] not in (1, 3) or array.size == 0:
        raise ValueError(f"SummaryRecord.add_value: the image {name!r} has shape {array.shape}, not [N, 1 or 3, H, W]")
    first = array[0].transpose(1, 2, 0)
    scaled = np.rint(first.astype(np.float64) * 255) if first.dtype.kind == "f" else first
    return np.clip(np.nan_to_num(scaled), 0, 255).astype(np.uint8)
