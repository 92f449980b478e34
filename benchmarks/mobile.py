"""Networks of phones as libraries of Mycel beside ONNX Runtime, OpenVINO and LiteRT, in turns.

    python benchmarks/mobile.py --peer PYTHON [--peer PYTHON] [--torch PYTHON] [--networks NAME ...]

Each peer is a Python with onnxruntime and onnx, openvino and nncf, or ai-edge-litert; what it has
takes part. With `--torch`, a Python with litert-torch, files for LiteRT are written first. All run
on one thread. Seconds are those that a process has of the processor, so that what else runs there
does not count. A round runs every side a few times; compared are medians of the rounds' medians.
Results of floats are compared with Mycel's; of 8 bits, how far each is from the floats.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from mobile_networks import NETWORKS, example, parameters, settled

import mycel as ms
from mycel.deploy import build
from mycel.quantisation import quantise

HERE = Path(__file__).parent
CALIBRATION = 4


class Library:
    """A library of Mycel in this process."""

    def __init__(self, net: Any, x: np.ndarray, folder: Path, name: str, target: str) -> None:
        made = build(net, ms.Tensor(x), target=target, name=name)
        made.write(folder)
        shared = folder / f"{name}.so"
        subprocess.run(["gcc", "-shared", "-o", shared, folder / f"{name}.o", "-lm"], check=True)
        self.function = getattr(ctypes.CDLL(str(shared)), name)
        kind = made.outputs[0].type
        self.x, self.result = x, np.zeros(kind.shape, np.float32)
        self.arena = np.zeros(made.arena_bytes + 64, np.uint8)
        start = self.arena.ctypes.data + -self.arena.ctypes.data % 64
        self.given = [ctypes.c_void_p(a) for a in (x.ctypes.data, self.result.ctypes.data, start)]

    def times(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            start = time.process_time()
            self.function(*self.given)
            found.append(time.process_time() - start)
        return found


class Compiled:
    """A network compiled in this process."""

    def __init__(self, net: Any, x: np.ndarray) -> None:
        self.run, self.x = ms.jit(lambda x: net(x)), ms.Tensor(x)
        self.result = self.run(self.x).asnumpy()

    def times(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            start = time.process_time()
            self.run(self.x)
            ms.runtime.synchronize()
            found.append(time.process_time() - start)
        return found


class Peer:
    """A process with other frameworks."""

    def __init__(self, python: str, folder: Path, names: list[str]) -> None:
        command = [python, str(HERE / "mobile_peer.py"), str(folder), *names]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        found = self.answer()
        self.runs: list[str] = found["runs"]
        self.missing: dict[str, str] = found["missing"]

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a peer ended; run mobile_peer.py by itself to see why")
        return json.loads(line)

    def ask(self, **request: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def times(self, key: str, count: int) -> list[float]:
        found: list[float] = self.ask(run=key, count=count)
        return found

    def result(self, key: str) -> np.ndarray:
        return np.asarray(np.load(self.ask(result=key)))


def prepared(name: str, folder: Path, target: str) -> dict[str, Any]:
    """Write a network's files for peers to a folder; return Mycel's sides."""
    net, x = settled(name), example(name)
    data = np.stack([example(name, 1 + k) for k in range(CALIBRATION)])
    np.save(folder / f"{name}_x.npy", x)
    np.save(folder / f"{name}_data.npy", data)
    np.savez(folder / f"{name}_parameters.npz", *parameters(net))
    ms.export(net, ms.Tensor(x), file_name=str(folder / name), file_format="ONNX")
    sides: dict[str, Any] = {f"{name} float Mycel": Library(net, x, folder, f"{name}_float", target)}
    if name in ("mobilenet", "resnet"):
        small = quantise(net, [ms.Tensor(row) for row in data])
        sides[f"{name} int8 Mycel"] = Library(small, x, folder, f"{name}_int8", target)
        sides[f"{name} int8 Mycel, compiled"] = Compiled(small, x)
    return sides


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="append", default=[], metavar="PYTHON")
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--folder", help="where files for peers are kept; those for LiteRT are written once")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=["mobilenet"])
    parser.add_argument("--target", default="host")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(asked.folder or place)
        folder.mkdir(exist_ok=True)
        sides: dict[str, Any] = {}
        for name in asked.networks:
            sides.update(prepared(name, folder, asked.target))
        if asked.torch:
            lacking = [n for n in asked.networks if not (folder / f"{n}_int8.tflite").exists()]
            command = [asked.torch, str(HERE / "mobile_torch.py"), str(folder), *lacking]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        peers = [Peer(python, folder, asked.networks) for python in asked.peer]
        owners = {key: peer for peer in peers for key in peer.runs}
        missing = {key: why for peer in peers for key, why in peer.missing.items() if key not in owners}
        times: dict[str, list[float]] = {key: [] for key in (*sides, *owners)}
        for turn in range(asked.rounds + 1):
            for key in times:
                found = sides[key].times(asked.runs) if key in sides else owners[key].times(key, asked.runs)
                if turn:
                    times[key].append(statistics.median(found))
        report(times, {**{k: s.result for k, s in sides.items()}, **{k: p.result(k) for k, p in owners.items()}})
    for key, why in missing.items():
        print(f"{key}: none ({why})", file=sys.stderr)


def report(times: dict[str, list[float]], results: dict[str, np.ndarray]) -> None:
    """Print a line for each side: milliseconds, its time by Mycel's, and its difference."""
    for key, found in times.items():
        name, kind, side = key.split(" ", 2)
        ours, floats = times[f"{name} {kind} Mycel"], results[f"{name} float Mycel"]
        ratio = statistics.median(a / b for a, b in zip(found, ours))
        far = np.abs(results[key].reshape(-1) - floats.reshape(-1)).max() / np.abs(floats).max()
        typical, least = statistics.median(found) * 1e3, min(found) * 1e3
        print(f"{key:45} {typical:8.3f} ms (least {least:7.3f})  {ratio:6.2f} x  {far:.1e} from the floats")


if __name__ == "__main__":
    main()
