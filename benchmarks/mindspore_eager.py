"""Small eager operations as programs for MindSpore's interface, which Mycel and MindSpore run
alike. They are called with the inputs of their case.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore import dtype as mstype

__all__ = ["EAGER", "MADE"]


class Layer(nn.Cell):
    def __init__(self, weight, bias):
        super().__init__()
        self.dense, self.relu = nn.Dense(32, 32), nn.ReLU()
        self.dense.weight.set_data(weight)
        self.dense.bias.set_data(bias)

    def construct(self, x):
        return self.relu(self.dense(x))


def set_row(x, y):
    x[3] = y
    return x


def cell(x, weight, bias):
    layer = Layer(weight, bias)
    return lambda: layer(x)


def gradient(x, weight):
    both = ms.value_and_grad(lambda w: ops.tanh(ops.matmul(x, w)).sum())
    return lambda: both(weight)[1]


def momentum(x, b):
    parameters = [Parameter(ops.zeros_like(v), name=f"p{i}") for i, v in enumerate((x, b))]
    optimizer = nn.Momentum(parameters, 1e-3, 0.9)

    def step():
        optimizer((x, b))
        return parameters[0]

    return step


EAGER = {
    "add": lambda x, y: x + y,
    "add_recorded": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "add_number": lambda x, y: x + 1.0,
    "mul_number": lambda x, y: 2.0 * x,
    "neg": lambda x, y: -x,
    "square": lambda x, y: x**2,
    "greater": lambda x, y: x > y,
    "equal_number": lambda x, y: x == 0,
    "exp": lambda x, y: ops.exp(x),
    "log": lambda x, y: ops.log(ops.abs(x)),
    "sqrt": lambda x, y: ops.sqrt(ops.abs(x)),
    "tanh": lambda x, y: ops.tanh(x),
    "sigmoid": lambda x, y: ops.sigmoid(x),
    "relu": lambda x, y: ops.relu(x),
    "gelu": lambda x, y: ops.gelu(x, approximate="none"),
    "maximum": lambda x, y: ops.maximum(x, y),
    "clamp": lambda x, y: ops.clamp(x, -1.0, 1.0),
    "where": lambda x, y: ops.where(x > 0, x, y),
    "sum": lambda x, y: x.sum(),
    "sum_axis": lambda x, y: x.sum(1),
    "mean": lambda x, y: x.mean(),
    "max_axis": lambda x, y: ops.amax(x, 1),
    "argmax": lambda x, y: ops.argmax(x, 1),
    "var": lambda x, y: x.var(1),
    "softmax": lambda x, y: ops.softmax(x, -1),
    "layer_norm": lambda x, w, b: ops.layer_norm(x, (32,), w, b),
    "cross_entropy": lambda x, label: ops.cross_entropy(x, label),
    "matmul": lambda x, y: ops.matmul(x, y),
    "dense": lambda x, w, b: ops.dense(x, w, b),
    "reshape": lambda x, y: x.reshape(16, 64),
    "transposed": lambda x, y: x.T,
    "permute": lambda x, y: ops.permute(x, (1, 0)),
    "expand": lambda x, y: ops.expand_dims(x, 0),
    "row": lambda x, y: x[3],
    "slice": lambda x, y: x[:, 2:30],
    "take": lambda x, i: x[i],
    "set_row": set_row,
    "concat": lambda x, y: ops.concat((x, y), 0),
    "stack": lambda x, y: ops.stack((x, y), 0),
    "split": lambda x, y: ops.split(x, 16)[1],
    "cast": lambda x, y: x.astype(mstype.float16),
    "clone": lambda x, y: x.copy(),
    "zeros": lambda x, y: ops.zeros((32, 32), mstype.float32),
    "item": lambda x, y: x.sum().item(),
    "from_list": lambda x, y: Tensor([1.0, 2.0, 3.0]),
}
MADE = {"cell": cell, "gradient": gradient, "momentum": momentum}
