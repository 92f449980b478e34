"""Checkpoints of several ranks: cut by NumPy here, put together and cut anew by Mycel; strategy
files as MindSpore 2.10 writes them.
"""

import json
import os

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel._src.foundation.files.protobuf_wire import WireError, field, fields
from mycel.train import unified_checkpoints
from mycel.train.checkpoint_format import CheckpointError, read_ckpt, read_safetensors, write_ckpt, write_safetensors
from mycel.train.strategies import Dims, ParallelLayouts, layouts_of, write_strategy

CHECKED = dict.fromkeys(
    [
        prefix + name
        for prefix, names in (
            (
                "train.",
                "build_searched_strategy get_ckpt_path_with_strategy load_distributed_checkpoint "
                "merge_sliced_parameter restore_group_info_list",
            ),
            (
                "",
                "load_segmented_checkpoints merge_pipeline_strategys rank_list_for_transform "
                "transform_checkpoint_by_rank transform_checkpoints unified_safetensors",
            ),
        )
        for name in names.split()
    ],
    "NumPy",
)
SHAPES = {"w": (16, 32), "b": (64,), "e.k": (32, 8, 16)}


def entry(devices, tensor_map, step=0, size=0, **more):
    nested = [Dims(m if isinstance(m, list) else [m]) for m in tensor_map]
    maps = nested if any(isinstance(m, list) for m in tensor_map) else [Dims(list(tensor_map))]
    return ParallelLayouts([Dims(list(devices))], maps, [Dims([])], [Dims([])], 0, step, size, **more)


def part_of(array, layout, rank):
    """What a rank holds, by cutting with NumPy along one axis of the devices after the other."""
    devices = layout.dev_matrix[0].dim
    at = np.unravel_index(rank % int(np.prod(devices)), devices)
    maps = [d.dim for d in layout.tensor_map] if len(layout.tensor_map) > 1 else [[n] for n in layout.tensor_map[0].dim]
    used = set()
    for axis, numbers in enumerate(maps):
        for n in numbers:
            if n != -1:
                place = len(devices) - 1 - n
                used.add(place)
                array = np.split(array, devices[place], axis)[at[place]]
    if layout.opt_weight_shard_size:
        size = layout.opt_weight_shard_size
        array = np.split(array, size)[rank // layout.opt_weight_shard_step % size]
    return array


def save(folder, strategy, full, stages=None, kind="ckpt", **more):
    count = int(np.prod(next(iter(strategy.values())).dev_matrix[0].dim))
    for rank in range(count * (2 if stages else 1)):
        entries = {
            name: np.ascontiguousarray(part_of(array, strategy[name], rank))
            for name, array in full.items()
            if stages is None or rank // count in stages[name]
        }
        os.makedirs(folder / f"rank_{rank}")
        write = write_ckpt if kind == "ckpt" else write_safetensors
        write(folder / f"rank_{rank}" / f"net-1_5.{kind}", {**entries, **more})


def whole(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


PLANS = [
    {"w": entry([4, 2], [0, 1]), "b": entry([4, 2], [-1]), "e.k": entry([4, 2], [-1, 0, -1])},
    {"w": entry([2, 2, 2], [0, -1], 2, 4), "b": entry([2, 2, 2], [-1], 1, 8), "e.k": entry([2, 2, 2], [0, 1, 2])},
    {"w": entry([2, 2, 2], [0, 1], 4, 2), "b": entry([2, 2, 2], [1]), "e.k": entry([2, 2, 2], [2, -1, -1])},
    {"w": entry([2, 4], [[1, 0], -1]), "b": entry([2, 4], [0]), "e.k": entry([2, 4], [[0, 1], -1, -1])},
    {"w": entry([4], [-1, 0]), "b": entry([4], [-1], 1, 4), "e.k": entry([4], [-1, -1, 0])},
    {"w": entry([1], [-1, -1]), "b": entry([1], [-1]), "e.k": entry([1], [-1, -1, -1])},
]


@pytest.mark.parametrize(("source", "target"), [(s, (s + k) % 6) for s in range(6) for k in (1, 4)] + [(1, 1)])
def test_every_rank_gets_its_part(tmp_path, source, target):
    full = whole()
    paths = []
    for number in (source, target):
        paths.append(str(tmp_path / f"strategy{len(paths)}.ckpt"))
        write_strategy(paths[-1], PLANS[number])
    save(tmp_path / "in", PLANS[source], full, epoch=np.array(3, np.int32), note="x")
    ms.transform_checkpoints(str(tmp_path / "in"), str(tmp_path / "out"), "p", *paths)
    count = layouts_of(paths[1])["w"].count
    assert sorted(os.listdir(tmp_path / "out")) == sorted(f"rank_{r}" for r in range(count))
    for rank in range(count):
        found = read_ckpt(tmp_path / "out" / f"rank_{rank}" / f"p{rank}.ckpt")
        assert found.pop("epoch") == 3 and found.pop("note") == "x" and found.keys() == full.keys()
        for name, array in full.items():
            np.testing.assert_array_equal(found[name], part_of(array, PLANS[target][name], rank))
        ranks = ms.rank_list_for_transform(rank, *paths)
        assert ranks == sorted(set(ranks), reverse=True)
        files = {r: str(tmp_path / "in" / f"rank_{r}" / "net-1_5.ckpt") for r in ranks}
        ms.transform_checkpoint_by_rank(rank, files, str(tmp_path / "one.ckpt"), *paths)
        single = read_ckpt(tmp_path / "one.ckpt")
        for name in full:
            np.testing.assert_array_equal(single[name], found[name])


def test_ranks_are_those_that_hold_what_is_needed(tmp_path):
    given = {"w": entry([2, 2], [-1, 0])}
    assert ms.rank_list_for_transform(0, given, None) == [1, 0]
    assert ms.rank_list_for_transform(3, given, {"w": entry([4], [-1, -1])}) == [3, 2]
    assert ms.rank_list_for_transform(2, given, given) == [2]
    assert ms.rank_list_for_transform(3, None, given) == [0]
    with pytest.raises(ValueError, match="rank 4 is not one of the target's 4 ranks"):
        ms.rank_list_for_transform(4, given, given)
    with pytest.raises(TypeError, match="rank_id must be an int"):
        ms.rank_list_for_transform("0", given, given)


STAGES = [
    {"emb": entry([2, 2], [0, -1], 2, 2), "l0.w": entry([2, 2], [-1, 0])},
    {"l1.w": entry([2, 2], [0, -1]), "emb": entry([2, 2], [0, -1], 2, 2)},
]
# The two, as MindSpore 2.10 merged them.
MERGED_BY_MINDSPORE = (
    "0801120e0a026e3012080800120408010802120e0a026e31120808011204080108021a280a05302d656d62121f0a0408020802120d0800"
    "08ffffffffffffffffff011a0022002800300238021a290a06302d6c302e77121f0a0408020802120d08ffffffffffffffffff0108001a"
    "0022002800300038001a290a06312d6c312e77121f0a0408020802120d080008ffffffffffffffffff011a0022002800300038001a280a"
    "05312d656d62121f0a0408020802120d080008ffffffffffffffffff011a002200280030023802"
)


def node(stage):
    return field(1, f"n{stage}") + field(2, field(1, stage) + field(2, field(1, 1) + field(1, 2)))


def pipeline(tmp_path):
    os.makedirs(tmp_path / "stages")
    for number, strategy in enumerate(STAGES):
        write_strategy(tmp_path / "stages" / f"s{number}.ckpt", strategy, [node(number)])
    path = str(tmp_path / "merged.ckpt")
    ms.merge_pipeline_strategys(str(tmp_path / "stages"), path)
    full = {"emb": (16, 8), "l0.w": (8, 8), "l1.w": (8, 4)}
    full = {name: np.random.default_rng(3).normal(size=shape).astype(np.float32) for name, shape in full.items()}
    return path, {**STAGES[0], **STAGES[1]}, full, {"emb": (0, 1), "l0.w": (0,), "l1.w": (1,)}


@pytest.mark.parametrize("kind", ["ckpt", "safetensors"])
def test_pipeline_stages_are_put_together_and_taken_apart(tmp_path, kind):
    merged, strategy, full, stages = pipeline(tmp_path)
    assert list(ms.build_searched_strategy(merged)) == ["0-emb", "0-l0.w", "1-l1.w", "1-emb"]
    assert layouts_of(merged)["emb"].stages == (0, 1)
    save(tmp_path / "in", strategy, full, stages, kind, step=np.array(7, np.int32))
    target = {"emb": entry([4], [-1, 0]), "l0.w": entry([4], [0, -1]), "l1.w": entry([4], [-1, -1], 1, 4)}
    write_strategy(tmp_path / "dst.ckpt", target)
    goal = str(tmp_path / "dst.ckpt")
    ms.transform_checkpoints(str(tmp_path / "in"), str(tmp_path / "mid"), "p", merged, goal, output_format=kind)
    read = read_ckpt if kind == "ckpt" else read_safetensors
    for rank in range(4):
        found = read(tmp_path / "mid" / f"rank_{rank}" / f"p{rank}.{kind}")
        assert found.pop("step") == 7 and found.keys() == full.keys()
        for name, array in full.items():
            np.testing.assert_array_equal(found[name], part_of(array, target[name], rank))
    ms.transform_checkpoints(str(tmp_path / "mid"), str(tmp_path / "back"), "p", goal, merged, output_format=kind)
    for rank in range(8):
        found = read(tmp_path / "back" / f"rank_{rank}" / f"p{rank}.{kind}")
        before = read(tmp_path / "in" / f"rank_{rank}" / f"net-1_5.{kind}")
        assert found.keys() == before.keys()
        for name, array in before.items():
            np.testing.assert_array_equal(found[name], array)


def test_strategies_are_what_mindspore_writes(tmp_path):
    merged, *_ = pipeline(tmp_path)
    with open(merged, "rb") as file:
        assert file.read().hex() == MERGED_BY_MINDSPORE


def test_strategies_in_json(tmp_path):
    for number, strategy in enumerate(STAGES):
        items = {
            name: {
                "dev_matrix": e.dev_matrix[0].dim,
                "tensor_map": e.tensor_map[0].dim,
                "field": 0,
                "opt_weight_shard_step": e.opt_weight_shard_step,
                "opt_weight_shard_size": e.opt_weight_shard_size,
            }
            for name, e in strategy.items()
        }
        content = {"parallel_strategy_item": {f"n{number}": {"stage": number}}, "parallel_layout_item": items}
        os.makedirs(tmp_path / "json", exist_ok=True)
        (tmp_path / "json" / f"s{number}.json").write_text(json.dumps(content))
    ms.merge_pipeline_strategys(str(tmp_path / "json"), str(tmp_path / "merged.json"))
    binary, *_ = pipeline(tmp_path)
    assert layouts_of(str(tmp_path / "merged.json")) == layouts_of(binary)


def test_one_stage_of_several_gives_parts_of_checkpoints(tmp_path):
    _, strategy, full, stages = pipeline(tmp_path)
    save(tmp_path / "in", strategy, full, stages)
    target = {"emb": entry([2], [-1, 0]), "l0.w": entry([2], [0, -1]), "l1.w": entry([2], [-1, -1])}
    write_strategy(tmp_path / "dst.ckpt", target)
    for number in range(2):
        path = str(tmp_path / "stages" / f"s{number}.ckpt")
        ms.transform_checkpoints(str(tmp_path / "in"), str(tmp_path / "out"), "p", path, str(tmp_path / "dst.ckpt"))
    for rank in range(2):
        folder = tmp_path / "out" / f"rank_{rank}"
        assert sorted(os.listdir(folder)) == [f"p{rank}_part0.ckpt", f"p{rank}_part1.ckpt"]
        loaded = ms.load_segmented_checkpoints(str(folder))
        assert loaded.keys() == full.keys()
        for name, array in full.items():
            np.testing.assert_array_equal(loaded[name].asnumpy(), part_of(array, target[name], rank))


def test_segmented_checkpoints_go_into_a_network(tmp_path):
    net, other = nn.Dense(3, 2), nn.Dense(3, 2)
    ms.save_checkpoint(net, tmp_path / "a.ckpt", choice_func=lambda name: name == "weight")
    ms.save_checkpoint(net, tmp_path / "b.ckpt", choice_func=lambda name: name == "bias")
    loaded = ms.load_segmented_checkpoints(str(tmp_path), other)
    assert loaded.keys() == {"weight", "bias"}
    for mine, theirs in zip(other.get_parameters(), net.get_parameters()):
        np.testing.assert_array_equal(mine.asnumpy(), theirs.asnumpy())
    with pytest.raises(CheckpointError, match="there is no folder"):
        ms.load_segmented_checkpoints(str(tmp_path / "no"))
    os.makedirs(tmp_path / "empty")
    with pytest.raises(CheckpointError, match="there is no .ckpt file"):
        ms.load_segmented_checkpoints(str(tmp_path / "empty"))


@pytest.mark.parametrize("redundant", [True, False])
def test_safetensors_are_unified_and_distributed(tmp_path, redundant, monkeypatch):
    monkeypatch.setattr(unified_checkpoints, "_PART", 10000)
    merged, strategy, full, stages = pipeline(tmp_path)
    full["emb"] = np.random.default_rng(4).normal(size=(256, 32)).astype(np.float32)
    save(tmp_path / "in", strategy, full, stages, "safetensors", step=np.array(7, np.int32))
    if not redundant:
        # What the second of two ranks repeats is left out, as MindSpore does with
        # remove_redundancy.
        for rank in (2, 3):
            path = tmp_path / "in" / f"rank_{rank}" / "net-1_5.safetensors"
            entries = read_safetensors(path)
            del entries["l0.w"]
            write_safetensors(path, entries)

    def renamed(name):
        return "embedding" if name == "emb" else name != "l1.w"

    folder = tmp_path / "one"
    ms.unified_safetensors(
        str(tmp_path / "in"), merged, str(folder), merge_with_redundancy=redundant, choice_func=renamed
    )
    places = json.loads((folder / "param_name_map.json").read_text())
    assert places["weight_map"].keys() == {"embedding", "l0.w"}
    assert places["metadata"]["total_size"] == full["emb"].nbytes + full["l0.w"].nbytes
    assert len(set(places["weight_map"].values())) == 2
    np.testing.assert_array_equal(
        read_safetensors(folder / places["weight_map"]["embedding"])["embedding"], full["emb"]
    )
    assert read_safetensors(folder / "hyper_param.safetensors") == {"step": 7}

    target = {"emb": entry([2], [0, -1]), "l0.w": entry([2], [-1, 0])}
    write_strategy(tmp_path / "dst.ckpt", target)
    options = {"format": "safetensors", "unified_safetensors_dir": str(folder), "name_map": {"emb": "embedding"}}
    assert ms.load_distributed_checkpoint(
        None, predict_strategy=str(tmp_path / "dst.ckpt"), dst_safetensors_dir=str(tmp_path / "out"), **options
    )
    for rank in range(2):
        found = read_safetensors(tmp_path / "out" / f"rank_{rank}" / "net.safetensors")
        assert found.keys() == {"emb", "l0.w", "step"}
        for name, layout in target.items():
            np.testing.assert_array_equal(found[name], part_of(full[name], layout, rank))
    net = nn.Cell()
    net.emb = ms.Parameter(np.zeros((256, 32), np.float32), name="emb")
    assert ms.load_distributed_checkpoint(net, **options) == ([], ["l0.w", "step"])
    np.testing.assert_array_equal(net.emb.asnumpy(), full["emb"])
    given = ms.load_distributed_checkpoint(net, return_param_dict=True, **options)
    np.testing.assert_array_equal(given["l0.w"].asnumpy(), full["l0.w"])


def test_distributed_checkpoints_go_into_a_network(tmp_path):
    full = whole(2)
    net = nn.Cell()
    net.w = ms.Parameter(np.zeros((16, 32), np.float32), name="w")
    net.b = ms.Parameter(np.zeros(64, np.float32), name="b")
    save(tmp_path / "in", PLANS[1], full)
    write_strategy(tmp_path / "s.ckpt", PLANS[1])
    files = [str(tmp_path / "in" / f"rank_{r}" / "net-1_5.ckpt") for r in range(8)]
    assert ms.load_distributed_checkpoint(net, files, None, str(tmp_path / "s.ckpt")) is True
    np.testing.assert_array_equal(net.w.asnumpy(), full["w"])
    np.testing.assert_array_equal(net.b.asnumpy(), full["b"])
    with pytest.raises(ValueError, match="give train_strategy_filename, or strategy_ckpt_load_file"):
        ms.load_distributed_checkpoint(net, files)
    net.w.set_data(np.zeros((16, 32), np.float32))
    ms.set_auto_parallel_context(strategy_ckpt_load_file=str(tmp_path / "s.ckpt"))
    try:
        ms.load_distributed_checkpoint(net, files)
    finally:
        ms.reset_auto_parallel_context()
    np.testing.assert_array_equal(net.w.asnumpy(), full["w"])
    net.w = ms.Parameter(np.zeros((8, 32), np.float32), name="w")
    predicted = {"w": [[2], [0, -1], [], 0], "b": [[2], [-1], [], 0]}
    ms.load_distributed_checkpoint(net, files, predicted, str(tmp_path / "s.ckpt"))
    np.testing.assert_array_equal(net.w.asnumpy(), full["w"][:8])
    before = net.w.asnumpy().copy()
    with pytest.raises(ValueError, match="7 files are given, and the strategy is for 8 devices"):
        ms.load_distributed_checkpoint(net, files[:7], None, str(tmp_path / "s.ckpt"))
    with pytest.raises(ValueError, match="predict_strategy must map names to lists"):
        ms.load_distributed_checkpoint(net, files, {"w": [[2]]}, str(tmp_path / "s.ckpt"))
    with pytest.raises(RuntimeError, match="has shape"):
        ms.load_distributed_checkpoint(net, files, None, str(tmp_path / "s.ckpt"))
    np.testing.assert_array_equal(net.w.asnumpy(), before)


def test_parameters_are_merged():
    rng = np.random.default_rng(0)
    full = rng.normal(size=(8, 6)).astype(np.float32)
    layout = entry([2, 2], [1, 0])
    parts = [ms.Parameter(np.ascontiguousarray(part_of(full, layout, r)), name="w") for r in range(4)]
    np.testing.assert_array_equal(ms.merge_sliced_parameter(parts, {"w": layout}).asnumpy(), full)
    np.testing.assert_array_equal(
        ms.merge_sliced_parameter(parts).asnumpy(), np.concatenate([p.asnumpy() for p in parts])
    )
    uneven = entry([3], [0, -1])
    uneven.param_split_shape = [Dims([1, 5, 2])]
    parts = [ms.Parameter(a, name="w") for a in np.split(full, [1, 6])]
    np.testing.assert_array_equal(ms.merge_sliced_parameter(parts, {"w": uneven}).asnumpy(), full)
    fielded = entry([2], [0, -1])
    fielded.field = 2
    parts = [ms.Parameter(a, name="w") for a in np.split(full, 2)]
    merged = ms.merge_sliced_parameter(parts, {"w": fielded}).asnumpy()
    # As MindSpore does: the rows of a field come from all devices, one field after the other.
    np.testing.assert_array_equal(merged, full[[0, 1, 4, 5, 2, 3, 6, 7]])
    with pytest.raises(ValueError, match="1 parts of 'w' are given, and the strategy is for 2 devices"):
        ms.merge_sliced_parameter(parts[:1], {"w": fielded})
    with pytest.raises(KeyError, match="the strategy has no parameter 'w'"):
        ms.merge_sliced_parameter(parts, {"v": fielded})
    with pytest.raises(ValueError, match="part 1 is 'v'"):
        ms.merge_sliced_parameter([parts[0], ms.Parameter(np.zeros((4, 6), np.float32), name="v")])
    with pytest.raises(TypeError, match="holds parameters, not int"):
        ms.merge_sliced_parameter([3])


def test_checkpoints_of_others_are_found(tmp_path):
    write_strategy(tmp_path / "s.ckpt", {"w": entry([2, 2], [-1, 0]), "b": entry([2, 2], [-1])})
    path = str(tmp_path / "rank_0" / "a.ckpt")
    found = lambda: ms.get_ckpt_path_with_strategy(path, str(tmp_path / "s.ckpt"))
    assert found() is None
    for rank in (3, 2):
        os.makedirs(tmp_path / f"rank_{rank}")
        (tmp_path / f"rank_{rank}" / "a.ckpt").write_bytes(b"x")
        assert found() == (None if rank == 3 else path.replace("rank_0", "rank_2"))
    os.makedirs(tmp_path / "rank_0")
    (tmp_path / "rank_0" / "a.ckpt").write_bytes(b"x")
    assert found() == path


def test_group_files(tmp_path):
    path = tmp_path / "group.pb"
    path.write_bytes(field(1, field(1, "0-1")) + field(2, b"".join(field(1, n) for n in (0, 4, 300))))
    assert ms.restore_group_info_list(str(path)) == [0, 4, 300]
    path.write_bytes(field(1, field(1, "0-1")))
    with pytest.raises(CheckpointError, match="no list of ranks"):
        ms.restore_group_info_list(str(path))
    path.write_bytes(b"\x12\x7f")
    with pytest.raises(CheckpointError, match="damaged, or not a file of groups"):
        ms.restore_group_info_list(str(path))
    with pytest.raises(CheckpointError, match="missing or empty"):
        ms.restore_group_info_list(str(tmp_path / "no"))


def test_damaged_strategies_are_told(tmp_path):
    path = tmp_path / "s.ckpt"
    write_strategy(path, PLANS[0])
    content = path.read_bytes()
    assert ms.build_searched_strategy(None) is None
    for length in range(1, len(content), 5):
        path.write_bytes(content[:length])
        try:
            found = ms.build_searched_strategy(str(path))
        except CheckpointError as error:
            assert "s.ckpt: damaged, or not a strategy file" in str(error)
        else:
            assert len(found) < 3
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="is empty"):
        ms.build_searched_strategy(str(path))
    with pytest.raises(CheckpointError, match="there is no strategy file"):
        ms.build_searched_strategy(str(tmp_path / "no.ckpt"))
    with pytest.raises(TypeError, match="must be a string"):
        ms.build_searched_strategy(3)
    for content in (b"\x07", b"\x80", b"\x00", b"\xff" * 12, b"\x1b"):
        with pytest.raises(WireError):
            list(fields(content))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (entry([2], [1, -1]), "names an axis that the device matrix"),
        (entry([2, 2], [0, 0]), "impossible layout"),
        (entry([2, 2], [0, 1], 1, 2), "the optimizer's shards"),
        (entry([6], [-1, -1], 1, 4), "the optimizer's shards"),
        (ParallelLayouts([], [Dims([0])]), "has no device matrix"),
        (ParallelLayouts([Dims([2])], [Dims([0])], field=3), "cut by fields"),
        (ParallelLayouts([Dims([2])], [Dims([0])], [Dims([1, 2])]), "unequal parts"),
    ],
)
def test_layouts_that_cut_nothing_are_told(layout, message):
    with pytest.raises(CheckpointError, match=message):
        layouts_of({"w": layout})


@pytest.mark.parametrize(
    "layouts",
    [0, {"w": 3}, {3: ParallelLayouts()}, {"w": ParallelLayouts([3])}, {"w": ParallelLayouts(field=1.5)}]
    + [{"w": ParallelLayouts([Dims(["a"])])}, {"w": ParallelLayouts([Dims([2**63])])}],
)
def test_what_is_no_layout_is_not_written(tmp_path, layouts):
    with pytest.raises((TypeError, ValueError), match="write_strategy: "):
        write_strategy(tmp_path / "s.ckpt", layouts)
    assert not os.listdir(tmp_path)


def test_misfits_are_told(tmp_path):
    full = whole()
    write_strategy(tmp_path / "s.ckpt", PLANS[0])
    path = str(tmp_path / "s.ckpt")
    save(tmp_path / "in", PLANS[0], full)
    folder, out = str(tmp_path / "in"), str(tmp_path / "out")
    os.remove(tmp_path / "in" / "rank_3" / "net-1_5.ckpt")
    with pytest.raises(CheckpointError, match="the checkpoint of rank 3 is needed for rank"):
        ms.transform_checkpoints(folder, out, "p", path, None)
    files = {r: f"{folder}/rank_{r}/net-1_5.ckpt" for r in (0, 1)}
    with pytest.raises(CheckpointError, match="parameter 'w': the checkpoint of rank 2 of the stage is missing"):
        ms.transform_checkpoint_by_rank(0, files, str(tmp_path / "o.ckpt"), path, None)
    with pytest.raises(ValueError, match="must end in '.ckpt'"):
        ms.transform_checkpoint_by_rank(0, files, "o", path, None)
    write_strategy(tmp_path / "t.ckpt", {"w": entry([7], [0, -1])})
    write_ckpt(tmp_path / "one.ckpt", full)
    with pytest.raises(CheckpointError, match=r"'w' of shape \[16, 32\] cannot be cut into \[7, 1\] equal parts"):
        ms.transform_checkpoint_by_rank(
            0, {0: str(tmp_path / "one.ckpt")}, str(tmp_path / "o.ckpt"), None, str(tmp_path / "t.ckpt")
        )
    with pytest.raises(NotADirectoryError):
        ms.transform_checkpoints(str(tmp_path / "no"), out, "p", path, None)
    with pytest.raises(ValueError, match="needs safetensors files as a source"):
        ms.transform_checkpoints(folder, out, "p", path, None, output_format="safetensors")
    with pytest.raises(TypeError, match="without a folder"):
        ms.transform_checkpoints(folder, out, "../p", path, None)
    with pytest.raises(CheckpointError, match="must hold folders rank_0"):
        ms.transform_checkpoints(str(tmp_path), out, "p", path, None)
    with pytest.raises(CheckpointError, match="files of all stages must be merged"):
        ms.rank_list_for_transform(0, None, {"1-w": entry([2], [0])})
    with pytest.raises(CheckpointError, match=r"for stages of \[2, 4\] devices"):
        layouts_of({"w": entry([2], [0]), "b": entry([4], [0])})
    assert not os.path.exists(tmp_path / "o.ckpt") and not os.path.exists(out)


def test_the_names_of_parallel_are_the_same_functions():
    parallel = ms.parallel
    assert parallel.convert_checkpoints is ms.transform_checkpoints
    assert parallel.convert_checkpoint_by_rank is ms.transform_checkpoint_by_rank
    assert parallel.rank_list_for_convert is ms.rank_list_for_transform
