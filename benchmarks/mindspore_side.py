"""Mycel's side, and MindSpore's: the same programs, under ``import mindspore`` answered by either.

Modes graph and pynative.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from cases import Case, checked_steps, cotangent, digest, inputs_of
from protocol import Prepared

__all__ = ["make"]


def make(framework: str, mode: str, threads: int) -> Any:
    """Return the side in a mode."""
    if framework == "mycel":
        from mycel import compat

        compat.install()
    return MindSporeSide(framework, mode, threads)


class MindSporeSide:
    """Mycel or MindSpore in one mode."""

    def __init__(self, framework: str, mode: str, threads: int) -> None:
        import mindspore

        self.ms = mindspore
        self.framework = framework
        self.graph = mode == "graph"
        mindspore.set_context(mode=mindspore.GRAPH_MODE if self.graph else mindspore.PYNATIVE_MODE)
        if framework == "mindspore":
            mindspore.set_context(device_target="CPU", runtime_num_threads=threads)

    def facts(self) -> Mapping[str, Any]:
        if self.framework == "mindspore":
            return {"version": self.ms.__version__}
        import mycel

        return {"version": mycel.__version__}

    def prepare(self, case: Case, kind: str) -> Prepared:
        if case.group == "network":
            return self._network(case)
        if case.group == "optimizer":
            return self._optimizer(case)
        if case.group == "eager":
            return self._eager(case)
        if case.kind:
            return self._workload(case, kind == "backward")
        from mindspore_operators import OPERATORS

        return self._operator(case, OPERATORS[case.name], kind == "backward")

    def _tensors(self, case: Case) -> list[Any]:
        return [self.ms.Tensor(a) for a in inputs_of(case)]

    def _workload(self, case: Case, backward: bool) -> Prepared:
        from workload_mycel import Workloads, trainer

        work = Workloads()
        if case.kind == "function":
            return self._operator(case, work.functions[case.name], backward)
        inputs, size = self._tensors(case), 0
        if case.kind == "course":
            run = work.steps[case.name](*inputs)
        else:
            net, size = work.network(case.name)
            run = partial(trainer(net, case.optimizer) if case.optimizer else net.set_train(False), *inputs)

        def repeat() -> list[Any]:
            return _arrays(run())

        return Prepared(repeat, lambda: [digest(a) for a in repeat()], size)

    def _operator(self, case: Case, function: Callable[..., Any], backward: bool) -> Prepared:
        inputs = self._tensors(case)
        if backward:
            weight = cotangent(tuple(function(*inputs).shape))
            function = _with_gradients(self.ms, function, case.wrt)
            inputs.append(self.ms.Tensor(weight))
        if self.graph:
            function = self.ms.jit(function)

        def repeat() -> list[Any]:
            return _arrays(function(*inputs))

        return Prepared(repeat, lambda: [digest(a) for a in repeat()])

    def _optimizer(self, case: Case) -> Prepared:
        ms = self.ms
        shapes = [(256, 256), (256,)] * 24
        parameters = [ms.Parameter(ms.Tensor(cotangent(s)), name=f"p{i}") for i, s in enumerate(shapes)]
        grads = tuple(ms.Tensor(np.sin(np.arange(int(np.prod(s))) * 0.1).astype(np.float32).reshape(s)) for s in shapes)
        if case.name == "adam":
            optimizer = ms.nn.Adam(parameters, 1e-3)
        else:
            optimizer = ms.nn.Momentum(parameters, 1e-3, 0.9)

        def repeat() -> Any:
            optimizer(grads)
            return parameters[-1].asnumpy()

        def check() -> list[Any]:
            repeat()
            repeat()
            return [digest(p.asnumpy()) for p in parameters]

        return Prepared(repeat, check)

    def _network(self, case: Case) -> Prepared:
        from mindspore_networks import WithLoss, started

        ms = self.ms
        name = case.name.removesuffix("_bf16")
        net = started(name, case.name != name)
        data, label = self._tensors(case)
        optimizer = ms.nn.Momentum(net.trainable_params(), 1e-3, 0.9)
        train = ms.nn.TrainOneStepCell(WithLoss(net), optimizer)
        train.set_train()
        losses: list[float] = []

        def step() -> float:
            return float(train(data, label).asnumpy())

        def check() -> list[Any]:
            while len(losses) < checked_steps():
                losses.append(step())
            return losses[: checked_steps()]

        size = sum(int(np.prod(p.shape)) for p in net.trainable_params())
        return Prepared(lambda: losses.append(step()), check, size)

    def _eager(self, case: Case) -> Prepared:
        from mindspore_eager import EAGER, MADE

        self.ms.set_context(mode=self.ms.PYNATIVE_MODE)
        inputs, name = self._tensors(case), case.name.removeprefix("eager_")
        run = MADE[name](*inputs) if name in MADE else partial(EAGER[name], *inputs)

        def timed(count: int) -> float:
            started = time.perf_counter()
            for _ in range(count):
                run()
            _arrays(run())
            return time.perf_counter() - started

        def recorded(count: int) -> float:
            spent = 0.0

            def work(v: Any) -> Any:
                nonlocal spent
                started = time.perf_counter()
                for _ in range(count):
                    out = v + inputs[1]
                spent = time.perf_counter() - started
                return out

            self.ms.grad(work)(inputs[0])
            return spent

        return Prepared(
            lambda: _arrays(run()),
            lambda: [digest(a) for a in _arrays(run())],
            timed=recorded if case.name == "eager_add_recorded" else timed,
        )


def _arrays(value: Any) -> list[Any]:
    """Return the results as arrays, which waits for them."""
    if isinstance(value, (tuple, list)):
        return [a for v in value for a in _arrays(v)]
    return [value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)]


def _with_gradients(ms: Any, function: Callable[..., Any], wrt: tuple[int, ...]) -> Callable[..., Any]:
    """Return the output, and the gradients of it weighted by the last argument."""

    def weighted(*arguments):
        out = function(*arguments[:-1])
        return (out * arguments[-1]).sum(), out

    both = ms.value_and_grad(weighted, wrt, None, True)

    def run(*arguments):
        (_, out), grads = both(*arguments)
        return out, grads

    return run
