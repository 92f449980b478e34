"""The functions of layers whose values PyTorch 2.13 gave: names, operands and arguments, which both
sides read alike.

`expected.json` has for each case the results, and the derivatives of their sum weighted by cosines
with respect to each operand of floating type.
"""

from __future__ import annotations

import math
from typing import Any

# An operand is a shape of numbers in (-2, 2), of numbers in (0, 1) after "p", of whole numbers
# below n after ("i", n), of signs after "s".
X, IMAGE = (3, 4), (2, 3, 5, 6)
LABELS = (("i", 4), 3)

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    *(
        (name, [shape], {})
        for name in (
            "elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu "
            "sigmoid silu softplus softshrink tanh"
        ).split()
        for shape in (X, (5,))
    ),
    ("elu", [X], {"alpha": 0.5}),
    ("gelu", [X], {"approximate": "tanh"}),
    ("glu", [X], {}),
    ("glu", [(4, 3)], {"dim": 0}),
    ("hardshrink", [X], {"lambd": 1.0}),
    ("hardtanh", [X], {"min_val": -0.5, "max_val": 0.25}),
    ("leaky_relu", [X], {"negative_slope": 0.3}),
    ("prelu", [X, (4,)], {}),
    ("prelu", [(2, 3, 2), (1,)], {}),
    ("softplus", [X], {"beta": 2, "threshold": 1}),
    ("softshrink", [X], {"lambd": 1.0}),
    ("threshold", [X], {"threshold": 0.5, "value": 3.0}),
    ("softmax", [X], {"dim": 1}),
    ("softmax", [(2, 3, 2)], {"dim": 0}),
    ("log_softmax", [X], {"dim": -1}),
    ("log_softmax", [(2, 3, 2)], {"dim": 0}),
    ("normalize", [X], {}),
    ("normalize", [(2, 3, 2)], {"p": 3.0, "dim": 2}),
    ("dropout", [X], {"training": False}),
    ("dropout2d", [(1, 2, 2, 2)], {"training": False}),
    ("linear", [X, (2, 4), (2,)], {}),
    ("linear", [(2, 3, 4), (2, 4)], {}),
    ("linear", [(4,), (2, 4), (2,)], {}),
    ("linear", [X, (4,)], {}),
    ("conv1d", [(2, 4, 7), (6, 2, 3), (6,)], {"groups": 2, "padding": 1, "stride": 2}),
    ("conv1d", [(1, 2, 5), (3, 2, 2)], {"padding": "same"}),
    ("conv1d", [(2, 5), (3, 2, 2)], {}),
    ("conv2d", [(2, 3, 5, 6), (4, 3, 2, 3), (4,)], {"padding": (1, 2), "dilation": 2}),
    ("conv2d", [(1, 2, 4, 4), (2, 1, 2, 2)], {"groups": 2, "padding": "same"}),
    ("conv2d", [(1, 2, 4, 4), (2, 2, 2, 2)], {"padding": "valid"}),
    ("conv3d", [(1, 2, 3, 4, 3), (3, 2, 2, 2, 2), (3,)], {"padding": (1, 0, 1)}),
    ("conv3d", [(1, 1, 2, 3, 3), (1, 1, 2, 2, 2)], {"padding": "same"}),
    (
        "conv_transpose2d",
        [(1, 4, 3, 3), (4, 2, 2, 3), (4,)],
        {"stride": 2, "groups": 2, "output_padding": 1, "padding": 1},
    ),
    ("conv_transpose2d", [(2, 2, 2, 3), (2, 3, 2, 2)], {"dilation": 2}),
    ("avg_pool1d", [(2, 3, 7)], {"kernel_size": 3, "padding": 1, "count_include_pad": False}),
    ("avg_pool1d", [(1, 2, 5)], {"kernel_size": 2, "ceil_mode": True}),
    ("avg_pool1d", [(2, 5)], {"kernel_size": 2, "stride": 1}),
    ("avg_pool2d", [IMAGE], {"kernel_size": 2}),
    ("avg_pool2d", [IMAGE], {"kernel_size": (3, 2), "stride": 2, "padding": 1, "divisor_override": 5}),
    ("avg_pool3d", [(1, 2, 3, 4, 4)], {"kernel_size": 2}),
    ("avg_pool3d", [(1, 1, 3, 3, 3)], {"kernel_size": 2, "stride": 1, "padding": 1, "count_include_pad": False}),
    ("max_pool2d", [IMAGE], {"kernel_size": 2}),
    ("max_pool2d", [IMAGE], {"kernel_size": 3, "stride": 2, "padding": 1, "return_indices": True}),
    ("max_pool2d", [(2, 5, 5)], {"kernel_size": 2, "dilation": 2, "stride": 1}),
    ("adaptive_avg_pool1d", [(2, 3, 7)], {"output_size": 3}),
    ("adaptive_avg_pool2d", [IMAGE], {"output_size": (2, 4)}),
    ("adaptive_avg_pool3d", [(1, 2, 3, 4, 5)], {"output_size": 2}),
    ("adaptive_max_pool1d", [(2, 3, 7)], {"output_size": 3}),
    ("adaptive_max_pool1d", [(2, 3, 7)], {"output_size": 3, "return_indices": True}),
    ("adaptive_max_pool2d", [IMAGE], {"output_size": (2, 4)}),
    ("adaptive_max_pool2d", [IMAGE], {"output_size": (2, 4), "return_indices": True}),
    ("fold", [(2, 12, 6)], {"output_size": (3, 4), "kernel_size": 2}),
    ("fold", [(1, 8, 4)], {"output_size": (3, 3), "kernel_size": (2, 2), "padding": 1, "stride": 2}),
    ("unfold", [IMAGE], {"kernel_size": (2, 3)}),
    ("unfold", [(1, 2, 4, 4)], {"kernel_size": 2, "dilation": 2, "padding": 1, "stride": 2}),
    ("interpolate", [(1, 2, 5)], {"size": 8}),
    ("interpolate", [(1, 2, 5)], {"size": 3, "mode": "linear"}),
    ("interpolate", [(1, 2, 5)], {"size": 1, "mode": "linear"}),
    ("interpolate", [(1, 2, 4, 5)], {"scale_factor": 1.5, "mode": "bilinear"}),
    ("interpolate", [(1, 2, 4, 5)], {"size": (3, 7), "mode": "bilinear", "align_corners": True}),
    ("interpolate", [(1, 2, 4, 5)], {"size": (6, 3), "mode": "bicubic"}),
    ("interpolate", [(1, 1, 4, 5)], {"scale_factor": (2.0, 1.5), "mode": "bicubic", "align_corners": True}),
    ("interpolate", [(1, 1, 4, 5)], {"scale_factor": 0.7, "mode": "bicubic", "recompute_scale_factor": True}),
    ("interpolate", [(1, 1, 3, 2, 3)], {"scale_factor": 2.0, "mode": "trilinear"}),
    ("interpolate", [(1, 2, 5, 4)], {"size": (2, 3), "mode": "area"}),
    ("upsample", [(1, 2, 3, 2)], {"scale_factor": 2}),
    ("upsample", [(1, 2, 3, 2)], {"size": (4, 5), "mode": "bilinear", "align_corners": True}),
    ("grid_sample", [(1, 2, 4, 5), (1, 2, 3, 2)], {"align_corners": False}),
    ("grid_sample", [(1, 2, 4, 5), (1, 2, 3, 2)], {"padding_mode": "border", "align_corners": True}),
    (
        "grid_sample",
        [(1, 1, 4, 5), (1, 2, 3, 2)],
        {"mode": "nearest", "padding_mode": "reflection", "align_corners": False},
    ),
    ("pixel_shuffle", [(1, 8, 2, 3)], {"upscale_factor": 2}),
    ("pixel_shuffle", [(9, 1, 2)], {"upscale_factor": 3}),
    ("pad", [X], {"pad": (1, 2)}),
    ("pad", [(2, 3, 4)], {"pad": (1, 2), "mode": "reflect"}),
    ("pad", [(1, 2, 3, 3)], {"pad": (1, 0, 2, 1), "mode": "replicate"}),
    ("pad", [(1, 2, 3)], {"pad": (1, 2), "mode": "circular"}),
    ("pad", [X], {"pad": (-1, 1, 0, 1), "value": 2.5}),
    ("batch_norm", [(4, 3), ("n", 3), ("p", 3), (3,), (3,)], {}),
    ("batch_norm", [(4, 3, 2), None, None, (3,), (3,)], {"training": True, "eps": 1e-3}),
    ("group_norm", [(2, 4, 3)], {"num_groups": 2}),
    ("layer_norm", [(2, 3, 4)], {"normalized_shape": (3, 4)}),
    ("layer_norm", [X], {"normalized_shape": (4,), "eps": 0.1}),
    ("embedding", [(("i", 4), 2, 3), (4, 3)], {}),
    ("embedding", [(("i", 4), 5), (4, 3)], {"scale_grad_by_freq": True, "padding_idx": 1}),
    ("one_hot", [(("i", 4), 2, 3)], {"num_classes": 4}),
    ("one_hot", [(("i", 4), 6)], {}),
    ("binary_cross_entropy", [("p", 3, 4), ("p", 3, 4)], {}),
    ("binary_cross_entropy", [("p", 3, 4), ("p", 3, 4), ("p", 4)], {"reduction": "sum"}),
    ("binary_cross_entropy_with_logits", [X, ("p", 3, 4)], {}),
    ("binary_cross_entropy_with_logits", [X, ("p", 3, 4), ("p", 4)], {"reduction": "none"}),
    ("cosine_embedding_loss", [X, X, ("s", 3)], {}),
    ("cosine_embedding_loss", [X, X, ("s", 3)], {"margin": 0.2, "reduction": "sum"}),
    ("cross_entropy", [X, LABELS], {}),
    ("cross_entropy", [X, LABELS, ("p", 4)], {"label_smoothing": 0.1, "ignore_index": 1}),
    ("cross_entropy", [(2, 4, 3), (("i", 4), 2, 3)], {"reduction": "none"}),
    ("nll_loss", [X, LABELS], {}),
    ("nll_loss", [X, LABELS, ("p", 4)], {"reduction": "sum"}),
    ("nll_loss", [(2, 4, 3), (("i", 4), 2, 3)], {"ignore_index": 2}),
    ("kl_div", [X, ("p", 3, 4)], {}),
    ("kl_div", [X, X], {"log_target": True, "reduction": "batchmean"}),
    ("kl_div", [X, X], {"log_target": True, "reduction": "none"}),
    ("l1_loss", [X, X], {}),
    ("mse_loss", [X, X], {"reduction": "sum"}),
    ("soft_margin_loss", [X, ("s", 3, 4)], {}),
    ("smooth_l1_loss", [X, X], {"beta": 0.5}),
    ("smooth_l1_loss", [X, X], {"beta": 0.0}),
]
UNPOOLED = [
    ((1, 2, 4, 4), {"kernel_size": 2}),
    ((2, 4, 6), {"kernel_size": 2, "stride": 2}),
    ((1, 1, 5, 5), {"kernel_size": 2, "output_size": (5, 5)}),
]


def operand(spec: Any, which: int) -> Any:
    """Kind, shape and numbers of an operand in row-major order; None for None."""
    if spec is None:
        return None
    kind, shape = ("x", spec) if isinstance(spec[0], int) else (spec[0], tuple(spec[1:]))
    waves = [math.sin(12.9898 * (i + 1) + 78.233 * (which + 1)) * 43758.5453 % 1.0 for i in range(math.prod(shape))]
    if isinstance(kind, tuple):
        return "i", shape, [int(v * kind[1]) for v in waves]
    if kind == "s":
        return "x", shape, [1.0 if v < 0.5 else -1.0 for v in waves]
    low, span = {"x": (-2.0, 4.0), "p": (0.1, 0.8), "n": (-0.5, 1.0)}[kind]
    return kind, shape, [low + span * v for v in waves]


def weight(size: int) -> list[float]:
    """The weights of a result's elements in the sum that is differentiated."""
    return [math.cos(k) for k in range(size)]


def key(number: int) -> str:
    """The entry of a case."""
    name, operands, more = CASES[number]
    return f"{number} {name} {operands} {sorted(more.items())}"
