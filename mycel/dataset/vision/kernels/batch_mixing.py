"""Loop of MixUp, which mixes the images of a batch with each other."""

from mycel._src.engines.routines import routine
from mycel._src.engines.routines.routine_language import Const, Doubles, Elements, Int, Longs, f32, f64
from mycel.dataset.vision.kernels.float_images import converted


@routine
def mix(
    source: Elements,
    count: Int,
    size: Int,
    others: Longs,
    shares: Doubles,
    rests: Doubles,
    kind: Const,
    element: Const,
    result: Elements,
) -> None:
    """Sum up each image with another one, with weights.

    * `source`, `count`, `size`: the images, how many, and how many values each has.
    * `others`, `shares`, `rests`: for each image which other one, its own weight, and the other's.
    * `kind`: the type of the arithmetic, "float32" or "float64".
    * `element`, `result`: the type of the result, to which sums are rounded and limited, and the
      result.
    """
    for n in range(count):
        at, other = n * size, others[n] * size
        if kind == "float32":
            share, rest = f32(shares[n]), f32(rests[n])
            for i in range(size):
                result[at + i] = converted(share * f32(source[at + i]) + rest * f32(source[other + i]), element)
        else:
            own, its = shares[n], rests[n]
            for i in range(size):
                result[at + i] = converted(own * f64(source[at + i]) + its * f64(source[other + i]), element)
