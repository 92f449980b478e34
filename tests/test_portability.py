"""Machines and processes of other kinds: libraries that are missing, caches that are not sound,
threads, forks, and the end of a process.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import nn, ops
from mycel._src.engines.native.llvm import jit
from mycel._src.engines.native.llvm.target import host, processor
from mycel._src.engines.native.threads.pool import pool
from mycel._src.foundation.log import logger
from mycel.cli import main


def run(program: str, *arguments: object, cache: Path | None = None, **environment: str | None) -> str:
    """What a program prints in a process of its own, where `environment` is set (None: is not).

    It must end well and silently.
    """
    variables: dict[str, str | None] = {**os.environ, **environment}
    if cache is not None:
        variables["MYCEL_CACHE"] = str(cache)
    variables["PYTHONPATH"] = os.pathsep.join([os.getcwd(), *sys.path[1:]])
    with tempfile.TemporaryDirectory() as folder:
        # A file, as functions whose source cannot be read are compiled in segments, and say so.
        script = Path(folder) / "program.py"
        script.write_text(program)
        done = subprocess.run(
            [sys.executable, str(script), *map(str, arguments)],
            env={name: value for name, value in variables.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


# Machines

TRAIN = """
import sys, numpy as np
import mycel as ms
from mycel.demo.data import bundled
from mycel.demo.lenet import Plan, Training
digits = bundled()
ms.set_context(mode=ms.GRAPH_MODE)
training = Training(Plan(len(digits.train_labels), digits.fingerprint(), epochs=20, batch_size=32, seed=1), digits)
np.save(sys.argv[1], [training.advance() for _ in range(30)])
print(ms.get_context("runtime_num_threads"))
"""
WITHOUT_OPENMP = """
import ctypes
class Loader(ctypes.CDLL):
    def __init__(self, name, *arguments, **options):
        if name and ("gomp" in name or "dnnl" in name):
            raise OSError("libgomp.so.1: cannot open shared object file: No such file or directory")
        super().__init__(name, *arguments, **options)
ctypes.CDLL = Loader
"""


@pytest.fixture(scope="module")
def usual_losses(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """The losses of LeNet-5's first steps on the machine as it is."""
    path = tmp_path_factory.mktemp("usual") / "losses.npy"
    run(TRAIN, path)
    losses = np.load(path)
    assert losses[-1] < losses[0] < 2.6
    return losses


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        pytest.param("", {"MYCEL_ONEDNN": "/nonexistent"}, id="without oneDNN"),
        pytest.param(WITHOUT_OPENMP, {}, id="without libgomp"),
        pytest.param("", {"OMP_NUM_THREADS": "1"}, id="one thread of OpenMP"),
        pytest.param("", {"OMP_THREAD_LIMIT": "1", "OMP_DYNAMIC": "true"}, id="at most one thread"),
        pytest.param("import mycel\nmycel.set_context(runtime_num_threads=1)\n", {}, id="one thread chosen"),
        pytest.param("import mycel\nmycel.set_context(runtime_num_threads=5)\n", {}, id="more threads than cores"),
    ],
)
def test_lenet_trains_to_the_same_losses(
    before: str, environment: dict[str, str], usual_losses: np.ndarray, tmp_path: Path
) -> None:
    run(before + TRAIN, tmp_path / "losses.npy", **environment)
    np.testing.assert_allclose(np.load(tmp_path / "losses.npy"), usual_losses, rtol=0, atol=1e-4)


def test_lenet_trains_to_the_same_losses_on_an_old_processor(usual_losses: np.ndarray, tmp_path: Path) -> None:
    if not host().triple.startswith("x86_64"):
        pytest.skip("levels are those of x86-64")
    run(TRAIN, tmp_path / "losses.npy", MYCEL_CPU="x86-64", ONEDNN_MAX_CPU_ISA="SSE41")
    np.testing.assert_allclose(np.load(tmp_path / "losses.npy"), usual_losses, rtol=0, atol=1e-4)


def test_info_says_what_is_missing() -> None:
    show = "from mycel.cli import main\nmain(['info'])\n"
    told = run(WITHOUT_OPENMP + show)
    assert "threads   " in told
    assert "oneDNN    not in use: oneDNN: cannot load " in told and "libgomp1" in told
    told = run(show, MYCEL_ONEDNN="/nonexistent", OMP_NUM_THREADS="3,1")
    assert "oneDNN    not in use: oneDNN: cannot load '/nonexistent': " in told
    assert "threads   3\n" in told


def test_a_level_that_the_processor_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Features(dict):
        def flatten(self) -> str:
            return "+sse2"

    monkeypatch.setattr(jit.llvm, "get_host_cpu_features", lambda: Features(sse2=True, avx=False))
    monkeypatch.setattr(jit.llvm, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    monkeypatch.setenv("MYCEL_CPU", "x86-64")
    with pytest.raises(
        ValueError, match="MYCEL_CPU=x86-64: this processor lacks cmov, cx8, fxsr, mmx, sse; name a lower"
    ):
        processor()
    monkeypatch.setattr(jit.llvm, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")
    with pytest.raises(ValueError, match="levels are those of x86-64 and this is another processor"):
        processor()
    monkeypatch.delenv("MYCEL_CPU")
    assert processor()[1:] == ("+sse2", frozenset({"sse2"}))


# The cache of compiled objects

ADD = "define i32 @mycel_test_{}(i32 %x) {{\n  %y = add i32 %x, {}\n  ret i32 %y\n}}\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that this test alone uses, in a process that has threads already."""
    pool()
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled, and not taken from the cache."""
    seen: list[str] = []
    compile = jit.Machine.compile

    def note(self: jit.Machine, text: str) -> bytes:
        seen.append(text)
        return compile(self, text)

    monkeypatch.setattr(jit.Machine, "compile", note)
    return seen


def objects(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_objects_are_compiled_once(cache: Path, compiled: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = ADD.format(1, 7)
    (first,) = jit.compile_objects([text])
    assert first[:4] == b"\x7fELF"
    assert jit.compile_objects([text]) == [first]
    assert compiled == [text]
    (path,) = objects(cache)
    assert main(["info"]) == 0
    assert f"cache     {cache} (1 files, {path.stat().st_size / 1e6:.1f} MB)" in capsys.readouterr().out


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-1],
    "cut to the header": lambda data: data[:64],
    "a bit turned": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "longer": lambda data: data + b"\0",
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_objects_are_compiled_anew(damage: str, cache: Path, compiled: list[str]) -> None:
    text = ADD.format(2, 7)
    (good,) = jit.compile_objects([text])
    (path,) = objects(cache)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    assert jit.compile_objects([text]) == [good]
    assert compiled == [text, text]
    assert path.read_bytes() == whole


def test_an_object_under_another_name_is_not_taken(cache: Path, compiled: list[str]) -> None:
    one, other = ADD.format(3, 7), ADD.format(3, 8)
    jit.compile_objects([one])
    (mine,) = objects(cache)
    jit.compile_objects([other])
    (theirs,) = set(objects(cache)) - {mine}
    theirs.write_bytes(mine.read_bytes())
    (code,) = jit.compile_objects([other])
    assert compiled == [one, other, other]
    (address,) = jit.machine().link(code, ["mycel_test_3"], {})
    import ctypes

    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)(1) == 9


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is logged, information included."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler, level = Keep(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_cache_that_cannot_be_written(
    tmp_path: Path,
    told: list[str],
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "file" / "cache"))
    text = ADD.format(4, 7)
    for _ in range(2):
        (code,) = jit.compile_objects([text])
        assert code[:4] == b"\x7fELF"
    assert compiled == [text, text]
    assert [t.partition(": ")[0] for t in told[-2:]] == ["the compiled-object cache could not be written"] * 2
    assert main(["info"]) == 0
    assert "(0 files, 0.0 MB; not writable, so every process compiles anew)" in capsys.readouterr().out


def test_a_full_disk_leaves_no_object(cache: Path) -> None:
    program = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "import mycel as ms\n"
        "print((ms.Tensor([1.0, 2.0]) + 1).tolist())\n"
    )
    assert run(program, cache=cache) == "[2.0, 3.0]\n"
    assert objects(cache) == []


def test_no_cache_is_used_where_it_is_turned_off(cache: Path, compiled: list[str]) -> None:
    text = ADD.format(5, 7)
    ms.set_context(enable_compile_cache=False)
    try:
        jit.compile_objects([text])
        jit.compile_objects([text])
    finally:
        ms.set_context(enable_compile_cache=True)
    assert compiled == [text, text]
    assert not cache.exists()


def test_processes_that_fill_a_cache_at_once(cache: Path) -> None:
    program = (
        "import numpy as np, mycel as ms\n"
        "x = ms.Tensor(np.linspace(0, 1, 300).astype(np.float32))\n"
        "print(float((ms.ops.exp(x) * ms.ops.tanh(x)).sum().asnumpy()))\n"
    )
    environment = {**os.environ, "MYCEL_CACHE": str(cache)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    results = [process.communicate(timeout=100) for process in processes]
    assert len(set(results)) == 1 and results[0][1] == ""
    x = np.linspace(0, 1, 300)
    assert float(results[0][0]) == pytest.approx((np.exp(x) * np.tanh(x)).sum(), rel=1e-6)
    names = [path.name for path in objects(cache)]
    assert len(names) == len(set(names)) and not any(name.startswith(".new") for name in names)


def test_places_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mycel._src.foundation.settings.config import cache_directory

    monkeypatch.delenv("MYCEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "mycel"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "home" / ".cache" / "mycel"
    ms.set_context(compile_cache_path=str(tmp_path / "chosen"))
    try:
        assert cache_directory() == tmp_path / "chosen"
        monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "first"))
        assert cache_directory() == tmp_path / "first"
    finally:
        ms.set_context(compile_cache_path="")
    monkeypatch.delenv("MYCEL_CACHE")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_directory() == Path("/.cache/mycel")


ONE_SUM = "import mycel as ms\nprint((ms.Tensor([1.0, 2.0]) + 1).tolist())\n"


def test_no_home_and_one_that_cannot_be_written(tmp_path: Path) -> None:
    nowhere: dict[str, str | None] = {"MYCEL_CACHE": None, "XDG_CACHE_HOME": None}
    (tmp_path / "file").write_text("")
    assert run(ONE_SUM, **nowhere, HOME=str(tmp_path / "file")) == "[2.0, 3.0]\n"
    # Where the user has no home either, the folder is one that cannot be written.
    unknown = f"import os.path\nos.path.expanduser = lambda path: path\nos.chdir({str(tmp_path)!r})\n"
    where = (
        "from mycel._src.foundation.settings import config\nassert str(config.cache_directory()) == '/.cache/mycel'\n"
    )
    assert run(unknown + where, **nowhere, HOME=None) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# Threads, forks and the end

NETWORK = """
import multiprocessing, os, sys, threading
import numpy as np
import mycel as ms
from mycel import nn, ops
ms.set_context(runtime_num_threads=2, mode=ms.GRAPH_MODE)
random = np.random.default_rng(0)
images = ms.Tensor(random.normal(size=(16, 3, 32, 32)).astype(np.float32))
labels = ms.Tensor(np.arange(16).astype(np.int32) % 10)
large = ms.Tensor(random.normal(size=(600, 600)).astype(np.float32))
def new_step():
    ms.set_seed(1)
    layers = nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.Dense(16 * 32 * 32, 10)
    net = nn.SequentialCell(*layers)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Momentum(net.trainable_params(), 0.01, 0.9))
def losses(step):
    return [float(step(images, labels).asnumpy()) for _ in range(4)]
shared = ms.jit(lambda a: ops.softmax(ops.matmul(a, a)).sum(0))
"""
FORK = """
want, step = shared(large).asnumpy(), new_step()
losses(step)
def child(queue):
    queue.put((losses(step), float(np.abs(shared(large).asnumpy() - want).max())))
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
children = [context.Process(target=child, args=(queue,), daemon=True) for _ in range(2)]
for process in children:
    process.start()
for process in children:
    process.join(60)
    assert process.exitcode == 0, process.exitcode
mine = losses(step)
for _ in children:
    theirs, error = queue.get()
    assert error < 1e-6, error
    np.testing.assert_allclose(theirs, mine, rtol=1e-5)
print("same")
"""
THREADS = """
wants, want = [shared(large * k).asnumpy() for k in range(3)], losses(new_step())
sys.setswitchinterval(1e-4)
failures = []
def work(step):
    try:
        np.testing.assert_allclose(losses(step), want, rtol=1e-5)
        for _ in range(4):
            for k in range(3):
                np.testing.assert_allclose(shared(large * k).asnumpy(), wants[k], rtol=1e-5, atol=1e-6)
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=work, args=(new_step(),)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
ms.set_context(runtime_num_threads=1)
work(new_step())
ms.set_context(runtime_num_threads=3)
work(new_step())
assert not failures, failures
print("same")
"""


def test_forked_children_compute() -> None:
    assert run(NETWORK + FORK) == "same\n"


def test_a_child_forked_from_a_thread_computes() -> None:
    inside = "def main():\n" + "".join(f"    {line}\n" for line in FORK.splitlines() if line)
    start = "thread = threading.Thread(target=main)\nthread.start()\nthread.join()\n"
    assert run(NETWORK + inside + start) == "same\n"


def test_a_child_of_a_busy_parent_computes() -> None:
    busy = (
        "def work():\n    while True:\n        shared(large)\n"
        "shared(large)\nthreading.Thread(target=work, daemon=True).start()\n"
    )
    children = (
        "for _ in range(5):\n    process = multiprocessing.get_context('fork').Process(target=shared, args=(large,), "
        "daemon=True)\n"
        "    process.start()\n    process.join(30)\n    assert process.exitcode == 0, process.exitcode\n"
    )
    run(NETWORK + busy + children)


def test_threads_train_and_share_functions() -> None:
    assert run(NETWORK + THREADS) == "same\n"


def test_a_function_is_compiled_once_for_threads_that_call_it_at_once() -> None:
    traced: list[int] = []

    @ms.jit
    def function(x: Any) -> Any:
        traced.append(1)
        return ops.exp(x) + 1

    x = ms.Tensor(np.linspace(-1, 1, 64).astype(np.float32))
    barrier, results = threading.Barrier(4), []

    def call() -> None:
        barrier.wait()
        results.append(function(x).asnumpy())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_allclose(result, np.exp(np.linspace(-1, 1, 64)) + 1, rtol=1e-6)
    np.testing.assert_allclose(nn.ReLU()(x).asnumpy(), np.maximum(np.linspace(-1, 1, 64), 0), rtol=1e-6)


ENDS = {
    "values alive in modules": "sys.kept = (images, shared, new_step(), shared(large))\nlosses(sys.kept[2])\n",
    "a daemon thread that computes": (
        "def work():\n    while True:\n        shared(large)\n"
        "shared(large)\nthreading.Thread(target=work, daemon=True).start()\n"
        "import time; time.sleep(0.2)\n"
    ),
    "a daemon thread that compiles": (
        "def work():\n    k = 0\n    while True:\n        k += 1\n        ms.jit(lambda a: ops.exp(a * float(k)) + "
        "float(k))(images)\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "import time; time.sleep(0.2)\n"
    ),
    "a dataset in the middle": (
        "from mycel import dataset\n"
        "data = dataset.GeneratorDataset(lambda: ((np.ones(3, np.float32) * k,) for k in range(1000)), ['x'])\n"
        "data = data.map(lambda x: x + 1, ['x'], num_parallel_workers=2).batch(4)\n"
        "rows = iter(data.create_tuple_iterator())\n"
        "assert next(rows)[0].shape == (4, 3)\n"
    ),
    "an exit function that computes": (
        "import atexit\natexit.register(lambda: shared(large).asnumpy())\nshared(large)\n"
    ),
    "a finalizer that computes": (
        "class Late:\n    def __del__(self, run=shared, value=large):\n        run(value)\n"
        "sys.late = Late()\nshared(large)\n"
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_cleanly(end: str) -> None:
    assert run(NETWORK + ENDS[end] + "print('end')\n") == "end\n"
