"""The primitives, one record each, and their registry; importing the package fills it."""

from mycel._src.compiler.prims import (
    complex,
    custom_derivatives,
    elementwise,
    fourier,
    matrix_product,
    nonzero_positions,
    parameter_assignment,
    random,
    reduce,
    shape,
    sort_and_scan,
)
from mycel._src.compiler.prims.base import REGISTRY, Primitive
from mycel._src.compiler.prims.control_flow import control, recompute, recursion, while_gradient
from mycel._src.compiler.prims.convolution import conv, window
from mycel._src.compiler.prims.distributed import collectives, point_to_point, sharding_constraint
from mycel._src.compiler.prims.indexing import dynamic_slicing, index
from mycel._src.compiler.prims.linear_algebra import decompositions, determinant, pseudo_inverse, spectral
from mycel._src.compiler.prims.neural import (
    attention,
    ctc,
    image_sampling,
    normalization,
    quantisation,
    recurrence,
    requantised_layers,
)

__all__ = [
    "REGISTRY",
    "Primitive",
    "attention",
    "collectives",
    "complex",
    "control",
    "conv",
    "ctc",
    "custom_derivatives",
    "decompositions",
    "determinant",
    "dynamic_slicing",
    "elementwise",
    "fourier",
    "image_sampling",
    "index",
    "matrix_product",
    "nonzero_positions",
    "normalization",
    "parameter_assignment",
    "point_to_point",
    "pseudo_inverse",
    "quantisation",
    "random",
    "recompute",
    "recurrence",
    "recursion",
    "reduce",
    "requantised_layers",
    "shape",
    "sharding_constraint",
    "sort_and_scan",
    "spectral",
    "while_gradient",
    "window",
]
