"""Mycel: an AI framework with MindSpore's interface and a compiler of its own.

    import mycel as ms

Tensors, operations, layers and gradients are here at once; the libraries for data, training and
NumPy-like programs are loaded when they are first named, so that importing the package stays quick.

What an import does to the process beside, and why:

* `sys.excepthook`, `threading.excepthook` and a shell of IPython show a traceback without Mycel's
  own frames; MYCEL_TRACEBACK=full shows all. The hooks of before are called.
* `sys.meta_path` gets entries that find modules by the paths of earlier versions, for pickles.
* The garbage collector pauses until the import is done: of modules nothing is garbage.
* `atexit`: what was abandoned is ended, and groups of ranks are left, before the interpreter ends.
* `os.register_at_fork`: locks, the pool of threads and oneDNN are made fit for child processes.
* In a rank of several processes that no `mycel launch` watches, a thread shows where the rank is,
  so that others can tell a rank that waits from one that is gone. Otherwise no thread starts.
* Nothing is written, and no engine starts before it is used.
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.transport.startup_watchdog import show as _show
from mycel._src.foundation import migration_hints as _hints
from mycel._src.foundation.earlier_paths import install as _find_earlier_paths
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.foundation.python_runtime.garbage_collection import left_alone
from mycel._src.foundation.python_runtime.interpreter_checks import refuse_unfit as _refuse_unfit
from mycel._src.foundation.python_runtime.tracebacks import install as _install

_refuse_unfit()
_install()
_find_earlier_paths()

# Other ranks may wait for this one before it comes to `init`.
_show()

# Modules are no garbage.
_rest = left_alone()
_rest.__enter__()

from mycel import dtype as dtype
from mycel import nn as nn
from mycel import ops as ops
from mycel._src.compiler.ir.symbols import Symbol as Symbol
from mycel._src.foundation.dtype import Type as Type
from mycel._src.foundation.dtype import bfloat16 as bfloat16
from mycel._src.foundation.dtype import bool_ as bool_
from mycel._src.foundation.dtype import complex64 as complex64
from mycel._src.foundation.dtype import complex128 as complex128
from mycel._src.foundation.dtype import float8_e4m3fn as float8_e4m3fn
from mycel._src.foundation.dtype import float8_e5m2 as float8_e5m2
from mycel._src.foundation.dtype import float16 as float16
from mycel._src.foundation.dtype import float32 as float32
from mycel._src.foundation.dtype import float64 as float64
from mycel._src.foundation.dtype import int8 as int8
from mycel._src.foundation.dtype import int16 as int16
from mycel._src.foundation.dtype import int32 as int32
from mycel._src.foundation.dtype import int64 as int64
from mycel._src.foundation.dtype import uint8 as uint8
from mycel._src.foundation.dtype import uint16 as uint16
from mycel._src.foundation.dtype import uint32 as uint32
from mycel._src.foundation.dtype import uint64 as uint64
from mycel._src.foundation.settings.config import COMPATIBLE as COMPATIBLE
from mycel._src.foundation.settings.config import GRAPH_MODE as GRAPH_MODE
from mycel._src.foundation.settings.config import LAX as LAX
from mycel._src.foundation.settings.config import PYNATIVE_MODE as PYNATIVE_MODE
from mycel._src.foundation.settings.config import STRICT as STRICT
from mycel._src.foundation.settings.config import get_context as get_context
from mycel._src.foundation.settings.config import set_context as set_context
from mycel._src.foundation.settings.jit_config import JitConfig as JitConfig
from mycel._src.foundation.settings.jit_config import set_recursion_limit as set_recursion_limit
from mycel._src.staging.compiled.eager_comparison import Comparison as Comparison
from mycel._src.staging.compiled.eager_comparison import compare_modes as compare_modes
from mycel._src.staging.compiled.explain import explain as explain
from mycel._src.staging.compiled.jit import jit as jit
from mycel._src.staging.compiled.memory_estimate import Estimate as Estimate
from mycel._src.staging.compiled.memory_estimate import estimate as estimate
from mycel._src.staging.compiled.vmap import vmap as vmap
from mycel._src.staging.derivatives import get_grad as get_grad
from mycel._src.staging.derivatives import grad as grad
from mycel._src.staging.derivatives import jacfwd as jacfwd
from mycel._src.staging.derivatives import jacrev as jacrev
from mycel._src.staging.derivatives import jvp as jvp
from mycel._src.staging.derivatives import recompute as recompute
from mycel._src.staging.derivatives import value_and_grad as value_and_grad
from mycel._src.staging.derivatives import vjp as vjp
from mycel._src.staging.frontend.specialization.mutable_numbers import mutable as mutable
from mycel._src.tensors.core.parameter import Parameter as Parameter
from mycel._src.tensors.core.parameter import ParameterTuple as ParameterTuple
from mycel._src.tensors.core.storage import from_numpy as from_numpy
from mycel._src.tensors.core.tensor import Tensor as Tensor
from mycel._src.tensors.core.tensor import is_tensor as is_tensor
from mycel._src.tensors.core.tensor import tensor as tensor
from mycel.common.generator import Generator as Generator
from mycel.common.generator import default_generator as default_generator
from mycel.common.generator import get_rng_state as get_rng_state
from mycel.common.generator import initial_seed as initial_seed
from mycel.common.generator import manual_seed as manual_seed
from mycel.common.generator import seed as seed
from mycel.common.generator import set_rng_state as set_rng_state
from mycel.common.markers import constexpr as constexpr
from mycel.common.markers import jit_class as jit_class
from mycel.common.markers import lazy_inline as lazy_inline
from mycel.common.markers import no_inline as no_inline
from mycel.common.seed import get_seed as get_seed
from mycel.common.seed import set_seed as set_seed
from mycel.ops.sparse.tensors import COOTensor as COOTensor
from mycel.ops.sparse.tensors import CSRTensor as CSRTensor
from mycel.ops.sparse.tensors import RowTensor as RowTensor
from mycel.ops.sparse.tensors import SparseTensor as SparseTensor

# What was imported stays: it is handed to the oldest generation, without a search through it for
# garbage.
gc.freeze()
gc.unfreeze()
_rest.__exit__()
del _rest, gc, left_alone

from mycel._src.tensors.core import tensor_compatibility as _tensor_facts  # noqa: F401

__version__ = "0.1.0"

# The spellings that MindSpore has for the same types.
half, single, double = float16, float32, float64
short, long, ubyte, ushort, byte = int16, int64, uint8, uint16, int8
float_, int_, uint, intc, uintc, intp, uintp = float32, int64, uint64, int32, uint32, int64, uint64
cfloat, cdouble = complex64, complex128
int, float, bool = int32, float32, bool_

_TRAIN = (
    "Accuracy",
    "Callback",
    "CheckpointConfig",
    "CheckpointError",
    "ConfusionMatrix",
    "DynamicLossScaleManager",
    "EarlyStopping",
    "F1",
    "Fbeta",
    "FixedLossScaleManager",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "Loss",
    "LossMonitor",
    "LossScaleManager",
    "MAE",
    "MSE",
    "Metric",
    "Model",
    "ModelCheckpoint",
    "OnRequestExit",
    "Precision",
    "Recall",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "async_ckpt_thread_status",
    "ckpt_to_safetensors",
    "data_sink",
    "get_metric_fn",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "names",
    "rearrange_inputs",
    "safetensors_to_ckpt",
    "save_checkpoint",
    "BackupAndRestore",
    "BleuScore",
    "ConfusionMatrixMetric",
    "CosineSimilarity",
    "DatasetHelper",
    "Dice",
    "HausdorffDistance",
    "MeanSurfaceDistance",
    "OcclusionSensitivity",
    "Perplexity",
    "ROC",
    "ConvertModelUtils",
    "ConvertNetUtils",
    "FlopsUtilizationCollector",
    "SummaryLandscape",
    "RootMeanSquareDistance",
    "SummaryCollector",
    "SummaryRecord",
    "auc",
    "build_train_network",
    "connect_network_with_dataset",
    "build_searched_strategy",
    "export",
    "get_ckpt_path_with_strategy",
    "load_distributed_checkpoint",
    "merge_sliced_parameter",
    "restore_group_info_list",
)
_RUNTIME = (
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_memory",
)
_OTHERS = {
    "mycel.formats.loading": "load",
    "mycel.train.program_comparison": "diverge",
    "mycel.formats.exporting": "load_mindir save_mindir",
    "mycel.train.distributed_checkpoints": "rank_list_for_transform transform_checkpoint_by_rank transform_checkpoints",
    "mycel.train.unified_checkpoints": "load_segmented_checkpoints unified_safetensors",
    "mycel.train.strategies": "merge_pipeline_strategys",
    "mycel._src.devices.machine": "DeviceCtx dispatch_threads_num get_current_device launch_blocking ms_memory_recycle "
    "run_check set_cpu_affinity set_deterministic "
    "set_device synchronize",
    "mycel.rewrite": "Node NodeType ScopedValue SymbolTree",
    "mycel._src.tensors.core.autograd.saved_tensors": "register_saved_tensors_hooks saved_tensors_hooks",
    "mycel._src.staging.compiled.dynamic_inputs": "enable_dynamic",
    "mycel.parallel.layout": "Layout parameter_broadcast reshard shard sync_pipeline_shared_parameters",
    "mycel.parallel.parameter_server": "get_ps_context reset_ps_context set_ps_context",
    "mycel._src.devices.stream": "Event Stream StreamCtx communication_stream current_stream default_stream "
    "set_cur_stream set_kernel_launch_capture set_kernel_launch_group",
    "mycel._src.tensors.core.storage": "UntypedStorage from_dlpack frombuffer swap_tensors to_dlpack",
    "mycel.mindrecord": "Cifar100ToMR Cifar10ToMR CsvToMR FAILED FileReader FileWriter ImageNetToMR MindPage MnistToMR "
    "SUCCESS TFRecordToMR set_dec_mode "
    "set_enc_key set_enc_mode",
    "mycel._src.foundation.dtype": "dtype_to_nptype",
    "mycel._src.foundation.object_types": (
        "Int QuantDtype TensorType dtype_to_pytype get_py_obj_dtype list_ number "
        "pytype_to_dtype string tensor_type tuple_ type_none"
    ),
    "mycel._src.staging.frontend.calls.jit_forbidden": (
        "get_obj_module_and_name_info is_invalid_or_jit_forbidden_method is_jit_forbidden_module"
    ),
    "mycel._src.foundation.log": "get_level get_log_config",
    "mycel.parallel.context": "ParallelMode get_algo_parameters get_auto_parallel_context reset_algo_parameters "
    "reset_auto_parallel_context set_algo_parameters set_auto_parallel_context",
}
_LAZY = {name: "mycel.train" for name in _TRAIN} | {name: "mycel._src.devices.runtime" for name in _RUNTIME}
_LAZY.update((name, module) for module, names in _OTHERS.items() for name in names.split())
_LAZY.update(profile="mycel.profiler.profiled", Profiler="mycel.profiler.session", EnvProfiler="mycel.profiler.session")
_MODULES = (
    "amp",
    "boost",
    "common",
    "communication",
    "compat",
    "dataset",
    "errors",
    "experimental",
    "formats",
    "hal",
    "log",
    "mindrecord",
    "mint",
    "models",
    "numpy",
    "parallel",
    "profiler",
    "rewrite",
    "runtime",
    "scipy",
    "search",
    "te",
    "train",
)


# To type checkers only these names are there beside; any other is a mistake.
if TYPE_CHECKING:
    from mycel.lazy_names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"mycel.{name}")
        if name in _LAZY:
            value = getattr(importlib.import_module(_LAZY[name]), name)
            globals()[name] = value
            return value
        raise _hints.missing("mycel", name, _hints.OF_PACKAGE)


__dir__ = _listing(__name__, (*_LAZY, *_MODULES))
