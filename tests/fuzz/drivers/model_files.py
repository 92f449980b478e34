"""Files of other frameworks: ONNX, TensorFlow Lite, and MindSpore's MindIR."""

from __future__ import annotations

import functools
import gzip
import random as random_module
from pathlib import Path
from typing import Any

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel.formats import mindir, onnx, tflite
from mycel.formats.converting import READERS
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 60
MEMORY = 4 << 30
_SAMPLES = Path(__file__).parent.parent.parent / "data"
_LITE = ("cond", "loop", "nested", "moves", "picks", "shapes", "dense_int8", "cnn_open_int8", "sequence_lstm")
_MINDIR = ("lenet", "loop", "control/nested", "control/ret", "gru_open", "dynamic", "step")


class _Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.dense, self.again = nn.Conv2d(2, 3, 3), nn.Dense(48, 4), nn.LSTM(4, 3, batch_first=True)

    def construct(self, x: Any) -> Any:
        y = self.dense(ops.flatten(ops.relu(self.conv(x)))).reshape((1, -1, 4))
        if y.sum() > 0.0:
            y = y * 2.0
        else:
            y = y - 1.0
        return self.again(y)[0]


@functools.cache
def sound(kind: str, name: str) -> bytes:
    if kind == "onnx":
        net = _Net()
        net.set_train(False)
        ms.export(net, ms.Tensor(np.ones((2, 2, 4, 4), np.float32)), file_name="net.onnx", file_format="ONNX")
        return Path("net.onnx").read_bytes()
    if kind == "tflite":
        return (_SAMPLES / "tflite" / f"{name}.tflite").read_bytes()
    return gzip.decompress((_SAMPLES / "mindir" / f"{name}.mindir.gz").read_bytes())


def setup() -> None:
    sound("onnx", "")


def case(random: random_module.Random) -> tuple[str, str, int]:
    kind = random.choice(("onnx", "tflite", "mindir"))
    name = "" if kind == "onnx" else random.choice(_LITE if kind == "tflite" else _MINDIR)
    return kind, name, random.getrandbits(32)


def changed(random: random_module.Random, content: bytes) -> bytes:
    """Damaged content, or with a few bytes changed only, which more often is a model still."""
    if random.random() < 0.4:
        return damage(random, content)
    found = bytearray(content)
    for _ in range(random.randint(1, 3)):
        found[random.randrange(len(found))] = random.choice((0, 1, 2, 127, 128, 255, random.randrange(256)))
    return bytes(found)


def run(case: tuple[str, str, int]) -> None:
    kind, name, seed = case
    content = changed(random_module.Random(seed), sound(kind, name))
    path = Path(f"a.{kind}")
    path.write_bytes(content)
    reader: Any = {"onnx": onnx.load, "tflite": tflite.load, "mindir": mindir.load}[kind]
    net = reader(path)
    assert sum(p.size for p in net.get_parameters()) <= 64 * len(content) + 10**6
    inputs = [(i.dtype, [2 if d is None else d for d in i.shape or ()]) for i in READERS[path.suffix].inputs(net)]
    if all(np.prod([float(d) for d in shape]) < 10**5 for _, shape in inputs):
        try:
            net(*[ms.Tensor(np.ones(shape, dtype.numpy)) for dtype, shape in inputs])
        except (ValueError, ms.errors.Unsupported):
            pass  # what an operation says of its operands


def judge(error: BaseException, case: tuple[str, str, int]) -> str:
    return clear(error, ("a.onnx", "a.tflite", "a.mindir", "load: ", "the loaded network", "ONNX: "))
