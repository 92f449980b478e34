"""Converters of other formats to record files; each has `transform`, which writes them."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments, log
from mycel._src.foundation.files.idx_format import read_idx
from mycel.mindrecord import safe_unpickling
from mycel.mindrecord.errors import SUCCESS, MSRStatus, PathNotExistsError
from mycel.mindrecord.filewriter import FileWriter
from mycel.mindrecord.row_encoding import Schema
from mycel.mindrecord.schema_checks import check_filename
from mycel.mindrecord.tfrecord import parse_example, read_records

_BATCH = 256


def _write_all(writer: FileWriter, rows: Iterable[dict[str, Any]], parallel: bool = False) -> None:
    rows = iter(rows)
    while batch := list(islice(rows, _BATCH)):
        writer.write_raw_data(batch, parallel)
    writer.commit()


def _large(writer: FileWriter) -> FileWriter:
    writer.set_header_size(1 << 24)
    writer.set_page_size(1 << 26)
    return writer


def _jpeg(operation: str, pixels: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"{operation}: writing JPEG needs Pillow; pip install 'mycel[image]'") from error
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def _cifar_pickle(path: Path, keys: Sequence[bytes]) -> list[np.ndarray[Any, np.dtype[Any]]]:
    """Return the images, uint8 [N, 32, 32, 3], and labels in a file of CIFAR's Python version.

    The labels are those under `keys`.
    """
    try:
        found = safe_unpickling.load(path.read_bytes())
        images, labels = found[b"data"], [found[key] for key in keys]
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
            raise ValueError("its images are no array of uint8")
        if not all(isinstance(v, np.ndarray) or (type(v) is list and all(type(n) is int for n in v)) for v in labels):
            raise ValueError("its labels are no integers")
        images = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        labels = [np.asarray(v, np.int64) for v in labels]
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise RuntimeError(f"{os.fspath(path)!r} is not a file of the Python version of CIFAR: {error!r}") from error
    if any(len(values) != len(images) for values in labels):
        raise RuntimeError(f"{os.fspath(path)!r} has {len(images)} images but {[len(v) for v in labels]} labels")
    return [images, *labels]


class Cifar10ToMR:
    """A converter of the Python version of CIFAR-10.

    `destination` receives the training images, `destination` + "_test" the others. Rows are `id`,
    `label`, both int64, and `data`, the image as JPEG; needs Pillow. Only plain data are unpickled.
    Raises PathNotExistsError where files are missing.
    """

    _labels = {"label": b"labels"}

    def __init__(self, source: str, destination: str) -> None:
        self.source = check_filename(source)
        self.destination = check_filename(destination)
        self._parts = self._find(sorted(os.listdir(source)))

    def _find(self, files: Sequence[str]) -> list[list[str]]:
        train = [name for name in files if name.startswith("data_batch_")]
        test = [name for name in files if name.startswith("test_batch")]
        for found, pattern in ((train, "data_batch_*"), (test, "test_batch")):
            if not found:
                raise PathNotExistsError(f"{os.path.join(self.source, pattern)} is missing")
        return [train, test]

    def run(self, fields: list[str] | None = None) -> MSRStatus:
        """Write the files with these index fields, and return SUCCESS."""
        if fields and not isinstance(fields, list):
            raise arguments.wrong_type("transform", "fields", "a list or None", fields, ValueError)
        for files, suffix, description in zip(self._parts, ("", "_test"), ("img_train", "img_test")):
            writer = FileWriter(self.destination + suffix)
            schema: Schema = {name: {"type": "int64"} for name in ("id", *self._labels)}
            writer.add_schema({**schema, "data": {"type": "bytes"}}, description)
            if fields:
                writer.add_index(fields)
            _write_all(writer, self._rows(files))
        return SUCCESS

    def _rows(self, files: Sequence[str]) -> Iterator[dict[str, Any]]:
        number = 0
        for name in files:
            images, *labels = _cifar_pickle(Path(self.source, name), list(self._labels.values()))
            for image, *values in zip(images, *labels):
                row = {"id": number, "data": _jpeg(type(self).__name__, image)}
                yield {**row, **dict(zip(self._labels, map(int, values)))}
                number += 1

    def transform(self, fields: list[str] | None = None) -> None:
        """Write the files; `fields` are index fields, as for `FileWriter.add_index`."""
        self.run(fields)


class Cifar100ToMR(Cifar10ToMR):
    """A converter of the Python version of CIFAR-100.

    `destination` receives the training images, `destination` + "_test" the others. Rows are `id`,
    `fine_label`, `coarse_label`, all int64, and `data`, the image as JPEG; needs Pillow.
    """

    _labels = {"fine_label": b"fine_labels", "coarse_label": b"coarse_labels"}

    def _find(self, files: Sequence[str]) -> list[list[str]]:
        for name in ("train", "test"):
            if name not in files:
                raise PathNotExistsError(f"{os.path.join(self.source, name)} is missing")
        return [["train"], ["test"]]


class MnistToMR:
    """A converter of the four compressed files of MNIST.

    They become `destination` + "_train.mindrecord" and "_test.mindrecord". Rows are `label`, int64,
    and `data`, the image as JPEG; needs Pillow. Raises FileNotFoundError or ValueError for files
    that are missing or damaged.
    """

    def __init__(self, source: str, destination: str, partition_number: int = 1) -> None:
        self.source = check_filename(source)
        check_filename(destination)
        arguments.integer("MnistToMR", "partition_number", partition_number, numpy=False, error=ValueError)
        self.writer_train = FileWriter(f"{destination}_train.mindrecord", partition_number)
        self.writer_test = FileWriter(f"{destination}_test.mindrecord", partition_number)

    def run(self) -> MSRStatus:
        """Write the files and return SUCCESS."""
        for part, writer in (("train", self.writer_train), ("t10k", self.writer_test)):
            _large(writer).add_schema({"label": {"type": "int64"}, "data": {"type": "bytes"}}, "mnist_schema")
            writer.add_index(["label"])
            images = read_idx(Path(self.source, f"{part}-images-idx3-ubyte.gz"))
            labels = read_idx(Path(self.source, f"{part}-labels-idx1-ubyte.gz"))
            if len(images) != len(labels):
                raise ValueError(f"MnistToMR: {len(images)} images but {len(labels)} labels in the {part} files")
            _write_all(
                writer, ({"label": int(n), "data": _jpeg("MnistToMR", image)} for image, n in zip(images, labels))
            )
        return SUCCESS

    def transform(self) -> None:
        """Write the files."""
        self.run()


class ImageNetToMR:
    """A converter of folders of images.

    Rows are `label`, int32, `image`, the file's bytes, and `file_name`, its path. Files that end
    neither in JPEG nor in jpg, or are empty, are left out, with a warning in the log.

    Args:
        map_file (str): A file with a line for each folder in `image_dir`: its name and its label.
        image_dir (str): The folder of the folders.
        destination (str): The record file.
        partition_number (int): The number of shards. Default: 1.

    Raises:
        PathNotExistsError: If no folder exists.
    """

    def __init__(self, map_file: str, image_dir: str, destination: str, partition_number: int = 1) -> None:
        self.map_file = check_filename(map_file)
        self.image_dir = check_filename(image_dir)
        arguments.integer("ImageNetToMR", "partition_number", partition_number, numpy=False, error=ValueError)
        self.writer = FileWriter(destination, partition_number)

    def run(self) -> MSRStatus:
        """Write the files and return SUCCESS."""
        schema: Schema = {"label": {"type": "int32"}, "image": {"type": "bytes"}, "file_name": {"type": "string"}}
        _large(self.writer).add_schema(schema, "imagenet_schema")
        self.writer.add_index(["label", "file_name"])
        _write_all(self.writer, self._rows(), True)
        return SUCCESS

    def _rows(self) -> Iterator[dict[str, Any]]:
        folders = []
        try:
            lines = Path(self.map_file).read_text("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ValueError(f"ImageNetToMR: {self.map_file!r} is not UTF-8: {error}") from error
        for number, line in enumerate(lines):
            words = line.split()
            if len(words) != 2 or not re.fullmatch(r"[+-]?\d+", words[1]):
                raise ValueError(
                    f"ImageNetToMR: line {number + 1} of {self.map_file!r} must be a folder and a label, not {line!r}"
                )
            folder = os.path.join(self.image_dir, words[0])
            if os.path.isdir(folder):
                folders.append((folder, int(words[1])))
            else:
                log.warning("ImageNetToMR: there is no folder %s", folder)
        if not folders:
            raise PathNotExistsError(f"none of the folders of {self.map_file!r} is in {self.image_dir!r}")
        for folder, label in folders:
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                content = Path(path).read_bytes() if name.endswith(("JPEG", "jpg")) else b""
                if content:
                    yield {"file_name": path, "label": label, "image": content}
                else:
                    log.warning("ImageNetToMR: %s is left out: it is empty or does not end in JPEG or jpg", path)

    def transform(self) -> None:
        """Write the files."""
        self.run()


class CsvToMR:
    """A converter of a CSV file whose first line names the columns.

    A column of integers is int64, one of numbers or empty places float64 (NaN), one of True and
    False int32, any other string.

    Args:
        source (str): The CSV file.
        destination (str): The record file.
        columns_list (list[str] | None): The columns that become fields and index fields; None for
            all. Default: None.
        partition_number (int): The number of shards. Default: 1.

    Raises:
        ValueError: For columns whose names are numbers.
        RuntimeError: For columns that do not exist.

    Examples:
        >>> import os, tempfile
        >>> from mycel.mindrecord import CsvToMR, FileReader
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table, name = os.path.join(folder, "a.csv"), os.path.join(folder, "a.mindrecord")
        ...     with open(table, "w") as handle:
        ...         _ = handle.write("n,name\\n1,one\\n")
        ...     CsvToMR(table, name).transform()
        ...     list(FileReader(name).get_next())
        [{'n': 1, 'name': 'one'}]
    """

    def __init__(
        self, source: str, destination: str, columns_list: list[str] | None = None, partition_number: int = 1
    ) -> None:
        arguments.text("CsvToMR", "source", source, error=ValueError)
        arguments.text("CsvToMR", "destination", destination, error=ValueError)
        self.source = check_filename(source)
        if columns_list and (
            not isinstance(columns_list, list) or any(not isinstance(name, str) for name in columns_list)
        ):
            raise arguments.wrong_value("CsvToMR", "columns_list", "a list of strings", columns_list)
        self.columns_list = columns_list
        arguments.integer("CsvToMR", "partition_number", partition_number, numpy=False, error=ValueError)
        self.writer = FileWriter(destination, partition_number)

    def run(self) -> MSRStatus:
        """Write the files and return SUCCESS."""
        if not os.path.exists(self.source):
            raise OSError(f"CsvToMR: there is no file {self.source!r}")
        with open(self.source, newline="", encoding="utf-8") as handle:
            try:
                head, *lines = [line for line in csv.reader(handle, strict=True) if line]
            except (ValueError, csv.Error) as error:
                raise ValueError(f"CsvToMR: {self.source!r} is no CSV file with a line of names: {error}") from error
        wanted = self.columns_list or head
        missing = [name for name in wanted if name not in head]
        if missing:
            raise RuntimeError(f"CsvToMR: {self.source!r} has no column {', '.join(missing)}; its columns are {head}")
        for number, line in enumerate(lines):
            if len(line) != len(head):
                raise ValueError(
                    f"CsvToMR: row {number} of {self.source!r} has {len(line)} values, but there are {len(head)} "
                    "columns"
                )
        digits = [name for name in wanted if name.isdigit()]
        if digits:
            raise ValueError(
                f"CsvToMR: the first line of {self.source!r} names the columns, and {digits[0]!r} is a number"
            )
        columns = {name: _typed([line[head.index(name)] for line in lines]) for name in wanted}
        schema: Schema = {name: {"type": kind} for name, (kind, _) in columns.items()}
        _large(self.writer).add_schema(schema, "csv_schema")
        self.writer.add_index(list(wanted))
        _write_all(self.writer, (dict(zip(columns, row)) for row in zip(*(values for _, values in columns.values()))))
        return SUCCESS

    def transform(self) -> None:
        """Write the files."""
        self.run()


_INTEGER = re.compile(r"[+-]?\d{1,18}")
_MISSING = ("", "NA", "NaN", "nan", "null", "None", "N/A")


def _typed(texts: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the type of a column and its values."""
    stripped = [text.strip() for text in texts]
    if all(_INTEGER.fullmatch(text) for text in stripped):
        return "int64", [int(text) for text in stripped]
    if all(text in ("True", "False") for text in stripped):
        return "int32", [int(text == "True") for text in stripped]
    try:
        return "float64", [float("nan") if text in _MISSING else float(text) for text in stripped]
    except ValueError:
        return "string", list(texts)


class TFRecordToMR:
    """A converter of a TFRecord file of `Example` messages.

    Letters that a field's name may not have become _.

    Args:
        source (str): The file to read.
        destination (str): The record file.
        feature_dict (dict[str, Any]): For each feature an object that has its `shape`, [] or [n],
            and its `dtype`, TensorFlow's or its name, such as TensorFlow's `FixedLenFeature`.
        bytes_fields (list[str] | None): The features of type string that are bytes; the others are
            text. Default: None.

    Raises:
        ValueError: For features that do not fit.
    """

    _TYPES = {
        "string": "string",
        "bool": "int32",
        "int8": "int32",
        "int16": "int32",
        "int32": "int32",
        "uint8": "int32",
        "uint16": "int32",
        "int64": "int64",
        "uint32": "int64",
        "uint64": "int64",
        "float16": "float32",
        "float32": "float32",
        "float64": "float64",
        "double": "float64",
    }

    def __init__(
        self, source: str, destination: str, feature_dict: dict[str, Any], bytes_fields: list[str] | None = None
    ) -> None:
        for name, path in (("source", source), ("destination", destination)):
            check_filename(arguments.text("TFRecordToMR", name, path, error=ValueError))
        if not isinstance(feature_dict, dict) or not feature_dict:
            raise arguments.wrong_value("TFRecordToMR", "feature_dict", "a dict that is not empty", feature_dict)
        if bytes_fields is not None and not isinstance(bytes_fields, list):
            raise arguments.wrong_type("TFRecordToMR", "bytes_fields", "a list of strings", bytes_fields, ValueError)
        self.source, self.destination, self.feature_dict = source, destination, feature_dict
        self._fields: dict[str, str] = {}
        self.mindrecord_schema: Schema = {}
        for key, feature in feature_dict.items():
            name = re.sub(r"[^0-9a-zA-Z_]", "_", key)
            self._fields[key] = name
            self.mindrecord_schema[name] = self._field(key, feature, key in (bytes_fields or ()))
        for key in bytes_fields or ():
            if key not in feature_dict or self._kind(key, feature_dict[key]) != "string":
                raise ValueError(f"TFRecordToMR: bytes_fields has {key!r}, which is no feature of type string")

    def _kind(self, key: str, feature: Any) -> str:
        try:
            dtype = feature.dtype
            name = getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype)
            return self._TYPES[name]
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"TFRecordToMR: feature {key!r} must have a shape and a dtype, one of {', '.join(self._TYPES)}, not "
                f"{feature!r}"
            ) from error

    def _field(self, key: str, feature: Any, as_bytes: bool) -> dict[str, Any]:
        kind = self._kind(key, feature)
        shape = list(feature.shape)
        if not shape:
            return {"type": "bytes" if as_bytes else kind}
        if len(shape) != 1 or not isinstance(shape[0], int) or shape[0] < 1 or kind == "string":
            raise ValueError(
                f"TFRecordToMR: feature {key!r} of type {kind} has shape {shape}; only numbers can have one, [n]"
            )
        return {"type": kind, "shape": shape}

    def run(self) -> MSRStatus:
        """Write the file and return SUCCESS."""
        writer = FileWriter(self.destination)
        writer.add_schema(self.mindrecord_schema, "TFRecord to MindRecord")
        _write_all(writer, (self._row(content, n) for n, content in enumerate(read_records(self.source))))
        return SUCCESS

    def _row(self, content: bytes, number: int) -> dict[str, Any]:
        try:
            example = parse_example(content)
        except ValueError as error:
            raise ValueError(f"TFRecordToMR: record {number} of {self.source!r}: {error}") from error
        row: dict[str, Any] = {}
        for key, name in self._fields.items():
            field = self.mindrecord_schema[name]
            shape = field.get("shape", [])
            values = example.get(key, [])
            text = field["type"] in ("string", "bytes")
            if len(values) != (shape[0] if shape else 1) or isinstance(values, list) != text:
                raise ValueError(
                    f"TFRecordToMR: record {number} of {self.source!r} has {len(values)} values for feature "
                    f"{key!r}, not {field}"
                )
            if isinstance(values, list):
                row[name] = values[0] if field["type"] == "bytes" else self._text(values[0], number)
            elif shape:
                row[name] = values.astype(field["type"])
            else:
                row[name] = values[0].item()
        return row

    def _text(self, content: bytes, number: int) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"TFRecordToMR: record {number} of {self.source!r} has text that is not UTF-8") from error

    def transform(self) -> None:
        """Write the file."""
        self.run()
