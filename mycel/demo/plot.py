"""The picture of a run: the loss of every step, and held-out digits with their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation.files.atomic_files import replacing

__all__ = ["available", "draw"]

_ROWS, _COLUMNS = 6, 8
_RIGHT, _WRONG = "#2a7f3f", "#c62828"


def available() -> bool:
    """Return whether matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def draw(
    path: Path,
    losses: Sequence[float],
    steps_per_epoch: int,
    images: NDArray[np.uint8],
    labels: NDArray[np.int32],
    predictions: NDArray[np.int64],
) -> None:
    """Write the picture as PNG to `path`.

    It has the `losses` of all steps, `steps_per_epoch` of which make an epoch, and a grid of
    held-out `images` [N, H, W] with their `predictions`. Wrongly predicted digits come first,
    framed in red with their true `labels`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    ((left, right),) = figure.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.15))

    axes = left.subplots()
    epochs = np.arange(1, len(losses) + 1) / steps_per_epoch
    axes.plot(epochs, losses, color="#9db7d5", linewidth=0.8, label="each step")
    axes.plot(epochs, _smoothed(losses), color="#1f4e8c", linewidth=1.8, label="moving average")
    axes.set(xlabel="epoch", ylabel="loss (cross-entropy)", yscale="log", title="Training")
    axes.grid(alpha=0.3)
    axes.legend()

    wrong = np.flatnonzero(predictions != labels)
    accuracy = 1 - len(wrong) / len(labels)
    right.suptitle(f"Held out: {accuracy:.2%} right, {len(wrong)} of {len(labels)} wrong")
    shown = np.concatenate([wrong, np.flatnonzero(predictions == labels)])[: _ROWS * _COLUMNS]
    for cell, axes in enumerate(right.subplots(_ROWS, _COLUMNS).flat):
        axes.set(xticks=[], yticks=[])
        if cell >= len(shown):
            axes.set_axis_off()
            continue
        index = shown[cell]
        good = predictions[index] == labels[index]
        color = _RIGHT if good else _WRONG
        axes.imshow(images[index], cmap="gray_r")
        axes.set_title(
            f"{predictions[index]}" if good else f"{predictions[index]}, not {labels[index]}", color=color, fontsize=9
        )
        for spine in axes.spines.values():
            spine.set(color=color, linewidth=0.8 if good else 2.2)
    with replacing(path, "figure", durable=False) as draft:
        figure.savefig(draft, dpi=110, format="png")


def _smoothed(losses: Sequence[float], keep: float = 0.95) -> list[float]:
    """Return the exponential moving average, corrected for its start as in Kingma and Ba, "Adam",
    2015, section 3.
    """
    average, out = 0.0, []
    for count, loss in enumerate(losses, 1):
        average = keep * average + (1 - keep) * loss
        out.append(average / (1 - keep**count))
    return out
