"""Cuts against all cuts, and schedules against the known formulas of their bubbles."""

import itertools

import numpy as np
import pytest

from mycel._src.planner.pipeline_stages import SCHEDULES, Work, cut, played, schedule


def slowest(seconds, moved, starts):
    ends = [*starts[1:], len(seconds)]
    own = [
        sum(seconds[a:b]) + (moved[a - 1] if a else 0) + (moved[b - 1] if b < len(seconds) else 0)
        for a, b in zip(starts, ends)
    ]
    return max(own), sum(moved[a - 1] for a in starts[1:])


@pytest.mark.parametrize("seed", range(20))
def test_cuts_are_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    blocks, stages = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    seconds, moved, held = (rng.integers(1, 9, blocks).tolist() for _ in range(3))
    limit = float(rng.integers(8, 40))
    all_cuts = [(0, *c) for c in itertools.combinations(range(1, blocks), stages - 1)]
    fitting = [c for c in all_cuts if all(sum(held[a:b]) <= limit for a, b in zip(c, [*c[1:], blocks]))]
    if not fitting:
        with pytest.raises(ValueError, match="no cut of"):
            cut(seconds, stages, moved, held, limit)
        return
    found = cut(seconds, stages, moved, held, limit)
    assert (found.slowest, found.moved) == slowest(seconds, moved, found.starts)
    assert found.starts in fitting
    assert found.slowest == min(slowest(seconds, moved, c)[0] for c in fitting)


def test_a_cut_needs_a_block_for_each_stage():
    with pytest.raises(ValueError, match="3 blocks cannot be cut into 4 stages"):
        cut([1, 1, 1], 4)


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("devices, microbatches", [(1, 1), (2, 4), (4, 8), (3, 9), (4, 4), (8, 32)])
def test_schedules_do_all_work_once(kind, devices, microbatches):
    for chunks in (1, 2, 3) if kind == "interleaved" else (1,):
        plan = schedule(kind, devices, microbatches, chunks)
        for d, works in enumerate(plan):
            expected = {
                Work(c * devices + d, m, b) for c in range(chunks) for m in range(microbatches) for b in (False, True)
            }
            assert len(works) == len(expected) and set(works) == expected
        stages = devices * chunks
        result = played(plan, [1 / chunks] * stages, [2 / chunks] * stages)
        # The share of the time in which a device stands still; the ideal time is m * (f + b).
        ideal = microbatches * 3
        assert result.seconds - ideal == pytest.approx((devices - 1) * 3 / chunks)
        assert result.bubble == pytest.approx((result.seconds - ideal) / result.seconds)


def test_one_forward_one_backward_keeps_no_more_than_stages():
    assert played(schedule("gpipe", 4, 16), [1] * 4, [2] * 4).kept == (16, 16, 16, 16)
    assert played(schedule("1f1b", 4, 16), [1] * 4, [2] * 4).kept == (4, 3, 2, 1)


def test_schedules_refuse_what_they_cannot_do():
    with pytest.raises(ValueError, match="multiple of 4 microbatches"):
        schedule("interleaved", 4, 6, 2)
    with pytest.raises(ValueError, match="one stage a device"):
        schedule("gpipe", 4, 8, 2)
    with pytest.raises(ValueError, match="waits for ever"):
        played([[Work(0, 0, True), Work(0, 0)]], [1.0], [1.0])


def test_messages_take_their_time():
    result = played(schedule("gpipe", 2, 1), [1, 1], [2, 2], [0.5, 0])
    assert result.seconds == 1 + 0.5 + 1 + 2 + 0.5 + 2
    assert result.times[1] == ((1.5, 2.5), (2.5, 4.5))
