"""What is interrupted and killed: a run that trains, compiles, reads data, and saves after every
step, and goes on from its last save.

`python -m tests.faults.victim FOLDER STEPS` prints "ready" once everything is imported and "done
DIGEST" at its end: a digest of the parameters and the optimizer's state, which no interrupt and no
kill may change. After a KeyboardInterrupt it begins anew from the file, in the same process.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading

import numpy as np

import mycel as ms
from mycel import Tensor, nn, ops

ROWS = 8


def batches(epoch):
    """The rows of an epoch: a pipeline of its own, opened and closed."""
    draw = np.random.RandomState(epoch)
    rows = [(draw.randn(6).astype(np.float32), np.int32(draw.randint(3))) for _ in range(4 * ROWS)]
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).map(lambda a: a * np.float32(0.5), "x")
    return data.batch(ROWS).create_tuple_iterator(num_epochs=1)


class Run:
    """The state of a run: a network, its optimizer and the step that it has come to."""

    def __init__(self, folder):
        self.file = os.path.join(folder, "state.ckpt")
        ms.set_seed(1)
        self.net = nn.SequentialCell(nn.Dense(6, 16), nn.Tanh(), nn.Dense(16, 3))
        draw = np.random.RandomState(0)
        for p in self.net.get_parameters():
            p.set_data(Tensor(draw.randn(*p.shape).astype(np.float32) * 0.3))
        self.optimizer = nn.Adam(self.net.trainable_params(), 0.01)
        self.step = 0
        forward = lambda x, y: ops.cross_entropy(self.net(x), y)
        gradient = ms.value_and_grad(forward, None, self.optimizer.parameters)

        @ms.jit
        def train(x, y):
            loss, gradients = gradient(x, y)
            self.optimizer(gradients)
            return loss

        self.train = train
        if os.path.exists(self.file):
            found = ms.load_checkpoint(self.file)
            self.step = int(found.pop("step").asnumpy())
            missing, _ = ms.load_param_into_net(self.optimizer, found)
            assert not missing, missing

    def save(self):
        state = [{"name": p.name, "data": p} for p in self.optimizer.get_parameters()]
        ms.save_checkpoint([*state, {"name": "step", "data": Tensor(self.step)}], self.file)

    def go(self, steps):
        while self.step < steps:
            epoch, first = divmod(self.step, 4)
            for k, (x, y) in enumerate(batches(epoch)):
                if k < first or self.step >= steps:
                    continue
                self.train(x, y)
                # One more program for this step alone, eager operations and a loop.
                n = self.step % 7 + 2
                scaled = ms.jit(lambda v, n=n: ops.tanh(v * n).sum())(x)
                (scaled + ops.softmax(x).sum()).asnumpy()
                self.step += 1
                self.save()
        return self

    def digest(self):
        found = hashlib.sha256()
        for p in self.optimizer.get_parameters():
            found.update(p.name.encode() + p.asnumpy().tobytes())
        return found.hexdigest()


def main(folder, steps):
    def go():
        return Run(folder).go(steps).digest()

    go() if steps == 0 else None
    ready = threading.Event()
    while True:
        try:
            if not ready.is_set():
                ready.set()
                print("ready", flush=True)
            digest = go()
            break
        except KeyboardInterrupt:
            continue
    while True:
        try:
            print("done", digest, flush=True)
            os._exit(0)
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
