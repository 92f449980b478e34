"""`mindspore.parallel.auto_parallel`: a network with settings of how to divide it over devices."""

from __future__ import annotations

from typing import Any

from mycel.base import arguments
from mycel.base.notes import without_effect
from mycel.cells.cell import Cell

__all__ = ["AutoParallel"]

_MODES = ("semi_auto", "sharding_propagation", "recursive_programming")


class AutoParallel(Cell):
    """A network that is called as it is: on one device there is nothing to divide.

    Its methods check and keep settings, and say once that they have no effect. `parallel_mode` is
    "semi_auto", "sharding_propagation" or "recursive_programming"; ValueError for another.

    >>> import mycel as ms
    >>> AutoParallel(ms.nn.ReLU())(ms.Tensor([-1.0, 1.0])).tolist()
    [0.0, 1.0]
    """

    def __init__(self, network: Cell, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        self._parallel_mode = arguments.one_of("AutoParallel", "parallel_mode", parallel_mode, _MODES)
        self.network = network
        self._settings: dict[str, Any] = {}

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Return the network's result."""
        return self.network(*args, **kwargs)

    def _set(self, name: str, value: Any = True) -> None:
        without_effect(f"AutoParallel.{name}", "there is one device, over which nothing is divided")
        self._settings[name] = value

    def _set_file(self, name: str, path: Any) -> None:
        self._set(name, arguments.text(f"AutoParallel.{name}", "file_path", path))

    def load_param_strategy_file(self, file_path: str) -> None:
        """Set the file of strategies to load, which has no effect."""
        self._set_file("load_param_strategy_file", file_path)

    def save_param_strategy_file(self, file_path: str) -> None:
        """Set the file for strategies, which is not written: there are none."""
        self._set_file("save_param_strategy_file", file_path)

    def load_operator_strategy_file(self, file_path: str) -> None:
        """Set the file of operations' strategies to load, which has no effect."""
        self._set_file("load_operator_strategy_file", file_path)

    def save_operator_strategy_file(self, file_path: str) -> None:
        """Set the file for operations' strategies, which is not written: there are none."""
        self._set_file("save_operator_strategy_file", file_path)

    def set_group_ckpt_save_file(self, file_path: str) -> None:
        """Set the file for groups of devices, which is not written: there is one device."""
        self._set_file("set_group_ckpt_save_file", file_path)

    def transformer_opt(self, file_path: str) -> None:
        """Set the file of options for transformers, which has no effect."""
        self._set_file("transformer_opt", file_path)

    def dump_local_norm(self, file_path: str) -> None:
        """Set where norms of gradients go, which are not written."""
        self._set_file("dump_local_norm", file_path)

    def dataset_strategy(self, config: Any) -> None:
        """Set how batches are divided: "full_batch", "data_parallel", or a tuple of strategies."""
        if not isinstance(config, (str, tuple)):
            raise TypeError(f"AutoParallel.dataset_strategy: config must be a str or tuple, not {config!r}")
        if isinstance(config, str):
            arguments.one_of("AutoParallel.dataset_strategy", "config", config, ("full_batch", "data_parallel"))
        self._set("dataset_strategy", config)

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Set how an optimizer's state is divided."""
        where = "AutoParallel.hsdp"
        size = arguments.integer(where, "shard_size", shard_size, numpy=False)
        if size < 1 and size != -1:
            raise ValueError(f"{where}: shard_size must be positive or -1, not {size}")
        arguments.integer(where, "threshold", threshold, 0, numpy=False)
        arguments.one_of(where, "optimizer_level", optimizer_level, ("level1", "level2", "level3"))
        self._set("hsdp", (shard_size, threshold, optimizer_level))

    def pipeline(
        self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False, scheduler: str = "1f1b"
    ) -> None:
        """Set the number of stages of devices, which must be 1, and how batches go through them.

        `output_broadcast`, `interleave` and `scheduler` ("1f1b", "gpipe", "seqpipe", "seqvpp",
        "seqsmartvpp", "zero_bubble_v") have no effect.
        """
        where = "AutoParallel.pipeline"
        if arguments.integer(where, "stages", stages, 1, numpy=False) != 1:
            raise ValueError(f"{where}: stages must be 1, not {stages}: there is one device")
        arguments.flag(where, "output_broadcast", output_broadcast)
        arguments.flag(where, "interleave", interleave)
        schedulers = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
        arguments.one_of(where, "scheduler", scheduler, schedulers)
        self._set("pipeline", (stages, output_broadcast, interleave, scheduler))

    def get_pipeline_stages(self) -> int:
        """Return the number of stages of devices: 1."""
        return 1

    def comm_fusion(self, config: dict[str, Any]) -> None:
        """Set which operations between devices are fused."""
        self._set("comm_fusion", arguments.instance("AutoParallel.comm_fusion", "config", config, dict))

    def disable_gradient_fp32_sync(self) -> None:
        """Let gradients be added in their own types, which has no effect."""
        self._set("disable_gradient_fp32_sync")

    def disable_loss_repeated_mean(self) -> None:
        """Let a repeated loss be no mean, which has no effect."""
        self._set("disable_loss_repeated_mean")

    def disable_strategy_file_only_for_trainable_params(self) -> None:
        """Let files of strategies have all parameters, which has no effect."""
        self._set("disable_strategy_file_only_for_trainable_params")

    def enable_device_local_norm(self) -> None:
        """Let each device compute norms of gradients, which has no effect."""
        self._set("enable_device_local_norm")

    def enable_fp32_communication(self) -> None:
        """Let values between devices be float32, which has no effect."""
        self._set("enable_fp32_communication")

    def enable_gradients_mean(self) -> None:
        """Let gradients of devices be a mean, which has no effect."""
        self._set("enable_gradients_mean")

    def no_init_parameters_in_compile(self) -> None:
        """Let parameters be drawn after compiling; `no_init_parameters` leaves that to later."""
        self._set("no_init_parameters_in_compile")

    def print_local_norm(self) -> None:
        """Let norms of gradients be printed, which has no effect."""
        self._set("print_local_norm")
