"""The fixed part of every native program in LLVM IR: shared declarations and the order of parts.

A program is a table of 64-bit words (`PROGRAM` names them), built by Python. `relocations` are
triples (address of a word, base number, offset): before a run the word becomes base + offset, where
bases are the inputs, then the outputs, then the arena. So kernels find addresses and sizes in their
argument words. Where the word `keeps` is set, the word `arena` keeps the arena of the last run for
the next; a run that finds none allocates one. `early_exit_and_log_ir` explains the word `status`,
`step_interpreter_ir` the steps.
"""

from __future__ import annotations

from mycel._src.engines.native.runtime.buffers_ir import BUFFERS
from mycel._src.engines.native.runtime.early_exit_and_log_ir import SIGNALS
from mycel._src.engines.native.runtime.invoke_ir import INVOKE
from mycel._src.engines.native.runtime.step_interpreter_ir import STEPS

__all__ = ["PROGRAM", "RECORD", "RUNTIME", "RUNTIME_SYMBOLS"]

# Words of a record of the log; see `early_exit_and_log_ir`.
RECORD = 5

PROGRAM = (
    "inputs",
    "outputs",
    "output_bytes",
    "output_alias",
    "relocations",
    "relocation_table",
    "arena_bytes",
    "steps",
    "step_table",
    "heavy",
    "mutex",
    "arena",
    "keeps",
    "status",
    "polls",
)

RUNTIME_SYMBOLS = (
    "mycel_new_buffer",
    "mycel_wrap",
    "mycel_address",
    "mycel_number",
    "mycel_invoke",
    "mycel_run",
    "mycel_set_threads",
    "mycel_copy",
    "mycel_dense",
    "mycel_cond",
    "mycel_while",
    "mycel_listen",
    "mycel_release",
    "mycel_log",
    "mycel_hook",
    "mycel_outside_hook",
    "mycel_recursion",
    "mycel_memory",
    "mycel_main_thread",
    "mycel_empty_cache",
    "mycel_drop_arena",
)

GLOBALS = r"""
@threads = internal global i32 1
@main_thread = internal global i64 0
@heard = internal global i64 0
@rounds = internal global i64 1
@log = internal global ptr null
@hook = internal global ptr null
@outside_hook = internal global ptr null

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_GetContext(ptr)
declare i32 @PyCapsule_SetContext(ptr, ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_NoMemory()
declare void @PyErr_SetString(ptr, ptr)
declare void @PyErr_SetObject(ptr, ptr)
declare ptr @PyObject_Type(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare void @pool_share(ptr, ptr, i64, i64, i64, i64, ptr)
@PyExc_TypeError = external global ptr
@wrong_count = private constant [46 x i8] c"a compiled program got the wrong inputs count\00"
"""

# Weights of branches that are hardly ever taken, and of the first of 64 that is.
WEIGHTS = """
!0 = !{!"branch_weights", i32 1, i32 1048576}
!1 = !{!"branch_weights", i32 64, i32 1}
"""

RUNTIME = "\n".join((GLOBALS, BUFFERS, SIGNALS, STEPS, INVOKE, WEIGHTS))
