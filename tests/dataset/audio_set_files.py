"""Small folders in the layouts of well-known sets of speech and music."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.dataset.set_files import Case, write


def samples(seed: int, count: int, channels: int = 1) -> np.ndarray:
    """Samples of 16 bits, with the extremes."""
    values = np.random.default_rng(seed).integers(-32768, 32768, (count, channels)).astype("<i2")
    values.reshape(-1)[:2] = (-32768, 32767)
    return values


def wav(seed: int, count: int = 5, rate: int = 16000, channels: int = 1) -> bytes:
    """A WAVE file of 16-bit samples."""
    data = samples(seed, count, channels).tobytes()
    form = struct.pack("<HHIIHH", 1, channels, rate, 2 * channels * rate, 2 * channels, 16)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sphere(seed: int, count: int, rate: int = 16000) -> bytes:
    """A NIST SPHERE file of 16-bit samples, the first byte of each the higher."""
    lines = [
        "NIST_1A",
        "   1024",
        "channel_count -i 1",
        f"sample_count -i {count}",
        f"sample_rate -i {rate}",
        "sample_n_bytes -i 2",
        "sample_byte_format -s2 10",
        "sample_sig_bits -i 16",
        "sample_coding -s3 pcm",
        "end_head",
        "",
    ]
    return "\n".join(lines).encode().ljust(1024) + samples(seed, count).astype(">i2").tobytes()


def cmu(folder: Path) -> None:
    for number, name in enumerate(("aew", "slt")):
        start = f"cmu_us_{name}_arctic"
        write(
            folder, {f"{start}/wav/arctic_{n}.wav": wav(number + k) for k, n in enumerate(("a0001", "a0002", "b0001"))}
        )
        lines = [
            '( arctic_a0001 "Author of the danger trail, etc." )',
            '( arctic_a0002 "Not at this." )',
            '( arctic_b0001 "x" )',
        ]
        write(folder, {f"{start}/etc/txt.done.data": "\n".join(lines) + "\n"})


def gtzan(folder: Path) -> None:
    for kind in ("rock", "blues"):
        write(folder, {f"{kind}/{kind}.{n:05d}.wav": wav(n + len(kind), rate=22050) for n in (0, 1, 11, 12, 70)})


def libri(folder: Path) -> None:
    for part, speaker in (("dev-clean", 116), ("test-other", 84), ("train-clean-100", 7)):
        start = f"{part}/{speaker}/2880"
        names = [f"{speaker}_2880_{n:06d}_000000" for n in (3, 1)]
        write(folder, {f"{start}/{name}.wav": wav(n, rate=24000) for n, name in enumerate(names)})
        lines = [f"{name}\tOriginal {name[-10]}, {part}.\tNormal {name[-10]}\n" for name in names]
        write(folder, {f"{start}/{speaker}_2880.trans.tsv": "".join(lines)})


def ljspeech(folder: Path) -> None:
    write(folder, {f"wavs/LJ001-000{n}.wav": wav(n, rate=22050) for n in (1, 2)})
    write(folder, {"metadata.csv": "LJ001-0002|Dr. B 2|Doctor B two\nLJ001-0001|A text, 1|A text, one\n"})


def commands(folder: Path) -> None:
    names = ("dog/b43_nohash_0", "dog/a43_nohash_1", "cat/b43_nohash_0", "cat/c43_nohash_2", "cat/d_nohash_0")
    write(folder, {f"{name}.wav": wav(n) for n, name in enumerate(names)})
    write(folder, {"_background_noise_/pink.wav": wav(9)})
    write(
        folder,
        {
            "validation_list.txt": "cat/b43_nohash_0.wav\n",
            "testing_list.txt": "dog/a43_nohash_1.wav\ncat/d_nohash_0.wav\n",
        },
    )


def tedlium(folder: Path) -> None:
    for start in (
        "TEDLIUM_release1/dev",
        "TEDLIUM_release1/test",
        "TEDLIUM_release1/train",
        "TEDLIUM_release-3/data",
        "TEDLIUM_release3/data",
    ):
        for n, name in enumerate(("B_2010", "A_2009")):
            write(folder, {f"{start}/sph/{name}.sph": sphere(n + len(start), 320)})
            lines = [
                f"{name} 1 {name}_speaker 0.00 0.01 <o,f0,male> first {start[-5:]} words\n",
                f"{name} 1 {name} 0.012 0.0155 <o,f0,male> ignore_time_segment\n",
            ]
            write(folder, {f"{start}/stm/{name}.stm": "".join(lines)})


def yes_no(folder: Path) -> None:
    write(folder, {f"{name}.wav": wav(n, rate=8000) for n, name in enumerate(("1_0_0_0_1_1_0_0", "0_1_0_1_0_1_1_0"))})


def audio_cases() -> dict[str, Case]:
    """Cases of sets of audio."""
    cases: dict[str, Case] = {}

    def add(kind: str, build: Callable[[Path], None], *groups: dict[str, Any], path: Any = None) -> None:
        for group in groups or ({},):
            label = " ".join([kind, *(f"{name}={value}" for name, value in group.items()), path or ""]).strip()
            cases[label] = (kind, build, path, {**group, "shuffle": False})

    def usages(*values: Any) -> tuple[dict[str, Any], ...]:
        return tuple({"usage": value} for value in values)

    add("CMUArctic", cmu, {}, {"name": "slt"})
    add("GTZAN", gtzan, *usages(None, "train", "valid", "test"))
    add("LibriTTS", libri, *usages("dev-clean", "test-other", "train-clean-100"))
    add("LJSpeech", ljspeech)
    add("SpeechCommands", commands, *usages(None, "train", "test", "valid"))
    for usage in (None, "train", "dev"):
        add("Tedlium", tedlium, {"release": "release1", "usage": usage}, path="TEDLIUM_release1")
    add("Tedlium", tedlium, {"release": "release3"}, path="TEDLIUM_release-3")
    add("YesNo", yes_no)
    return cases
