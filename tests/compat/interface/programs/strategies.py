# ruff: noqa: B023, F821
import mindspore as ms
import numpy as np
from mindspore import Layout, Parameter, Tensor, nn, ops
from mindspore.ops.operations.reshard_ops import Reshard

GRID = Layout((2, 4), ("dp", "mp"))
X, W = GRID("dp", "mp"), GRID("mp", "None")
ATTRIBUTES = ("in_strategy", "out_strategy", "in_layout", "out_layout")
STRATEGIES = {
    "numbers": (((1, 2), (2, 4)),),
    "too few": (((1, 2),),),
    "a list": ([(1, 2), (2, 4)],),
    "a list inside": (((1, 2), [2, 4]),),
    "a word": (((1, 2), (2, "a")),),
    "zero": (((1, 2), (2, 0)),),
    "negative": (((1, 2), (2, -1)),),
    "a float": (((1, 2), (2, 1.0)),),
    "layouts": ((X, W),),
    "mixed": ((X, (2, 4)),),
    "with results": (((1, 2), (2, 4)), ((1, 4),)),
    "results as layouts": (((1, 2), (2, 4)), (X,)),
    "layouts, results as numbers": ((X, W), ((1, 2),)),
    "layouts with results": ((X, W), (X,)),
    "results alone": (None, ((1, 4),)),
    "nothing": (None, None),
    "results as a list": (((1, 2), (2, 4)), [(1,)]),
    "scalars": (((), ()),),
    "empty": ((),),
    "nested": (((1, 2), ((2,), (4,))),),
}


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.ones((4, 4)), ms.float32), name="w")

    def construct(self, x):
        return ops.matmul(x, self.w)


def attributes(operator):
    return {name: operator.attrs.get(name) for name in ATTRIBUTES}


for mode in ("stand_alone", "semi_auto_parallel"):
    ms.reset_auto_parallel_context()
    ms.set_auto_parallel_context(parallel_mode=mode, device_num=8)
    for label, given in STRATEGIES.items():
        say(f"{mode}: {label}", lambda: attributes(ops.MatMul().shard(*given)))
    x = Tensor(np.ones((4, 4)), ms.float32)
    say(f"{mode}: a Cell", lambda: ms.shard(Net(), ((1, 2),))(x).shape)
    say(f"{mode}: a Cell with layouts", lambda: ms.shard(Net(), (X,), (X,))(x).shape)
    say(f"{mode}: a Cell with a plan", lambda: ms.shard(Net(), ((1, 2),), None, {"w": (1, 2)})(x).shape)
    say(f"{mode}: a value", lambda: ms.reshard(x, X).shape)
    say(f"{mode}: a Reshard without its strategy", lambda: Reshard(X, X))
    operator = ops.MatMul()
    for stage in (0, 1, -1):
        say(f"{mode}: stage {stage}", lambda: operator.set_stage(stage).attrs["stage"])
ms.reset_auto_parallel_context()
net = Net()


def staged(stage):
    net.pipeline_stage = stage
    return net.pipeline_stage


for stage in (0, 1, 7, -1, "a", True, 1.0, None):
    say(f"pipeline_stage {stage!r}", lambda: staged(stage))
say("no pipeline_stage", lambda: Net().pipeline_stage)
for mode, path in (
    ("SAVE", ""),
    ("SAVE", "/a.json"),
    ("LOAD", "/none.json"),
    ("X", "/a.json"),
    ("SAVE", "a.json"),
    ("SAVE", "/a.txt"),
    ("save", "/a.json"),
    (1, "/b.json"),
    ("SAVE", 1),
):
    say(f"set_op_strategy_config {mode!r} {path!r}", lambda: ms.parallel.set_op_strategy_config(mode, path))
for options in (
    {"fully_use_devices": True},
    {"fully_use_devices": 1},
    {"elementwise_op_strategy_follow": True},
    {"enable_algo_approxi": True},
    {"algo_approxi_epsilon": 0.5},
    {"algo_approxi_epsilon": 0.0},
    {"algo_approxi_epsilon": 2.0},
    {"algo_approxi_epsilon": 1.0},
    {"algo_approxi_epsilon": 1},
    {"tensor_slice_align_enable": True},
    {"tensor_slice_align_size": 16},
    {"tensor_slice_align_size": 0},
    {"tensor_slice_align_size": 1025},
    {"tensor_slice_align_size": 1024},
    {"x": 1},
):
    say(f"algorithm {options}", lambda: (ms.set_algo_parameters(**options), *map(ms.get_algo_parameters, options)))
ms.reset_algo_parameters()
