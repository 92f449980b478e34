"""Checkpoints of some ranks that other ranks read: peak of memory, and speed beside ``cp``.

``python -m benchmarks.checkpoint_parts --gib 4 --writers 4 --readers 3 --rounds 5`` writes the
parts of as many ranks, and has threads as the ranks of this process read their own parts of it, as
`load_distributed_checkpoint` and the first call of a network do. Files lie in the page cache, and
rounds of ``cp`` of the same files and of reading follow each other in turn. It prints the medians,
their ratio, and by how much the peak of the process's memory is above all parts that it holds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import mycel as ms
from mycel import nn
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import sharding
from mycel._src.compiler.transport import thread_ranks
from mycel._src.staging.distributed.rank_executors import OfRanks
from mycel._src.staging.distributed.sharded_tensors import held
from mycel.train.checkpoint_format import write_ckpt
from mycel.train.strategies import Dims, ParallelLayouts, write_strategy

COLUMNS, TENSORS = 4096, 32


def memory(name: str) -> int:
    """Return a line of the process's status in bytes."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))


def written(folder: Path, rows: int, writers: int, axis: int) -> list[str]:
    """Write the files of all ranks, one tensor after the other cut along an axis."""
    cut = [0, -1] if axis == 0 else [-1, 0]
    strategy = {f"w{n}": ParallelLayouts([Dims([writers])], [Dims(cut)]) for n in range(TENSORS)}
    write_strategy(folder / "strategy.ckpt", strategy)
    shape = (rows // writers, COLUMNS) if axis == 0 else (rows, COLUMNS // writers)
    files = []
    for rank in range(writers):
        entries = {f"w{n}": np.full(shape, n * writers + rank, np.float32) for n in range(TENSORS)}
        files.append(str(folder / f"rank_{rank}.ckpt"))
        write_ckpt(files[-1], entries)
    return files


def read(folder: Path, files: list[str], rows: int, readers: int, axis: int) -> tuple[float, int, int]:
    """Return the seconds that reading took, the bytes of all parts, and the peak above them."""
    with nn.no_init_parameters():
        nets = [nn.Cell() for _ in range(readers)]
        for net in nets:
            for n in range(TENSORS):
                value = ms.common.initializer.initializer("zeros", (rows, COLUMNS))
                setattr(net, f"w{n}", ms.Parameter(value, name=f"w{n}"))
    mesh = Mesh((readers,), ("x",))
    given = sharding(mesh, (rows, COLUMNS), ("x", None) if axis == 0 else (None, "x"))

    def rank(own: int) -> None:
        ms.load_distributed_checkpoint(nets[own], files, None, str(folder / "strategy.ckpt"))
        for parameter in nets[own].get_parameters():
            OfRanks(mesh).piece(parameter, given)

    ms.runtime.empty_cache()
    before = memory("VmRSS")
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")  # the peak is that of now
    start = time.perf_counter()
    thread_ranks.run(readers, rank)
    seconds = time.perf_counter() - start
    assert all(held(p) is not None for net in nets for p in net.get_parameters())
    size = sum(int(net.w0.nbytes) for net in nets) // readers * TENSORS
    return seconds, size, memory("VmHWM") - before - size


def copied(files: list[str], target: Path) -> float:
    """Return the seconds that ``cp`` of the files takes."""
    target.mkdir()
    start = time.perf_counter()
    subprocess.run(["cp", *files, str(target)], check=True)
    seconds = time.perf_counter() - start
    shutil.rmtree(target)
    return seconds


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gib", type=float, default=4.0)
    options.add_argument("--writers", type=int, default=4)
    options.add_argument("--readers", type=int, default=3)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--folder", default=None, help="where the files lie (default: the folder for temporary files)")
    chosen = options.parse_args()
    rows = int(chosen.gib * (1 << 30)) // (TENSORS * COLUMNS * 4) // chosen.writers * chosen.writers
    for axis, name in enumerate(("rows", "columns")):
        with tempfile.TemporaryDirectory(dir=chosen.folder) as made:
            folder = Path(made)
            files = written(folder, rows, chosen.writers, axis)
            copies, reads, peaks = [], [], []
            for number in range(chosen.rounds + 1):
                copy = copied(files, folder / "copy")
                seconds, size, above = read(folder, files, rows, chosen.readers, axis)
                if number:
                    copies.append(copy)
                    reads.append(seconds)
                    peaks.append(above / size)
            total = sum(map(os.path.getsize, files)) / (1 << 30)
            copy, seconds = statistics.median(copies), statistics.median(reads)
            print(f"{name}: {total:.2f} GiB of {chosen.writers} ranks read by {chosen.readers}")
            print(f"    cp {total / copy:.2f} GiB/s, read {total / seconds:.2f} GiB/s, ratio {copy / seconds:.2f}")
            print(f"    peak {max(peaks):+.1%} above the parts")


if __name__ == "__main__":
    main()
