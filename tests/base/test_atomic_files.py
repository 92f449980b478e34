"""Files appear whole or not at all, and what killed processes left goes.

What a live one writes stays.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel._src.foundation.files import atomic_files as whole
from mycel.mindrecord import FileWriter
from mycel.train.checkpoint_format import write_safetensors

locks = pytest.mark.skipif(not whole.HAS_LOCKS, reason="this system has no locks of files")


def hidden(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def killed(folder: Path, program: str) -> None:
    """Run a program that kills itself in the given folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=folder, env=environment, timeout=120)
    assert run.returncode == -signal.SIGKILL


@locks
def test_what_killed_writers_leave_goes_with_the_next_write(tmp_path: Path) -> None:
    killed(
        tmp_path,
        """
        import os, signal
        from mycel._src.foundation.files import atomic_files as whole
        drafts = [whole.Draft(name) for name in ("net.ckpt", "net.safetensors", "net.mindir", "x" * 255, "é" * 120)]
        for draft in drafts:
            draft.path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert len(hidden(tmp_path)) == 5
    with whole.replacing(tmp_path / "other.txt") as temporary:
        assert hidden(tmp_path) == [temporary.name]
        temporary.write_text("whole")
    assert os.listdir(tmp_path) == ["other.txt"]


SAVES = {
    "checkpoint": "ms.save_checkpoint([{'name': 'w', 'data': ms.Tensor(np.zeros(1 << 20, np.float32))}], 'a.ckpt')",
    "encrypted": (
        "ms.save_checkpoint([{'name': 'w', 'data': ms.Tensor(np.zeros(1 << 18, np.float32))}], 'b.ckpt', "
        "enc_key=b'0' * 16)"
    ),
    "safetensors": (
        "ms.save_checkpoint([{'name': 'w', 'data': ms.Tensor(np.zeros(1 << 20, np.float32))}], "
        "'a.safetensors', format='safetensors')"
    ),
    "graph": (
        "ms.export(ms.nn.Dense(300, 300), ms.Tensor(np.zeros((1, 300), np.float32)), file_name='a', "
        "file_format='MINDIR')"
    ),
    "records": (
        "(w := FileWriter('a.mindrecord', overwrite=True)), w.add_schema({'x': {'type': 'bytes'}}), "
        "w.write_raw_data([{'x': bytes(1 << 20)}] * 3), w.commit()"
    ),
}


@locks
def test_saves_killed_at_random_moments(tmp_path: Path) -> None:
    """Each ends with the former file or the new one, and the next save leaves nothing else."""
    program = f"""
        import os, sys
        import numpy as np, mycel as ms
        from mycel.mindrecord import FileWriter
        saves = [{", ".join(f"lambda: ({text})" for text in SAVES.values())}]
        def save(first=0):
            for k in range(len(saves)):
                saves[(first + k) % len(saves)]()
        save()
        for line in sys.stdin:
            if os.fork() == 0:
                print(os.getpid(), flush=True)
                while True:
                    save(int(line))
            os.wait()
        save()
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    draw = random.Random(0)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        left = 0
        for k in range(40):
            child.stdin.write(f"{k}\n")
            child.stdin.flush()
            number = int(child.stdout.readline())
            time.sleep(draw.uniform(0.0, 0.03))
            os.kill(number, signal.SIGKILL)
            left += bool(hidden(tmp_path))
        child.stdin.close()
        assert child.wait(timeout=60) == 0
    assert left and hidden(tmp_path) == []
    assert sorted(os.listdir(tmp_path)) == [
        "a.ckpt",
        "a.mindir",
        "a.mindrecord",
        "a.mindrecord.db",
        "a.safetensors",
        "b.ckpt",
    ]


@locks
def test_what_a_live_process_writes_stays(tmp_path: Path) -> None:
    program = """
        import sys
        from mycel._src.foundation.files import atomic_files as whole
        with whole.replacing("slow.ckpt") as temporary:
            temporary.write_text("whole")
            print("begun", flush=True)
            sys.stdin.readline()
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdout.readline()
        (left,) = hidden(tmp_path)
        # Not even an impossible time makes it look abandoned.
        os.utime(tmp_path / left, (0, 0))
        with whole.replacing(tmp_path / "other.txt") as temporary:
            temporary.write_text("other")
        assert whole.clean(tmp_path) == 0
        assert hidden(tmp_path) == [left]
        child.stdin.write("\n")
        child.stdin.close()
        assert child.wait(timeout=60) == 0
    assert (
        sorted(os.listdir(tmp_path)) == ["other.txt", "slow.ckpt"] and (tmp_path / "slow.ckpt").read_text() == "whole"
    )


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    others = [
        ".net.ckpt.tmp",
        ".net.ckpt.0123456789ab.tmp",
        "net.ckpt.0123456789ab.mycel.tmp",
        ".0123456789ab.mycel.tmp",
        ".hidden",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".folder.0123456789ab.mycel.tmp").mkdir()
    (tmp_path / ".link.0123456789ab.mycel.tmp").symlink_to(tmp_path / ".hidden")
    before = sorted(os.listdir(tmp_path))
    assert whole.clean(tmp_path) == 0
    assert sorted(os.listdir(tmp_path)) == before


def test_writers_at_once(tmp_path: Path) -> None:
    """Cleaning and creating at the same time: no writer loses its file."""
    program = """
        import sys
        from mycel._src.foundation.files import atomic_files as whole
        for k in range(150):
            with whole.replacing(f"{sys.argv[1]}.txt", durable=False) as temporary:
                temporary.write_text(str(k))
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(n)],
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
        )
        for n in range(2)
    ]
    assert [p.communicate(timeout=60)[1] for p in running] == [b"", b""]
    assert sorted(os.listdir(tmp_path)) == ["0.txt", "1.txt"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("former")
    with pytest.raises(ZeroDivisionError), whole.replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["a.txt"] and (tmp_path / "a.txt").read_text() == "former"
    with pytest.raises(OSError, match="cannot write record: No such file or directory: .*nowhere"):
        whole.Draft(tmp_path / "nowhere" / "a.txt", "record")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="cannot write file: it exists and is not a regular file"):
        whole.write(tmp_path / "folder", b"content")


def test_devices_are_written_as_they_are() -> None:
    whole.write(os.devnull, b"content")
    assert not os.path.isfile(os.devnull)


def test_descriptors_are_closed(tmp_path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the open descriptors cannot be listed on this system")
    before = len(os.listdir("/proc/self/fd"))
    for k in range(20):
        whole.write(tmp_path / "a", b"content")
        with pytest.raises(ValueError, match="no"), whole.replacing(tmp_path / "b"):
            raise ValueError("no")
        writer = FileWriter(str(tmp_path / f"{k}.mindrecord"))
        writer.add_schema({"x": {"type": "int32"}})
        writer.write_raw_data([{"x": k}])
        if k % 2:
            writer.commit()
        del writer
    assert len(os.listdir("/proc/self/fd")) == before and hidden(tmp_path) == []


def test_safetensors_are_what_the_library_writes(tmp_path: Path) -> None:
    save_file = pytest.importorskip("safetensors.numpy").save_file
    arrays = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.array(True),
        "é\n": np.zeros((0, 3), np.int64),
        "h": np.arange(3, dtype=np.float16),
        "u": np.arange(5, dtype=np.uint8),
        "q": np.arange(4, dtype=np.uint64),
    }
    write_safetensors(tmp_path / "ours.safetensors", arrays)
    save_file(arrays, tmp_path / "theirs.safetensors", {"format": "ms"})
    from safetensors.numpy import load_file

    ours, theirs = load_file(tmp_path / "ours.safetensors"), load_file(tmp_path / "theirs.safetensors")
    assert set(ours) == set(theirs)
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype and np.array_equal(ours[name], array) and ours[name].shape == array.shape
