"""`np.random` and `random` in users' functions: the same after `set_seed`, whatever else happens,
and nothing for the program to notice.
"""

from __future__ import annotations

import os
import pickle
import random
import threading
import time

import numpy as np
import pytest

import mycel as ms
import mycel.dataset as ds
from mycel.dataset.random_numbers import global_generators

ROWS = 40


@pytest.fixture(autouse=True)
def same_seed(monkeypatch):
    from mycel.common import seed

    monkeypatch.setattr(seed, "_seed", None)
    yield


def numbers():
    return ds.NumpySlicesDataset(np.arange(ROWS), ["x"], shuffle=False)


def draw(x):
    # A normal number leaves a second one in the generator, for whoever comes next.
    return np.array(
        [np.random.rand(), np.random.normal(), random.random(), random.gauss(0, 1), random.randint(0, 10**6)]
    )


def slowly(x):
    first = draw(x)
    if x % 7 == 0:
        time.sleep(0.001)
    return np.concatenate([first, draw(x)])


class Source:
    def __len__(self):
        return ROWS

    def __getitem__(self, number):
        return draw(number)


class UserSampler(ds.Sampler):
    def __iter__(self):
        return iter(np.random.permutation(self.dataset_size).tolist())


def generate():
    start = np.random.rand()
    for number in range(ROWS):
        yield draw(number) + start


PIPELINES = {
    "map": lambda w: numbers().map(slowly, num_parallel_workers=w),
    "two maps": lambda w: (
        numbers().map(draw, num_parallel_workers=w).map(lambda a: a + draw(a), num_parallel_workers=w)
    ),
    "two operations": lambda w: numbers().map([draw, lambda a: a + draw(a)], num_parallel_workers=w),
    "filter": lambda w: numbers().filter(lambda x: np.random.rand() < 0.5),
    "getitem": lambda w: ds.GeneratorDataset(Source(), ["x"], num_parallel_workers=w),
    "generator": lambda w: ds.GeneratorDataset(generate, ["x"], num_parallel_workers=w),
    "sampler": lambda w: ds.NumpySlicesDataset(np.arange(ROWS), ["x"], sampler=UserSampler()),
    "per_batch_map": lambda w: numbers().batch(3, per_batch_map=lambda x, info: ([draw(v) for v in x],)),
    "batch_size": lambda w: numbers().batch(lambda info: int(np.random.randint(1, 4))),
    "zip": lambda w: numbers().map(draw, num_parallel_workers=w).zip(numbers().rename("x", "y")).batch(4),
    "collate": lambda w: ds.GeneratorDataset(
        np.arange(ROWS), ["x"], batch_sampler=[[n, n + 1] for n in range(0, ROWS, 2)], collate_fn=draw
    ),
}


def rows(data, epochs=2):
    iterator = data.create_tuple_iterator(num_epochs=epochs, output_numpy=True)
    return [[row[0].tolist() for row in iterator] for _ in range(epochs)]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_what_is_drawn_is_a_function_of_the_seed(pipeline):
    make = PIPELINES[pipeline]
    ms.set_seed(4)
    expected = rows(make(1))
    assert expected[0] != expected[1]
    for workers in (1, 3):
        ms.set_seed(4)
        # Abandoned after a while, having read ahead.
        others = [iter(make(2).create_tuple_iterator(output_numpy=True)) for _ in range(3)]
        for other in others:
            next(other)
        np.random.rand(5), random.random()
        assert rows(make(workers)) == expected
        for other in others:
            other.stop()
    ms.set_seed(5)
    assert rows(make(1)) != expected


def test_rows_differ_and_look_uniform():
    ds.config.set_seed(1)
    data = ds.NumpySlicesDataset(np.arange(4000), ["x"], shuffle=False).map(
        lambda x: np.array([np.random.rand(), random.random()]), num_parallel_workers=2
    )
    found = np.array(rows(data, 1)[0])
    assert len(np.unique(found)) == 8000
    counts = np.stack([np.histogram(column, 20, (0, 1))[0] for column in found.T])
    # Chi-square with 19 degrees of freedom: beyond 60 once in 10**5.
    assert (((counts - 200) ** 2 / 200).sum(1) < 60).all()
    assert abs(np.corrcoef(found.T)[0, 1]) < 0.08 and abs(np.corrcoef(found[1:, 0], found[:-1, 0])[0, 1]) < 0.08


def test_a_resumed_pass_draws_what_would_have_followed():
    ms.set_seed(8)
    data = PIPELINES["map"](2).batch(3)
    first = data.create_tuple_iterator(output_numpy=True)
    for _ in range(5):
        next(first)
    second = data.create_tuple_iterator(output_numpy=True)
    second.load_state_dict(first.state_dict())
    assert [next(first)[0].tolist() for _ in range(4)] == [next(second)[0].tolist() for _ in range(4)]
    first.stop(), second.stop()


@pytest.mark.parametrize("workers", (1, 3))
def test_the_programs_own_numbers_are_those_that_it_seeded(workers):
    ms.set_seed(3)
    random.seed(3)
    expected = np.random.RandomState(3)
    others = random.Random(3)
    data = PIPELINES["map"](workers).repeat(20)
    for _ in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
        assert np.random.normal() == expected.normal()
        assert np.random.randint(1000) == expected.randint(1000)
        assert random.gauss(0, 1) == others.gauss(0, 1) and random.choice(range(99)) == others.choice(range(99))
        time.sleep(0)
    saved, kept = np.random.get_state(), random.getstate()
    next(iter(data))
    assert np.random.rand() == expected.rand()
    np.random.set_state(saved)
    random.setstate(kept)
    assert np.random.rand() != expected.rand() and random.random() == others.random()
    assert saved[0] == "MT19937" and pickle.loads(pickle.dumps(saved))[2] == saved[2]


def test_functions_may_seed_and_save_states_for_themselves():
    def own(x):
        np.random.seed(int(x))
        random.seed(int(x))
        state, kept = np.random.get_state(), random.getstate()
        first = [np.random.normal(), random.random()]
        np.random.set_state(state)
        random.setstate(kept)
        assert [np.random.normal(), random.random()] == first
        return np.array(first)

    ms.set_seed(2)
    before = np.random.RandomState(2)
    found = np.array(rows(numbers().map(own, num_parallel_workers=2), 1)[0])
    assert found[:, 0].tolist() == [np.random.RandomState(n).normal() for n in range(ROWS)]
    assert found[:, 1].tolist() == [random.Random(n).random() for n in range(ROWS)]
    assert np.random.rand() == before.rand()


def test_without_a_seed_functions_draw_from_the_programs_generators():
    found = []
    for _ in range(2):
        np.random.seed(5)
        random.seed(5)
        found.append(rows(PIPELINES["map"](1), 1))
    state = np.random.RandomState(5)
    assert found[0] == found[1] and found[0][0][0][:2] == [state.rand(), state.normal()]


def test_counting_and_shapes_leave_the_programs_numbers_alone():
    ms.set_seed(6)
    expected = np.random.RandomState(6).rand()
    data = PIPELINES["generator"](1)
    assert data.get_dataset_size() == ROWS and data.output_shapes() == [[5]] and len(data.output_types()) == 1
    assert np.random.rand() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_the_programs_numbers():
    ms.set_seed(7)
    expected = np.random.RandomState(7)
    iterator = iter(PIPELINES["map"](2).repeat().create_tuple_iterator(output_numpy=True))
    next(iterator)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, repr([np.random.rand(), np.random.normal()]).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 1000).decode() == repr([expected.rand(), expected.normal()])
    os.close(reading)
    iterator.stop()


def test_a_generator_of_the_programs_own_is_left_alone(monkeypatch):
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(1))
    monkeypatch.setattr(global_generators, "_installed", False)
    try:
        ms.dataset.config.set_seed(1)
        assert len(rows(PIPELINES["map"](1), 1)[0]) == ROWS
        assert type(np.random.get_bit_generator()) is np.random.PCG64
    finally:
        np.random.set_bit_generator(before)


def test_threads_of_the_program_are_unaffected():
    ms.set_seed(9)
    stop = threading.Event()
    drawn = []

    def own_thread():
        generator = np.random.default_rng(1)
        while not stop.is_set():
            drawn.append(generator.random())

    thread = threading.Thread(target=own_thread)
    thread.start()
    expected = rows(PIPELINES["map"](2), 1)
    stop.set()
    thread.join()
    again = np.random.default_rng(1)
    assert drawn == [again.random() for _ in drawn] and rows(PIPELINES["map"](1), 1) == expected


def test_functions_that_draw_are_refused_as_before():
    global_generators.install()
    with pytest.raises(ms.errors.CompileError, match=r"random\.random\(\) has to run at each call.*functions of ops"):
        ms.jit(lambda x: x * random.random(), fullgraph=True)(ms.Tensor(1.0))
