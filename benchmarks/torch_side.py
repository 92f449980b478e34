"""PyTorch's side: modes eager and compile, each also with channels-last images ("-cl"), or in
float64 ("-f64").
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from cases import Case, checked_steps, cotangent, digest, inputs_of
from protocol import Prepared
from torch_networks import bfloat16, networks

__all__ = ["make"]


def chain(x: Any, y: Any, z: Any) -> Any:
    return torch.tanh(x * y + z) * torch.sigmoid(x) - torch.exp(-torch.abs(y))


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    return F.batch_norm(x, None, None, weight, bias, training=True)


def split(x: Any) -> Any:
    a, b = x.chunk(2, dim=1)
    return a * b


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "chain": chain,
    "gelu": lambda x: F.gelu(x),
    "bias_relu": lambda x, b: F.relu(x + b),
    "select": lambda x, y: torch.where(x > 0, x, y / 10),
    "power": lambda u: torch.sqrt(u) + u**3 - torch.log(u + 1),
    "sum_all": lambda x: x.sum(),
    "sum_rows": lambda x: x.sum(1),
    "sum_columns": lambda x: x.sum(0),
    "max_rows": lambda x: x.max(1).values,
    "variance": lambda x: x.var(1, unbiased=False),
    "softmax": lambda x: F.softmax(x, -1),
    "cross_entropy": lambda x, label: F.cross_entropy(x, label.long()),
    "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "layer_norm_wide": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "batch_norm": batch_norm,
    "conv3x3": lambda x, w: F.conv2d(x, w, padding=1),
    "conv3x3_deep": lambda x, w: F.conv2d(x, w, padding=1),
    "conv1x1": lambda x, w: F.conv2d(x, w),
    "conv7x7": lambda x, w: F.conv2d(x, w, stride=2, padding=3),
    "depthwise": lambda x, w: F.conv2d(x, w, padding=1, groups=128),
    "transposed": lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
    "max_pool": lambda x: F.max_pool2d(x, 3, 2),
    "average_pool": lambda x: F.avg_pool2d(x, 2),
    "global_pool": lambda x: x.mean((2, 3)),
    "matmul": lambda x, y: x @ y,
    "matmul_small": lambda x, y: x @ y,
    "matmul_tall": lambda x, y: x @ y,
    "matmul_batched": lambda x, y: x @ y,
    "matmul_vector": lambda x, y: x @ y,
    "dense": lambda x, w, b: F.linear(x, w, b),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "embedding": lambda index, table: F.embedding(index, table),
    "gather": lambda x, index: torch.gather(x, 1, index.long()),
    "scatter_add": lambda x, index, rows: x.index_add(0, index, rows),
    "sort": lambda x: torch.sort(x, 1).values,
    "top_k": lambda x: torch.topk(x, 16, 1).values,
    "cumsum": lambda x: torch.cumsum(x, 1),
    "concat": lambda x, y: torch.cat((x, y), 1),
    "split": split,
    "transpose": lambda x: x.permute(0, 2, 1, 3).contiguous(),
    "transpose_matrix": lambda x: x.t().contiguous(),
    "dropout": lambda x: F.dropout(x, 0.1, True),
}


class TorchSide:
    """PyTorch in one mode."""

    def __init__(self, mode: str, threads: int) -> None:
        torch.set_num_threads(threads)
        self.compiled = mode.startswith("compile")
        self.channels_last = mode.endswith("-cl")
        self.double = mode.endswith("-f64")

    def facts(self) -> Mapping[str, Any]:
        return {"version": torch.__version__}

    def prepare(self, case: Case, kind: str) -> Prepared:
        if case.group == "network":
            return self._network(case)
        if case.group == "optimizer":
            return self._optimizer(case)
        if case.group == "eager":
            return self._eager(case)
        if case.kind:
            return self._workload(case, kind == "backward")
        return self._operator(case, OPERATORS[case.name], kind == "backward")

    def _tensors(self, case: Case) -> list[Any]:
        found = [torch.from_numpy(a) for a in inputs_of(case)]
        if self.channels_last:
            found = [t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t for t in found]
        if self.double:
            found = [t.double() if t.dtype == torch.float32 else t for t in found]
        return found

    def _workload(self, case: Case, backward: bool) -> Prepared:
        from workload_torch import Workloads

        work = Workloads(self.compiled)
        if case.kind == "function":
            return self._operator(case, work.functions[case.name], backward)
        inputs = [t.long() if t.dtype == torch.int32 else t for t in self._tensors(case)]
        if self.compiled:
            torch.compiler.reset()
        size = 0
        if case.kind == "course":
            run = work.steps[case.name](*inputs)
        else:
            net, size = work.network(case.name)
            if case.optimizer:
                run = partial(work.trainer(net, case.optimizer), *inputs)
            else:
                run = partial(work.inference(net.eval()), *inputs)
        return Prepared(run, lambda: [digest(a.detach().numpy()) for a in _flat(run())], size)

    def _operator(self, case: Case, function: Callable[..., Any], backward: bool) -> Prepared:
        if self.compiled:
            torch.compiler.reset()
            function = torch.compile(function)
        inputs = self._tensors(case)
        if not backward:

            def forward() -> Any:
                with torch.no_grad():
                    return function(*inputs)

            return Prepared(forward, lambda: [digest(forward().numpy())])
        for i in case.wrt:
            inputs[i] = inputs[i].clone(memory_format=torch.preserve_format).requires_grad_()
        weight = torch.from_numpy(cotangent(tuple(function(*inputs).shape)))

        def both() -> Any:
            out = function(*inputs)
            out.backward(weight)
            grads = [inputs[i].grad for i in case.wrt]
            for i in case.wrt:
                inputs[i].grad = None
            return [out.detach(), *grads]

        return Prepared(both, lambda: [digest(t.numpy()) for t in both()])

    def _optimizer(self, case: Case) -> Prepared:
        shapes = [(256, 256), (256,)] * 24
        parameters = [torch.nn.Parameter(torch.from_numpy(cotangent(s))) for s in shapes]
        for p in parameters:
            p.grad = torch.from_numpy(np.sin(np.arange(p.numel()) * 0.1).astype(np.float32).reshape(p.shape))
        # Fused kernels are PyTorch's fastest on a CPU.
        if case.name == "adam":
            optimizer: Any = torch.optim.Adam(parameters, 1e-3, fused=not self.compiled)
        else:
            optimizer = torch.optim.SGD(parameters, 1e-3, 0.9, fused=not self.compiled)
        step = torch.compile(optimizer.step) if self.compiled else optimizer.step

        def check() -> list[Any]:
            step()
            step()
            return [digest(p.detach().numpy()) for p in parameters]

        return Prepared(step, check)

    def _network(self, case: Case) -> Prepared:
        narrow = case.name.endswith("_bf16")
        net = networks[case.name.removesuffix("_bf16")]()
        data, label = self._tensors(case)
        label = label.long()
        if self.double:
            net = net.double()
        if self.channels_last:
            net = net.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(net.parameters(), 1e-3, 0.9)
        if self.compiled:
            torch.compiler.reset()
        forward: Any = torch.compile(net) if self.compiled else net

        def step() -> float:
            with bfloat16(narrow):
                out = forward(data)
                loss = F.cross_entropy(out if self.double else out.float(), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return float(loss.item())

        losses: list[float] = []
        size = sum(p.numel() for p in net.parameters())
        return Prepared(lambda: losses.append(step()), lambda: _first(losses, step), size)

    def _eager(self, case: Case) -> Prepared:
        from torch_eager import EAGER, MADE

        inputs, name = self._tensors(case), case.name.removeprefix("eager_")
        if name == "add_recorded":
            inputs[0].requires_grad_()
        run = MADE[name](*inputs) if name in MADE else partial(EAGER[name], *inputs)

        def timed(count: int) -> float:
            started = time.perf_counter()
            for _ in range(count):
                run()
            return time.perf_counter() - started

        return Prepared(run, lambda: [digest(torch.as_tensor(run()).detach().numpy())], timed=timed)


def _flat(value: Any) -> list[Any]:
    """Return the tensors of a result."""
    return [t for v in value for t in _flat(v)] if isinstance(value, (tuple, list)) else [value]


def _first(losses: list[float], step: Callable[[], float]) -> list[Any]:
    """Return the losses of the first steps."""
    while len(losses) < checked_steps():
        losses.append(step())
    return losses[: checked_steps()]


def make(framework: str, mode: str, threads: int) -> TorchSide:
    """Return the side in a mode."""
    return TorchSide(mode, threads)
