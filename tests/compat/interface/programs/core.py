# ruff: noqa: B023, F821
import mindspore as ms
import mindspore._c_expression as ce
import mindspore.device_context as devices
import numpy as np
from mindspore import log
from mindspore import multiprocessing as mp
from mindspore.common import _utils
from mindspore.common._register_for_tensor import Registry, tensor_operator_registry
from mindspore.common.file_system import FileSystem, _register_basic_file_system, mindio_preload

setting = ce.ms_ctx_param
context = ce.MSContext.get_instance()
say("mode", lambda: (context.get_param(setting.mode), context.set_param(setting.mode, 0), ms.get_context("mode")))
say("back", lambda: (context.set_param(setting.mode, 1), context.get_param(setting.device_target)))
say("devices", lambda: (context.is_pkg_support_device("CPU"), context.is_pkg_support_device("GPU")))
say(
    "ascend",
    lambda: (context.get_ascend_soc_version(), context.is_ascend_plugin_loaded(), context.get_backend_policy()),
)
info = ce.ParamInfo()
FACTS = (
    "name key requires_grad comm_fusion parallel_optimizer layerwise_parallel cache_enable cache_shape storage_format"
)
say("parameter", lambda: [getattr(info, name) for name in FACTS.split()])
info.name, info.requires_grad = "a", False
say("copied", lambda: (info.clone().name, info.clone().requires_grad, info.clone() is info))
say(
    "empty",
    lambda: (ce._empty_instance((2, 3), dtype=ms.float32).shape, ce._empty_instance(2, 3, dtype=ms.int32).dtype),
)
say("buffer", lambda: ce.frombuffer(b"\x01\x00\x00\x00", ms.int32))
CALLS = """
    _framework_profiler_step_start _framework_profiler_step_end disable_multi_thread
    _ms_memory_recycle is_reboot_node reset_op_id init_pipeline get_reboot_type
    is_silent_detect_enable get_hccl_rank_id check_is_arf current_stream_id
"""
for name in CALLS.split():
    say(name, lambda: getattr(ce, name)())
say("options", lambda: ce.update_pijit_default_config(perf_statistics=True))
say("times", lambda: [isinstance(f(), int) for f in (ce.get_clock_time, ce.get_clock_syscnt)])
say("security", lambda: ce.security.enable_security())
drawn = np.zeros(1000, np.float32)
ce._random_normal(3, drawn, 5.0, 0.1)
say("normal", lambda: (bool(abs(drawn.mean() - 5) < 0.02), bool(abs(drawn.std() - 0.1) < 0.02)))
ce._random_uniform(3, drawn, 5.0, 6.0)
say("uniform", lambda: bool((drawn >= 5).all() and (drawn <= 6).all()))
ce._truncated_normal(3, drawn, 9.0, 11.0, 10.0, 1.0)
say("truncated", lambda: bool((drawn >= 9).all() and (drawn <= 11).all()))
amp = ce.amp
strategy = amp.create_amp_strategy(amp.AmpLevel.AmpO1, ms.float16, [("Conv2D", [0])], [("Add", [])])
say("strategy", lambda: (str(strategy.get_amp_level()), strategy.get_amp_dtype(), strategy.get_white_list()))
say("levels", lambda: [(name, int(level)) for name, level in amp.AmpLevel.__members__.items()])
say(
    "pushed",
    lambda: (
        amp.push_amp_strategy(amp.AmpLevel.AmpO2, ms.float16, [], []),
        str(amp.get_curr_amp_strategy().get_amp_level()),
    ),
)
say("popped", lambda: (amp.pop_amp_strategy(), amp.get_curr_amp_strategy(), amp.pop_amp_strategy()))
say("classes", lambda: (isinstance(ms.Tensor(1.0), ce.TensorPy), issubclass(ms.nn.Dense, ce.Cell_)))
say("cpu", lambda: (devices.cpu.device_count(), devices.cpu.is_available(), devices.gpu.is_available()))
say("gpu", lambda: devices.gpu.device_count())
say("ascend devices", lambda: devices.ascend.device_count())
say("threads", lambda: devices.cpu.op_tuning.threads_num("a"))
say("precision", lambda: devices.ascend.op_precision.precision_mode("force_fp16"))
say("hf32", lambda: devices.ascend.op_precision.matmul_allow_hf32(True))
say("tf32", lambda: devices.gpu.op_precision.matmul_allow_tf32(3))
say("algorithm", lambda: devices.gpu.op_tuning.conv_fprop_algo("normal"))
say("timeout", lambda: devices.ascend.op_debug.execute_timeout(3))
say(
    "threads bound",
    lambda: (ms.runtime.set_cpu_affinity(False), ms.runtime.dispatch_threads_num(2), ms.runtime.launch_blocking()),
)
say(
    "processes",
    lambda: (issubclass(mp.Process, __import__("multiprocessing").process.BaseProcess), callable(mp.get_context)),
)
say("shapes", lambda: (_utils.is_shape_unknown((2, -1)), _utils.is_shape_unknown((2,)), _utils.is_dim_unknown((-2,))))
say("library", lambda: _utils.load_lib("nothing.so"))
say("registry", lambda: callable(tensor_operator_registry.get("add")))
say("not registered", lambda: tensor_operator_registry.get("zzz"))
say("empty registry", lambda: Registry().get("a"))
files = FileSystem()
say("files", lambda: (_register_basic_file_system(files), files.create_args, files.open_args, files.backend))
say("ahead", lambda: mindio_preload("x"))


@log._LogActionOnce(logger=log, key="k")
def told(x):
    return x


say("once", lambda: (told(1), told(2)))
