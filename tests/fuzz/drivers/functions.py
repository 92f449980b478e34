"""Every public function, class and method, called with absurd arguments.

The program to mutate is the example of the docstring, a call from the tables of checks
(`tests.meaning`), or a call made of the signature: parameters get values that their names and
defaults suggest. A result is good, and so is an error that was raised for the caller: by a `raise`
with words, or by Python's call itself. What comes from the insides (a KeyError, an AttributeError,
... that nobody wrote) is not, whatever it says.
"""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import linecache
import os
import random as random_module
import re
import sys
import traceback
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import mycel as ms
from mycel import Tensor, nn, ops
from tests.fuzz.absurd import compiled, mutate

MODULES = (
    "",
    "amp",
    "boost",
    "common.initializer",
    "dataset",
    "dataset.audio",
    "dataset.text",
    "dataset.transforms",
    "dataset.vision",
    "experimental.optim",
    "experimental.optim.lr_scheduler",
    "mint",
    "mint.linalg",
    "mint.nn",
    "mint.nn.functional",
    "mint.optim",
    "mint.special",
    "nn",
    "nn.probability.bijector",
    "nn.probability.distribution",
    "numpy",
    "ops",
    "scipy.linalg",
    "scipy.optimize",
    "train",
    "train.callback",
)
CORPUS = 200
# What changes the process for all that come after: it runs in a process of its own.
APART = ("communication", "hal", "mindrecord", "parallel", "profiler", "rewrite", "runtime")
STATEFUL = re.compile(
    r"set_|reset_|init|release|launch|run_check|synchronize|Profiler|EnvProfiler|get_.*group|create_group|destroy_group|.*ToMR|.*Summary.*|.*[Cc]allback|no_init|recv|send|"
    r"isend|irecv|Receive|Send|Barrier|barrier|TensorDump|Print|DatasetHelper|connect_network|mutable_|debug|profile|auto_set|async_ckpt"
)


@dataclass(frozen=True)
class Case:
    """A program and the name of the public object that it is about.

    `plain` is the program before its last line was compiled.
    """

    name: str
    source: str
    module: str
    plain: str


# Programs that ended in an inner error, a crash or a hang once.
_KEPT = """
Tensor([1.0]).index_add()
Tensor([1.0]).select()
Tensor([1.0]).scatter_add()
Tensor([1.0]).itemset()
Tensor([1.0]).item(5)
Tensor([[1.0]]).resize(2**70)
Tensor([1.0]).expand_as(3)
Tensor([1.0]).reshape_as(2**63)
Tensor([1.0]).round(decimals=2**63)
Tensor([1.0]).bernoulli_(generator=3)
Tensor([[1.0]]).triangular_solve(Tensor([[1.0]]), unitriangular=2**63)
Tensor([[1.0]]).tril(2**70)
Tensor([1.0, 2.0]).tensor_split(2**31)
ops.hsplit(2, 1)
ops.concat(Tensor([]))
ops.is_floating_point(True)
ops.conv3d_transpose([[]], Tensor([1.0]))
ops.unfold(ops.ones((1, 1, 4, 4)), 2, stride=0)
ops.conv2d(ops.ones((1, 1, 4, 4)), ops.ones((1, 1, 2, 2)), stride=0)
ops.deformable_conv2d(ops.ones((1, 4, 4, 4)), ops.ones((1, 4, 1, 1)), ops.ones((1, 3, 4, 4)), \
(1, 1), (1, 1, 1, 1), (0, 0, 0, 0), deformable_groups=0)
ops.lp_pool1d(ops.ones((1, 1, 4)), 0.0, 2)
ops.adaptive_max_pool2d(ops.ones((1, 1, 5, 5)), 2**63)
ops.interpolate(ops.ones((1, 1, 2, 2)), scale_factor=inf)
ops.stft(ops.ones(16), 4, pad_mode=3)
ops.stft(ops.ones(16), 4, hop_length=2**64)
ops.orgqr(ops.ones((4, 3)), Tensor(3.0))
ops.random_categorical(Tensor([[0.0, 1.0]]), inf)
ops.triu_indices(2, 5, 2**64)
ops.diff_ext(Tensor([1, 3]), prepend=nan)
ops.scatter_mul((Tensor(2), Tensor(3)), Tensor([1]), Tensor([3.0]))
ops.mvlgamma(Tensor([3.0]), 10**30)
ops.scalar_pow(7, 10**30)
ops.LayerNorm()(Tensor(1.0), Tensor(1.0), Tensor(1.0))
ops.NthElement()(2, 4)
ops.MatrixTriangularSolve(lower=-2**63)(ops.ones((2, 1, 1)), ops.ones((2, 1, 3)))
ops.AllGatherV()(1.5, Tensor([1]))
ms.mint.softmax_ext(Tensor([1.0]), dtype=Tensor([3j]))
ms.mint.nn.functional.batch_norm(Tensor([[1.0], [3.0]]), (1,), Tensor([1.0]), training=True)
ms.mint.batch_norm_gather_stats_with_counts(ops.ones((1, 1)), ops.ones((1, 1)), ops.ones((1, 1)), \
counts=Tensor([2.0]), running_mean='none')
ms.mint.addr_(ms.complex64, Tensor([2.0]), Tensor([3.0]))
ms.numpy.unwrap(-1.0)
ms.numpy.size(Tensor([1]), 5)
ms.numpy.rollaxis(Tensor(1.0), 0)
ms.numpy.arange(3, -inf)
ms.numpy.tril_indices(2, k=2**64)
ms.numpy.unravel_index([22, 41], (1e308, 6))
ms.numpy.polyint([2.0, 1.0], m=2**31)
ms.scipy.linalg.solve_triangular(Tensor([[1.0]]), Tensor(1.0))
ms.scipy.optimize.minimize(lambda x: x.sum(), ops.zeros((2,)), method=(1,))
ms.common.initializer.initializer('zeros', (2**62 + 1,)).init_data()
nn.Unflatten(0, (1,))(Tensor(1.0))
nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 10**30)
nn.Dense(3, 2)(5)
nn.Cell().get_sub_cell(3)
ms.save_checkpoint({}, 'name', append_dict=3)
ms.dataset.vision.ResizeWithBBox(np.array(3))
ms.train.Fbeta(1e308)
ms.numpy.var(Tensor([1.0, 2.0]), ddof=inf)
ms.mint.triangular_solve(Tensor([[4.0]]), Tensor([[2.0]]), unitriangular=inf)
ops.matrix_diag(ops.ones((2, 3)), num_rows=4, num_cols=())
ops.interpolate(ops.ones((1, 1, 2, 2)), scale_factor=1e308)
ms.mint.nn.functional.interpolate(ops.ones((1, 1, 2)), (), mode='linear')
ms.mint.nn.functional.adaptive_max_pool1d([], [], [])
ms.mint.nn.functional.max_unpool2d(ops.ones((1, 1, 1, 1)), Tensor([[[[1]]]]), 2, output_size=())
ms.numpy.average(Tensor([]), 1, Array((4,)))
ms.numpy.histogramdd(())
ops.scalar_cast(inf, ms.int64)
ops.scalar_pow(2.0, 1e308)
int(Tensor(inf))
ms.numpy.reshape(Tensor([1.0, 2.0])[::-1], (3, 0))
ms.numpy.reshape(Tensor([1.0, 2.0, 3.0, 4.0])[::-1], (2, 3))
ms.mint.nn.PReLU(dtype=ms.int32, init=inf)
ops.nsa_compress(ops.ones((3, 1, 1)), ops.ones((2, 1)), 2, 1, actual_seq_len=(inf,))
ms.jit(lambda: ops.hardtanh(Tensor([0, 255], ms.uint8)).tolist())()
ms.scipy.optimize.minimize(len, ops.zeros((2,)), method='BFGS')
ops.ApplyRotaryPosEmb()(Tensor([]), ops.ones((1, 2)), ops.ones((2, 2)), ops.ones((2, 2)), Tensor([1]))
ops.Im2Col(2)(ops.ones((1, 0, 3, 3)))
ms.boost.OptimizerProcess.build_params_dict(ms.int32)
ms.boost.GradientFreeze(3, 0, 0.5, 4).generate_freeze_index_sequence(3, 0, 0.5, 2**62)
nn.warmup_lr(0.5, 2**62, 2, 2)
nn.piecewise_constant_lr([2**40], [0.1])
ms.dataset.BatchDataset([], 2)
ms.dataset.PaddedBatchDataset(None, 1)
ms.dataset.vision.not_random(len)
ms.dataset.audio.Flanger(-2)(np.zeros((2, 3), np.float32))
ms.dataset.audio.DetectPitchFrequency(-1)(np.ones((2, 40), np.float32))
ms.dataset.audio.Vad(16000, hp_lifter_freq=1e-320)
ms.dataset.audio.PitchShift(16000, 2**31 - 1)(np.ones((2, 40), np.float32))
ms.train.ConfusionMatrix(2)(Tensor([1, 0, 1, 0]), 1e-320)
ops.incre_flash_attention(ops.zeros((1, 1, 2)), [ops.ones((1, 3, 2))], [ops.ones((1, 3, 2))], \
actual_seq_lengths=(2**63,))
ms.jit(lambda: ops.narrow(Tensor([1, 2, 3, 4]), 0, 1, Tensor(2)).tolist())()
ms.common.initializer.TruncatedNormal(mean=inf)
ops.tuple_getitem((1, 2), Tensor([2**64 - 1], ms.uint64))
ms.numpy.array(3, ndmin=2**63 - 1)
ms.dataset.transforms.PadEnd([4], 10**30)(np.array([1, 2]))
ms.dataset.transforms.Fill(10**30)(np.array([1, 2]))
ms.save_checkpoint(nn.Dense(2, 3), 'a', format='safetensors'); ms.train.ShardedCheckpoint('a.safetensors').info((1,))
nn.probability.distribution.Categorical(Tensor(3.0)).prob(Tensor(1.0))
ms.dataset.SubsetSampler(range(2**64))
list(ms.dataset.NumpySlicesDataset([5, 6, 7], sampler=ms.dataset.IterSampler(range(2**32))))
"""

KEPT = tuple(Case(line, line, "mycel", line) for line in reversed(_KEPT.split("\n")) if line)


def setup() -> None:
    _names()


@functools.cache
def _names() -> dict[str, Any]:
    """Every public callable by one of its names below `mycel`."""
    found: dict[str, Any] = {}
    seen = set()
    for module in (*MODULES, *APART):
        space = importlib.import_module(f"mycel.{module}" if module else "mycel")
        for name in sorted(getattr(space, "__all__", None) or dir(space)):
            value = None if name.startswith("_") else getattr(space, name, None)
            if callable(value) and str(getattr(value, "__module__", "")).startswith("mycel"):
                # `profiler.machine` measures for seconds.
                error = name == "machine" or isinstance(value, type) and issubclass(value, BaseException)
                if not error and id(value) not in seen:
                    seen.add(id(value))
                    found[f"{module}.{name}" if module else name] = value
    for name in dir(Tensor):
        if not name.startswith("_") and hasattr(Tensor, name):
            method = inspect.getattr_static(Tensor, name)
            found[f"Tensor.{name}"] = getattr(method, "method_of", method)
    return found


def _example(value: Any) -> str:
    """The program of a docstring's examples, without what they print and those that raise."""
    try:
        parts = doctest.DocTestParser().get_examples(getattr(value, "__doc__", None) or "")
    except ValueError:
        return ""
    return "".join(part.source for part in parts if part.exc_msg is None)


@functools.cache
def _checks() -> dict[str, list[Any]]:
    """The checks of `tests.meaning` by name."""
    found: dict[str, list[Any]] = {}
    root = Path(__file__).resolve().parents[3]
    for path in sorted((root / "tests").rglob("test_*.py")):
        if "= Checks(" in path.read_text() and path.name != "test_meaning.py":
            module = importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
            for check in module.checks.all if hasattr(module, "checks") else ():
                found.setdefault(check.name, []).append(check)
    return found


def _source(value: Any) -> str:
    """An argument of a check as an expression; ValueError for what is none."""
    from tests.meaning import Array

    if isinstance(value, Array):
        if value.values is not None:
            return f"Array({np.asarray(value.values).tolist()!r}, {value.dtype!r})"
        return f"Array({value.shape}, {value.dtype!r}, {value.low}, {value.high})"
    if type(value) in (list, tuple):
        inner = ", ".join(_source(v) for v in value)
        return f"[{inner}]" if type(value) is list else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, ms.dtype.DType):
        return f"ms.{value.name}"
    if isinstance(value, np.ndarray) and value.size < 50:
        return f"np.array({value.tolist()!r}, np.{value.dtype})"
    if value is None or isinstance(value, (bool, int, float, complex, str, slice)) or value is Ellipsis:
        return repr(value)
    raise ValueError(f"no expression for {type(value).__name__}")


def _of_check(name: str, check: Any) -> str:
    args = [_source(value) for value in check.args]
    words = [f"{word}={_source(value)}" for word, value in check.kwargs.items()]
    if name.startswith("Tensor."):
        return f"{args[0]}{name.removeprefix('Tensor')}({', '.join(args[1:] + words)})"
    made = f"({', '.join(f'{word}={_source(value)}' for word, value in check.init.items())})" if check.made else ""
    return f"ms.{name}{made}({', '.join(args + words)})"


def array(shape: Any, dtype: str | None = None, low: float = -2.0, high: float = 2.0) -> Tensor:
    """The operand `Array(...)` of a program: scattered numbers of a shape, or a list's values."""
    kind = dtype or "float32"
    if isinstance(shape, (list, int, float)):
        return Tensor(np.array(shape, kind))
    if not isinstance(shape, tuple) or np.prod([abs(float(s)) for s in shape]) > 1e6:
        raise ValueError("Array: no such operand is wanted")
    steps = np.arange(int(np.prod(shape)), dtype=np.float64) * 0.6180339887 % 1
    return Tensor((low + (high - low) * steps).reshape(shape).astype(kind))


TENSOR = "Tensor(np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], np.float32))"
# What the name of a parameter suggests.
SUGGESTED = (
    (r"axis|axes|dim|dims|dim\d|axis\d|batch_dims", ("0", "1", "-1", "(0, 1)")),
    (
        r"(in|out)_channels|num_features|num_channels|(input|hidden)_size|in_features|out_features|.*_dim|num_groups|groups|group|vocab_size|embedding_.*|depth|num_.*|n",
        ("2", "3", "4", "1"),
    ),
    (
        r"kernel_size|ksize.*|stride.*|padding|pad|dilation|output_size|size|shape|sizes?|normalized_shape|output_padding",
        ("1", "2", "(2, 2)", "(2, 3)", "(1, 1, 2, 2)"),
    ),
    (r"dtype|.*_dtype|type", ("ms.float32", "ms.int32", "ms.float64")),
    (
        r"keep_?dims?|.*_first|has_.*|use_.*|align_corners|exclusive|reverse|descending|largest|sorted|affine|bias",
        ("True", "False"),
    ),
    (r"ind.*|idx.*|segment_ids|labels?|target|index.*", ("Tensor([0, 1], ms.int32)", "Tensor([[0, 1, 1], [1, 0, 1]])")),
    (
        r"p|prob.*|keep_prob|rate|lr|learning_rate|eps.*|beta.*|alpha|gamma|lambd|momentum|scale.*|low|high|start|stop|end|min|max|mean|std.*|sigma|delta|value|threshold|factor|.*_factor",
        ("0.5", "0.1", "1.0", "2.0"),
    ),
    (r"params|parameters", ("[ms.Parameter(Tensor([1.0, 2.0]), name='w')]",)),
    (
        r"network|net|cell|fn|func|model|optimizer|loss_fn|f|forward_fn|function",
        ("nn.Dense(3, 2)", "ops.relu", "nn.ReLU()"),
    ),
    (r"mode|reduction|method", ("'mean'", "'sum'", "'none'", "'bilinear'")),
    (r"mask|cond.*|condition", ("Tensor([[True, False, True], [False, True, True]])",)),
    (r".*size.*|.*width|.*height|k|diagonal|times|offset|repeats|.*_num", ("1", "2", "3")),
    (r".*path|.*dir|.*file.*|.*name|.*_mode", ("'name'",)),
)


@functools.cache
def _parameters(name: str) -> tuple[inspect.Parameter, ...]:
    value = _names()[name]
    try:
        found = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return ()
    if found and found[0].name == "self":
        found = found[1:]
    return tuple(found)


def _plausible(random: random_module.Random, parameter: str) -> str:
    for pattern, values in SUGGESTED:
        if re.fullmatch(pattern, parameter):
            return random.choice(values)
    return TENSOR if random.random() < 0.8 else "2"


def _of_signature(random: random_module.Random, name: str) -> str:
    parts, words = [], []
    for parameter in _parameters(name):
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts += [TENSOR] * random.randrange(3)
        elif parameter.kind is not parameter.VAR_KEYWORD and (
            parameter.default is parameter.empty or random.random() < 0.25
        ):
            value = _plausible(random, parameter.name)
            keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
            (words if keyword else parts).append(f"{parameter.name}={value}" if keyword else value)
    if name.startswith("Tensor."):
        rest = parts[1:] if parts and parts[0] == TENSOR else parts
        return f"{TENSOR}{name.removeprefix('Tensor')}({', '.join(rest + words)})"
    call = f"ms.{name}({', '.join(parts + words)})"
    value = _names()[name]
    if isinstance(value, type) and issubclass(value, (ms.nn.Cell, ops.Primitive)) and random.random() < 0.8:
        try:
            inputs = [p for p in inspect.signature(value.construct).parameters.values()][1:]
        except (AttributeError, ValueError, TypeError):
            inputs = []
        count = max(1, sum(p.default is p.empty for p in inputs)) if inputs else random.choice((1, 1, 2, 3))
        taken = [_plausible(random, p.name) for p in inputs[:count]] or [TENSOR] * count
        call += f"({', '.join(taken)})"
    return call


def case(random: random_module.Random) -> Case:
    names = _names()
    name = random.choice(list(names))
    value = names[name]
    last = name.rsplit(".", 1)[-1]
    bases = []
    if example := _example(value):
        bases += [lambda: example] * 3
    if checks := _checks().get(name):
        bases += [lambda: _of_check(name, random.choice(checks))] * 2
    bases += [lambda: _of_signature(random, name)]
    try:
        source = random.choice(bases)()
    except ValueError:
        source = _of_signature(random, name)
    if re.search(r"\bwhile\b|while_loop|WhileLoop|ForiLoop|data_sink", source):
        # with other numbers it may never end, as its program says
        source = _of_signature(random, name)
    words = [p.name for p in _parameters(name) if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if name.startswith("Tensor.") and words:
        words = words[1:] if words[0] in ("input", "x", "self") else words
    plain = mutate(random, source, last, words)
    return Case(
        name, compiled(plain) if random.random() < 0.1 else plain, str(getattr(value, "__module__", "mycel")), plain
    )


def describe(case: Case) -> str:
    return f"# {case.name}\n   " + case.source.replace("\n", "\n   ")


FILE = "<fuzz {}>"


def run(case: Case) -> Any:
    """Run the program, in a process of its own if it may leave something behind."""
    module, _, last = case.name.partition("(")[0].rpartition(".")
    return _apart(case) if module.split(".")[0] in APART or STATEFUL.match(last) else _run(case)


class Apart(Exception):
    """What a process of its own told of an error that is none of those allowed, or how it ended."""


def _apart(case: Case) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _run(case)
        except BaseException as error:
            wrong = judge(error, case)
            if wrong:
                os.write(writing, f"{wrong}: {traceback.format_exc(limit=-6)}"[-8000:].encode(errors="replace"))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode(errors="replace").strip()
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if told or end:
        last = told.splitlines()[-1] if told else f"ended by {end}"
        raise Apart(f"{last}\n{told}")


def _run(case: Case) -> Any:
    """Run the program as the doctest of its module would be."""
    space = types.ModuleType("__main__").__dict__
    space.update(vars(sys.modules[case.module]) if case.module in sys.modules else {})
    space.update(
        {
            "np": np,
            "ms": ms,
            "Tensor": Tensor,
            "nn": nn,
            "ops": ops,
            "nan": float("nan"),
            "inf": float("inf"),
            "Array": array,
            "__name__": "__main__",
        }
    )
    file = FILE.format(abs(hash(case.source)))
    linecache.cache[file] = (len(case.source), None, case.source.splitlines(True), file)
    try:
        exec(compile(case.source, file, "exec"), space)
    finally:
        linecache.cache.pop(file, None)
        if ms.get_context("mode") != ms.PYNATIVE_MODE:
            ms.set_context(mode=ms.PYNATIVE_MODE)


INNER = (
    KeyError,
    AttributeError,
    IndexError,
    AssertionError,
    ZeroDivisionError,
    OverflowError,
    RecursionError,
    UnboundLocalError,
    NameError,
    StopIteration,
    EOFError,
    SystemError,
    SystemExit,
    BufferError,
)


def judge(error: BaseException, case: Case) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    words = str(error).strip()
    if isinstance(error, Apart):
        return "in a process of its own"
    if type(error).__module__.startswith("mycel.") and words:
        return ""  # made for the purpose
    if isinstance(error, Exception) and not any(
        "/mycel/" in f.filename and "/tests/" not in f.filename for f in frames
    ):
        return ""  # raised by the program itself, by a library that it calls, or by Python's call
    if case.source == case.plain and frames[-1].filename.startswith("<"):
        return ""  # raised by a function of the program, which the library called
    if case.source != case.plain and isinstance(error, INNER):
        # Compiled code raises what its program raises, with the program's frames alone: so see
        # where that comes from eagerly.
        try:
            _run(replace(case, source=case.plain))
        except type(error) as eager:
            return judge(eager, replace(case, source=case.plain))
    if isinstance(error, RecursionError) or not isinstance(error, Exception):
        return "an error of the insides"
    if not words:
        return "no words"
    if isinstance(error, MemoryError):
        return ""
    if isinstance(error, INNER):
        if (frames[-1].line or "").startswith("raise") and " " in words:
            return ""
        return "an error of the insides"
    return ""
