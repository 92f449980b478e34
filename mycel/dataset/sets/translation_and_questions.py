"""Well-known datasets of text in JSON, and of sentences with their translations."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.damaged_files import read_json, read_xml
from mycel.dataset.readers.file_order import check_files, find_files
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_folder, read_lines
from mycel.dataset.sets.text_set_base import Cells, TextRows, TextSet, checked_cell

_NO_ANSWER = 2**32 - 1
# Columns of the tasks of CLUE: where there are labels, and in the part without any.
_PAIR = (("label", "sentence1", "sentence2"), ("id", "sentence1", "sentence2"))
_SPANS = ("span1_index", "span1_text", "span2_index", "span2_text")
_CLUE = {
    "AFQMC": _PAIR,
    "CMNLI": _PAIR,
    "TNEWS": (("keywords", "label", "label_desc", "sentence"), ("id", "keywords", "sentence")),
    "IFLYTEK": (("label", "label_des", "sentence"), ("id", "sentence")),
    "WSC": (("idx", "label", *_SPANS, "text"), ("idx", *_SPANS, "text")),
    "CSL": (("abst", "id", "keyword", "label"), ("abst", "id", "keyword")),
}


class CLUEDataset(TextRows):
    """Tasks of CLUE, the Chinese benchmark (Xu et al., 2020).

    The files have a JSON object in each line. Columns are those of the task: text, or uint32 where
    the files have integers.

    Args:
        dataset_files (str | Sequence[str]): Names and patterns of files.
        task (str): "AFQMC", "TNEWS", "IFLYTEK", "CMNLI", "WSC" or "CSL". Default: "AFQMC".
        usage (str): "train", "test" (which has no labels) or "eval". Default: "train".
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: For lines without the columns.
    """

    def __init__(
        self,
        dataset_files: str | Sequence[str],
        task: str = "AFQMC",
        usage: str = "train",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        for name, value, known in (("task", task, tuple(_CLUE)), ("usage", usage, ("train", "test", "eval"))):
            arguments.one_of("CLUEDataset", name, value, known)
        check_files("CLUEDataset", shuffle, num_samples, num_shards, shard_id)
        self.dataset_files = find_files("CLUEDataset", dataset_files)
        self.task, self.usage = task, usage
        self._names = _CLUE[task][usage == "test"]
        self._take(lambda: map(self._rows, self.dataset_files), shuffle, num_samples, num_shards, shard_id)

    def _rows(self, path: str) -> list[Cells]:
        rows = []
        for number, line in enumerate(read_lines("CLUEDataset", path)):
            if line.strip():
                try:
                    found = json.loads(line)
                    found = {**found, **found.get("target", {})}
                    rows.append(tuple(checked_cell(found[name]) for name in self._names))
                except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
                    raise ValueError(
                        f"CLUEDataset: line {number} of {path!r} has not the columns {list(self._names)}: {error!r}"
                    ) from error
        return rows


class SQuADDataset(TextSet):
    """SQuAD 1.1 and 2.0 (Rajpurkar et al., 2016).

    Columns are `context` and `question`, text, `text`, text [answers], and `answer_start`, uint32
    [answers]. A question without an answer has an empty one that starts at 4294967295.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "dev" or "all" (the default), of the files `train-v*.json` and
            `dev-v*.json`. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("context", "question", "text", "answer_start")
    _files: ClassVar[dict[str, str]] = {part: f"{part}-v*.json" for part in ("train", "dev")}

    def _rows(self, path: str) -> list[Cells]:
        rows: list[Cells] = []
        for name in find_files("SQuADDataset", path):
            with reading("SQuADDataset", name):
                found = read_json("SQuADDataset", name)
                for article in found["data"]:
                    for paragraph in article["paragraphs"]:
                        for asked in paragraph["qas"]:
                            answers = asked["answers"] or [{"text": "", "answer_start": _NO_ANSWER}]
                            texts = [answer["text"] for answer in answers]
                            starts = [answer["answer_start"] for answer in answers]
                            cells = (paragraph["context"], asked["question"], texts, starts)
                            rows.append(tuple(map(checked_cell, cells)))
        return rows


class _Translated(TextRows):
    """The base class of sentences and translations, in two files with equally many sentences."""

    _names = ("text", "translation")
    _pairs: ClassVar[frozenset[tuple[str, str]]] = frozenset()

    def _languages(self, given: Any, default: tuple[str, str]) -> tuple[str, str]:
        if given is None:
            return default
        pair = tuple(given) if isinstance(given, (list, tuple)) else given
        if pair not in self._pairs:
            known = ", ".join(map(str, sorted(self._pairs)))
            raise ValueError(f"{type(self).__name__}: language_pair must be one of {known}, not {given!r}")
        return pair

    def _use(self, usage: str | None) -> tuple[str, ...]:
        parts = ("train", "valid", "test")
        if usage not in (None, "all", *parts):
            raise ValueError(
                f"{type(self).__name__}: usage must be one of 'train', 'valid', 'test', 'all', not {usage!r}"
            )
        self.usage = usage or "all"
        return parts if self.usage == "all" else (self.usage,)

    def _aligned(self, first: list[str], second: list[str], place: str) -> list[Cells]:
        if len(first) != len(second):
            raise ValueError(
                f"{type(self).__name__}: {len(first)} sentences but {len(second)} translations in {place!r}"
            )
        return list(zip(first, second))


class Multi30kDataset(_Translated):
    """Multi30k (Elliott et al., 2016), English and German captions.

    Columns are `text` and `translation`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "valid" or "all" (the default), of the files
            `training/train`, `mmt16_task1_test/test` and `validation/val` with the endings `.de`
            and `.en`. Default: None.
        language_pair (Sequence[str] | None): ("en", "de") or ("de", "en"). Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _pairs: ClassVar[frozenset[tuple[str, str]]] = frozenset({("en", "de"), ("de", "en")})
    _places: ClassVar[dict[str, str]] = {
        "train": "training/train",
        "valid": "validation/val",
        "test": "mmt16_task1_test/test",
    }

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        language_pair: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.dataset_dir = check_folder("Multi30kDataset", dataset_dir)
        self.language_pair = self._languages(language_pair, ("en", "de"))
        places = [os.path.join(self.dataset_dir, self._places[part]) for part in self._use(usage)]
        self._take(lambda: map(self._rows, places), shuffle, num_samples, num_shards, shard_id)

    def _rows(self, place: str) -> list[Cells]:
        first, second = (read_lines("Multi30kDataset", f"{place}.{language}") for language in self.language_pair)
        return [row for row in self._aligned(first, second, place) if any(row)]


class _Iwslt(_Translated):
    """The base class of IWSLT's talks.

    Training sentences lie between lines of tags, others in XML.
    """

    _year = ""

    def _files(self, folder: str, use: Sequence[str], valid: str, test: str) -> Iterator[list[Cells]]:
        source, target = self.language_pair
        for part in use:
            if part == "train":
                ends = [f"train.tags.{source}-{target}.{language}" for language in (source, target)]
                first, second = (self._lines(os.path.join(folder, name)) for name in ends)
            else:
                start = f"{self._year}.TED.{valid if part == 'valid' else test}.{source}-{target}"
                first, second = (
                    self._segments(os.path.join(folder, f"{start}.{language}.xml")) for language in (source, target)
                )
            yield self._aligned(first, second, f"{folder} ({part})")

    language_pair: tuple[str, str]

    def _lines(self, path: str) -> list[str]:
        lines = [line.strip() for line in read_lines(type(self).__name__, path)]
        return [line for line in lines if not line.startswith("<")]

    def _segments(self, path: str) -> list[str]:
        return [(segment.text or "").strip() for segment in read_xml(type(self).__name__, path).iter("seg")]


_TALKS = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014")


class IWSLT2016Dataset(_Iwslt):
    """The talks of IWSLT 2016 (Cettolo et al., 2016): columns `text` and `translation`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "valid", "test" or "all" (the default). Default: None.
        language_pair (Sequence[str] | None): English with "ar", "cs", "de" or "fr", in either
            direction, ("de", "en") by default, in the folder `texts/de/en/de-en`. Default: None.
        valid_set (str | None): The name of the talks of "valid". Default: None.
        test_set (str | None): The name of the talks of "test". Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _year = "IWSLT16"
    _pairs: ClassVar[frozenset[tuple[str, str]]] = frozenset(
        pair for other in ("ar", "cs", "de", "fr") for pair in (("en", other), (other, "en"))
    )

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        language_pair: Sequence[str] | None = None,
        valid_set: str | None = None,
        test_set: str | None = None,
        num_samples: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        num_parallel_workers: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.dataset_dir = check_folder("IWSLT2016Dataset", dataset_dir)
        for name, value in (("valid_set", valid_set), ("test_set", test_set)):
            if value is not None:
                arguments.one_of("IWSLT2016Dataset", name, value, _TALKS)
        self.language_pair = self._languages(language_pair, ("de", "en"))
        source, target = self.language_pair
        folder = os.path.join(self.dataset_dir, "texts", source, target, f"{source}-{target}")
        used = self._use(usage)
        sets = valid_set or "tst2013", test_set or "tst2014"
        self._take(lambda: self._files(folder, used, *sets), shuffle, num_samples, num_shards, shard_id)


class IWSLT2017Dataset(_Iwslt):
    """The talks of IWSLT 2017 (Cettolo et al., 2017): columns `text` and `translation`.

    The files are in `DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo`, which may be in `texts`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "valid" (the talks dev2010), "test" (tst2010) or "all" (the
            default). Default: None.
        language_pair (Sequence[str] | None): Two of "de", "en", "it", "nl" and "ro", ("de", "en")
            by default. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _year = "IWSLT17"
    _pairs: ClassVar[frozenset[tuple[str, str]]] = frozenset(
        (first, second)
        for first in ("de", "en", "it", "nl", "ro")
        for second in ("de", "en", "it", "nl", "ro")
        if first != second
    )

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        language_pair: Sequence[str] | None = None,
        num_samples: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        num_parallel_workers: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.dataset_dir = check_folder("IWSLT2017Dataset", dataset_dir)
        self.language_pair = self._languages(language_pair, ("de", "en"))
        inner = Path("DeEnItNlRo", "DeEnItNlRo", "DeEnItNlRo-DeEnItNlRo")
        folder = Path(self.dataset_dir, "texts", inner)
        if not folder.is_dir():
            folder = Path(self.dataset_dir, inner)
        used = self._use(usage)
        self._take(
            lambda: self._files(os.fspath(folder), used, "dev2010", "tst2010"),
            shuffle,
            num_samples,
            num_shards,
            shard_id,
        )
