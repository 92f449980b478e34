"""Why MindSpore's own machinery is not served, by where it is, and what to use instead."""

from __future__ import annotations

__all__ = ["advice_on"]

_COMPILER = "belongs to MindSpore's compiler of graphs; write Python and compile it with mindspore.jit"
_KERNELS = "registers kernels of MindSpore's libraries; write an operation of your own as mindspore.ops.Custom"
_PROFILER = "belongs to MindSpore's reading of profiles; use mindspore.profiler.Profiler"
_REWRITE = "is a part of MindSpore's rewriting; use mindspore.rewrite.SymbolTree, Node and ScopedValue"
_DEVICES = "is a part of MindSpore's account of devices; use the functions of mindspore.runtime and mindspore.hal"
_RECORDS = "is a part of MindSpore's record files; use FileWriter, FileReader and MindPage of mindspore.mindrecord"
_PIPELINE = "is a part of MindSpore's data pipeline; use the datasets of mindspore.dataset and their methods"
_PARALLEL = "divides work in MindSpore's own way; use mindspore.parallel and mindspore.communication"
# The longest path that begins a module's counts.
_BY_PATH = {
    "": "is an inner part of MindSpore that Mycel does not have; use the public interface of mindspore",
    "_akg": _KERNELS,
    "_c_dataengine": _PIPELINE,
    "_c_expression": "is a part of MindSpore's core in C++; use the public interface of mindspore",
    "_c_mindrecord": _RECORDS,
    "_extends": _COMPILER,
    "_extends.graph_kernel": _KERNELS,
    "_extends.parallel_compile": _KERNELS,
    "_extends.remote": _KERNELS,
    "boost": "has no definition to follow in MindSpore's documentation; mindspore.boost has what it defines",
    "common": "is an inner part of MindSpore's tensors and settings; use the public functions of mindspore",
    "common.api": _COMPILER,
    "communication": _PARALLEL,
    "dataset": _PIPELINE,
    "device_context": _DEVICES,
    "device_manager": _DEVICES,
    "experimental": "is an inner part of MindSpore's optimizers; use the classes of mindspore.experimental.optim",
    "graph": _COMPILER,
    "hal": _DEVICES,
    "mindrecord": _RECORDS,
    "mint": "is an inner part of MindSpore's mint; use the public functions of mindspore.mint",
    "multiprocessing": "shares tensors in MindSpore's own way; use the processes of Python's multiprocessing",
    "nn": "is an inner part of MindSpore's layers; use the public classes of mindspore.nn",
    "nn.optim": "is an inner part of MindSpore's optimizers; use the public classes of mindspore.nn",
    "nn.wrap": "is an inner part of MindSpore's training steps; use mindspore.value_and_grad and the classes of "
    "mindspore.nn",
    "numpy": "is an inner part of MindSpore's numpy; use the public functions of mindspore.numpy",
    "onnx": "writes ONNX in MindSpore's own way; use mindspore.export with file_format='ONNX'",
    "ops": "is an inner part of MindSpore's operations; use the public functions of mindspore.ops",
    "ops._op_impl": _KERNELS,
    "ops._vmap": "is a rule of MindSpore's for batches; use mindspore.vmap",
    "ops.tensor_method": "is a variant of a method of tensors; use the method of mindspore.Tensor",
    "parallel": _PARALLEL,
    "profiler": _PROFILER,
    "rewrite": _REWRITE,
    "run_check": "checks an installation of MindSpore's libraries; use mindspore.run_check()",
    "runtime": _DEVICES,
    "safeguard": "hides MindIR files by MindSpore's own rewriting; mindspore.export writes them whole",
    "scipy": "is an inner part of MindSpore's scipy; use the public functions of mindspore.scipy",
    "tools": "watches Ascend devices; use set_context(check_nan=True)",
    "train": "is an inner part of MindSpore's training; use mindspore.train.Model and its callbacks",
    "train.serialization": "is an inner part of MindSpore's checkpoints; use mindspore.save_checkpoint and "
    "load_checkpoint",
    "train.summary": "writes MindSpore's summary files; use mindspore.SummaryRecord",
    "utils": "is an inner part of MindSpore's tools; use the public interface of mindspore",
}


def advice_on(path: str) -> str:
    """Return what goes on after a name of a module in an error: what it is, and what to use.

    >>> advice_on("graph._parse.parser")
    "belongs to MindSpore's compiler of graphs; write Python and compile it with mindspore.jit"
    """
    while path not in _BY_PATH:
        path = path.rpartition(".")[0]
    return _BY_PATH[path]
