"""The source modules of each MindSpore path.

A path is answered first by the Mycel module of the same name, if there is one, then by that below
`mycel.compat.inner`, which has what MindSpore's modules show of their own machinery, then by the
modules listed here in order, and finally, for a module of MindSpore (`modules`), by the sources of
its package. Paths that only older releases had are listed in full. Any other path without a module
of the same name does not exist.
"""

from __future__ import annotations

import functools
import importlib.util
from importlib.machinery import ModuleSpec

from mycel.compat.import_system.modules import is_module

__all__ = ["ABSENT", "API_VERSION", "MODULES_FIRST", "ROOT", "is_absent", "sources"]

ROOT = "mindspore"
API_VERSION = "2.10.0"

_HERE = "mycel.compat"
_DATASET = f"{_HERE}.dataset_modules.dataset_internals"
_NN = ("mycel.nn", "mycel.train", f"{_HERE}.nn_internals")
_OPS = (
    "mycel.ops",
    "mycel._src.staging.derivatives",
    "mycel._src.tensors.core.tensor",
    "mycel._src.tensors.core.parameter",
    f"{_HERE}.unserved_operations",
)
_COMMON = ("mycel", "mycel.common.seed", "mycel.common.initializer", "mycel._src.staging.compiled.jit")
_PY_VISION = (f"{_HERE}.dataset_modules.vision_py_transforms", "mycel.dataset.vision", "mycel.dataset.transforms")
_TRAIN = ("mycel.train", "mycel.amp", "mycel.parallel.context")

_TABLE: dict[str, tuple[str, ...]] = {
    "": (
        "mycel._src.staging.derivatives",
        "mycel._src.staging.compiled.jit",
        "mycel.parallel.context",
        "mycel.train",
        "mycel.amp",
        "mycel.common.seed",
        f"{_HERE}.deprecated_names",
        f"{_HERE}.fault_tolerance",
        f"{_HERE}.top_level",
        f"{_HERE}.unserved_top_level",
    ),
    "_c_dataengine": (f"{_HERE}.dataset_modules.data_engine",),
    "_checkparam": (f"{_HERE}.checkparam",),
    "_extends": (f"{_HERE}.deprecated_names",),
    "version": (f"{_HERE}.version",),
    "utils": (f"{_HERE}.dlpack", f"{_HERE}.unserved_top_level"),
    "utils.dlpack": (f"{_HERE}.dlpack",),
    "context": ("mycel.parallel.context", "mycel.parallel.parameter_server"),
    "communication": (),
    "communication.comm_func": ("mycel.communication", "mycel.ops"),
    "communication.management": ("mycel.communication",),
    "communication._comm_helper": ("mycel.communication",),
    "mindrecord.tools": ("mycel.mindrecord",),
    "parallel": ("mycel.parallel.context",),
    "parallel._auto_parallel_context": ("mycel.parallel.context",),
    "parallel._dp_allreduce_fusion": (f"{_HERE}.inner.parallel._auto_parallel_context",),
    "parallel._utils": (f"{_HERE}.parallel_utils",),
    "parallel.checkpoint_convert": ("mycel.parallel",),
    "parallel.checkpoint_transform": ("mycel.parallel",),
    "parallel.cluster.run": ("mycel.cli.msrun",),
    "parallel.parameter_broadcast": ("mycel.parallel",),
    "parallel.transform_safetensors": ("mycel.parallel",),
    "parallel.nn.parallel_cell_wrapper": ("mycel.parallel.nn",),
    "parallel.nn.parallel_grad_reducer": ("mycel.parallel.nn",),
    "parallel.algo_parameter_config": ("mycel.parallel.context",),
    "parallel.shard": ("mycel.parallel.layout",),
    "common": _COMMON,
    "common.api": (
        "mycel._src.staging.compiled.jit",
        "mycel._src.staging.derivatives",
        "mycel",
        f"{_HERE}.deprecated_names",
    ),
    "common.dtype": ("mycel.dtype",),
    "dtype": (f"{_HERE}.inner.common.dtype", "mycel"),
    "common.jit_config": ("mycel._src.foundation.settings.jit_config",),
    "common.lazy_inline": ("mycel.common.markers",),
    "common.mutable": ("mycel._src.staging.frontend.specialization.mutable_numbers",),
    "common.initializer": (),
    "common.parameter": ("mycel._src.tensors.core.parameter", "mycel._src.tensors.core.tensor"),
    "common.seed": (),
    "common.tensor": ("mycel._src.tensors.core.tensor",),
    "dataset": (_DATASET,),
    "dataset.callback": (_DATASET,),
    "dataset.context": ("mycel.parallel.context", "mycel"),
    "dataset.core": (f"{_HERE}.dataset_modules.dataset_checks", _DATASET),
    "dataset.core.datatypes": (f"{_HERE}.dataset_modules.data_engine",),
    "dataset.core.config": ("mycel.dataset.config",),
    "dataset.core.py_util_helpers": (f"{_HERE}.dataset_modules.py_transforms_util",),
    "dataset.core.validator_helpers": (f"{_HERE}.dataset_modules.dataset_checks",),
    "dataset.ds": ("mycel.dataset", _DATASET),
    "dataset.engine": ("mycel.dataset", _DATASET),
    "dataset.engine.cache_client": ("mycel.dataset.caching.dataset_cache",),
    "dataset.engine.datasets": ("mycel.dataset", _DATASET),
    "dataset.engine.datasets_audio": ("mycel.dataset",),
    "dataset.engine.datasets_standard_format": ("mycel.dataset",),
    "dataset.engine.datasets_text": ("mycel.dataset",),
    "dataset.engine.datasets_user_defined": ("mycel.dataset",),
    "dataset.engine.datasets_vision": ("mycel.dataset",),
    "dataset.engine.validators": (f"{_HERE}.dataset_modules.dataset_checks",),
    "dataset.engine.iterators": ("mycel.dataset.iteration.iterators", "mycel.dataset"),
    "dataset.engine.samplers": ("mycel.dataset.samplers", "mycel.dataset"),
    "dataset.text.validators": (f"{_HERE}.dataset_modules.dataset_checks",),
    "dataset.text.transforms": ("mycel.dataset.text", f"{_HERE}.dataset_modules.data_engine"),
    "dataset.text.utils": ("mycel.dataset.text",),
    "dataset.transforms.py_transforms_util": (_DATASET, f"{_HERE}.dataset_modules.py_transforms_util"),
    "dataset.transforms.validators": (f"{_HERE}.dataset_modules.dataset_checks", _DATASET),
    "dataset.transforms.c_transforms": ("mycel.dataset.transforms",),
    "dataset.transforms.py_transforms": (f"{_HERE}.dataset_modules.py_transforms", "mycel.dataset.transforms"),
    "dataset.transforms": (_DATASET, f"{_HERE}.dataset_modules.data_engine"),
    "dataset.transforms.transforms": ("mycel.dataset.transforms", _DATASET, f"{_HERE}.dataset_modules.data_engine"),
    "dataset.transforms.vision": ("mycel.dataset.vision",),
    "dataset.transforms.vision.c_transforms": ("mycel.dataset.vision",),
    "dataset.transforms.vision.py_transforms": _PY_VISION,
    "dataset.transforms.vision.utils": ("mycel.dataset.vision",),
    "dataset.vision.c_transforms": ("mycel.dataset.vision",),
    "dataset.vision.py_transforms": _PY_VISION,
    "dataset.vision.py_transforms_util": (f"{_HERE}.dataset_modules.py_transforms_util",),
    "dataset.vision.transforms": ("mycel.dataset.vision", _DATASET, f"{_HERE}.dataset_modules.data_engine"),
    "dataset.vision.validators": (f"{_HERE}.dataset_modules.dataset_checks", _DATASET),
    "dataset.vision.utils": ("mycel.dataset.vision",),
    "nn": (f"{_HERE}.metrics", "mycel.train.metrics"),
    "nn.cell": ("mycel._src.tensors.cells.cell", "mycel.nn"),
    "nn.layer": _NN,
    "nn.loss": _NN,
    "nn.loss.loss": ("mycel.nn.loss", *_NN),
    "nn.metrics": (f"{_HERE}.metrics", "mycel.train.metrics"),
    "nn.optim": (*_NN, f"{_HERE}.deprecated_names"),
    "nn.wrap": _NN,
    "nn.wrap.cell_wrapper": _NN,
    "nn.wrap.grad_reducer": _NN,
    "nn.wrap.loss_scale": _NN,
    "ops": ("mycel._src.staging.derivatives", f"{_HERE}.unserved_operations"),
    "profiler": (),
    "profiler.common": ("mycel.profiler",),
    "profiler.common.constant": ("mycel.profiler",),
    "profiler.dynamic_profiler": ("mycel.profiler",),
    "profiler.experimental_config": ("mycel.profiler",),
    "profiler.profiler": ("mycel.profiler",),
    "ops.composite": _OPS,
    "ops.function": (*_OPS, f"{_HERE}.mint_names"),
    "ops.functional_overload": ("mycel.mint",),
    "ops.functional": (*_OPS, f"{_HERE}.mint_names"),
    "ops.auto_generate": (*_OPS, f"{_HERE}.mint_names"),
    "ops.communication": _OPS,
    "ops.operations": _OPS,
    "ops.primitive": ("mycel.common.markers", "mycel.ops", "mycel._src.staging.derivatives"),
    "boost.boost_cell_wrapper": ("mycel.boost",),
    "common.device": ("mycel._src.devices.machine",),
    "dataset.engine.serializer_deserializer": ("mycel.dataset",),
    "dataset.utils.browse_dataset": ("mycel.dataset.utils",),
    "dataset.utils.line_reader": ("mycel.dataset.utils",),
    "device_context.cpu.device": (f"{_HERE}.inner.device_context.cpu",),
    "device_context.ascend.device": (f"{_HERE}.inner.device_context.ascend",),
    "device_context.gpu.device": (f"{_HERE}.inner.device_context.gpu",),
    "device_manager": ("mycel._src.devices.machine",),
    "graph._check_supported._check_jit_view_unsupported_api": ("mycel.mint.other_names",),
    "graph._utils.cell_attr_register": (f"{_HERE}.deprecated_names",),
    "graph._utils.check_jit_forbidden_api": (
        "mycel.mint.other_names",
        "mycel._src.staging.frontend.calls.jit_forbidden",
    ),
    "graph._utils.mindir_util": ("mycel.formats.exporting",),
    "hal.device": ("mycel._src.devices.hal",),
    "hal.event": ("mycel._src.devices.stream",),
    "hal.memory": ("mycel._src.devices.hal",),
    "hal.stream": ("mycel._src.devices.hal",),
    "mindrecord.common.enums": ("mycel.mindrecord.errors",),
    "mindrecord.common.exceptions": ("mycel.mindrecord.errors",),
    "profiler.envprofiler": ("mycel.profiler.session",),
    "rewrite.api": ("mycel.rewrite",),
    "rewrite.common": (),
    "rewrite.common.namespace": (f"{_HERE}.rewrite_namespace",),
    "runtime": ("mycel._src.devices.machine",),
    "run_check.run_check": ("mycel._src.devices.machine",),
    "runtime.event": ("mycel._src.devices.stream",),
    "runtime.executor": ("mycel._src.devices.machine", "mycel._src.devices.stream"),
    "runtime.memory": ("mycel._src.devices.runtime", "mycel._src.devices.hal"),
    "runtime.stream": ("mycel._src.devices.hal",),
    "scipy.ops": ("mycel.scipy.linalg", "mycel.scipy.optimize"),
    "train": _TRAIN,
    "train.amp": ("mycel.amp", f"{_HERE}.amp_levels"),
    "numpy.utils": ("mycel.numpy",),
    "numpy.utils_const": ("mycel.numpy",),
    "train.callback._landscape": ("mycel.train.callback.landscape",),
    "utils.utils": (f"{_HERE}.fault_tolerance",),
    "train.callback": ("mycel.train", f"{_HERE}.fault_tolerance"),
    "train.loss_scale_manager": ("mycel.amp", "mycel.train"),
    "train.metrics": (),
    "train.model": ("mycel.train.model", "mycel.train", "mycel.parallel.context"),
    "train.summary": (f"{_HERE}.summary",),
    "train.summary.summary_record": ("mycel.train.summary", f"{_HERE}.summary"),
    "train.serialization": ("mycel.train",),
}
# Names that stand for a module and for something in it: here they give the module.
MODULES_FIRST: dict[str, tuple[str, ...]] = {"common": ("initializer",)}

ABSENT: dict[str, str] = {
    "lite": "models run on devices through mycel itself",
    "compression": "networks are pruned, distilled and decomposed by mycel.compression, and quantised by "
    "mycel.quantisation, by mindspore_gs, and by mindspore.train.quant",
}


def is_absent(path: str) -> str | None:
    """Return what to use in place of a part of MindSpore that Mycel lacks, for a path below `ROOT`.

    It is None for other paths.
    """
    for name, advice in ABSENT.items():
        if (path == name or path.startswith(name + ".")) and not _exists(f"mycel.{path}"):
            return f"Mycel does not have {ROOT}.{name}; {advice}"
    return None


def sources(path: str) -> list[str]:
    """Return the source modules of `path` below `ROOT` ("" for the root itself), in order.

    The result is empty if there is no such path.

    >>> sources("nn.metrics")[0], sources("no.such.path")
    ('mycel.compat.metrics', [])
    """
    if path.startswith("graph.") and path not in _TABLE:  # where MindSpore has moved what its `common` shows
        return sources(f"common.{path[len('graph.') :]}")
    same = f"mycel.{path}" if path else "mycel"
    found = [name for name in (same, f"{_HERE}.inner.{path}".rstrip(".")) if _exists(name)]
    found += [name for name in _TABLE.get(path, ()) if name != same and _exists(name)]
    if is_module(path):
        found += [name for name in sources(path.rpartition(".")[0]) if name not in found]
    return found


def _exists(name: str) -> bool:
    parent = name.rpartition(".")[0]
    return (not parent or _is_package(parent)) and _spec(name) is not None


@functools.cache
def _is_package(name: str) -> bool:
    spec = _spec(name) if _exists(name) else None
    return spec is not None and spec.submodule_search_locations is not None


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
