"""A physics-informed network: Burgers' equation solved by a network whose second derivatives are
taken exactly.

A network u(t, x) is made to obey the equation of a wave that steepens into a front,

    u_t + u u_x = nu u_xx,    u(0, x) = -sin(pi x),    u(t, -1) = u(t, 1) = 0,
    nu = 0.03 / pi,    0 <= t <= 1,

by the mean square of the residual at random points (Raissi, Perdikaris and Karniadakis,
"Physics-informed neural networks", 2019). The initial and boundary values are built in: u = (1 -
x^2) t N(t, x) - sin(pi x) has them for every network N. No solution is shown to the network. The
formula of Cole and Hopf gives the true one, an integral that Gauss-Hermite quadrature computes.

    python examples/pinn.py    # compiled; --mode pynative runs operation by operation

Score: the relative error of u in the L2 norm over 0 <= t <= 1, -1 <= x <= 1, at most 0.01.
"""

import argparse
import math
import sys
import time

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel.common.initializer import XavierUniform

TARGET = 0.01
VISCOSITY = 0.03 / math.pi


class Solution(nn.Cell):
    """One point, t and x float32 [], to u float32 []."""

    def __init__(self, width=32, depth=4):
        super().__init__()
        widths = [2] + [width] * depth
        layers = []
        for before, after in zip(widths, widths[1:]):
            layers += [nn.Dense(before, after, weight_init=XavierUniform()), nn.Tanh()]
        self.layers = nn.SequentialCell(*layers, nn.Dense(width, 1, weight_init=XavierUniform()))

    def construct(self, t, x):
        free = self.layers(ops.stack((2 * t - 1, x)))[0]
        return (1 - x * x) * t * free - ops.sin(math.pi * x)


def reference(t, x):
    """The true u float64 at `t` > 0 and `x`, arrays of one shape: Cole (1951).

    Y is normal around x with variance 2 nu t.
    """
    nodes, weights = np.polynomial.hermite.hermgauss(150)
    y = x[..., None] - np.sqrt(4 * VISCOSITY * t[..., None]) * nodes
    heights = weights * np.exp(-np.cos(np.pi * y) / (2 * np.pi * VISCOSITY))
    return -(np.sin(np.pi * y) * heights).sum(-1) / heights.sum(-1)


def main(argv=None):
    """Train and compare with the true solution; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A physics-informed network for Burgers' equation")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--points", type=int, default=1024, help="random points of each step")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    net = Solution()
    rates = nn.cosine_decay_lr(1e-5, 5e-3, args.steps, 1, args.steps)
    optimizer = nn.Adam(net.trainable_params(), rates)
    size = sum(parameter.size for parameter in net.trainable_params())
    print(f"Burgers' equation, {size:,} parameters, {args.steps} steps of {args.points} points, {args.mode} mode")

    u_and_slopes = ms.value_and_grad(net, (0, 1))
    u_xx = ms.grad(ms.grad(net, 1), 1)

    def residual(t, x):
        u, (u_t, u_x) = u_and_slopes(t, x)
        return u_t + u * u_x - VISCOSITY * u_xx(t, x)

    residuals = ms.vmap(residual)

    def forward(t, x):
        return residuals(t, x).square().mean()

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(t, x):
        loss, gradients = gradient(t, x)
        optimizer(gradients)
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    rng = np.random.default_rng(args.seed)
    losses, begun = [], time.perf_counter()
    for step in range(1, args.steps + 1):
        t, x = rng.uniform([[0], [-1]], 1, (2, args.points)).astype(np.float32)
        losses.append(train_step(ms.Tensor(t), ms.Tensor(x)))
        if step % 500 == 0 or step == args.steps:
            recent = float(ops.stack(losses[-500:]).mean())
            print(f"step {step:4}/{args.steps}  loss {recent:.2e}  {time.perf_counter() - begun:.1f} s", flush=True)

    t, x = np.meshgrid(np.linspace(0.01, 1, 100), np.linspace(-1, 1, 201), indexing="ij")
    found = ms.vmap(net)(ms.Tensor(t.ravel(), ms.float32), ms.Tensor(x.ravel(), ms.float32)).asnumpy().reshape(t.shape)
    true = reference(t, x)
    score = float(np.linalg.norm(found - true) / np.linalg.norm(true))
    print(f"score: relative L2 error {score:.5f} (at most {TARGET})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] <= TARGET else 1)
