"""SummaryCollector: records losses, learning rates, parameters and inputs for TensorBoard."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.settings.ignored_settings import unused
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.callback.base import Callback, RunContext, step_loss
from mycel.train.callback.landscape import LandscapeKeeper
from mycel.train.summary import SummaryRecord

__all__ = ["SummaryCollector"]

_COLLECTED = {"collect_metric": bool, "collect_input_data": bool, "histogram_regular": str}
_MISSING = (
    "collect_graph",
    "collect_train_lineage",
    "collect_eval_lineage",
    "collect_dataset_graph",
)


class SummaryCollector(Callback):
    """A callback that records a training run at the first step and then regularly, with a
    `SummaryRecord`.

    "collect_landscape", a dict, saves the parameters from which `SummaryLandscape` makes loss
    landscapes: at the "unit" ("step" or "epoch") numbers in "intervals".

    Args:
        summary_dir (str): The folder.
        collect_freq (int): After how many training steps to record. Default: 10.
        num_process (int): Has no effect: one process writes. Default: 32.
        collect_specified_data (dict[str, Any] | None): What is recorded: "collect_metric" (the
            loss; True by default), "collect_input_data" (the first input, as an image where it has
            the shape of images), "histogram_regular" (a regular expression of parameters' names; ""
            for the first five, None for none) and "collect_landscape". Default: None.
        keep_default_action (bool): Whether things that are not named there are recorded as by
            default, or not at all. Default: True.
        custom_lineage_data (dict[str, Any] | None): Names to numbers and strings, which are written
            as tensors of their text's bytes. Default: None.
        collect_tensor_freq (int | None): After how many training steps input data and histograms
            are recorded; None for at most 20 times in the first epoch. Default: None.
        max_file_size (int | None): The bytes at which no more is written; None for no limit.
            Default: None.
        export_options (dict[str, Any] | None): Must be None. Default: None.

    Raises:
        Unsupported: For `export_options`, graphs and lineages, which are not recorded.
        TypeError, ValueError: For other arguments.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     collector = SummaryCollector(folder, collect_freq=1)
    """

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: dict[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: dict[str, Any] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: Any = None,
    ) -> None:
        super().__init__()
        arguments.path("SummaryCollector", "summary_dir", summary_dir)
        for name, value in (("collect_freq", collect_freq), ("collect_tensor_freq", collect_tensor_freq)):
            if value is None and name == "collect_tensor_freq":
                continue
            arguments.integer("SummaryCollector", name, value, 1, numpy=False)
        if max_file_size is not None:
            arguments.integer("SummaryCollector", "max_file_size", max_file_size, 1)
        for name, given in (
            ("collect_specified_data", collect_specified_data),
            ("custom_lineage_data", custom_lineage_data),
            ("export_options", export_options),
        ):
            arguments.optional("SummaryCollector", name, given, dict)
        arguments.flag("SummaryCollector", "keep_default_action", keep_default_action)
        unused("SummaryCollector", "one thread writes the file", num_process=(num_process, 32))
        chosen = dict(collect_specified_data or {})
        landscape = chosen.pop("collect_landscape", None)
        self._landscape = LandscapeKeeper(summary_dir, landscape) if landscape else None
        for name, value in chosen.items():
            if name in _MISSING:
                if value:
                    raise Unsupported(
                        f"SummaryCollector: {name} is not supported; those that are: {', '.join(_COLLECTED)}"
                    )
            elif name not in _COLLECTED:
                raise ValueError(
                    f"SummaryCollector: collect_specified_data has {name!r}; known: {', '.join(_COLLECTED)}"
                )
            elif not isinstance(value, _COLLECTED[name]) and not (name == "histogram_regular" and value is None):
                raise TypeError(f"SummaryCollector: {name} must be of type {_COLLECTED[name].__name__}, not {value!r}")
        self._metric = chosen.get("collect_metric", keep_default_action)
        self._input = chosen.get("collect_input_data", keep_default_action)
        self._pattern = chosen.get("histogram_regular", "" if keep_default_action else None)
        self._custom = dict(custom_lineage_data or {})
        for name, value in self._custom.items():
            if not isinstance(name, str) or not isinstance(value, (int, float, str)):
                raise TypeError(
                    f"SummaryCollector: custom_lineage_data maps names to numbers and strings, not {name!r}: {value!r}"
                )
        self._every, self._tensors_every = collect_freq, collect_tensor_freq
        self._dir, self._limit, self._options = summary_dir, max_file_size, export_options
        if export_options:
            raise Unsupported("SummaryCollector: export_options is not supported; write arrays with numpy.save")
        self._record: SummaryRecord | None = None
        self._steps = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            self._finish_landscape()
        self._close()
        return None

    def _finish_landscape(self) -> None:
        """Write what has to be known of the parameters that were saved for landscapes."""
        if self._landscape is not None and self._steps:
            self._landscape.finish(self._steps)

    def on_train_begin(self, run_context: RunContext) -> None:
        """Open the file."""
        self._record = SummaryRecord(self._dir, max_file_size=self._limit)
        self._steps = run_context.original_args().get("batch_num", 0)
        for name, value in self._custom.items():
            kind = "scalar" if not isinstance(value, str) else "tensor"
            self._record.add_value(kind, name, value if kind == "scalar" else np.frombuffer(value.encode(), np.uint8))

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Record the step if it is due."""
        params = run_context.original_args()
        step, record = params.cur_step_num, self._record
        if self._landscape is not None:
            self._landscape.keep("step", step, params.train_network)
        if record is None:
            return
        often = self._tensors_every or max(self._every, params.batch_num // 20)
        first = step == 1
        values: list[tuple[str, str, Any]] = []
        if self._metric and (first or step % self._every == 0):
            loss = step_loss(params.net_outputs)
            if loss is not None:
                values.append(("scalar", "loss", loss))
            rate = getattr(params.get("optimizer"), "learning_rate", None)
            if isinstance(rate, Tensor) and rate.size == 1:
                values.append(("scalar", "learning_rate", rate.asnumpy()))
        if first or step % often == 0:
            if self._input and isinstance(params.get("train_dataset_element"), (tuple, list)):
                data = params["train_dataset_element"][0]
                shown = data.ndim == 4 and data.shape[1] in (1, 3)
                values.append(("image" if shown else "tensor", "input_data", np.array(data.asnumpy())))
            values += [("histogram", p.name, np.array(p.asnumpy())) for p in self._parameters(params.train_network)]
        if values:
            run_context.later(_write, record, values, step)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Save the parameters if a landscape needs those of this epoch."""
        if self._landscape is not None:
            params = run_context.original_args()
            self._landscape.keep("epoch", params.cur_epoch_num, params.train_network)

    def _parameters(self, network: Any) -> list[Any]:
        if self._pattern is None:
            return []
        known = list(network.trainable_params())
        return known[:5] if not self._pattern else [p for p in known if re.match(self._pattern, p.name)]

    def on_train_end(self, run_context: RunContext) -> None:
        """Close the file after everything is written."""
        self._finish_landscape()
        run_context.later(self._close)

    def _close(self) -> None:
        if self._record is not None:
            self._record.close()


def _write(record: SummaryRecord, values: list[tuple[str, str, Any]], step: int) -> None:
    for plugin, name, value in values:
        record.add_value(plugin, name, value)
    record.record(step)
    record.flush()
