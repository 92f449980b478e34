"""Pooling, patches, sizes and the losses beside them, as recorded from MindSpore 2.10 in
``expected_windows.json`` (see `sequence_cases`).
"""

from __future__ import annotations

import numpy as np

from tests.nn.cases import between, labels, wave
from tests.nn.sequence_cases import Case, run

__all__ = ["CASES", "run"]

LINE = wave(2, 4, 7)
IMAGE = wave(1, 2, 7, 9)
SMALL = wave(1, 2, 4, 4)
CUBE = wave(1, 2, 5, 6, 4)
SAMPLES = np.array([[[0.8, 0.3], [0.1, 0.6]]], np.float32)
SAMPLES_3D = np.array([[[0.8, 0.3, 0.5], [0.1, 0.6, 0.9]]], np.float32)
ANCHOR, POSITIVE, NEGATIVE = (wave(3, 4, phase=p) for p in (0.3, 1.3, 2.3))


def fractional(name: str, samples: np.ndarray, indices: bool, *args: object, **kwargs: object) -> object:
    """A maker of fractional pooling with given random samples, which are tensors of the module that
    made `nn`.
    """

    def make(nn: object) -> object:
        import importlib

        space = importlib.import_module(nn.__name__.rsplit(".", 1)[0])
        return getattr(nn, name)(*args, **kwargs, return_indices=indices, _random_samples=space.Tensor(samples))

    return make


def weighted_dice(nn: object) -> object:
    """A dice loss with weights."""
    import importlib

    space = importlib.import_module(nn.__name__.rsplit(".", 1)[0])
    return nn.MultiClassDiceLoss(weights=space.Tensor(between(4, 2)), ignore_indiex=1)


CASES: dict[str, Case] = {
    "LPPool1d": Case(lambda nn: nn.LPPool1d(2, 3, 2), (LINE,)),
    "LPPool1d_single": Case(lambda nn: nn.LPPool1d(2, 3), (LINE[0],)),
    "LPPool1d_ceil": Case(lambda nn: nn.LPPool1d(3.0, 3, 2, True), (between(2, 4, 8),)),
    "LPPool2d": Case(lambda nn: nn.LPPool2d(2, (3, 2), 2), (IMAGE,)),
    "LPPool2d_stride": Case(lambda nn: nn.LPPool2d(3.0, 2), (between(1, 2, 7, 9),)),
    "AdaptiveMaxPool3d": Case(lambda nn: nn.AdaptiveMaxPool3d((2, 3, 2), True), (CUBE,)),
    "AdaptiveMaxPool3d_equal": Case(lambda nn: nn.AdaptiveMaxPool3d((5, 3, 2), True), (CUBE[0],)),
    "AdaptiveMaxPool3d_values": Case(lambda nn: nn.AdaptiveMaxPool3d(3), (CUBE,)),
    "AdaptiveMaxPool2d_uneven": Case(lambda nn: nn.AdaptiveMaxPool2d((2, 5), True), (IMAGE,)),
    "FractionalMaxPool2d": Case(fractional("FractionalMaxPool2d", SAMPLES, True, 3, (3, 4)), (IMAGE,), gradient=False),
    "FractionalMaxPool2d_values": Case(
        fractional("FractionalMaxPool2d", SAMPLES, False, 2, (3, 4)), (IMAGE,), gradient=False
    ),
    "FractionalMaxPool2d_ratio": Case(
        fractional("FractionalMaxPool2d", SAMPLES, True, (2, 3), output_ratio=(0.5, 0.4)), (IMAGE,), gradient=False
    ),
    "FractionalMaxPool3d": Case(fractional("FractionalMaxPool3d", SAMPLES_3D, True, 2, (2, 3, 2)), (CUBE,)),
    "FractionalMaxPool3d_ratio": Case(
        fractional("FractionalMaxPool3d", SAMPLES_3D, True, (2, 1, 2), output_ratio=(0.5, 0.7, 0.5)), (CUBE,)
    ),
    "MaxUnpool1d": Case(lambda nn: nn.MaxUnpool1d(2), (wave(1, 2, 3), np.array([[[1, 3, 5], [0, 2, 4]]], np.int64))),
    "MaxUnpool1d_size": Case(
        lambda nn: nn.MaxUnpool1d(2), (wave(1, 3), np.array([[1, 3, 6]], np.int64), (1, 7)), gradient=False
    ),
    "MaxUnpool2d": Case(lambda nn: nn.MaxUnpool2d(2), (wave(1, 1, 2, 2), np.array([[[[0, 3], [9, 15]]]], np.int64))),
    "MaxUnpool2d_padding": Case(
        lambda nn: nn.MaxUnpool2d(3, 2, 1), (wave(1, 1, 2, 2), np.array([[[[0, 2], [6, 8]]]], np.int64))
    ),
    "MaxUnpool3d": Case(lambda nn: nn.MaxUnpool3d(2), (wave(1, 1, 1, 1, 2), np.array([[[[[3, 9]]]]], np.int64))),
    "Upsample_nearest": Case(lambda nn: nn.Upsample(size=(3, 5)), (SMALL,)),
    "Upsample_scale": Case(lambda nn: nn.Upsample(scale_factor=(2.0, 1.5), recompute_scale_factor=True), (SMALL,)),
    "Upsample_bilinear": Case(lambda nn: nn.Upsample(size=(3, 5), mode="bilinear"), (SMALL,)),
    "Upsample_aligned": Case(lambda nn: nn.Upsample(size=(3, 5), mode="bilinear", align_corners=True), (SMALL,)),
    "Upsample_bicubic": Case(lambda nn: nn.Upsample(size=(3, 5), mode="bicubic", align_corners=True), (SMALL,)),
    "Upsample_area": Case(lambda nn: nn.Upsample(size=(3, 5), mode="area"), (SMALL,)),
    "Upsample_linear": Case(lambda nn: nn.Upsample(size=5, mode="linear"), (LINE,)),
    "Upsample_trilinear": Case(lambda nn: nn.Upsample(size=(3, 2, 5), mode="trilinear"), (CUBE,)),
    "ChannelShuffle": Case(lambda nn: nn.ChannelShuffle(2), (wave(2, 6, 2, 3),)),
    "TripletMarginWithDistanceLoss": Case(lambda nn: nn.TripletMarginWithDistanceLoss(), (ANCHOR, POSITIVE, NEGATIVE)),
    "TripletMarginWithDistanceLoss_swap": Case(
        lambda nn: nn.TripletMarginWithDistanceLoss(swap=True, reduction="none", margin=2.0),
        (ANCHOR, POSITIVE, NEGATIVE),
    ),
    "TripletMarginWithDistanceLoss_function": Case(
        lambda nn: nn.TripletMarginWithDistanceLoss(lambda x, y: ((x - y) ** 4).sum(1), reduction="sum", margin=9.0),
        (ANCHOR, POSITIVE, NEGATIVE),
    ),
    "MultiClassDiceLoss": Case(lambda nn: nn.MultiClassDiceLoss(), (wave(3, 4), between(3, 4))),
    "MultiClassDiceLoss_rank": Case(
        lambda nn: nn.MultiClassDiceLoss(activation="sigmoid"), (wave(2, 3, 4), between(2, 3, 4))
    ),
    "MultiClassDiceLoss_weights": Case(weighted_dice, (wave(3, 4), between(3, 4, low=0.3))),
    "DiceLoss_smooth": Case(lambda nn: nn.DiceLoss(1.0), (wave(3, 4), between(3, 4))),
    "AdaptiveMaxPool1d": Case(lambda nn: nn.AdaptiveMaxPool1d(3), (wave(2, 4, 6),)),
    "EmbeddingLookup": Case(lambda nn: nn.EmbeddingLookup(6, 3), (labels(2, 4, classes=7),), gradient=False),
    "EmbeddingLookup_clipped": Case(
        lambda nn: nn.EmbeddingLookup(6, 3, max_norm=0.7), (labels(2, 4, classes=6),), gradient=False
    ),
    "ClipByNorm": Case(lambda nn: nn.ClipByNorm(), (wave(3, 4), np.array(1.0, np.float32))),
    "ClipByNorm_each": Case(lambda nn: nn.ClipByNorm(), (wave(3, 4), np.array([[0.5], [1.0], [2.0]], np.float32))),
}
