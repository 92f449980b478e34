"""Files that are converted to record files: CIFAR's pickles, CSV, TFRecord, a list of folders."""

from __future__ import annotations

import functools
import pickle
import random as random_module
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from mycel.mindrecord import CsvToMR, FileReader, ImageNetToMR, TFRecordToMR
from mycel.mindrecord.converters import _cifar_pickle
from tests import tfrecords
from tests.fuzz.drivers._damage import clear, damage
from tests.fuzz.drivers.tfrecord import record

CORPUS = 60
_WORDS = (
    b"cos\nsystem\n(S'touch ran'\ntR",
    b"cnumpy\ndtype\n",
    b"c_codecs\nencode\n",
    b"}",
    b"]",
    b"(",
    b".",
    b"R",
    b"b",
    b"\x94",
    b"h\x00",
    b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"B\xff\xff\xff\x7f",
    b"0",
    b"u",
    b"K\xff",
    b"N",
)
_FEATURES = {"x": (1, "int64"), "f": (2, "float32"), "t": (0, "string"), "b": (0, "string")}


class _Feature:
    def __init__(self, length: int, kind: str) -> None:
        self.shape = [length] if length > 1 else []
        self.dtype = type("Type", (), {"name": kind, "__str__": lambda self: kind})()


@functools.cache
def sound() -> dict[str, bytes]:
    batch = {b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2], b"batch_label": b"training batch"}
    row = {"x": [5], "f": [0.5, 1.5], "t": [b"text"], "b": [b"\1\2"]}
    return {
        "cifar2": pickle.dumps(batch, 2),
        "cifar4": pickle.dumps(batch, 4),
        "csv": b"n,x,name,yes\n1,0.5,one,True\n2,,two,False\n",
        "tfrecord": tfrecords.example(row),
        "map": b"cats 1\ndogs 2\n",
    }


# Columns that are one in SQLite.
KEPT = (("csv", b"E,e\n1,2\n"), ("csv", b"inc,x\n1,2\n"), ("csv", b"x,x\n1,2\n"))


def case(random: random_module.Random) -> tuple[str, bytes]:
    kind = random.choice(sorted(sound()))
    content = sound()[kind]
    if kind.startswith("cifar"):
        # The values are the most of it, and the least of interest.
        at = content.index(bytes(6144))
        return kind, damage(random, content[:at], words=_WORDS) + bytes(6144) + damage(
            random, content[at + 6144 :], 1, _WORDS
        )
    return kind, damage(random, content)


def run(case: tuple[str, bytes]) -> Any:
    kind, content = case
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    name = f"out/{kind}"
    if kind == "tfrecord":
        content = record(content)
    Path(name).write_bytes(content)
    try:
        if kind.startswith("cifar"):
            images, labels = _cifar_pickle(Path(name), [b"labels"])
            assert images.dtype == np.uint8 and images.shape[1:] == (32, 32, 3) and len(images) == len(labels) < 100
            return
        if kind == "csv":
            CsvToMR(name, "out/a").run()
        elif kind == "tfrecord":
            fields = {key: _Feature(*feature) for key, feature in _FEATURES.items()}
            TFRecordToMR(name, "out/a", fields, ["b"]).run()
        else:
            for folder in ("cats", "dogs"):
                Path("out", folder).mkdir()
                Path("out", folder, "1.jpg").write_bytes(b"x")
            ImageNetToMR(name, "out", "out/a").run()
        reader = FileReader("out/a")
        for _ in reader.get_next():
            pass
        reader.close()
    finally:
        assert not Path("ran").exists()


def judge(error: BaseException, case: tuple[str, bytes]) -> str:
    return clear(error, (case[0], "ToMR", "write_raw_data", "field", "schema"))


def setup() -> None:
    for sound_case in sound().items():
        run(sound_case)
