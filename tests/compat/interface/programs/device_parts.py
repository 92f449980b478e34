# ruff: noqa: B023, F821
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.common.initializer import initializer
from mindspore.parallel import _tensor as T
from mindspore.parallel import _utils as U
from mindspore.parallel import strategy as S

WHOLE = np.arange(64, dtype=np.float32).reshape(8, 8)
GRIDS = [
    ([2, 4], [1, 0]),
    ([2, 4], [0, 1]),
    ([2, 4], [-1, 0]),
    ([2, 4], [-1, -1]),
    ([2, 2, 2], [2, 0]),
    ([8], [0, -1]),
    ([2, 2, 2], [0, -1]),
]
for grid, axes in GRIDS:
    parts = T._get_tensor_strategy(grid, axes)
    say(f"parts {grid} {axes}", lambda: parts)
    say(f"shape {grid} {axes}", lambda: T._count_tensor_shape(grid, axes, [8, 8], 0))
    sizes = [8 // n for n in parts]
    layout = (grid, axes, sizes, 0, True, "", [8, 8])
    for rank in (0, 3, 7):
        say(f"number {grid} {axes} {rank}", lambda: int(T._get_tensor_slice_index(grid, parts, axes, rank)))
        say(f"stretches {grid} {axes} {rank}", lambda: T._load_tensor_shape(grid, axes, [8, 8], rank))
        say(f"part {grid} {axes} {rank}", lambda: np.asarray(T._load_tensor(Tensor(WHOLE), grid, axes, rank_id=rank)))
        say(f"by layout {grid} {axes} {rank}", lambda: T._load_tensor_by_layout(Tensor(WHOLE), layout, rank))
say("put together", lambda: T._reshape_param_data(Tensor(WHOLE), [2, 4], [1, 0]))
say("of one axis", lambda: T._reshape_param_data(Tensor(WHOLE[0]), [2, 4], [1, 0]))
say("cut", lambda: T._chunk_tensor(np.arange(8).reshape(2, 4), [2, 2], 2))
say("cut by parts", lambda: T._chunk_tensor_by_strategy(np.arange(8).reshape(2, 4), [2, 2]))
say("where", lambda: T._chunk_shape_by_strategy([8, 8], [2, 4]))
say("places", lambda: [[int(n) for n in T._rank_to_coordinate(rank, [2, 4])] for rank in range(8)])
say("rank", lambda: int(T._coordinate_to_rank([1, 2], [2, 4])))
say("short", lambda: T._load_tensor_by_layout(Tensor(WHOLE), ([8], [0, -1], [1, 8]), 0))
say("a list", lambda: T._load_tensor_by_layout(Tensor(WHOLE), [[8], [0, -1], [1, 8], 0, True, "", [8, 8]], 0))
say("a number", lambda: T._load_tensor_by_layout(Tensor(WHOLE), 3, 0))
say("unequal", lambda: T._load_tensor(Tensor(WHOLE), [3], [0, -1], rank_id=0))
say("no such axis", lambda: T._load_tensor(Tensor(WHOLE), [2], [5, -1], rank_id=0))
say("of a layout", lambda: T._extract_layout_item([[2, 4], [1, 0], [4, 2], 0, True, "", [8, 8]]))
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, global_rank=3)
say("shapes of all", lambda: U._to_full_shapes([[2, 3], [4]], 8))
say("shapes of one", lambda: U._origin_shapes([[16, 3], [32]]))
ONES = Tensor(np.ones((1, 2)), ms.float32)
for given, count, rank, scale in (
    ((ONES,), 4, 1, None),
    (ONES, 4, 2, None),
    ((ONES,), 4, 4, None),
    ([ONES, ONES], 2, 0, 3.0),
    ((np.ones((1, 2)),), 2, 1, None),
):
    say(f"a batch of {count}, {rank}, {scale}", lambda: U._to_full_tensor(given, count, rank, scale))
say("whole", lambda: (U._need_to_full(), U._check_full_batch(), U._get_stage_device_num(), U._get_global_rank()))
ms.set_auto_parallel_context(full_batch=True)
say("whole batches", lambda: (U._need_to_full(), U._check_full_batch()))
ms.reset_auto_parallel_context()
ms.set_auto_parallel_context(parallel_mode="data_parallel", device_num=8, full_batch=True)
say("whole batches of data parallel training", lambda: U._check_full_batch())
ms.reset_auto_parallel_context()
say("counted anew", lambda: (U._reset_op_id(), U._get_grad_accumulation_shard()))
for mode in ("semi_auto", "sharding_propagation", "recursive_programming", "stand_alone"):
    say(f"mode {mode}", lambda: U._parallel_mode_map(mode))
for rank in (0, 1, -1):
    say(f"rank {rank}", lambda: U._check_rank(rank, 0, 1))
ONE, TWO = ([2, 4], [1, 0], [4, 2], 0, True, "", [8, 8]), ([2, 4], [-1, 0], [8, 2], 0, True, "", [8, 8])
say("alike", lambda: (U._check_same_layout(ONE, ONE), U._check_same_layout(ONE, TWO)))
say("sliced", lambda: U._slice_tensor(Tensor(WHOLE), ONE, 3))
net = nn.Dense(2, 2)
say(
    "layouts",
    lambda: (S.get_strategy_metadata(net), S.get_strategy_metadata(net, 0), S.get_current_strategy_metadata(net)),
)
w = ms.Parameter(initializer("ones", [4, 4], ms.float32), name="w")
MARKS = (
    "parallel_optimizer",
    "layerwise_parallel",
    "parallel_optimizer_comm_recompute",
    "cache_enable",
    "requires_grad",
)


def marked(name, value):
    before = getattr(w, name)
    setattr(w, name, value)
    found = getattr(w, name)
    setattr(w, name, before)
    return before, found


for name in MARKS:
    for value in (True, False, 1, "a", None):
        say(f"{name} {value!r}", lambda: marked(name, value))
for value in (0, 3, -1, 1.0, True, "a", None):
    say(f"comm_fusion {value!r}", lambda: marked("comm_fusion", value))
for value in ((1, 2), [3], 1, "a", None):
    say(f"cache_shape {value!r}", lambda: marked("cache_shape", value))
for value in (2, "a", None):
    say(f"key {value!r}", lambda: marked("key", value))
say("in parallel", lambda: (w.is_in_parallel, w.requires_aggr, w.sliced))
for options in (
    {"parallel_optimizer": 1},
    {"layerwise_parallel": "x"},
    {"requires_grad": 2},
    {"device": "x"},
    {"storage_format": 2},
):
    say(f"made {options}", lambda: ms.Parameter(Tensor([1.0]), **options).name and 0)
for options in (
    {"mp_comm_recompute": 1},
    {"mp_comm_recompute": False},
    {"parallel_optimizer_comm_recompute": "a"},
    {"recompute_slice_activation": True},
    {"output_recompute": 1},
    {"other": True},
):
    say(f"recompute {options}", lambda: nn.Dense(2, 2).recompute(**options))
for value in (0, 3, -1, "a", 1.5, True):
    say(f"set_comm_fusion {value!r}", lambda: (net.set_comm_fusion(value) is net, net.weight.comm_fusion))
for name, kind in (
    ("parameter_layout_dict", {"a": 1}),
    ("parallel_parameter_name_list", ["a"]),
    ("parallel_parameter_merge_net_dict", {"b": 2}),
):
    say(f"{name}", lambda: getattr(net, name))
    say(f"{name} set", lambda: (setattr(net, name, kind), getattr(net, name)))
    say(f"{name} a number", lambda: setattr(net, name, 3))
say("broadcast", lambda: (net.set_broadcast_flag() is net, net.set_broadcast_flag(False) is net, net.get_flags()))
