"""Non-maximum suppression: of boxes that overlap much, the one with the highest score stays.

Boxes are visited by decreasing score, equal scores in their order; a box that is still there
removes the later ones that overlap it by more than the threshold. The loop holds one mask of the
boxes still there (for every image and class at once) and reads or computes one row of overlaps a
step, so that memory stays proportional to the boxes. Results whose sizes are open are the positions
at which the final mask holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import graph_of
from mycel._src.tensors.core.mask_indices import flat_positions
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops import gather_scatter, sorting
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    iota,
    permuted,
    reshaped,
    run,
    select,
    take_slice,
    term,
)
from mycel.ops.arrange import pad
from mycel.ops.creation import ones, zeros

__all__ = ["combined_non_max_suppression", "nms_with_mask", "non_max_suppression", "non_max_suppression_with_overlaps"]


def _survivors(start: Tensor, fixed: Sequence[Tensor], overlapping: Callable[..., Tensor]) -> Tensor:
    """Return which of the boxes `start` (rows, N), ordered by decreasing score, survive.

    ``overlapping(i, *fixed)`` returns which boxes overlap box i too much: (rows, N).
    """
    rows, count = start.shape

    def body(i: Tensor, alive: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        here = reshaped(run(I.take, alive, i, axis=1, bounds="drop"), (rows, 1))
        later = run(E.gt, iota((rows, count), 1, D.int64), i)
        hit = run(E.logical_and, run(E.logical_and, overlapping(i, *rest), later), here)
        return i + scalar(1, D.int64), run(E.logical_and, alive, run(E.logical_not, hit))

    def test(i: Tensor, *rest: Tensor) -> tuple[Tensor]:
        return (i < scalar(count, D.int64),)

    operands = (zeros((), D.int64), start, *fixed)
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=2)
    return done[1]


def _by_overlap(boxes: Tensor, alive: Tensor, threshold: Tensor) -> Tensor:
    """Return which boxes (rows, N, 4), in order, survive.

    Corners may come in any order, and boxes without area overlap nothing.
    """
    sides = [reshaped(take_slice(boxes, 2, k, k + 1), boxes.shape[:2]) for k in range(4)]
    low = [run(E.minimum, sides[k], sides[k + 2]) for k in (0, 1)]
    high = [run(E.maximum, sides[k], sides[k + 2]) for k in (0, 1)]
    area = (high[0] - low[0]) * (high[1] - low[1])

    def overlapping(i: Tensor, *given: Tensor) -> Tensor:
        here = [reshaped(run(I.take, t, i, axis=1, bounds="drop"), (t.shape[0], 1)) for t in given[:5]]
        shared = constant_like(1.0, given[0])
        for a, b, c, d in ((here[0], here[2], given[0], given[2]), (here[1], here[3], given[1], given[3])):
            side = run(E.minimum, b, d) - run(E.maximum, a, c)
            shared = shared * run(E.maximum, side, constant_like(0.0, side))
        both = run(E.logical_and, here[4] > 0.0, given[4] > 0.0)
        union = select(both, here[4] + given[4] - shared, 1.0)
        return run(E.logical_and, both, run(E.gt, shared / union, given[5]))

    return _survivors(alive, (*low, *high, area, threshold), overlapping)


def _order(scores: Tensor) -> Tensor:
    """Return positions by decreasing score."""
    return sorting.argsort(scores, scores.ndim - 1, True)


def _threshold(name: str, value: Any, like: Tensor) -> Tensor:
    """Return a threshold as a tensor without dimensions, of the type of `like`."""
    x = floating(name, term(name, value))
    if x.size != 1:
        raise ShapeError(f"{name}: thresholds are numbers, not {x._type}")
    return reshaped(cast(x, like.dtype), ())


def _limit(name: str, value: Any) -> Tensor:
    """Return a number of boxes as a tensor without dimensions."""
    x = term(name, value)
    if not x.dtype.is_integer or x.size != 1:
        raise TypeError(f"{name}: a number of boxes is an integer, not {x._type}")
    return reshaped(cast(x, D.int64), ())


def _first(alive: Tensor, most: Tensor) -> Tensor:
    """Return where a mask holds, at the first `most` places of each row."""
    seen = sorting.cumsum(cast(alive, D.int64), alive.ndim - 1)
    return run(E.logical_and, alive, run(E.le, seen, most))


def _scored(name: str, boxes: Tensor, scores: Any) -> Tensor:
    """Return scores (N,) after checking that there is one for each box."""
    s = floating(name, scores)
    if s.ndim != 1 or boxes.ndim != 2 or s.shape[0] != boxes.shape[0]:
        raise ShapeError(f"{name}: takes one row of {boxes._type} for each score, not {s._type}")
    return s


def _selected(order: Tensor, kept: Tensor) -> Tensor:
    """Return the numbers of the boxes that are kept."""
    return cast(run(I.take, order, flat_positions(kept), axis=0), D.int32)


def non_max_suppression(
    boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> Tensor:
    """Return the int32 numbers of at most `max_output_size` of the `boxes` (N, 4), best first, that
    no better one overlaps by more than `iou_threshold`.

    A box is two opposite corners, in either order. Boxes whose `scores` (N,) are not above
    `score_threshold` are left out.

    >>> import mycel as ms
    >>> boxes = ms.Tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.9], [2.0, 2.0, 3.0, 3.0]])
    >>> limits = ms.Tensor(3), ms.Tensor(0.5), ms.Tensor(0.0)
    >>> ms.ops.NonMaxSuppressionV3()(boxes, ms.Tensor([0.5, 0.9, 0.7]), *limits).tolist()
    [1, 2]
    """
    name = "non_max_suppression"
    x = floating(name, boxes)
    if x.ndim != 2 or x.shape[1] != 4:
        raise ShapeError(f"{name}: boxes must be (N, 4), not {x._type}")
    s = _scored(name, x, scores)
    order = _order(s)
    ordered = reshaped(run(I.take, x, order, axis=0), (1, x.shape[0], 4))
    good = run(E.gt, run(I.take, s, order, axis=0), _threshold(name, score_threshold, s))
    alive = _by_overlap(ordered, reshaped(good, (1, x.shape[0])), _threshold(name, iou_threshold, x))
    return _selected(order, _first(reshaped(alive, (x.shape[0],)), _limit(name, max_output_size)))


def non_max_suppression_with_overlaps(
    overlaps: Any, scores: Any, max_output_size: Any, overlap_threshold: Any, score_threshold: Any
) -> Tensor:
    """Return the result of `non_max_suppression` for `overlaps` (N, N) instead of boxes.

    Row i of `overlaps` holds those of box i with the others; they count as too much above
    `overlap_threshold`. `scores`, `max_output_size` and `score_threshold` are those of
    `non_max_suppression`.

    >>> import mycel as ms
    >>> overlaps = ms.Tensor([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> scores = ms.Tensor([0.5, 0.9, 0.7])
    >>> ms.ops.NonMaxSuppressionWithOverlaps()(overlaps, scores, 3, 0.5, 0.0).tolist()
    [1, 2]
    """
    name = "non_max_suppression_with_overlaps"
    x = floating(name, overlaps)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ShapeError(f"{name}: overlaps must be (N, N), not {x._type}")
    s, count = _scored(name, x, scores), x.shape[0]
    order = _order(s)
    ordered = run(I.take, run(I.take, x, order, axis=0), order, axis=1)
    good = run(E.gt, run(I.take, s, order, axis=0), _threshold(name, score_threshold, s))
    fixed = (ordered, _threshold(name, overlap_threshold, x))
    alive = _survivors(
        reshaped(good, (1, count)),
        fixed,
        lambda i, table, limit: run(E.gt, reshaped(run(I.take, table, i, axis=1, bounds="drop"), (1, count)), limit),
    )
    return _selected(order, _first(reshaped(alive, (count,)), _limit(name, max_output_size)))


def nms_with_mask(bboxes: Any, iou_threshold: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """Return boxes and scores (N, 5) by decreasing score, their int32 numbers 0 to N - 1 in that
    order, and which of them survive.

    As in MindSpore on a CPU the numbers count the ordered boxes, not those given.

    Raises TypeError where `iou_threshold` is not a float.

    >>> import mycel as ms
    >>> boxes = [[0.0, 0.0, 1.0, 1.0, 0.5], [0.0, 0.0, 1.0, 0.9, 0.9], [2.0, 2.0, 3.0, 3.0, 0.7]]
    >>> ms.ops.NMSWithMask(0.5)(ms.Tensor(boxes))[2].tolist()
    [True, True, False]
    """
    name = "nms_with_mask"
    x = floating(name, bboxes)
    if x.ndim != 2 or x.shape[1] != 5:
        raise ShapeError(f"{name}: takes boxes with scores (N, 5), not {x._type}")
    arguments.instance(name, "iou_threshold", iou_threshold, float)
    count = x.shape[0]
    ordered = run(I.take, x, _order(reshaped(take_slice(x, 1, 4, 5), (count,))), axis=0)
    alive = _by_overlap(
        reshaped(take_slice(ordered, 1, 0, 4), (1, count, 4)),
        ones((1, count), D.bool_),
        constant_like(iou_threshold, x),
    )
    return ordered, iota((count,), 0, D.int32), reshaped(alive, (count,))


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the best detections of each image: boxes (B, D, 4), scores (B, D), classes (B, D) as
    floats, and their number (B,); further places are 0.

    `boxes` is (B, N, 1 or C, 4) and `scores` (B, N, C). Each class is suppressed by itself with
    `iou_threshold`, and keeps at most `max_output_size_per_class` boxes above `score_threshold`;
    the best of all classes come first. D is `max_total_size`, or with `pad_per_class` at most C
    times the boxes of a class. `clip_boxes` clips coordinates to [0, 1].

    >>> import mycel as ms
    >>> boxes = ms.Tensor([[[[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.0, 1.0, 0.9]]]])
    >>> scores = ms.Tensor([[[0.5], [0.9]]])
    >>> limits = ms.Tensor(2), ms.Tensor(2), ms.Tensor(0.5), ms.Tensor(0.0)
    >>> found = ms.ops.CombinedNonMaxSuppression()(boxes, scores, *limits)
    >>> [round(v, 2) for v in found[1].flatten().tolist()], found[3].tolist()
    ([0.9, 0.0], [1])
    """
    name = "combined_non_max_suppression"
    x, s = floating(name, boxes), floating(name, scores)
    if x.ndim != 4 or s.ndim != 3 or x.shape[:2] != s.shape[:2] or x.shape[2] not in (1, s.shape[2]) or x.shape[3] != 4:
        raise ShapeError(f"{name}: takes boxes (B, N, 1 or C, 4) and scores (B, N, C), not {x._type} and {s._type}")
    batch, count, classes = s.shape
    total = _size(name, max_total_size)
    if pad_per_class:
        total = min(total, _size(name, max_output_size_per_class) * int(classes))
    rows = batch * classes
    line = reshaped(permuted(s, (0, 2, 1)), (rows, count))
    order = _order(line)
    spread = reshaped(broadcast(permuted(x, (0, 2, 1, 3)), (batch, classes, count, 4)), (rows, count, 4))
    ordered, ranked = gather_scatter.gather(spread, order, 1, 1), run(I.take_along, line, order, axis=1)
    good = run(E.gt, ranked, _threshold(name, score_threshold, s))
    kept = _first(
        _by_overlap(ordered, good, _threshold(name, iou_threshold, x)), _limit(name, max_output_size_per_class)
    )
    # All classes of an image together: what is kept by decreasing score, then the rest.
    whole = classes * count
    kept, ranked, ordered = (
        reshaped(kept, (batch, whole)),
        reshaped(ranked, (batch, whole)),
        reshaped(ordered, (batch, whole, 4)),
    )
    labels = reshaped(broadcast(iota((1, classes, 1), 1, s.dtype), (batch, classes, count)), (batch, whole))
    best = _order(select(kept, ranked, float("-inf")))
    taken = min(total, int(whole))
    best = take_slice(best, 1, 0, taken)
    valid = run(I.take_along, kept, best, axis=1)
    found = select(reshaped(valid, (batch, taken, 1)), gather_scatter.gather(ordered, best, 1, 1), 0.0)
    if clip_boxes:
        found = run(E.maximum, run(E.minimum, found, constant_like(1.0, found)), constant_like(0.0, found))
    value = select(valid, run(I.take_along, ranked, best, axis=1), 0.0)
    label = select(valid, run(I.take_along, labels, best, axis=1), 0.0)
    number = run(R.reduce_sum, cast(valid, D.int32), axes=(1,), keepdims=False)
    return _grown(found, total), _grown(value, total), _grown(label, total), number


def _size(name: str, value: Any) -> int:
    """Return a number of boxes as an int."""
    count = int(value.item() if isinstance(value, Tensor) else value)
    if count < 0:
        raise arguments.wrong_value(name, "every number of boxes", "at least 0", count)
    return count


def _grown(x: Tensor, size: int) -> Tensor:
    """Return `x` with zeros added at the end of axis 1 up to a size."""
    return pad(x, (*(0, 0) * (x.ndim - 2), 0, size - int(x.shape[1]))) if size > int(x.shape[1]) else x
