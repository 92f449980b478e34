# ruff: noqa: F821
import mindspore as ms
import mindspore.common.api as api
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor as graph
from mindspore.common.api import _pynative_executor as eager

say("sync", lambda: eager.sync())
say("flag", lambda: (eager.set_grad_flag(True), eager.grad_flag(), eager.set_grad_flag(False), eager.grad_flag()))
say("outside", lambda: eager.requires_grad())
x, y = Tensor(np.array([1.0, 2.0], np.float32)), Tensor(np.array([3.0, 4.0], np.float32))
seen = []


class Asks(nn.Cell):
    def construct(self, x):
        seen.append((eager.requires_grad(), eager.grad_flag()))
        return x * 2


ms.grad(Asks())(x)
say("inside a derivative", lambda: seen[0])


def f(x, y):
    return x * x * y


def derivative(function, options, weights, position, *args):
    eager.set_grad_flag(True)
    eager.new_graph(function, *args)
    out = function(*args)
    eager.end_graph(function, out, *args)
    found = eager.grad(function, options, weights, position, False, *args)
    eager.set_grad_flag(False)
    return found


net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
net.set_grad()
weights = ms.ParameterTuple(net.trainable_params())
row = x.reshape(1, 2)
say("by the first", lambda: derivative(f, ops.GradOperation(), None, None, x, y))
say("by all", lambda: derivative(f, ops.GradOperation(get_all=True), None, None, x, y))
say("by weights", lambda: derivative(net, ops.GradOperation(get_by_list=True), weights, None, row))
say("by both", lambda: derivative(net, ops.GradOperation(get_by_list=True, get_all=True), weights, None, row))
say("without a record", lambda: eager.grad(net, ops.GradOperation(), None, None, False, row))
say("an operation", lambda: eager.real_run_op(ops.ReLU(), "ReLU", [x - 1.5]))
say("later", lambda: eager.run_op_async(ops.ReLU(), "ReLU", (x - 1.5,)).asnumpy())
ms.set_context(mode=ms.GRAPH_MODE)
phase, new = graph.compile(net, row, phase="demo")
say("compiled", lambda: (phase.startswith("demo."), new, graph.compile(net, row, phase="demo") == (phase, False)))
say("known", lambda: (graph.has_compiled(phase), graph.has_compiled("demo"), phase in api.cells_compile_cache[id(net)]))
say("run", lambda: (graph.run(net, row, phase="demo"), graph(net, row, phase="demo")))
say("another phase", lambda: graph.run(net, row, phase="other"))
say("a function", lambda: graph.compile(lambda x: x, row))
say("onnx", lambda: type(graph._get_func_graph_proto(net, phase, "onnx_ir")).__name__)
say("mindir", lambda: type(graph._get_func_graph_proto(net, phase, "mind_ir")).__name__)
say("divided", lambda: graph._get_shard_strategy(net))
say("no queue", lambda: graph.init_dataset("q", 1, 1, [ms.float32], [[1]], [0], "p"))
say("flops of nothing", lambda: api.flops_collection("nothing"))
say(
    "stub",
    lambda: (
        api.is_stub_tensor(x),
        isinstance(x, __import__("mindspore.common._stub_tensor").common._stub_tensor.StubTensor),
    ),
)
say("names", lambda: (api.BROADCAST_PHASE, api.ARG_SPECIFIED, api.TOTAL_ARG_LEN, api.ENABLE_DYNAMIC))
