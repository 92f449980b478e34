"""Well-known datasets of text, read from the files that they are published as.

`text_set_base.py` explains how they are read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array, Block
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.sets.folder_checks import check_folder, read_lines
from mycel.dataset.sets.text_set_base import Cells, TextRows, TextSet, TextSetWorkersLast, read_tagged


class AGNewsDataset(TextSet):
    """AG News (Zhang, Zhao and LeCun, 2015), `train.csv` and `test.csv`.

    Columns are `index`, `title` and `description`, all text.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all"; None for "all". Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: Shuffle.GLOBAL.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: For missing files, and for rows with another number of values.

    Examples:
        >>> import tempfile, os
        >>> import mycel.dataset as ds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with open(os.path.join(folder, "test.csv"), "w") as handle:
        ...         _ = handle.write('"3","Title","What happened, in short"\\n')
        ...     data = ds.AGNewsDataset(folder, "test", shuffle=False)
        ...     rows = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        ...     [[str(value) for value in row] for row in rows]
        [['3', 'Title', 'What happened, in short']]
    """

    _names = ("index", "title", "description")


class AmazonReviewDataset(TextSet):
    """Amazon Review, Polarity or Full; `AGNewsDataset` explains the parameters.

    Columns are `label`, `title` and `content`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _names = ("label", "title", "content")


class DBpediaDataset(TextSet):
    """DBpedia; `AGNewsDataset` explains the parameters.

    Columns are `class`, `title` and `content`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _names = ("class", "title", "content")


class YahooAnswersDataset(TextSet):
    """Yahoo Answers; `AGNewsDataset` explains the parameters.

    Columns are `class`, `title`, `content` and `answer`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _names = ("class", "title", "content", "answer")


class SogouNewsDataset(TextSetWorkersLast):
    """Sogou News; `AGNewsDataset` explains the parameters.

    Columns are `index`, `title` and `content`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _names = ("index", "title", "content")


class YelpReviewDataset(TextSetWorkersLast):
    """Yelp Review, Polarity or Full; `AGNewsDataset` explains the parameters.

    Columns are `label` and `text`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _names = ("label", "text")


class CoNLL2000Dataset(TextSetWorkersLast):
    """The chunking task of CoNLL-2000.

    Columns are `word`, `pos_tag` and `chunk_tag`, text [words of the sentence].

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default), of the files `train.txt` and
            `test.txt`. Default: None.
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

    _names = ("word", "pos_tag", "chunk_tag")
    _files: ClassVar[dict[str, str]] = {"train": "train.txt", "test": "test.txt"}

    def _rows(self, path: str) -> list[Cells]:
        return read_tagged("CoNLL2000Dataset", path, " ", 3)


class UDPOSDataset(TextSetWorkersLast):
    """The parts of speech of the English Universal Dependencies.

    Columns are `word`, `universal` and `stanford`, text [words of the sentence].

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "valid" or "all" (the default), of the files
            `en-ud-tag.v2.train.txt`, `.test.txt` and `.dev.txt`. Default: None.
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

    _names = ("word", "universal", "stanford")
    _files: ClassVar[dict[str, str]] = {
        "train": "en-ud-tag.v2.train.txt",
        "test": "en-ud-tag.v2.test.txt",
        "valid": "en-ud-tag.v2.dev.txt",
    }

    def _rows(self, path: str) -> list[Cells]:
        return read_tagged("UDPOSDataset", path, "\t", 3)


class PennTreebankDataset(TextSet):
    """The Penn Treebank as lines of text (Mikolov et al., 2010).

    The column is `text`, without empty lines.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "valid" or "all" (the default), of the files
            `ptb.train.txt`, `ptb.test.txt` and `ptb.valid.txt`. Default: None.
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

    _names = ("text",)
    _files: ClassVar[dict[str, str]] = {part: f"ptb.{part}.txt" for part in ("train", "test", "valid")}

    def _rows(self, path: str) -> list[Cells]:
        return [(line,) for line in read_lines(type(self).__name__, path) if line]


class WikiTextDataset(PennTreebankDataset):
    """WikiText-2 and WikiText-103 (Merity et al., 2016).

    The column is `text`, without empty lines.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "valid" or "all" (the default), of the files
            `wiki.train.tokens`, `wiki.test.tokens` and `wiki.valid.tokens`. Default: None.
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

    _files: ClassVar[dict[str, str]] = {part: f"wiki.{part}.tokens" for part in ("train", "test", "valid")}


class SST2Dataset(TextSet):
    """The Stanford Sentiment Treebank with two classes (Socher et al., 2013).

    Columns are `sentence` and `label`, text; the test part has only `sentence`.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train" (the default), "test" or "dev", of the files `train.tsv`,
            `test.tsv` and `dev.tsv`. Default: None.
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

    _names: Sequence[str] = ("sentence", "label")
    _files: ClassVar[dict[str, str]] = {part: f"{part}.tsv" for part in ("train", "test", "dev")}
    _default = "train"

    def _rows(self, path: str) -> list[Cells]:
        if self.usage == "test":
            self._names = ("sentence",)
        rows = [line.split("\t") for line in read_lines("SST2Dataset", path) if line]
        for number, row in enumerate(rows):
            if len(row) != 2:
                raise ValueError(f"SST2Dataset: row {number} of {path!r} has {len(row)} values instead of 2: {row}")
        return [(row[1],) if self.usage == "test" else tuple(row) for row in rows[1:]]


class EnWik9Dataset(TextRows):
    """The first 10^9 bytes of the English Wikipedia (Mahoney, 2006), the file `enwik9`.

    The column `text` is a line, which may be empty.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: True.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("text",)

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = True,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.dataset_dir = check_folder("EnWik9Dataset", dataset_dir)
        self._take(self._lines, shuffle, num_samples, num_shards, shard_id)

    def _lines(self) -> list[list[Cells]]:
        return [[(line,) for line in read_lines("EnWik9Dataset", Path(self.dataset_dir, "enwik9"))]]


class IMDBDataset(TextRows):
    """The reviews of IMDb (Maas et al., 2011).

    Columns are `text` and `label`, int32, 1 for positive ones.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default: the training reviews first), of
            the folders `train` and `test` with the folders `pos` and `neg` in each. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("text", "label")

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.dataset_dir = check_folder("IMDBDataset", dataset_dir)
        if usage is not None:
            arguments.one_of("IMDBDataset", "usage", usage, ("train", "test", "all"))
        self.usage = usage or "all"
        self._reviews: list[Cells] = [
            (os.path.join(folder, name), label)
            for part in (("train", "test") if self.usage == "all" else (self.usage,))
            for kind, label in (("pos", 1), ("neg", 0))
            for folder in [check_folder("IMDBDataset", os.path.join(self.dataset_dir, part, kind))]
            for name in sorted(os.listdir(folder))
            if name.endswith(".txt")
        ]
        if not self._reviews:
            raise ValueError(f"IMDBDataset: {self.dataset_dir!r} has no reviews for usage={self.usage!r}")

    def _cells(self) -> list[Cells]:
        return self._reviews

    def _labels(self, column: str) -> Array:
        return np.array([label for _, label in self._reviews], np.int32)

    def _gather(self, indices: Indices) -> Block:
        chosen = [self._reviews[int(index)] for index in indices]
        return Block.from_rows(
            [
                (np.array("\n".join(read_lines("IMDBDataset", path))), np.array(label, np.int32))
                for path, label in chosen
            ]
        )
