# ruff: noqa: B023, F821
import os

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor
from mindspore.train.node_strategy_pb2 import ParallelStrategyMap

WHOLE = {
    "w": np.arange(64, dtype=np.float32).reshape(8, 8),
    "b": np.arange(100, 108, dtype=np.float32),
    "e": np.arange(200, 232, dtype=np.float32).reshape(16, 2),
    "moments.w": np.arange(64, dtype=np.float32).reshape(8, 8) * 2,
    "s": np.arange(3, dtype=np.float32),
}
# Grids of devices, and for each parameter the axes of the grid that cut its own, counted from the
# last, then the number of parts that the optimizer cuts further and their distance.
LAYOUTS = {
    "4": {
        "w": ((2, 2), (1, 0), 0, 0),
        "b": ((2, 2), (0,), 0, 0),
        "e": ((4,), (0, -1), 0, 0),
        "moments.w": ((2, 2), (-1, 0), 2, 2),
        "s": ((2, 2), (-1,), 0, 0),
    },
    "8": {
        "w": ((2, 4), (0, 1), 0, 0),
        "b": ((2, 2, 2), (2,), 0, 0),
        "e": ((2, 4), (0, 1), 0, 0),
        "moments.w": ((2, 2, 2), (2, 0), 2, 2),
        "s": ((8,), (-1,), 0, 0),
    },
    "8 other": {
        "w": ((8,), (0, -1), 0, 0),
        "b": ((8,), (-1,), 0, 0),
        "e": ((2, 2, 2), (1, 0), 0, 0),
        "moments.w": ((8,), (0, -1), 0, 0),
        "s": ((8,), (-1,), 0, 0),
    },
}


def write(name):
    """Write the strategy file of a layout."""
    made = ParallelStrategyMap()
    made.current_stage = 0
    for title, (devices, axes, parts, step) in LAYOUTS[name].items():
        item = made.parallel_layout_item.add()
        item.param_name = title
        known = item.parallel_layouts
        known.dev_matrix.add().dim.extend(devices)
        known.tensor_map.add().dim.extend(axes)
        known.param_split_shape.add()
        known.indices_offset.add()
        known.field = 0
        known.opt_weight_shard_step = step
        known.opt_weight_shard_size = parts
    with open(f"{name}.strategy", "wb") as file:
        file.write(made.SerializeToString())
    return f"{name}.strategy"


def part(name, title, rank):
    """The part of a parameter that a rank has."""
    devices, axes, parts, step = LAYOUTS[name][title]
    places = np.unravel_index(rank, devices)
    value = WHOLE[title]
    for axis, a in enumerate(axes):
        if a != -1:
            at = len(devices) - 1 - a
            value = np.split(value, devices[at], axis)[places[at]]
    return np.split(value, parts, 0)[rank // step % parts] if parts else value


def save(name, folder, form):
    for rank in range(int(name[0])):
        os.makedirs(f"{folder}/rank_{rank}", exist_ok=True)
        entries = [{"name": t, "data": Tensor(part(name, t, rank))} for t in WHOLE]
        ms.save_checkpoint(entries, f"{folder}/rank_{rank}/net_{rank}.{form}", format=form)


def held(folder, count, form="ckpt", title="net"):
    found = []
    for rank in range(count):
        loaded = ms.load_checkpoint(f"{folder}/rank_{rank}/{title}{rank}.{form}", format=form)
        found.append({t: loaded[t].asnumpy() for t in sorted(loaded)})
    return found


FILES = {name: write(name) for name in LAYOUTS}
for name in LAYOUTS:
    save(name, f"from {name}", "ckpt")
    save(name, f"safe {name}", "safetensors")
    say(f"strategy {name}", lambda: ms.build_searched_strategy(FILES[name]).keys() and len(WHOLE))
PAIRS = [("4", "8"), ("8", "4"), ("8", "8 other"), ("8 other", "4"), ("4", None), ("8", None), (None, "8")]
save_whole = [{"name": t, "data": Tensor(v)} for t, v in WHOLE.items()]
os.makedirs("from None/rank_0")
ms.save_checkpoint(save_whole, "from None/rank_0/net_0.ckpt")
for source, target in PAIRS:
    here, there = FILES.get(source), FILES.get(target)
    count = int(target[0]) if target else 1
    into = f"to {target} from {source}"
    say(f"{source} to {target}", lambda: ms.transform_checkpoints(f"from {source}", into, "new", here, there))
    for rank in range(count):
        say(f"{source} to {target}: rank {rank}", lambda: held(into, count, title="new")[rank])
files = {rank: f"from 4/rank_{rank}/net_{rank}.ckpt" for rank in range(4)}
# Mycel names fewer ranks than MindSpore: those alone whose parts are read.
needed = ms.rank_list_for_transform(3, FILES["4"], FILES["8"])
say(
    "one rank",
    lambda: ms.transform_checkpoint_by_rank(3, {r: files[r] for r in needed}, "one.ckpt", FILES["4"], FILES["8"]),
)
say("one rank has", lambda: {t: v.asnumpy() for t, v in sorted(ms.load_checkpoint("one.ckpt").items())})
say("unified", lambda: ms.unified_safetensors("safe 4", FILES["4"], "unified"))
say("unified files", lambda: sorted(f for f in os.listdir("unified") if f.endswith("safetensors")))
os.makedirs("segments")
for title in WHOLE:
    ms.save_checkpoint([{"name": title, "data": Tensor(WHOLE[title])}], f"segments/{title}.ckpt")
say("segments", lambda: {t: v.asnumpy() for t, v in sorted(ms.load_segmented_checkpoints("segments").items())})
slices = [Parameter(Tensor(part("4", "w", rank)), "w") for rank in range(4)]
say("merged", lambda: ms.merge_sliced_parameter(slices[:2]))
say("merged by rows", lambda: ms.merge_sliced_parameter([slices[0], slices[2]]))
