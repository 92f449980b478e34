"""Well-known datasets of speech and music.

A row starts with `waveform`, float32 [channels, samples], and `sample_rate`. WAVE files hold
integers of 8, 16, 24 or 32 bits, which are divided by the largest of their type, as in MindSpore:
the smallest becomes a little less than -1. SPHERE files hold integers of 16 bits. MindSpore reads
only WAVE files of one channel and 16 bits, and gives zeros for SPHERE files.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.basic_sources.modality_bases import AudioBaseDataset
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.rows.column_blocks import Array, Block, Row
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.sets.folder_checks import check_folder, check_usage, read_lines


def read_wav(operation: str, path: str) -> tuple[Array, int]:
    """Read the samples of a WAVE file, float32 [channels, samples], and their rate.

    `operation` is named in messages. Raises ValueError for files of another format.
    """
    import wave

    try:
        with wave.open(path, "rb") as handle:
            width, channels, rate = handle.getsampwidth(), handle.getnchannels(), handle.getframerate()
            # No more than there can be: reading what a file claims takes the memory for it first.
            most = os.path.getsize(path) // max(1, width * channels)
            content = handle.readframes(min(handle.getnframes(), most))
    except (OSError, EOFError, RuntimeError, ValueError, struct.error, wave.Error) as error:
        # The module tells of some damage by a RuntimeError without words.
        words = str(error) or "a part of it ends beyond the file"
        raise ValueError(f"{operation}: {path!r} is no WAVE file of integers: {words}") from error
    if width > 4:
        raise ValueError(f"{operation}: {path!r} has samples of {width} bytes; 1 to 4 are supported")
    # A file that is cut off ends within a frame.
    content = content[: len(content) // (width * channels) * width * channels]
    if width == 1:
        values = np.frombuffer(content, np.uint8).astype(np.float64) - 128
    elif width == 3:
        padded = np.zeros((len(content) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        values = (padded.view("<i4")[:, 0] >> 8).astype(np.float64)
    else:
        values = np.frombuffer(content, f"<i{width}").astype(np.float64)
    scaled = (values / (2.0 ** (8 * width - 1) - 1)).astype(np.float32)
    return np.ascontiguousarray(scaled.reshape(-1, channels).T), rate


def read_sphere(operation: str, path: str, start: float, end: float) -> tuple[Array, int]:
    """Read samples of the NIST SPHERE file `path`, float32 [channels, samples], and their rate.

    `operation` is named in messages; `start` and `end` are in seconds.
    """
    with reading(operation, path), open(path, "rb") as handle:
        head = handle.read(16).split()
        if len(head) < 2 or head[0] != b"NIST_1A":
            raise ValueError(f"{operation}: {path!r} is no SPHERE file")
        length = os.fstat(handle.fileno()).st_size
        size = int(head[1])
        if not 16 <= size <= length:
            raise ValueError(f"a header of {size} bytes")
        handle.seek(0)
        lines = [line.split(None, 2) for line in handle.read(size).decode("ascii", "replace").splitlines()[2:]]
        fields = {line[0]: line[2].strip() for line in lines if len(line) == 3}
        channels, rate = int(fields.get("channel_count", 1)), int(fields.get("sample_rate", 16000))
        width, coding = int(fields.get("sample_n_bytes", 2)), fields.get("sample_coding", "pcm")
        if width != 2 or coding != "pcm":
            raise ValueError(f"{operation}: {path!r} has {coding} samples of {width} bytes; pcm of 2 is supported")
        if not 0 < channels <= 65535 or not 0 < rate <= 2**31:
            raise ValueError(f"{channels} channels and {rate} samples a second")
        frames = (length - size) // (2 * channels)
        first, last = (min(max(round(time * rate), 0), frames) for time in (start, end))
        handle.seek(size + 2 * channels * first)
        content = handle.read(2 * channels * max(0, last - first))
    order = ">i2" if fields.get("sample_byte_format", "10") == "10" else "<i2"
    values = np.frombuffer(content[: len(content) // (2 * channels) * 2 * channels], order).astype(np.float64) / 32767
    return np.ascontiguousarray(values.astype(np.float32).reshape(-1, channels).T), rate


class AudioSet(MappableDataset, AudioBaseDataset):
    """The base class of audio datasets.

    `_entries` are the path of a file and the values that follow the waveform and its rate.
    `dataset_dir` is the folder of the files; `num_samples`, `num_parallel_workers`, `shuffle`,
    `sampler`, `num_shards`, `shard_id` and `cache` are those of `MappableDataset`.
    """

    _names: Sequence[str] = ()
    _rate: Any = np.uint32
    _entries: list[tuple[Any, ...]]

    _uses_workers = True
    _reads_files = True

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.dataset_dir = check_folder(type(self).__name__, dataset_dir)
        with reading(type(self).__name__, self.dataset_dir):
            self._entries = self._list(self.dataset_dir)
        if not self._entries:
            raise ValueError(f"{type(self).__name__}: {self.dataset_dir!r} has no files of those that are asked for")

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError(f"{type(self).__name__} must define _list")

    def _columns(self) -> list[str]:
        return ["waveform", "sample_rate", *self._names]

    def _total(self) -> int:
        return len(self._entries)

    def _sound(self, place: Any) -> tuple[Array, int]:
        return read_wav(type(self).__name__, place)

    def _gather(self, indices: Indices) -> Block:
        rows: list[Row] = []
        for index in indices:
            place, *values = self._entries[int(index)]
            waveform, rate = self._sound(place)
            if rate > np.iinfo(self._rate).max:
                raise ValueError(f"{type(self).__name__}: {place!r} has an impossible rate of {rate} samples a second")
            rows.append((waveform, np.array(rate, self._rate), *(np.array(value) for value in values)))
        return Block.from_rows(rows)


class AudioUsageSet(AudioSet):
    """The base class of audio datasets with several parts, of which `usage` chooses one.

    `dataset_dir`, `num_samples`, `num_parallel_workers`, `shuffle`, `sampler`, `num_shards`,
    `shard_id` and `cache` are those of `AudioSet`.
    """

    _usages: tuple[str, ...] = ("train", "test", "valid", "all")

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
        self.usage = check_usage(type(self).__name__, usage, self._usages)
        super().__init__(dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)


def _wavs(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".wav"))


class YesNoDataset(AudioSet):
    """YesNo (OpenSLR 1), whose files are named by what is said in them.

    Further columns: `label`, int32 [words], 1 for yes. `sample_rate` is int32.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
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

    _names = ("label",)
    _rate = np.int32

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        names = _wavs(folder)
        return [(os.path.join(folder, name), np.array(name[:-4].split("_"), np.int32)) for name in names]


class LJSpeechDataset(AudioSet):
    """LJ Speech (Ito and Johnson, 2017), in the order of `metadata.csv`.

    Further columns: `transcription` and `normalized_transcription`, text. `sample_rate` is int32.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
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

    _names = ("transcription", "normalized_transcription")
    _rate = np.int32

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        rows = []
        for line in read_lines("LJSpeechDataset", Path(folder, "metadata.csv")):
            if line:
                values = line.split("|")
                if len(values) != 3:
                    raise ValueError(
                        f"LJSpeechDataset: each line of metadata.csv must be a name and two texts, not {line!r}"
                    )
                rows.append((os.path.join(folder, "wavs", f"{values[0]}.wav"), *values[1:]))
        return rows


class CMUArcticDataset(AudioSet):
    """CMU Arctic (Kominek and Black, 2004), in the order of `etc/txt.done.data`.

    Further columns: `transcript` and `utterance_id`, text. `sample_rate` is uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        name (str | None): The speaker, "aew" by default, of the folder `cmu_us_aew_arctic`.
            Default: None.
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

    _names = ("transcript", "utterance_id")
    _speakers = tuple("aew ahw aup awb axb bdl clb eey fem gka jmk ksp ljm lnh rms rxr slp slt".split())

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        name: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        self.name = name or "aew"
        if self.name not in self._speakers:
            raise ValueError(f"CMUArcticDataset: name must be one of {', '.join(self._speakers)}, not {name!r}")
        super().__init__(dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        start = os.path.join(folder, f"cmu_us_{self.name}_arctic")
        rows = []
        for line in read_lines("CMUArcticDataset", Path(start, "etc", "txt.done.data")):
            if line.strip():
                head, _, rest = line.partition('"')
                name, text = head.strip("( "), rest.rpartition('"')[0]
                if not name or '"' not in rest:
                    raise ValueError(
                        f'CMUArcticDataset: each line of txt.done.data must be ( name "text" ), not {line!r}'
                    )
                rows.append((os.path.join(start, "wav", f"{name}.wav"), text, name.rpartition("_")[2]))
        return rows


def _ranges(text: str) -> set[int]:
    parts = [part.partition("-") for part in text.split(",")]
    return {number for low, _, high in parts for number in range(int(low), int(high or low) + 1)}


class GTZANDataset(AudioUsageSet):
    """GTZAN (Tzanetakis and Cook, 2002): ten folders of music.

    Further columns: `label`, text, the genre. `sample_rate` is uint32.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "all" (the default) has every file; "train", "valid" and "test" have the
            443, 197 and 290 files of the split without faulty files and shared artists (Sturm,
            2013), as far as they exist. Default: None.
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

    _names = ("label",)
    _splits: ClassVar[dict[str, dict[str, str]]] = {
        "train": {
            "blues": "29-49,73-97",
            "classical": "30-33,43-48,50-67,80-99",
            "country": "19-26,28-29,65-99",
            "disco": "5,15-20,22-37,39-45,47,49,53-54,56-57,59,61,70,73-74,89",
            "hiphop": "2-25,28-29,31-38,41-42,55-61,77-80",
            "jazz": "0-1,11-24,41,47-72",
            "metal": "2-3,5,21,24,35,46-57,59-66,69,71-72,79-80,84,86,89-99",
            "pop": "2-9,11-12,16-20,23-29,31-36,38-42,44,46,49-50,80,97-99",
            "reggae": "0-2,4,6,9,11-12,14-32,42-45,49-51,54-60,63,69",
            "rock": "0-9,16-26,57-70,91-99",
        },
        "valid": {
            "blues": "0-11,50-60",
            "classical": "0-10,68-76",
            "country": "0-7,9-18,27,41-42,45,49",
            "disco": "0,2-4,6-14,46,48,52,67-68,72,75,90,95",
            "hiphop": "81-98",
            "jazz": "2-10,25-32",
            "metal": "0-1,6-11,16-20,36-37,68,76-77,81-82",
            "pop": "10,53,55,58-62,81,83-86",
            "reggae": "61-62,70,72,74,76-78,85,92-99",
            "rock": "38,49-56,71-85",
        },
        "test": {
            "blues": "12-28,61-72,98-99",
            "classical": "11-29,34-41,49,77-79",
            "country": "30-40,43-44,46-48,50-51,53-64",
            "disco": "1,21,58,62-66,69,76-88,91-94,96-97,99",
            "hiphop": "0,26-27,30,40,43-45,51-54,62-75,99",
            "jazz": "73-99",
            "metal": "12-15,22-23,25-33,38-39,67,70,73-75,78,83,85,87-88",
            "pop": "0-1,13-14,43,63-66,69-79,82,88-96",
            "reggae": "34-40,46-48,52-53,64-68,71,79,82-84,87-90",
            "rock": "10-15,27-37,39-48,86-90",
        },
    }

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        rows = []
        for kind in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()):
            names = _wavs(os.path.join(folder, kind))
            if self.usage != "all":
                chosen = _ranges(self._splits[self.usage][kind]) if kind in self._splits[self.usage] else set()
                wanted = {f"{kind}.{number:05d}.wav" for number in chosen}
                names = [name for name in names if name in wanted]
            rows += [(os.path.join(folder, kind, name), kind) for name in names]
        return rows


class SpeechCommandsDataset(AudioUsageSet):
    """Speech Commands (Warden, 2018): a folder for each word.

    Further columns: `label` and `speaker_id`, text, and `utterance_number`, int32. `sample_rate` is
    int32. Folders whose names start with "_" hold noise and are left out.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "test" and "valid" are the files of `testing_list.txt` and
            `validation_list.txt`, "train" all others, "all" (the default) all. Default: None.
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

    _names = ("label", "speaker_id", "utterance_number")
    _rate = np.int32

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        kind = "SpeechCommandsDataset"
        words = sorted(e.name for e in os.scandir(folder) if e.is_dir() and not e.name.startswith("_"))
        names = [f"{word}/{name}" for word in words for name in _wavs(os.path.join(folder, word))]
        if self.usage != "all":
            lists = {
                part: {line.strip() for line in read_lines(kind, Path(folder, f"{name}_list.txt"))}
                for part, name in (("test", "testing"), ("valid", "validation"))
            }
            if self.usage == "train":
                names = [name for name in names if name not in lists["test"] | lists["valid"]]
            else:
                names = [name for name in names if name in lists[self.usage]]
        rows = []
        for name in names:
            word, _, file = name.partition("/")
            speaker, _, number = file[:-4].partition("_nohash_")
            if not number.isdigit():
                raise ValueError(f"{kind}: {name!r} is not named <speaker>_nohash_<number>.wav")
            rows.append((os.path.join(folder, name), word, speaker, np.array(int(number), np.int32)))
        return rows


class LibriTTSDataset(AudioUsageSet):
    """LibriTTS (Zen et al., 2019), in the order of the files `*.trans.tsv`.

    Further columns: `original_text` and `normalized_text`, text, `speaker_id` and `chapter_id`,
    uint32, and `utterance_id`, text. `sample_rate` is uint32.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): The name of a part, or "all" (the default) for those that exist.
            Default: None.
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

    _names = ("original_text", "normalized_text", "speaker_id", "chapter_id", "utterance_id")
    _parts = (
        "dev-clean",
        "dev-other",
        "test-clean",
        "test-other",
        "train-clean-100",
        "train-clean-360",
        "train-other-500",
    )
    _usages = (*_parts, "all")

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for part in self._parts if self.usage == "all" else (self.usage,):
            for path in sorted(Path(folder, part).glob("*/*/*.trans.tsv")):
                for line in read_lines("LibriTTSDataset", path):
                    if line:
                        name, *texts = line.split("\t")
                        if len(texts) != 2:
                            raise ValueError(
                                f"LibriTTSDataset: each line of {path} must be a name and two texts, not {line!r}"
                            )
                        speaker, chapter = (np.array(int(n), np.uint32) for n in name.split("_")[:2])
                        rows.append((os.fspath(path.parent / f"{name}.wav"), *texts, speaker, chapter, name))
        return rows


class TedliumDataset(AudioSet):
    """TED-LIUM (Rousseau, Deléglise and Estève, 2012).

    Further columns: `transcript`, `talk_id`, `speaker_id` and `identifier`, text. Each line of the
    files `stm/*.stm` gives a row, with that part of `sph/*.sph`. `sample_rate` is int32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        release (str): "release1", "release2" or "release3".
        usage (str | None): "train", "test", "dev" or "all" (the default); "release3" only has
            "all", in the folder `data`. Default: None.
        extensions (str | None): The ending of the sound files' names; only ".sph" is supported.
            Default: None.
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

    _names = ("transcript", "talk_id", "speaker_id", "identifier")
    _rate = np.int32

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        release: str,
        usage: str | None = None,
        extensions: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        arguments.choice("TedliumDataset", "release", release, ("release1", "release2", "release3"))
        if extensions not in (None, ".sph"):
            raise ValueError(f"TedliumDataset: extensions must be '.sph', not {extensions!r}")
        self.release = release
        parts = () if release == "release3" else ("train", "test", "dev")
        self.usage = check_usage("TedliumDataset", usage, (*parts, "all"))
        super().__init__(dataset_dir, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache)

    def _sound(self, place: tuple[str, float, float]) -> tuple[Array, int]:
        return read_sphere("TedliumDataset", *place)

    def _list(self, folder: str) -> list[tuple[Any, ...]]:
        parts = ("data",) if self.release == "release3" else ("dev", "test", "train")
        rows: list[tuple[Any, ...]] = []
        for part in parts if self.usage == "all" else (self.usage,):
            for path in sorted(Path(folder, part, "stm").glob("*.stm")):
                sound = os.fspath(path.parent.parent / "sph" / f"{path.stem}.sph")
                for line in read_lines("TedliumDataset", path):
                    if line.strip():
                        words = line.split(None, 6)
                        if len(words) < 6:
                            raise ValueError(
                                f"TedliumDataset: each line of {path} must be six words and a text, not {line!r}"
                            )
                        talk, _, speaker, start, end, identifier = words[:6]
                        text = words[6].strip() if len(words) > 6 else ""
                        rows.append(((sound, float(start), float(end)), text, talk, speaker, identifier))
        return rows
