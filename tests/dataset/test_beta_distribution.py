"""Numbers of beta distributions are those of NumPy's generators."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from mycel._src.engines.routines import compiled_routines
from mycel.dataset.random_numbers.beta_distribution import betas


def by_numpy(seeds, alpha):
    return [float(np.random.Generator(np.random.PCG64(seed)).beta(alpha, alpha)) for seed in seeds]


SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1]
SEEDS += np.random.default_rng(0).integers(0, 2**64, 200, np.uint64).tolist()


@pytest.mark.parametrize("alpha", [1e-3, 0.2, 1.0, 1.5, 40.0])
def test_each_seed_gives_what_a_generator_of_its_own_gives(alpha):
    assert betas(SEEDS, alpha) == by_numpy(SEEDS, alpha)
    assert betas(SEEDS[3:5], alpha) == by_numpy(SEEDS[3:5], alpha)


def test_without_seeds_and_without_routines(monkeypatch):
    assert betas([], 1.0) == []
    monkeypatch.setattr(compiled_routines, "base", SimpleNamespace(current=lambda: SimpleNamespace(name="reference")))
    assert betas(SEEDS[:9], 0.7) == by_numpy(SEEDS[:9], 0.7)


def test_threads_have_generators_of_their_own():
    found = {}

    def draw(number):
        found[number] = [betas(SEEDS[number : number + 5], 0.3) for _ in range(50)]

    workers = [threading.Thread(target=draw, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for number, rows in found.items():
        assert rows == [by_numpy(SEEDS[number : number + 5], 0.3)] * 50
