"""`mindspore.parallel.auto_parallel`: a network whose work is divided over devices.

A network has settings of its own, which are in force in place of the process's while it is called
or compiled; the number of devices and the rank are those of the process. On one device the network
runs as it is, and what is asked of the division is logged once.
"""

from __future__ import annotations

import os
from typing import Any

from mycel._src.compiler.transport.current_transport import transport
from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import AUTO, PROCESS, SEMI_AUTO, ParallelSettings, in_force, plan
from mycel._src.staging.distributed import cell_partition as _of_cells  # noqa: F401  which tells how Cells are divided
from mycel._src.staging.distributed.parallel_modes import WITH_EFFECT, begin, device_count
from mycel._src.tensors.cells.cell import Cell
from mycel.common.markers import constexpr
from mycel.parallel.context_options import check_value
from mycel.parallel.layout import Layout
from mycel.train import parameter_slices as _rank_parts  # noqa: F401  which writes strategy files

__all__ = ["AutoParallel", "set_op_strategy_config"]

_MODES = ("semi_auto", "sharding_propagation", "recursive_programming")
_SCHEDULERS = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
_LEVELS = ("level1", "level2", "level3")


@constexpr
def _check_division() -> None:
    if transport().size > 1 and plan() is None:
        raise RuntimeError(
            "AutoParallel: its network would not be divided here; on several ranks call the AutoParallel network "
            "itself in GRAPH_MODE, or around the whole training step, or give it to Model"
        )


class AutoParallel(Cell):
    """A network, or a function, that is divided over devices.

    `parallel_mode` is "semi_auto", where operators are divided as their strategies say, or
    "sharding_propagation" or "recursive_programming", which find strategies for the others.
    `settings` has what the methods were given. Names of parameters stay. Raises ValueError for
    another mode.

    >>> import mycel as ms
    >>> from mycel.parallel.auto_parallel import AutoParallel
    >>> net = AutoParallel(ms.nn.ReLU(), parallel_mode="semi_auto")
    >>> net.hsdp()
    >>> net(ms.Tensor([-1.0, 2.0])).tolist(), net.get_pipeline_stages()
    ([0.0, 2.0], 1)
    """

    _is_opened = True

    def __init__(self, network: Any, parallel_mode: str = "semi_auto") -> None:
        super().__init__(auto_prefix=False)
        arguments.one_of("AutoParallel", "parallel_mode", parallel_mode, _MODES)
        self.network = network
        self.settings = ParallelSettings(
            parallel_mode=SEMI_AUTO if parallel_mode == "semi_auto" else AUTO,
            search_mode="recursive_programming" if parallel_mode == "semi_auto" else parallel_mode,
            dataset_strategy="full_batch",
            full_batch=True,
        )

    @property
    def settings_in_force(self) -> ParallelSettings:
        """The settings while the network is called, with the number of devices that there are."""
        begin()
        world = PROCESS.settings
        count = world.device_num if "device_num" in PROCESS.given else device_count()
        made: ParallelSettings = self.settings.replaced(device_num=count, global_rank=world.global_rank)
        known: ParallelSettings | None = self.__dict__.get("_in_force")
        if known is None or made != known:
            known = self.__dict__["_in_force"] = made
        return known

    def _call_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with in_force(self.settings_in_force):
            return super()._call_compiled(args, kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the network for arguments of these types without running it."""
        with in_force(self.settings_in_force):
            super().compile(*args, **kwargs)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the network returns.

        Raises RuntimeError on several ranks where what is called does not divide the work.
        """
        _check_division()
        return self.network(*args, **kwargs)

    def _keep(self, **settings: Any) -> None:
        self.settings = self.settings.replaced(**settings)
        for name, value in settings.items():
            if device_count() == 1 or name not in WITH_EFFECT:
                without_effect(f"AutoParallel: {name}={value!r}", "there is one device")

    def comm_fusion(self, config: dict[str, dict[str, Any]]) -> None:
        """Keep how communications would be joined, by "allreduce", "allgather", "reducescatter".

        Raises TypeError for anything but a dict.
        """
        arguments.instance("comm_fusion", "config", config, dict)
        checked = check_value("AutoParallel", "comm_fusion", config)
        self._keep(comm_fusion={**self.settings.comm_fusion, **checked})

    def dataset_strategy(self, config: str | tuple[Any, ...]) -> None:
        """Keep how batches would be divided: "full_batch", "data_parallel", or a tuple of layouts
        or of numbers of parts.

        Raises TypeError and ValueError for anything else.
        """
        arguments.instance("dataset_strategy", "config", config, (str, tuple))
        if isinstance(config, str):
            arguments.one_of("dataset_strategy", "config", config, ("full_batch", "data_parallel"))
        else:
            for member in config:
                arguments.instance("dataset_strategy", "each of config", member, (tuple, Layout))
        self._keep(dataset_strategy=config, full_batch=config == "full_batch")

    def hsdp(self, shard_size: int = -1, threshold: int = 64, optimizer_level: str = "level1") -> None:
        """Keep how an optimizer's state would be divided: over `shard_size` devices (-1 for all),
        for parameters of at least `threshold` kilobytes, at a level from "level1" to "level3".

        Raises TypeError and ValueError for other values.
        """
        arguments.integer("hsdp", "shard_size", shard_size)
        if shard_size < 1 and shard_size != -1:
            raise arguments.wrong_value("hsdp", "shard_size", "-1 or at least 1", shard_size)
        arguments.integer("hsdp", "threshold", threshold, 0)
        arguments.one_of("hsdp", "optimizer_level", optimizer_level, _LEVELS)
        config = {"parallel_optimizer_threshold": threshold, "optimizer_level": optimizer_level}
        self._keep(
            enable_parallel_optimizer=True, optimizer_weight_shard_size=shard_size, parallel_optimizer_config=config
        )

    def pipeline(
        self, stages: int = 1, output_broadcast: bool = False, interleave: bool = False, scheduler: str = "1f1b"
    ) -> None:
        """Keep how a pipeline would be arranged.

        Raises TypeError and ValueError for other values.

        Args:
            stages: How many groups of devices work one after the other.
            output_broadcast: Whether every stage gets the results of the last.
            interleave: Whether a stage has several parts of the network.
            scheduler: The order of forward and backward steps.
        """
        arguments.integer("pipeline", "stages", stages, 1)
        arguments.flag("pipeline", "output_broadcast", output_broadcast)
        arguments.flag("pipeline", "interleave", interleave)
        arguments.one_of("pipeline", "scheduler", scheduler, _SCHEDULERS)
        config = {"pipeline_interleave": interleave, "pipeline_scheduler": scheduler}
        self._keep(pipeline_stages=stages, pipeline_result_broadcast=output_broadcast, pipeline_config=config)

    def get_pipeline_stages(self) -> int:
        """Return the number of stages that `pipeline_parallel` was given, 1 at first."""
        return self.settings.pipeline_stages

    def load_operator_strategy_file(self, file_path: str) -> None:
        """Keep the absolute path of a JSON file that says how operators are divided to which the
        program gives no strategy (`mycel.parallel.set_op_strategy_config`).
        """
        self._keep(operator_strategy_load=_json_path("load_operator_strategy_file", file_path))

    def save_operator_strategy_file(self, file_path: str) -> None:
        """Keep the absolute path of a JSON file that is written with how operators are divided."""
        self._keep(operator_strategy_save=_json_path("save_operator_strategy_file", file_path))

    def load_param_strategy_file(self, file_path: str) -> None:
        """Keep the path of a file that would say how parameters are divided."""
        self._keep(strategy_ckpt_load_file=arguments.text("load_param_strategy_file", "file_path", file_path))

    def save_param_strategy_file(self, file_path: str) -> None:
        """Keep the path of a file for how parameters were divided; none are, so nothing is
        written.
        """
        self._keep(strategy_ckpt_save_file=arguments.text("save_param_strategy_file", "file_path", file_path))

    def set_group_ckpt_save_file(self, file_path: str) -> None:
        """Keep the path of a file for the groups of devices; there are none, so nothing is
        written.
        """
        self._keep(group_ckpt_save_file=arguments.text("set_group_ckpt_save_file", "file_path", file_path))

    def transformer_opt(self, file_path: str | None) -> None:
        """Keep the path of a file with settings of Ascend devices; None for none.

        Raises ValueError if there is no such file.
        """
        arguments.optional("transformer_opt", "file_path", file_path, str)
        if file_path is not None and not os.path.exists(file_path):
            raise ValueError(f"transformer_opt: there is no file {file_path!r}")
        self._keep(transformer_opt=file_path)

    def dump_local_norm(self, file_path: str) -> None:
        """Keep the folder for norms of gradients of each device."""
        self._keep(dump_local_norm_path=arguments.text("dump_local_norm", "file_path", file_path))

    def disable_gradient_fp32_sync(self) -> None:
        """Keep that gradients of 32 bits would be sent as they are."""
        self._keep(gradient_fp32_sync=False)

    def disable_loss_repeated_mean(self) -> None:
        """Keep that a loss that several devices have would not be divided by their number."""
        self._keep(loss_repeated_mean=False)

    def disable_strategy_file_only_for_trainable_params(self) -> None:
        """Keep that files of divisions would have all parameters."""
        self._keep(strategy_ckpt_config={**self.settings.strategy_ckpt_config, "only_trainable_params": False})

    def enable_device_local_norm(self) -> None:
        """Keep that norms of gradients would be computed on each device."""
        self._keep(dump_device_local_norm=True)

    def enable_fp32_communication(self) -> None:
        """Keep that numbers would be sent with 32 bits."""
        self._keep(force_fp32_communication=True)

    def enable_gradients_mean(self) -> None:
        """Keep that gradients of devices would be averaged instead of summed."""
        self._keep(gradients_mean=True)

    def no_init_parameters_in_compile(self) -> None:
        """Keep that compilation would not initialize parameters."""
        self._keep(init_param_in_compile=False)

    def print_local_norm(self) -> None:
        """Keep that norms of gradients would be printed by each device."""
        self._keep(dump_local_norm=True)


def set_op_strategy_config(mode: str = "SAVE", path: str = "") -> None:
    """Set the JSON file from which compiled functions load how operators are divided (`mode`
    "LOAD"), or in which they save it ("SAVE"), in the modes "semi_auto_parallel" and
    "auto_parallel".

    It has the strategy of each operator by its name. Loaded ones are for operators to which the
    program gives none; none are searched for then. Raises KeyError for another
    mode, and for a path that is not absolute or does not end in ".json".

    >>> import mycel as ms
    >>> ms.parallel.set_op_strategy_config("SAVE", "/strategies.json")
    """
    if mode not in ("SAVE", "LOAD"):
        raise KeyError(f"set_op_strategy_config: mode must be 'SAVE' or 'LOAD', not {mode!r}")
    file = _json_path("set_op_strategy_config", path)
    side = "operator_strategy_save" if mode == "SAVE" else "operator_strategy_load"
    PROCESS.settings = PROCESS.settings.replaced(**{side: file})
    if PROCESS.settings.dividing is None and device_count() == 1:
        without_effect(f"set_op_strategy_config({mode!r})", "there is one device")


def _json_path(what: str, file_path: str) -> str:
    arguments.text(what, "file_path", file_path)
    if not os.path.isabs(file_path):
        raise KeyError(f"{what}: file_path must be an absolute path, not {file_path!r}")
    if not file_path.endswith(".json"):
        raise KeyError(f"{what}: file_path must end in '.json', not {file_path!r}")
    return file_path
