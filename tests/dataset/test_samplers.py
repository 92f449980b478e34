"""Samplers: which rows they visit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds


def visited(sampler: Any, count: int = 10, **options: Any) -> list[int]:
    data = ds.NumpySlicesDataset(np.arange(count), sampler=sampler, **options)
    found = [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    if isinstance(sampler, ds.BuiltinSampler):
        assert data.get_dataset_size() == len(found)
    return found


def test_sequential() -> None:
    assert visited(ds.SequentialSampler(2, 5)) == [2, 3, 4, 5, 6]
    assert visited(ds.SequentialSampler(8, 5)) == [8, 9]
    with pytest.raises(ValueError, match="start_index 12 is not below the number of rows, 10"):
        visited(ds.SequentialSampler(12))


def test_random() -> None:
    order = visited(ds.RandomSampler(), 100)
    assert sorted(order) == list(range(100)) and order != list(range(100))
    assert len(set(visited(ds.RandomSampler(num_samples=4)))) == 4
    assert len(visited(ds.RandomSampler(num_samples=40))) == 10
    drawn = visited(ds.RandomSampler(replacement=True), 1000)
    # Of n draws with replacement about 1 - 1/e are distinct.
    assert 570 < len(set(drawn)) < 700


def test_subsets() -> None:
    assert visited(ds.SubsetSampler([3, 1, 3])) == [3, 1, 3]
    assert visited([4, 2]) == [4, 2]
    assert sorted(visited(ds.SubsetRandomSampler([3, 1, 5]))) == [1, 3, 5]
    assert len(visited(ds.SubsetRandomSampler([3, 1, 5], 2))) == 2
    with pytest.raises(ValueError, match="there is no row 10; rows are numbered 0 to 9"):
        visited(ds.SubsetSampler([3, 10]))
    for wrong in ([1.0], [True], ["a"], [[1], [2, 3]], range(2**64)):
        for kind in (ds.SubsetSampler, ds.IterSampler):
            with pytest.raises((TypeError, ValueError), match=f"{kind.__name__}: "):
                visited(kind(wrong))


def test_weighted() -> None:
    drawn = visited(ds.WeightedRandomSampler([0, 1, 0, 3], 4000), 4000)
    # As in MindSpore there are at most as many as rows.
    assert len(visited(ds.WeightedRandomSampler([0, 1, 0, 3], 4000))) == 10
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[2] == 0
    # Four standard deviations of a binomial with n = 4000 and p = 3/4 are 110.
    assert abs(counts[3] - 3000) < 110
    assert sorted(visited(ds.WeightedRandomSampler([0, 1, 0, 1], 2, False))) == [1, 3]
    # Without replacement those of weight 0 come last.
    assert sorted(visited(ds.WeightedRandomSampler([0, 1, 0, 1], None, False), 4)) == [0, 1, 2, 3]


def test_distributed_shards() -> None:
    def shards(**options: Any) -> list[list[int]]:
        return [visited(ds.DistributedSampler(3, shard, **options)) for shard in range(3)]

    assert shards(shuffle=False) == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    assert shards(shuffle=False, offset=1) == [[2, 5, 8], [0, 3, 6, 9], [1, 4, 7]]
    assert visited(ds.DistributedSampler(3, 1, shuffle=False, num_samples=2)) == [1, 4]
    mixed = shards()
    assert set(sum(mixed, [])) == set(range(10)) and sum(len(s) for s in mixed) == 12
    assert mixed == shards()
    with pytest.raises(ValueError, match="shard_id 3 is not below num_shards 3"):
        ds.DistributedSampler(3, 3)


def test_sharding_arguments_of_sources() -> None:
    def shard(number: int) -> list[int]:
        return visited(None, 7, shuffle=False, num_shards=2, shard_id=number)

    assert [shard(0), shard(1)] == [[0, 2, 4, 6], [1, 3, 5, 0]]
    with pytest.raises(ValueError, match="num_shards and shard_id must be given together"):
        visited(None, num_shards=2)
    with pytest.raises(ValueError, match="shuffle=False would have no effect"):
        visited(ds.SequentialSampler(), shuffle=False)


def test_pk() -> None:
    labels = np.array([0, 1, 2, 0, 1, 0, 2, 0])
    data = ds.NumpySlicesDataset({"row": np.arange(8), "label": labels}, sampler=ds.PKSampler(2))
    found = [[int(a) for a in row] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert [label for _, label in found] == [0, 0, 1, 1, 2, 2]
    assert len({row for row, _ in found}) == 6
    few = ds.NumpySlicesDataset({"label": labels}, sampler=ds.PKSampler(3, num_class=2, shuffle=True))
    drawn = [int(label) for (label,) in few.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert len(set(drawn[:3])) == len(set(drawn[3:])) == 1 and drawn[0] != drawn[3]
    with pytest.raises(ValueError, match="no column 'label'"):
        visited(ds.PKSampler(1))


def test_chains_and_own_samplers() -> None:
    outer = ds.SequentialSampler(1, 2)
    outer.add_child(ds.SubsetSampler([9, 8, 7, 6]))
    assert visited(outer) == [8, 7]

    class Even(ds.Sampler):
        def __iter__(self) -> Iterator[int]:
            return iter(range(0, self.dataset_size, 2))

    assert visited(Even()) == [0, 2, 4, 6, 8]
    assert visited(Even(num_samples=2)) == [0, 2]
    with pytest.raises(RuntimeError, match="there is a child sampler already"):
        outer.add_child(ds.SequentialSampler())


def test_numbers_of_samples() -> None:
    def chain(sampler: ds.BuiltinSampler, child: ds.BuiltinSampler) -> ds.BuiltinSampler:
        sampler.add_child(child)
        return sampler

    assert ds.SubsetSampler([1, 2, 3]).get_num_samples() == 3 and ds.SubsetSampler(3).indices.tolist() == [3]
    assert ds.SubsetRandomSampler([1, 2, 3], 2).get_num_samples() == 2
    assert ds.SubsetSampler([1, 2, 3], 9).get_num_samples() == 3
    assert chain(ds.SubsetSampler([1, 2, 3]), ds.SequentialSampler(0, 2)).get_num_samples() == 2
    assert chain(ds.SequentialSampler(0, 5), ds.SequentialSampler(0, 2)).get_num_samples() == 2
    assert ds.RandomSampler().get_num_samples() is ds.PKSampler(2).get_num_samples() is None
    wrong: Any = 3
    with pytest.raises(TypeError, match="add_child: sampler must be a sampler, not 3"):
        ds.SequentialSampler().add_child(wrong)


def test_row_numbers_may_come_with_a_count_and_without_shuffling() -> None:
    for make in (
        lambda **o: ds.NumpySlicesDataset([5, 6, 7], ["x"], **o),
        lambda **o: ds.GeneratorDataset([5, 6, 7], ["x"], **o),
    ):
        for options, wanted in (
            ({"shuffle": False}, [7, 5]),
            ({"num_samples": 1}, [7]),
            ({"num_samples": 1, "shuffle": False}, [7]),
        ):
            data = make(sampler=[2, 0], **options)
            assert [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)] == wanted
        clashes: list[dict[str, Any]] = [{"sampler": [2, 0], "shuffle": True}]
        clashes += [{"sampler": [2, 0], "num_shards": 2, "shard_id": 0}, {"sampler": range(2), "shuffle": True}]
        clashes += [{"sampler": ds.SequentialSampler(), "shuffle": False}]
        clashes += [{"sampler": ds.SequentialSampler(), "num_samples": 1}]
        for clash in clashes:
            with pytest.raises(ValueError, match="would have no effect; leave one out") as caught:
                make(**clash)
            assert isinstance(caught.value, RuntimeError)


def test_shards_of_joined_datasets() -> None:
    def joined(last: ds.Dataset, shard: int, **options: Any) -> tuple[list[int], int]:
        data = ds.NumpySlicesDataset({"x": [1, 2, 3]}, shuffle=False) + last
        data.use_sampler(ds.DistributedSampler(2, shard, **{"shuffle": False, **options}))
        return [int(x) for (x,) in data.create_tuple_iterator(num_epochs=1, output_numpy=True)], data.get_dataset_size()

    def more() -> ds.Dataset:
        return ds.NumpySlicesDataset({"x": [4, 5]}, shuffle=False)

    assert [joined(more(), shard) for shard in (0, 1)] == [([1, 3, 5], 3), ([2, 4], 2)]
    padding = [{"x": np.array(9)}]
    assert [joined(ds.PaddedDataset(padding), shard) for shard in (0, 1)] == [([1, 3], 2), ([2, 9], 2)]
    for options in ({"shuffle": True}, {"num_samples": 2}):
        with pytest.raises(ValueError, match="must have shuffle=False"):
            joined(more(), 0, **options)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_sampler_that_fails_is_named(workers: int) -> None:
    class Broken(ds.Sampler):
        def __iter__(self) -> Iterator[int]:
            yield 2
            raise KeyError("no rows")

    source = [np.int64(n) for n in range(5)]
    data = ds.GeneratorDataset(source, ["x"], sampler=Broken(), num_parallel_workers=workers)
    with pytest.raises(RuntimeError, match="Broken: the sampler failed after 1 row numbers: KeyError: 'no rows'"):
        next(data.create_tuple_iterator(num_epochs=1))
