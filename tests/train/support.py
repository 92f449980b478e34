"""A network whose training step is written in NumPy, and a dataset in plain Python, so that tests
of `Model` need neither.
"""

import numpy as np

from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2)
Y = X @ np.float32([[1.0], [2.0]]) + np.float32(0.5)


class Batches:
    """(x, y) in batches of 4, in order; counts its iterators and their rows."""

    def __init__(self, columns=(X, Y), size=4):
        self.columns, self.size = columns, size
        self.rows = 0

    def get_dataset_size(self):
        return len(self.columns[0]) // self.size

    def create_tuple_iterator(self, num_epochs=-1):
        return _Rows(self)


class _Rows:
    def __init__(self, owner):
        self.owner = owner

    def __iter__(self):
        for start in range(0, len(self.owner.columns[0]), self.owner.size):
            self.owner.rows += 1
            yield [Tensor(column[start : start + self.owner.size]) for column in self.owner.columns]


class Step(Cell):
    """A step of gradient descent on the squared error of x w + b, rate 0.1: (x, y) in, loss before
    the step out.
    """

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.zeros((2, 1), np.float32)), name="w")
        self.b = Parameter(Tensor(np.zeros(1, np.float32)), name="b")
        self.modes = []

    def construct(self, x, y):
        self.modes.append(self.training)
        error = x.asnumpy() @ self.w.asnumpy() + self.b.asnumpy() - y.asnumpy()
        self.w.set_data(Tensor(self.w.asnumpy() - np.float32(0.2 / len(error)) * (x.asnumpy().T @ error)))
        self.b.set_data(Tensor(self.b.asnumpy() - np.float32(0.2) * error.mean(axis=0)))
        return Tensor(np.float32((error**2).mean()))


class Judge(Cell):
    """(x, y) in; loss, prediction and label of a `Step`'s parameters out."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def construct(self, x, y):
        prediction = x.asnumpy() @ self.step.w.asnumpy() + self.step.b.asnumpy()
        return Tensor(np.float32(((prediction - y.asnumpy()) ** 2).mean())), Tensor(prediction), y


def losses(steps):
    """The losses that `Step` gives on `Batches`, from plain NumPy in float64."""
    w, b, out = np.zeros((2, 1)), np.zeros(1), []
    for index in range(steps):
        x, y = X[4 * (index % 3) :][:4].astype(np.float64), Y[4 * (index % 3) :][:4].astype(np.float64)
        error = x @ w + b - y
        out.append(float((error**2).mean()))
        w, b = w - 0.2 / 4 * x.T @ error, b - 0.2 * error.mean(axis=0)
    return out
