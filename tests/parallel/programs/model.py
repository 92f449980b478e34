"""`Model` under parallel modes, compared with one device: features of training times modes.

    mycel launch -n 2 --plain tests/parallel/programs/model.py [features] [modes]

Every rank trains alone on whole batches, and then as one of several in each mode. Rank 0 prints a
line for each pair; the exit status says how many differ.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np

import mycel as ms
import mycel.dataset as ds
from mycel import nn, ops
from mycel.communication import get_group_size, get_rank, init
from mycel.parallel.auto_parallel import AutoParallel
from mycel.parallel.nn import GradAccumulation
from mycel.train import Callback, DynamicLossScaleManager, FixedLossScaleManager, LossMonitor, Model

ROWS, STEPS, EPOCHS = 12, 4, 2
random = np.random.RandomState(0)
X = random.randn(ROWS * STEPS, 8).astype("f4")
Y = random.randint(0, 4, ROWS * STEPS).astype("i4")


class Net(nn.Cell):
    """A small network with normalisation and dropout."""

    def __init__(self, cut):
        super().__init__()
        self.first, self.norm, self.drop = nn.Dense(8, 24), nn.LayerNorm((24,)), nn.Dropout(p=0.0)
        self.matmul, self.weight = ops.MatMul(), ms.Parameter(ms.Tensor(0.2 * random_weights(24, 24)), name="weight")
        self.last = nn.Dense(24, 4)
        if cut:
            self.matmul.shard(((1, 1), (1, get_group_size())))

    def construct(self, x):
        x = self.norm(ops.tanh(self.first(x)))
        return self.last(self.drop(ops.tanh(self.matmul(x, self.weight))))


def random_weights(*shape):
    return np.random.RandomState(7).randn(*shape).astype("f4")


class Clipped(nn.TrainOneStepCell):
    """A step whose gradients are clipped by their norm together."""

    def construct(self, *inputs):
        loss = self.network(*inputs)
        grads = self.grad(self.network, self.weights)(*inputs, ops.ones_like(loss))
        grads = self.grad_reducer(grads)
        grads = ops.clip_by_global_norm(grads, 0.05)
        return ops.depend(loss, self.optimizer(grads))


class Averaged(nn.TrainOneStepCell):
    """A step that also keeps a running mean of the weights."""

    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.mean = self.weights.clone("mean")

    def construct(self, *inputs):
        loss = super().construct(*inputs)
        for mean, w in zip(self.mean, self.weights):
            loss = ops.depend(loss, ops.assign(mean, 0.9 * mean + 0.1 * w))
        return loss


class Losses(Callback):
    def __init__(self):
        self.found = []

    def on_train_step_end(self, run_context):
        params = run_context.original_args()
        outputs = params.get("sink_outputs") if params.dataset_sink_mode else [params.net_outputs]
        self.found += [float(o[0] if isinstance(o, tuple) else o) for o in outputs]


# Statistics and masks of data parallel ranks are their own.
FEATURES = {
    "plain": {},
    "sink": {"sink": True},
    "adam": {"optimizer": lambda w: nn.AdamWeightDecay(w, 0.01)},
    "fixed scale": {"model": {"loss_scale_manager": FixedLossScaleManager(128.0, drop_overflow_update=True)}},
    "dynamic scale": {"model": {"loss_scale_manager": lambda: DynamicLossScaleManager(2**24, 2, 3)}},
    "overflow": {"model": {"loss_scale_manager": lambda: DynamicLossScaleManager(2**126, 16, 3)}},
    # The mean over a rank's rows has larger gradients than that over all, which overflow sooner.
    "O2": {"model": {"amp_level": "O2", "loss_scale_manager": FixedLossScaleManager(128.0, True)}, "near": 2e-2},
    "O3": {"model": {"amp_level": "O3"}, "near": 2e-2},
    "clipped": {"step": Clipped},
    "averaged": {"step": Averaged},
    "sink overflow": {"sink": True, "model": {"loss_scale_manager": lambda: DynamicLossScaleManager(2**126, 16, 3)}},
    "fit": {"fit": True},
    "eval": {"eval": True},
    "eval sink": {"eval": True, "sink": True},
    "micro": {"step": lambda n, o: nn.TrainOneStepCell(GradAccumulation(n, 2), o, sens=0.5)},
    "interleaved": {"step": lambda n, o: nn.TrainOneStepCell(nn.MicroBatchInterleaved(n, 2), o)},
    "recomputed": {"network": lambda net: net.first.recompute()},
    "batch norm": {"network": lambda net: setattr(net, "norm", nn.BatchNorm1d(24)), "own": True},
    "dropout": {"network": lambda net: setattr(net, "drop", nn.Dropout(p=0.3)), "own": True},
    "centralized": {"optimizer": lambda w: nn.SGD([{"params": w, "grad_centralization": True}], 0.05, 0.9)},
    "lamb": {"optimizer": lambda w: nn.Lamb(w, 0.01)},
    "lars": {"optimizer": lambda w: nn.LARS(nn.Momentum(w, 0.05, 0.9))},
    "schedule": {"optimizer": lambda w: nn.Momentum(w, nn.ExponentialDecayLR(0.1, 0.9, 2), 0.9)},
}
MODES = {
    "data": {"parallel_mode": "data_parallel", "gradients_mean": True},
    "semi data": {"parallel_mode": "semi_auto_parallel", "dataset_strategy": "data_parallel"},
    "semi full": {"parallel_mode": "semi_auto_parallel", "dataset_strategy": "full_batch", "cut": True},
    "semi tuple": {"parallel_mode": "semi_auto_parallel", "dataset_strategy": ((0, 1), (0,))},
    "auto": {"parallel_mode": "auto_parallel", "full_batch": True},
    "network": {"parallel_mode": "own"},
    "optimizer": {
        "parallel_mode": "semi_auto_parallel",
        "enable_parallel_optimizer": True,
        "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},
    },
}


def dataset(parts):
    """Batches of this rank's rows where `parts`, else whole ones."""
    rank, count = (get_rank(), get_group_size()) if parts else (0, 1)
    own = ROWS // count
    rows = np.arange(len(X)).reshape(STEPS, count, own)[:, rank].reshape(-1)
    return ds.NumpySlicesDataset((X[rows], Y[rows]), ["x", "y"], shuffle=False).batch(own)


def trained(feature, mode):
    """Train a new network; its losses, the values of its parameters and what else it found."""
    ms.set_seed(1)
    np.random.seed(1)
    settings = dict(MODES[mode]) if mode else {}
    net, asked = Net(settings.pop("cut", False)), FEATURES[feature]
    asked.get("network", lambda net: None)(net)
    if settings.get("parallel_mode") == "own":
        net = AutoParallel(net)
        net.dataset_strategy("data_parallel")
        net.hsdp(threshold=0)
    elif mode:
        given = settings.get("dataset_strategy")
        if isinstance(given, tuple):
            settings["dataset_strategy"] = tuple(tuple(n or get_group_size() for n in t) for t in given)
        ms.set_auto_parallel_context(device_num=get_group_size(), **settings)
    parts = mode and not settings.get("full_batch") and settings.get("dataset_strategy") != "full_batch"
    optimizer = asked.get("optimizer", lambda w: nn.Momentum(w, 0.05, 0.9))(net.trainable_params())
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    options = {k: v() if callable(v) and k.endswith("manager") else v for k, v in asked.get("model", {}).items()}
    if "step" in asked:
        model = Model(asked["step"](nn.WithLossCell(net, loss), optimizer))
    else:
        model = Model(net, loss, optimizer, metrics={"accuracy", "loss"}, **options)
    seen = Losses()
    data, more, sink = dataset(parts), {}, asked.get("sink", False)
    if "eval" in asked:
        more = model.eval(data, dataset_sink_mode=sink)
        more["predicted"] = model.predict(ms.Tensor(X[:ROWS])).asnumpy() if mode != "data" and not parts else 0
    elif "fit" in asked:
        model.fit(EPOCHS, data, data, callbacks=[seen, LossMonitor(100)], dataset_sink_mode=sink)
    else:
        model.train(EPOCHS, data, callbacks=[seen, LossMonitor(100)], dataset_sink_mode=sink)
    values = {p.name: p.asnumpy().copy() for p in model.train_network.get_parameters()}
    if mode:
        ms.reset_auto_parallel_context()
    if mode == "data":
        seen.found = (
            (ops.AllReduce()(ms.Tensor(seen.found, ms.float32)) / get_group_size()).tolist() if seen.found else []
        )
        for k in ("accuracy", "loss", "eval_loss"):
            if k in more:
                more[k] = float(ops.AllReduce()(ms.Tensor(more[k], ms.float32))) / get_group_size()
    return seen.found, values, more


def compared(feature, mode, alone):
    near = FEATURES[feature].get("near", 1e-5)
    found = trained(feature, mode)
    worst = 0.0
    for own, other in zip(found[0], alone[0]):
        worst = (
            max(worst, abs(own - other) / max(abs(other), 1e-3)) if np.isfinite(other) or np.isfinite(own) else worst
        )
    assert len(found[0]) == len(alone[0]), (len(found[0]), len(alone[0]))
    for name, value in alone[1].items():
        worst = max(worst, float(np.max(np.abs(found[1][name] - value) / (1 + np.abs(value)), initial=0)))
    for name, value in alone[2].items():
        if np.size(found[2][name]) == np.size(value):
            worst = max(worst, float(np.max(np.abs(found[2][name] - value))))
    return worst, near


def main():
    init()
    features = sys.argv[1].split(",") if len(sys.argv) > 1 and sys.argv[1] != "all" else FEATURES
    modes = sys.argv[2].split(",") if len(sys.argv) > 2 else MODES
    wrong = 0
    for kind in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
        ms.set_context(mode=kind)
        for feature in features:
            alone = trained(feature, None)
            for mode in modes:
                if mode == "data" and FEATURES[feature].get("own"):
                    continue
                began = time.perf_counter()
                try:
                    worst, near = compared(feature, mode, alone)
                    text = "agrees" if worst < near else "DIFFERS"
                except Exception as error:
                    ms.reset_auto_parallel_context()
                    worst, near, text = 0.0, 0.0, f"{type(error).__name__}: {str(error)[:300]}"
                    if "-v" in sys.argv:
                        traceback.print_exc()
                wrong += text != "agrees"
                if get_rank() == 0:
                    name = "graph" if kind == ms.GRAPH_MODE else "eager"
                    print(
                        f"{feature}, {mode}, {name}: {worst:.1e} {text} ({time.perf_counter() - began:.1f} s)",
                        flush=True,
                    )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
