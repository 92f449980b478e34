"""Small folders in the layouts of well-known data sets, and what of a row is compared with
MindSpore's.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def write(folder: Path, files: dict[str, Any]) -> None:
    """Write texts and bytes to files."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def png(seed: int, height: int = 2, width: int = 3, channels: int = 3) -> bytes:
    """A picture's file, the same bytes with every zlib (nothing is compressed)."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width * channels)).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    stored = b"\x78\x01" + struct.pack("<BHH", 1, len(lines), len(lines) ^ 0xFFFF) + lines
    stored += struct.pack(">I", zlib.adler32(lines))
    kind = {1: 0, 3: 2}[channels]
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)), (b"IDAT", stored), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def summary(array: np.ndarray) -> Any:
    """An array as plain data: type, shape, and its values, or the checksum of many."""
    if array.dtype.kind == "U":
        return ["text", list(array.shape), array.tolist()]
    many = array.size > 12
    return [str(array.dtype), list(array.shape), zlib.crc32(array.tobytes()) if many else array.tolist()]


def describe(data: Any) -> dict[str, Any]:
    """All rows of a dataset as plain data."""
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    return {
        "columns": data.get_col_names(),
        "rows": [{name: summary(value) for name, value in row.items()} for row in rows],
    }


CSV3 = '"3","A title, with ""quotes""","the first text\\nand more"\n"1","Second","text ü"\n'
CSV2 = '"2","good, really"\n"1","bad"\n'
CSV4 = '"5","Title","Question","Answer"\n"6","T2","","A2"\n'


def two_csv(train: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        head, _, rest = train.partition("\n")
        write(folder, {"train.csv": train, "test.csv": rest, "classes.txt": "x\ny\n", "readme.txt": "read me"})

    return build


def clue(folder: Path) -> None:
    lines = {
        "afqmc/train.json": [
            {"sentence1": "a", "sentence2": "b", "label": "0"},
            {"sentence1": "c", "sentence2": "d", "label": "1"},
        ],
        "afqmc/test.json": [{"id": 7, "sentence1": "a", "sentence2": "b"}],
        "tnews/train.json": [{"label": "102", "label_desc": "news_e", "sentence": "s", "keywords": "k,l"}],
        "tnews/test.json": [{"id": 3, "sentence": "s", "keywords": "k"}],
        "iflytek/train.json": [{"label": "11", "label_des": "food", "sentence": "s"}],
        "iflytek/test.json": [{"id": 3, "sentence": "s"}],
        "cmnli/train.json": [{"sentence1": "a", "sentence2": "b", "label": "neutral"}],
        "cmnli/test.json": [{"id": 1, "sentence1": "a", "sentence2": "b"}],
        "wsc/train.json": [
            {
                "target": {"span2_index": 37, "span1_index": 5, "span1_text": "bed", "span2_text": "it"},
                "idx": 261,
                "label": "false",
                "text": "t",
            }
        ],
        "wsc/test.json": [
            {
                "target": {"span2_index": 37, "span1_index": 5, "span1_text": "bed", "span2_text": "it"},
                "idx": 261,
                "text": "t",
            }
        ],
        "csl/train.json": [{"id": 1, "abst": "abstract", "keyword": ["k", "l"], "label": "0"}],
        "csl/test.json": [{"id": 1, "abst": "abstract", "keyword": ["k", "l"]}],
    }
    write(folder, {name: "".join(json.dumps(line) + "\n" for line in group) for name, group in lines.items()})


def conll(folder: Path) -> None:
    text = "Confidence NN B-NP\nin IN B-PP\n. . O\n\nChancellor NNP O\nsays VBZ B-VP\n\n"
    write(folder, {"train.txt": text, "test.txt": "Rockwell NNP B-NP\n. . O\n\n"})


def udpos(folder: Path) -> None:
    text = "From\tADP\tIN\nthe\tDET\tDT\n\nAP\tPROPN\tNNP\n\n"
    write(
        folder,
        {"en-ud-tag.v2.train.txt": text, "en-ud-tag.v2.test.txt": "x\tX\tY\n\n", "en-ud-tag.v2.dev.txt": "d\tD\tE\n\n"},
    )


def lines_of(names: dict[str, str]) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        write(folder, {name: f" first {kind} line \n\n = Title =\nlast {kind} ü\n" for kind, name in names.items()})

    return build


def imdb(folder: Path) -> None:
    for part in ("train", "test"):
        for number, kind in enumerate(("pos", "neg")):
            for index in range(2):
                write(folder, {f"{part}/{kind}/{index}_{7 - number}.txt": f"{part} {kind} {index} <br />ü\n"})


def iwslt16(folder: Path) -> None:
    base = "texts/de/en/de-en/"
    for language in ("de", "en"):
        segments = "".join(f'<seg id="{n}"> {language} seg {n} </seg>\n' for n in (1, 2))
        for part in ("tst2013", "tst2014", "dev2010"):
            write(
                folder,
                {
                    f"{base}IWSLT16.TED.{part}.de-en.{language}.xml": '<?xml version="1.0" encoding="UTF-8"?>\n'
                    '<mteval>\n<srcset setid="x" srclang="de">\n<doc docid="1" genre="l">\n'
                    f"<url>http://a</url>\n<title>{part}</title>\n{segments}</doc>\n</srcset>\n</mteval>\n"
                },
            )
        write(
            folder,
            {
                f"{base}train.tags.de-en.{language}": f"<url>http://a</url>\n<keywords>k</keywords>\n<title>t "
                f"{language}</title>\n"
                f"{language} first line \n second "
                f"{language}\n<reviewer></reviewer>\n<translator></translator>\nthird {language}\n"
            },
        )


def iwslt17(folder: Path) -> None:
    iwslt16(folder / "tmp")
    base = folder / "texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo"
    base.mkdir(parents=True)
    for path in (folder / "tmp/texts/de/en/de-en").iterdir():
        name = path.name.replace("IWSLT16", "IWSLT17").replace("tst2014", "tst2010")
        path.rename(base / name)


def multi30k(folder: Path) -> None:
    for language in ("de", "en"):
        for name, end in (("training/train", 2), ("validation/val", 1), ("mmt16_task1_test/test", 1)):
            write(folder, {f"{name}.{language}": "".join(f" {name} {language} {n}\n" for n in range(end))})


def squad(folder: Path) -> None:
    for part, version in (("train", "1.1"), ("dev", "1.1")):
        answers = [{"answer_start": 3, "text": "is"}, {"answer_start": 0, "text": f"{part} it"}]
        asked = [
            {"answers": answers[: 1 if part == "train" else 2], "question": f"What {n}?", "id": str(n)}
            for n in range(2)
        ]
        if part == "dev":
            asked.append({"answers": [], "question": "Nothing?", "id": "9", "is_impossible": True})
        content = {
            "data": [{"title": "T", "paragraphs": [{"context": f"{part} is a text", "qas": asked}]}],
            "version": version,
        }
        write(folder, {f"{part}-v{version}.json": json.dumps(content)})


def sst2(folder: Path) -> None:
    labelled = "sentence\tlabel\nhide new secretions \t0\ncontains no wit , \t1\n"
    write(
        folder,
        {
            "train.tsv": labelled,
            "dev.tsv": "sentence\tlabel\nfine \t1\n",
            "test.tsv": "index\tsentence\n0\tfirst\n1\tsecond \n",
        },
    )


# name of a case: (class, builder of its folder, file within it or None, arguments)
Case = tuple[str, Callable[[Path], None], Any, dict[str, Any]]
USAGES: tuple[Any, ...] = (None, "train", "test")


def text_cases() -> dict[str, Case]:
    """Cases of sets of text."""
    cases: dict[str, Case] = {}

    def add(kind: str, build: Callable[[Path], None], usages: Any = USAGES, path: Any = None, **more: Any) -> None:
        for usage in usages:
            extra = {"usage": usage} if usage != "none" else {}
            label = "".join(f" {value}" for value in more.values())
            cases[f"{kind} {usage}{label}"] = (kind, build, path, {**extra, **more, "shuffle": False})

    for kind in ("AGNews", "AmazonReview", "DBpedia", "SogouNews"):
        add(kind, two_csv(CSV3))
    add("YelpReview", two_csv(CSV2))
    add("YahooAnswers", two_csv(CSV4))
    for task in ("AFQMC", "TNEWS", "IFLYTEK", "CMNLI", "WSC", "CSL"):
        add("CLUE", clue, ("train",), f"{task.lower()}/train.json", task=task)
        add("CLUE", clue, ("eval",), f"{task.lower()}/train.json", task=task)
        add("CLUE", clue, ("test",), f"{task.lower()}/test.json", task=task)
    add("CoNLL2000", conll)
    add("UDPOS", udpos, (*USAGES, "valid"))
    add("EnWik9", lines_of({"a": "enwik9"}), ("none",))
    add("IMDB", imdb)
    add("IWSLT2016", iwslt16, (*USAGES, "valid"))
    add("IWSLT2016", iwslt16, ("valid",), valid_set="dev2010")
    add("IWSLT2017", iwslt17, (*USAGES, "valid"))
    add("Multi30k", multi30k, (*USAGES, "valid"))
    add("Multi30k", multi30k, ("train",), language_pair=["de", "en"])
    add("PennTreebank", lines_of({p: f"ptb.{p}.txt" for p in ("train", "test", "valid")}), (*USAGES, "valid"))
    add("WikiText", lines_of({p: f"wiki.{p}.tokens" for p in ("train", "test", "valid")}), (*USAGES, "valid"))
    add("SQuAD", squad, (None, "train", "dev"))
    add("SST2", sst2, (None, "train", "dev", "test"))
    return cases
