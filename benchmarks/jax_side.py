"""JAX's side, mode jit: whole functions and whole training steps compiled, state donated; "jit-cl"
with images channels last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import workload_jax
from cases import Case, checked_steps, cotangent, digest, initial_weight, inputs_of
from jax import lax
from jax_networks import NETWORKS
from protocol import Prepared

__all__ = ["make"]


def convolve(x: Any, w: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, dimension_numbers=("NCHW", "OIHW", "NCHW"), **options)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.standardize(x, -1, epsilon=1e-5) * w + b


def batch_norm(x: Any, w: Any, b: Any) -> Any:
    return jax.nn.standardize(x, (0, 2, 3), epsilon=1e-5) * w[:, None, None] + b[:, None, None]


def transposed(x: Any, w: Any) -> Any:
    flipped = jnp.flip(w, (2, 3)).transpose(1, 0, 2, 3)
    return convolve(x, flipped, window_strides=(1, 1), padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))


def pool(x: Any, start: Any, function: Any, window: int, stride: int) -> Any:
    return lax.reduce_window(x, start, function, (1, 1, window, window), (1, 1, stride, stride), "VALID")


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0) @ v


def split(x: Any) -> Any:
    a, b = jnp.split(x, 2, 1)
    return a * b


def dropout(x: Any) -> Any:
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.9, x.shape), x / 0.9, 0.0)


def cross_entropy(x: Any, label: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x), label[:, None], 1).mean()


one = ((1, 1), (1, 1))
matmul = lambda x, y: x @ y
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "chain": lambda x, y, z: jnp.tanh(x * y + z) * jax.nn.sigmoid(x) - jnp.exp(-jnp.abs(y)),
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "bias_relu": lambda x, b: jax.nn.relu(x + b),
    "select": lambda x, y: jnp.where(x > 0, x, y / 10),
    "power": lambda u: jnp.sqrt(u) + u**3 - jnp.log(u + 1),
    "sum_all": lambda x: x.sum(),
    "sum_rows": lambda x: x.sum(1),
    "sum_columns": lambda x: x.sum(0),
    "max_rows": lambda x: x.max(1),
    "variance": lambda x: x.var(1),
    "softmax": lambda x: jax.nn.softmax(x),
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "layer_norm_wide": layer_norm,
    "batch_norm": batch_norm,
    "conv3x3": lambda x, w: convolve(x, w, window_strides=(1, 1), padding=one),
    "conv3x3_deep": lambda x, w: convolve(x, w, window_strides=(1, 1), padding=one),
    "conv1x1": lambda x, w: convolve(x, w, window_strides=(1, 1), padding="VALID"),
    "conv7x7": lambda x, w: convolve(x, w, window_strides=(2, 2), padding=((3, 3), (3, 3))),
    "depthwise": lambda x, w: convolve(x, w, window_strides=(1, 1), padding=one, feature_group_count=128),
    "transposed": transposed,
    "max_pool": lambda x: pool(x, -jnp.inf, lax.max, 3, 2),
    "average_pool": lambda x: pool(x, 0.0, lax.add, 2, 2) / 4,
    "global_pool": lambda x: x.mean((2, 3)),
    "matmul": matmul,
    "matmul_small": matmul,
    "matmul_tall": matmul,
    "matmul_batched": matmul,
    "matmul_vector": matmul,
    "dense": lambda x, w, b: x @ w.T + b,
    "attention": attention,
    "embedding": lambda index, table: table[index],
    "gather": lambda x, index: jnp.take_along_axis(x, index, 1),
    "scatter_add": lambda x, index, rows: x.at[index].add(rows),
    "sort": lambda x: jnp.sort(x, 1),
    "top_k": lambda x: lax.top_k(x, 16)[0],
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "concat": lambda x, y: jnp.concatenate((x, y), 1),
    "split": split,
    "transpose": lambda x: x.transpose(0, 2, 1, 3),
    "transpose_matrix": lambda x: x.T,
    "dropout": dropout,
}


class JaxSide:
    """JAX in one mode."""

    def __init__(self, mode: str) -> None:
        self.layout = "NHWC" if mode.endswith("-cl") else "NCHW"

    def facts(self) -> Mapping[str, Any]:
        return {"version": jax.__version__}

    def prepare(self, case: Case, kind: str) -> Prepared:
        if case.group == "network":
            return self._network(case)
        if case.group == "optimizer":
            return self._optimizer(case)
        if case.group == "eager":
            return self._eager(case)
        if self.layout != "NCHW":
            raise ValueError("operators are compared in one layout, which XLA chooses itself inside")
        if case.kind:
            function = {**workload_jax.workloads(), **workload_jax.courses()}.get(case.name)
            if function is None:
                raise NotImplementedError(f"{case.name} is not written for JAX")
            return self._operator(case, function, kind == "backward")
        return self._operator(case, OPERATORS[case.name], kind == "backward")

    def _operator(self, case: Case, function: Callable[..., Any], backward: bool) -> Prepared:
        inputs = [jnp.asarray(a) for a in inputs_of(case)]
        run: Any = jax.jit(function)
        if backward:
            shape = jax.eval_shape(function, *inputs).shape
            inputs.append(jnp.asarray(cotangent(shape)))

            def both(*arguments: Any) -> Any:
                given = list(arguments[:-1])

                def chosen(*values: Any) -> Any:
                    for i, v in zip(case.wrt, values, strict=True):
                        given[i] = v
                    return function(*given)

                out, pull = jax.vjp(chosen, *[arguments[i] for i in case.wrt])
                return [out, *pull(arguments[-1])]

            run = jax.jit(both)

        def repeat() -> Any:
            return jax.block_until_ready(run(*inputs))

        return Prepared(repeat, lambda: [digest(a) for a in jax.tree.leaves(repeat())])

    def _optimizer(self, case: Case) -> Prepared:
        shapes = [(256, 256), (256,)] * 24
        state: dict[str, Any] = {"p": [jnp.asarray(cotangent(s)) for s in shapes], "t": 0.0}
        state["m"] = [jnp.zeros(s) for s in shapes]
        state["v"] = [jnp.zeros(s) for s in shapes]
        grads = [jnp.asarray(np.sin(np.arange(int(np.prod(s))) * 0.1).astype(np.float32).reshape(s)) for s in shapes]

        def adam(s: Any, grads: Any) -> Any:
            t = s["t"] + 1
            m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, s["m"], grads)
            v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, s["v"], grads)
            change = lambda p, m, v: p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            return {"p": jax.tree.map(change, s["p"], m, v), "m": m, "v": v, "t": t}

        def momentum(s: Any, grads: Any) -> Any:
            m = jax.tree.map(lambda m, g: 0.9 * m + g, s["m"], grads)
            return {**s, "p": jax.tree.map(lambda p, m: p - 1e-3 * m, s["p"], m), "m": m}

        step = jax.jit(adam if case.name == "adam" else momentum, donate_argnums=0)

        def repeat() -> None:
            nonlocal state
            state = jax.block_until_ready(step(state, grads))

        def check() -> list[Any]:
            repeat()
            repeat()
            return [digest(p) for p in state["p"]]

        return Prepared(repeat, check)

    def _network(self, case: Case) -> Prepared:
        name = case.name.removesuffix("_bf16")
        kind = jnp.bfloat16 if case.name != name else jnp.float32
        data, label = (jnp.asarray(a) for a in inputs_of(case))
        if data.ndim == 4 and self.layout == "NHWC":
            data = data.transpose(0, 2, 3, 1)
        forward, shapes = NETWORKS[name](self.layout, kind)
        params = {n: jnp.asarray(initial_weight(n, s)) for n, s in shapes.items()}
        size = sum(p.size for p in params.values())
        momentum = jax.tree.map(jnp.zeros_like, params)

        def loss_of(p: Any) -> Any:
            return cross_entropy(forward(p, data).astype(jnp.float32), label)

        def update(p: Any, m: Any) -> Any:
            loss, grads = jax.value_and_grad(loss_of)(p)
            m = jax.tree.map(lambda m, g: 0.9 * m + g, m, grads)
            return jax.tree.map(lambda p, m: p - 1e-3 * m, p, m), m, loss

        compiled = jax.jit(update, donate_argnums=(0, 1))
        losses: list[float] = []

        def step() -> None:
            nonlocal params, momentum
            params, momentum, loss = compiled(params, momentum)
            losses.append(float(loss))

        def check() -> list[Any]:
            while len(losses) < checked_steps():
                step()
            return losses[: checked_steps()]

        return Prepared(step, check, size)

    def _eager(self, case: Case) -> Prepared:
        x, y = (jnp.asarray(a) for a in inputs_of(case))
        run = (lambda: x @ y) if case.name == "eager_matmul" else (lambda: x + y)

        def timed(count: int) -> float:
            started = time.perf_counter()
            for _ in range(count):
                out = run()
            out.block_until_ready()
            return time.perf_counter() - started

        return Prepared(run, lambda: [digest(run())], timed=timed)


def make(framework: str, mode: str, threads: int) -> JaxSide:
    """Return the side in a mode.

    XLA takes as many threads as the processors that the process is bound to.
    """
    return JaxSide(mode)
