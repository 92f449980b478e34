"""Layout inference: how `Model`'s networks are divided among devices, without running them."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.notebook_html import page
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import AUTO, SEMI_AUTO, current
from mycel._src.tensors.cells.cell import Cell
from mycel.train._batches import Epochs, check_dataset
from mycel.train._network_calls import settings_of

__all__ = ["ModelLayouts"]


class ModelLayouts:
    """The part of `Model` that tells the layouts of parameters, and shows the model."""

    train_network: Any
    predict_network: Any
    _loss_fn: Any
    _optimizer: Any
    _metrics: Any

    def _repr_html_(self) -> str:
        """Return the network with its loss, optimizer and metrics, as a notebook shows them."""
        parts = {"loss": self._loss_fn, "optimizer": self._optimizer}
        facts = [f"{name} {type(part).__name__}" for name, part in parts.items() if part is not None]
        facts += [f"metrics {', '.join(self._metrics)}"] if self._metrics else []
        return page("Model", "; ".join(facts), repr(self.predict_network))

    def infer_predict_layout(self, *predict_data: Any, skip_backend_compile: bool = False) -> dict[str, Any]:
        """Compile the network for a batch like `predict_data`, and return how its parameters are
        divided (`Cell.parameter_layout_dict`), as `mycel.load_distributed_checkpoint` takes it.

        `skip_backend_compile` has no effect: nothing is compiled for a device. Raises RuntimeError
        unless parallel_mode is "semi_auto_parallel" or "auto_parallel".
        """
        arguments.flag("Model.infer_predict_layout", "skip_backend_compile", skip_backend_compile)
        self.predict_network.set_train(False)
        return _layouts("infer_predict_layout", self.predict_network, predict_data)

    def infer_train_layout(
        self, train_dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1
    ) -> dict[str, Any]:
        """Compile the training step for the first batch of `train_dataset`, and return how its
        parameters are divided, those of the optimizer as well.

        `dataset_sink_mode` and `sink_size` have no effect. Raises RuntimeError unless parallel_mode
        is "semi_auto_parallel" or "auto_parallel".
        """
        owner = "Model.infer_train_layout"
        check_dataset(train_dataset, owner, "train_dataset")
        arguments.flag(owner, "dataset_sink_mode", dataset_sink_mode)
        if arguments.integer(owner, "sink_size", sink_size) != -1:
            without_effect(f"{owner}(sink_size=...)", "layouts do not depend on how many steps run")
        self.train_network.set_train(True)
        epochs = Epochs(train_dataset)
        try:
            return _layouts("infer_train_layout", self.train_network, epochs.take(1)[0])
        finally:
            epochs.close()


def _layouts(what: str, network: Cell, batch: Any) -> dict[str, Any]:
    with settings_of(network):
        mode = current().parallel_mode
        if mode not in (SEMI_AUTO, AUTO):
            raise RuntimeError(
                f"Model.{what}: parallel_mode is {mode!r}; set 'semi_auto_parallel' or 'auto_parallel', or give the "
                "network to AutoParallel"
            )
        network.compile(*batch)
        return network.parameter_layout_dict
