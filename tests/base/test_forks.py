"""Forks while other threads compile, allocate, run, read data and save: no child waits for a lock
of a thread that it does not have.
"""

from __future__ import annotations

import ast
import importlib
import os
import signal
import subprocess
import sys
import threading
import types

import pytest

from mycel._src.foundation.system import locks
from tests import sources

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

PROGRAM = r"""
import os, sys, tempfile, threading, time, warnings
import numpy as np
import mycel as ms
from mycel import Tensor, nn, ops

warnings.simplefilter("ignore")
forks, folder = int(sys.argv[1]), sys.argv[2]
over = threading.Event()
sizes = iter(range(3, 10**6))
x = Tensor(np.ones((64, 64), np.float32))


def compiling():
    n = next(sizes)
    ms.jit(lambda y: ops.exp(y * n).sum() + n)(Tensor(np.ones(n % 50 + 2, np.float32)))


def allocating():
    held = [ops.zeros((n * 1000,), ms.float32) for n in range(1, 60)]
    del held


def running():
    ops.matmul(x, x) + ops.softmax(x)


def doubled_rows():
    rows = ms.dataset.GeneratorDataset([(np.full(3, i, np.float32),) for i in range(20)], ["a"], shuffle=False)
    return rows.map(lambda a: a * 2, "a").batch(4)


def reading():
    list(doubled_rows().create_tuple_iterator())


net = nn.Dense(8, 8)


def saving():
    ms.save_checkpoint(net, os.path.join(folder, f"{threading.get_ident()}.ckpt"))
    ms.save_checkpoint(net, os.path.join(folder, "later.ckpt"), async_save=True)


def drawing():
    ms.set_seed(3)
    ops.randn(5)
    ms.set_context(max_call_depth=1000)


def repeat(work):
    while not over.is_set():
        work()


def child(begun):
    n = 1000 + os.getpid()
    assert float(ms.jit(lambda y: (y * n).sum())(Tensor([1.0, 2.0]))) == 3 * n
    ops.matmul(x, x)
    reading()
    rest = [float(r[0].asnumpy()[0, 0]) for r in begun]
    assert rest == [8.0, 16.0, 24.0, 32.0], rest
    path = os.path.join(folder, f"child{os.getpid()}.ckpt")
    ms.save_checkpoint(net, path)
    ms.load_checkpoint(path)
    ms.save_checkpoint(net, path, async_save=True)
    drawing()


works = (compiling, allocating, running, reading, saving, drawing)
threads = [threading.Thread(target=repeat, args=(w,), daemon=True) for w in works]
compiling(), running()
for t in threads:
    t.start()
bad = []
data = doubled_rows()
for k in range(forks):
    begun = iter(data.create_tuple_iterator(num_epochs=1))
    next(begun)
    time.sleep(0.003 * (k % 7))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child(begun)
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(status)
    limit = time.monotonic() + float(sys.argv[3])
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done or time.monotonic() > limit:
            break
        time.sleep(0.005)
    if not done:
        if os.environ.get("SHOW_HANGS"):
            print("hangs", pid, flush=True)
            time.sleep(100000)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        bad.append((k, "hangs"))
    elif status:
        bad.append((k, status))
over.set()
for t in threads:
    t.join(60)
print(bad)
os._exit(1 if bad else 0)
"""


def test_children_of_a_busy_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    forks = os.environ.get("MYCEL_FORKS", "4")
    run = subprocess.run(
        [sys.executable, str(program), forks, str(tmp_path), "60"], capture_output=True, text=True, timeout=1800
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_lock_is_one_that_a_child_finds_open():
    found = []
    for path, tree in sources.trees(lambda text: "threading" in text):
        if path.endswith("/locks.py"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "threading":
                if node.attr in ("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"):
                    found.append(f"{path}:{node.lineno}")
    assert found == []


def test_a_lock_that_another_holds_is_open_in_a_child():
    held, again, waited = locks.lock(), locks.reentrant(), locks.condition()
    for lock in (held, again, waited):
        lock.acquire()
    pid = os.fork()
    if pid == 0:
        os._exit(not all(lock.acquire(timeout=1) for lock in (held, again, waited)))
    assert os.waitpid(pid, 0)[1] == 0
    assert not held.acquire(blocking=False)
    for lock in (held, again, waited):
        lock.release()


def test_what_was_quiet_for_the_fork_is_open_to_other_threads_of_a_child(monkeypatch):
    # A library's own lock, which `locks` did not make and cannot free with its own.
    foreign = threading.RLock()
    monkeypatch.setattr(locks, "_quiet", [lambda: foreign])
    pid = os.fork()
    if pid == 0:
        opened: list[bool] = []
        thread = threading.Thread(target=lambda: opened.append(foreign.acquire(timeout=5)))
        thread.start()
        thread.join()
        os._exit(opened != [True])
    assert os.waitpid(pid, 0)[1] == 0


def test_a_child_imports_anew_what_another_thread_had_half_imported(tmp_path, monkeypatch):
    # The thread stands still in its import, as one that waits for a lock which was taken for the
    # fork.
    (tmp_path / "half_imported.py").write_text(
        "import os, half_way\nif os.getpid() == half_way.pid:\n    half_way.begun.set()\n    "
        "half_way.over.wait()\nwhole = True\n"
    )
    half_way = types.ModuleType("half_way")
    half_way.pid, half_way.begun, half_way.over = os.getpid(), threading.Event(), threading.Event()
    monkeypatch.setitem(sys.modules, "half_way", half_way)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(locks, "PATIENCE", 0.2)
    thread = threading.Thread(target=importlib.import_module, args=("half_imported",))
    thread.start()
    half_way.begun.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        os._exit(not importlib.import_module("half_imported").whole)
    status = os.waitpid(pid, 0)[1]
    half_way.over.set()
    thread.join()
    assert status == 0
    assert importlib.import_module("half_imported").whole
