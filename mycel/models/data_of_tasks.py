"""Tasks for microcontrollers whose data come with the package, or are made exactly by a formula.

Data depend on the task and its seed alone. Held-out rows are drawn by other random numbers than
those for training; nothing is chosen by them.

* ``digits``: the bundled handwritten digits, 8 by 8 pixels.
* ``keywords``: made words of tones, chirps and noise over a second of sound, as mel features.
* ``textures``: made images of 32 by 32 pixels in colours, of ten textures.
* ``vibration``: spectra of a made machine; a network is trained on sound ones, and has to tell
  faults by how badly it reproduces them.
* ``gestures``: made series of three accelerations while a hand moves in one of eight ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel.dataset.digits import load_digits, stratified_split

__all__ = ["TASKS", "Data", "Task", "task_named", "validation"]

Array = np.ndarray[Any, Any]
Random = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Rows of a task, for training and held out.

    Of ``vibration`` rows for training are all sound, and a held-out label is 1 for a fault.

    Args:
        x (numpy.ndarray[Any, Any]): Inputs for training, float32.
        y (numpy.ndarray[Any, Any]): Labels for training, int32.
        held_x (numpy.ndarray[Any, Any]): Inputs that are held out.
        held_y (numpy.ndarray[Any, Any]): Labels of these.
    """

    x: Array
    y: Array
    held_x: Array
    held_y: Array


@dataclass(frozen=True)
class Task:
    """A task of the library.

    Args:
        name (str): Its name.
        text (str): What it is, in words.
        shape (tuple[int, ...]): The shape of inputs.
        classes (int): The number of classes.
        measure (str): How results are measured.
        make (Callable[[], Data]): Makes its data.
    """

    name: str
    text: str
    shape: tuple[int, ...]
    classes: int
    measure: str
    make: Callable[[], Data]


def _digits() -> Data:
    images, labels = load_digits(size=8)
    values = images.transpose(0, 3, 1, 2).astype(np.float32) / 255
    train, held = stratified_split(labels)
    return Data(values[train], labels[train], values[held], labels[held])


def _drawn(make: Callable[[int, Random], Array], classes: int, train: int, held: int, seed: int) -> Data:
    """Return rows of classes in turn; `make` draws one of a class."""
    parts = []
    for part, count in enumerate((train, held)):
        random = np.random.default_rng([seed, part])
        labels = np.arange(count, dtype=np.int32) % classes
        parts += [np.stack([make(int(label), random) for label in labels]).astype(np.float32), labels]
    return Data(*parts)


# Sound: words of three parts, each a pitch that moves from one frequency to another, or noise.

RATE, FRAMES, MELS, WINDOW = 8000, 32, 16, 512
_LOW, _MIDDLE, _HIGH = 400.0, 1000.0, 2200.0
_WORDS: tuple[tuple[tuple[float, float] | None, ...], ...] = (
    ((_LOW, _LOW), (_HIGH, _HIGH), (_LOW, _LOW)),
    ((_HIGH, _HIGH), (_LOW, _LOW), (_HIGH, _HIGH)),
    ((_LOW, _HIGH), None, (_MIDDLE, _MIDDLE)),
    ((_HIGH, _LOW), None, (_MIDDLE, _MIDDLE)),
    (None, (_LOW, _MIDDLE), (_MIDDLE, _HIGH)),
    (None, (_HIGH, _MIDDLE), (_MIDDLE, _LOW)),
    ((_MIDDLE, _HIGH), (_HIGH, _MIDDLE), None),
    ((_MIDDLE, _LOW), (_LOW, _MIDDLE), None),
    ((_MIDDLE, _MIDDLE), (_MIDDLE, _MIDDLE), (_LOW, _HIGH)),
    ((_MIDDLE, _MIDDLE), (_MIDDLE, _MIDDLE), (_HIGH, _LOW)),
)


def _mel_filters() -> Array:
    """Return triangles over the spectrum, equally wide in mel, [MELS, WINDOW // 2 + 1]."""

    def mel(frequency: Any) -> Any:
        return 2595 * np.log10(1 + frequency / 700)

    edges = 700 * (10 ** (np.linspace(mel(60.0), mel(RATE / 2), MELS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rise = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    filters: Array = np.maximum(0, np.minimum(rise, fall))
    return filters


_FILTERS = _mel_filters()


def _mel_features(sound: Array) -> Array:
    """Return the logarithms of mel energies of frames, [1, FRAMES, MELS], about 0."""
    starts = np.linspace(0, len(sound) - WINDOW, FRAMES).astype(int)
    frames = np.stack([sound[s : s + WINDOW] for s in starts]) * np.hanning(WINDOW)
    energy = np.abs(np.fft.rfft(frames, axis=1)) ** 2 @ _FILTERS.T
    values: Array = ((np.log(energy + 1e-3) - 5.5) / 1.5)[None]
    return values


def _keyword(word: int, random: Random) -> Array:
    sound = random.normal(0, random.uniform(0.05, 0.6), RATE)
    at, voice = int(random.uniform(0.02, 0.2) * RATE), random.uniform(0.7, 1.4)
    for part in _WORDS[word]:
        length = int(random.uniform(0.12, 0.26) * RATE)
        time = np.arange(length) / RATE
        if part is None:
            piece = random.normal(0, 0.5, length)
        else:
            first, last = (f * voice * random.uniform(0.92, 1.08) for f in part)
            phase = 2 * np.pi * (first * time + (last - first) * time**2 * RATE / (2 * length))
            piece = np.sin(phase) + 0.4 * np.sin(2 * phase + random.uniform(0, 6))
        sound[at : at + length] += random.uniform(0.4, 1.2) * np.hanning(length) * piece
        at += int(length * random.uniform(0.9, 1.1))
    return _mel_features(sound)


# Images: ten textures, each turned, scaled, coloured and lit at random.

SIDE = 32


def _texture(kind: int, random: Random) -> Array:
    turn, scale = random.uniform(-0.5, 0.5), random.uniform(0.8, 1.25)
    grid = (np.mgrid[:SIDE, :SIDE] - SIDE / 2) * scale
    u = np.cos(turn) * grid[0] + np.sin(turn) * grid[1] + random.uniform(0, 20)
    v = -np.sin(turn) * grid[0] + np.cos(turn) * grid[1] + random.uniform(0, 20)
    noise = random.normal(size=(SIDE, SIDE))
    spectrum = np.fft.fft2(noise)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE)))
    if kind == 0:
        pattern = np.sin(u * 1.2)
    elif kind == 1:
        pattern = 2 * np.sin(u * 0.45)
    elif kind == 2:
        pattern = np.sign(np.sin(u * 0.7) * np.sin(v * 0.7))
    elif kind == 3:
        pattern = np.where(np.sin(u * 0.9) * np.sin(v * 0.9) > 0.5, 2.0, -1.0)
    elif kind == 4:
        pattern = np.sin(np.hypot(u - 10, v - 10) * 0.9)
    elif kind == 5:
        pattern = np.sin(v * 0.9 + 2 * np.sin(u * 0.5))
    elif kind == 6:
        pattern = np.where((u % 7 < 1.5) | (v % 7 < 1.5), 1.5, -1.0)
    elif kind == 7:
        pattern = np.fft.ifft2(spectrum * np.exp(-((frequency * 14) ** 2))).real * 20
    elif kind == 8:
        pattern = np.fft.ifft2(spectrum * (frequency > 0.25)).real * 2
    else:
        row = (v // 4) % 2 * 3
        pattern = np.where((v % 4 < 1) | ((u + row) % 6 < 1), 1.0, -1.0)
    base = random.uniform(0.1, 0.9, (3, 1, 1))
    other = base + np.where(base < 0.5, 1, -1) * random.uniform(0.2, 0.6, (3, 1, 1))
    mix = 1 / (1 + np.exp(-2 * pattern))
    light = 1 + random.uniform(-0.3, 0.3) * grid[0] / SIDE + random.uniform(-0.3, 0.3) * grid[1] / SIDE
    image = (base + (other - base) * mix) * light + random.normal(0, random.uniform(0.02, 0.15), (3, SIDE, SIDE))
    values: Array = np.clip(image, 0, 1) * 2 - 1
    return values


# Vibration: a shaft with harmonics, gears and noise; faults add what faults add.

BINS, SAMPLES = 64, 1024


def _vibration(fault: int, random: Random) -> Array:
    time = np.arange(SAMPLES) / SAMPLES
    speed, load = random.uniform(14, 18), random.uniform(0.7, 1.3)
    turn = 2 * np.pi * speed * time + random.uniform(0, 6)
    signal = load * sum(a * np.sin(k * turn + random.uniform(0, 6)) for k, a in ((1, 1.0), (2, 0.4), (3, 0.2)))
    mesh = 11 * turn + random.uniform(0, 6)
    signal = signal + 0.3 * load * np.sin(mesh) * (1 + 0.1 * np.sin(turn)) + random.normal(0, 0.35, SAMPLES)
    size = random.uniform(0.25, 0.8)
    if fault == 1:
        # A bearing's race: impulses that ring, 3.6 a turn.
        hits = (3.6 * speed * time) % 1 / (3.6 * speed) * SAMPLES
        signal = signal + 2.5 * size * np.exp(-hits / 12) * np.sin(2 * np.pi * 0.21 * hits)
    elif fault == 2:
        # A loose foot: half turns and many harmonics.
        signal = signal + size * sum(np.sin((k + 0.5) * turn + random.uniform(0, 6)) for k in range(1, 8)) / 3
    elif fault == 3:
        # A worn tooth: the mesh is modulated.
        signal = signal + 0.8 * size * np.sin(mesh) * np.sin(turn) ** 3
    elif fault == 4:
        # A rubbing shaft: clipped.
        signal = np.clip(signal, -3, 1.6 - 1.3 * size)
    spectrum = np.abs(np.fft.rfft(signal * np.hanning(SAMPLES)))[1 : 1 + BINS * 4].reshape(BINS, 4)
    values: Array = (np.log((spectrum**2).mean(1) + 1) - 4) / 3
    return values


def _vibrations() -> Data:
    """Return spectra: sound ones for training; held-out ones of which half have faults."""
    random = np.random.default_rng([31, 0])
    sound = np.stack([_vibration(0, random) for _ in range(3000)])
    random = np.random.default_rng([31, 1])
    kinds = np.where(np.arange(800) % 2 == 0, 0, 1 + np.arange(800) // 2 % 4)
    held = np.stack([_vibration(int(kind), random) for kind in kinds])
    labels = (kinds > 0).astype(np.int32)
    return Data(sound.astype(np.float32), np.zeros(len(sound), np.int32), held.astype(np.float32), labels)


def validation(task: Task, data: Data) -> Data:
    """Return rows by which networks for a task are chosen: none of them is held out in `data`.

    Of classes they are the last fifth of the rows for training. Of ``vibration`` they are made
    anew, as faults are needed.
    """
    if task.classes:
        count = len(data.x) * 4 // 5
        return Data(data.x[:count], data.y[:count], data.x[count:], data.y[count:])
    random = np.random.default_rng([31, 2])
    kinds = np.where(np.arange(400) % 2 == 0, 0, 1 + np.arange(400) // 2 % 4)
    rows = np.stack([_vibration(int(kind), random) for kind in kinds]).astype(np.float32)
    return Data(data.x, data.y, rows, (kinds > 0).astype(np.int32))


# Gestures: accelerations along three axes in 64 steps.

STEPS = 64


def _gesture(kind: int, random: Random) -> Array:
    time = np.linspace(0, 1, STEPS)
    begin, length = random.uniform(0.05, 0.25), random.uniform(0.45, 0.7)
    s = np.clip((time - begin) / length, 0, 1) ** random.uniform(0.8, 1.25)
    active = ((time > begin) & (time < begin + length)).astype(float)
    wave = np.sin(2 * np.pi * s) * active
    quarter = (np.cos(2 * np.pi * s) - 1) * active
    none = np.zeros(STEPS)
    moves = (
        (wave, none, none),
        (-wave, none, none),
        (none, wave, none),
        (none, -wave, none),
        (wave, quarter, none),
        (-wave, quarter, none),
        (np.sin(2 * np.pi * 4 * s) * active, none, none),
        (wave, np.sin(4 * np.pi * s) * active, none),
    )
    move = np.stack(moves[kind]) * random.uniform(0.6, 1.6)
    angles = random.normal(0, 0.3, 3)
    gravity = np.array([0, 0, 1.0])[:, None]
    signal = _turned(angles) @ (move + gravity) + random.normal(0, random.uniform(0.1, 0.5), (3, STEPS))
    drift = random.normal(0, 0.2, (3, 1)) * np.sin(np.pi * time + random.uniform(0, 3))
    values: Array = (signal + drift - gravity)[:, None]
    return values


def _turned(angles: Array) -> Array:
    made = np.eye(3)
    for axis, angle in enumerate(angles):
        one, other = [k for k in range(3) if k != axis]
        turn = np.eye(3)
        turn[[one, other], [one, other]] = np.cos(angle)
        turn[one, other], turn[other, one] = -np.sin(angle), np.sin(angle)
        made = made @ turn
    return made


TASKS = {
    task.name: task
    for task in (
        Task("digits", "handwritten digits, 8 x 8 pixels", (1, 8, 8), 10, "accuracy", _digits),
        Task(
            "keywords",
            "ten made words of tones and noise, mel features of a second",
            (1, FRAMES, MELS),
            10,
            "accuracy",
            lambda: _drawn(_keyword, 10, 2000, 1000, 11),
        ),
        Task(
            "textures",
            "ten made textures, 32 x 32 pixels in colours",
            (3, SIDE, SIDE),
            10,
            "accuracy",
            lambda: _drawn(_texture, 10, 3000, 1000, 21),
        ),
        Task(
            "vibration",
            "faults of a made machine, told by spectra of 64 bands; trained on sound ones",
            (BINS,),
            0,
            "area under the curve",
            _vibrations,
        ),
        Task(
            "gestures",
            "eight made gestures, three accelerations in 64 steps",
            (3, 1, STEPS),
            8,
            "accuracy",
            lambda: _drawn(_gesture, 8, 2000, 1000, 41),
        ),
    )
}


def task_named(owner: str, name: str) -> Task:
    """Return the task of a name.

    Raises ValueError, in the name of `owner`, where there is none.

    >>> task_named("choose", "digits").shape
    (1, 8, 8)
    """
    if name not in TASKS:
        raise ValueError(f"{owner}: task must be one of {', '.join(TASKS)}, not {name!r}")
    return TASKS[name]
