"""A rank that asks alone for the value of a parameter that the ranks have apart; it has no end.

mycel launch -n 2 --standstill 2 tests/parallel/programs/joins_alone.py CHECKPOINT
"""

import sys
import threading

import numpy as np

import mycel as ms
from mycel import nn
from mycel.communication import get_rank, init


def main() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel",
        full_batch=True,
        enable_parallel_optimizer=True,
        parallel_optimizer_config={"parallel_optimizer_threshold": 0},
    )
    ms.set_seed(1)
    net = nn.Dense(4, 4)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    x = ms.Tensor(np.ones((4, 4), np.float32))
    step(x, x)
    if get_rank() == 0:
        ms.save_checkpoint(step, sys.argv[1])
    threading.Event().wait()


if __name__ == "__main__":
    main()
