"""Draws by native code are those of Python."""

import threading

import numpy as np
import pytest

from mycel._src.engines.routines import native_random_draws
from mycel.dataset.random_numbers import random_streams
from mycel.dataset.random_numbers.random_streams import Stream

GAMMA, MULTIPLY = 0x9E3779B97F4A7C15, (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def make(native):
    """Return a class with the methods of `Stream`, in Python or not."""

    class Own:
        __slots__ = ("seeded", "words")

        def __init__(self, key):
            self.words = np.array([key % 2**64] * 2, np.uint64)

        def bits(self):
            """Draw 64 random bits."""
            state = (int(self.words[0]) + GAMMA) % 2**64
            self.words[0] = state
            return random_streams.mix(state)

        def uniform(self, low=0.0, high=1.0):
            return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

        def integer(self, low, high):
            if high < low:
                raise ValueError(f"integer: the range {low} .. {high} is empty")
            return low + (self.bits() * (high - low + 1) >> 64)

        def begin(self, key):
            self.words[:] = key % 2**64
            return self

    if native:
        assert native_random_draws.given_to(Own, Own(0), GAMMA, MULTIPLY)
        assert Own.bits.__doc__ == "Draw 64 random bits."
    return Own


def drawn(kind):
    stream, found = kind(-3), []
    for key in (0, 1, 2**64 - 1, 2**63, -5, 2**70 + 3):
        assert stream.begin(key) is stream
        for _ in range(50):
            found += [stream.bits(), stream.uniform(), stream.uniform(2), stream.uniform(-1.0, 3), stream.uniform(-1)]
            found += [stream.integer(0, 9), stream.integer(-5, -5), stream.integer(-1, -1), stream.integer(-7, -1)]
            found += [stream.integer(-(2**63), 2**63 - 1)]
        found += stream.words.tolist()
    return found


def test_draws_are_those_of_python():
    one, other = drawn(make(True)), drawn(make(False))
    assert one == other
    assert [type(value) for value in one if type(value) is not int] == [float] * (6 * 50 * 4)


def test_what_is_not_taken_is_refused():
    stream = make(True)(4)
    before = stream.words.tolist()
    with pytest.raises(ValueError, match=r"integer: the range 3 \.\. 2 is empty"):
        stream.integer(3, 2)
    with pytest.raises(OverflowError):
        stream.integer(0, 2**63)
    for wrong in (lambda: stream.integer(1), lambda: stream.uniform(1, 2, 3), lambda: stream.bits(1)):
        with pytest.raises(TypeError, match="a draw does not take"):
            wrong()
    for wrong in (lambda: stream.integer("a", 2), lambda: stream.uniform("a"), lambda: stream.begin("a")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError):
        type(stream).bits(3)
    assert stream.words.tolist() == before


def test_streams_of_a_process_begin_to_draw_natively():
    expected = [random_streams.mix(5 + n * GAMMA) for n in range(1, 401)]
    stream = Stream(5)
    assert [stream.bits() for _ in range(400)] == expected
    assert type(Stream.bits).__name__ == "method_descriptor"
    assert (stream.key, stream.state) == (5, (5 + 400 * GAMMA) % 2**64)
    stream.begin(5)
    assert stream.uniforms(3).tolist() == [(bits >> 11) * 2.0**-53 for bits in expected[:3]]
    assert stream.bits() == expected[3]


def test_threads_share_a_stream_without_equal_draws():
    stream, found = Stream(9), []
    Stream(0).permutation(300)

    def draw():
        found.extend([stream.bits() for _ in range(2000)])

    workers = [threading.Thread(target=draw) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(found) == sorted(random_streams.mix(9 + n * GAMMA) for n in range(1, 8001))
