"""What workloads say in Mycel's own way: PyTorch's names are those of `mint`, and this module is
their namespace.
"""

import sys
from types import SimpleNamespace

from cases import initial_weight
from workload_functions import PLAIN, functions
from workload_networks import networks
from workload_steps import steps

import mycel as ms
from mycel import Parameter, Tensor, mint, nn, ops
from mycel.mint.nn import functional
from mycel.scipy import linalg

rfft, rfft2, irfft2, relu, gelu = ops.rfft, ops.rfft2, ops.irfft2, functional.relu, functional.gelu
re, im, cholesky, where, squeeze, unsqueeze = ops.real, ops.imag, ops.cholesky, mint.where, mint.squeeze, mint.unsqueeze
exp, matmul, softmax, transpose = mint.exp, mint.matmul, mint.softmax, mint.transpose
globals().update({name: getattr(mint, name, None) or getattr(ops, name) for name in PLAIN if name != "complex"})


def abs2(x):
    return ops.real(x) ** 2 + ops.imag(x) ** 2


def complex(a, b):
    return ops.Complex()(a, b)


def pad(x, pads, value):
    return functional.pad(x, pads, "constant", value)


def log_softmax(x):
    return functional.log_softmax(x, -1)


def max_pool1d(x, size):
    return squeeze(functional.max_pool2d(unsqueeze(x, 2), (1, size)), 2)


def to_int(x):
    return x.astype(ms.int32)


def to_float(x):
    return x.astype(ms.float32)


def to_bf16(x):
    return x.astype(ms.bfloat16)


def take(x, index):
    return x[index]


def take_along(x, index):
    return mint.gather(x, 1, index)


def index_add(x, index, rows):
    return mint.index_add(x, 0, index, rows)


def solve_lower(a, b):
    return linalg.solve_triangular(a, b, lower=True)


def eigh(x):
    return linalg.eigh(x)


def singular_values(x):
    return ops.svd(x, compute_uv=False)


def sort_down(x):
    return mint.sort(x, dim=1, descending=True)


def sort_values(x):
    return mint.sort(x, dim=1)[0]


def topk_values(x, k):
    return mint.topk(x, k, 1)[0]


def flip(x, axis):
    return mint.flip(x, (axis,))


def detach(x):
    return ops.stop_gradient(x)


def affine_grid(matrices, height, width):
    return ops.affine_grid(matrices, (matrices.shape[0], 3, height, width), align_corners=False)


def grid_sample(x, grid):
    return functional.grid_sample(x, grid, align_corners=False)


def ctc(log_probabilities, labels):
    frames, count, _ = log_probabilities.shape
    lengths = ops.full((count,), frames, dtype=ms.int32), ops.full((count,), labels.shape[1], dtype=ms.int32)
    return ops.ctc_loss(log_probabilities, labels, lengths[0], lengths[1])[0]


def attention(q, k, v, causal):
    scores = matmul(q, transpose(k, 2, 3)) / q.shape[-1] ** 0.5
    if causal:
        n = q.shape[2]
        scores = where(mint.tril(mint.ones((n, n))) > 0, scores, -1e9)
    return matmul(softmax(scores, -1), v)


def sparse_embedding(n, width):
    return mint.nn.Embedding(n, width)


def lstm(inputs, width, layers):
    return nn.LSTM(inputs, width, layers, batch_first=True)


def gru(inputs, width):
    return nn.GRU(inputs, width, batch_first=True)


def newton_per_sample():
    def solve(a):
        x = a * 0.0 + 1.0
        value = x * exp(x) - a
        while ops.abs(value) > 1e-5 * a:
            x = x - value / (exp(x) * (x + 1.0))
            value = x * exp(x) - a
        return x

    return ms.jit(ms.vmap(solve))


def state(shape):
    return Parameter(ops.zeros(shape, ms.float32), requires_grad=False)


def put(cache, at, row):
    cache[at] = row
    return cache


def copy(x):
    return x.copy()


def number(k):
    return Tensor([k], ms.int32)


def gradient(function, position):
    return ms.grad(function, position)


def started(net):
    for name, p in net.parameters_and_names():
        if p.requires_grad:
            head, _, last = name.rpartition(".")
            last = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}.get(last, last)
            p.set_data(Tensor(initial_weight(f"{head}.{last}".lstrip("."), tuple(p.shape))))
    return net.set_train()


def jit(function):
    graph = ms.get_context("mode") == ms.GRAPH_MODE
    return ms.jit(function) if graph and not isinstance(function, nn.Cell) else function


def inference(function):
    return jit(function)


def trainer(net, kind, owner=None):
    parameters = (owner or net).trainable_params()
    optimizer = nn.Adam(parameters, 1e-3) if kind == "adam" else nn.SGD(parameters, 1e-3)
    return nn.TrainOneStepCell(net, optimizer).set_train()


def tree_step(net):
    optimizer = nn.SGD(net.trainable_params(), 1e-3)

    def loss(tree, words):
        return net.out(net.node(tree, words)[0]).sum()

    both = ms.value_and_grad(loss, None, optimizer.parameters)

    def step(tree, words):
        value, gradients = both(tree, words)
        optimizer(gradients)
        return value

    return step


class Module(nn.Cell):
    """A Cell whose `forward` is its `construct`."""

    def __init_subclass__(cls):
        super().__init_subclass__()
        if "forward" in vars(cls):
            cls.construct = cls.forward


_LAYERS = {name: getattr(mint.nn, name) for name in dir(mint.nn) if name[0].isupper()}
_LAYERS |= {
    "Module": Module,
    "Sequential": nn.SequentialCell,
    "ModuleList": nn.CellList,
}


class Workloads:
    """The programs; the context's mode says how they run."""

    def __init__(self):
        here, layers = sys.modules[__name__], SimpleNamespace(**_LAYERS)
        self.networks = networks(layers, functional, here)
        self.functions, self.steps = functions(here), steps(layers, functional, here, self.networks["wl_gpt"])

    def network(self, name):
        """A network with its weights, and how many numbers are trained."""
        net = started(self.networks[name]())
        return net, sum(p.size for p in net.trainable_params())
