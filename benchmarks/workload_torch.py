"""What workloads say in PyTorch's own way."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from cases import initial_weight
from torch import nn
from workload_functions import PLAIN, functions
from workload_networks import networks
from workload_steps import steps

__all__ = ["Workloads"]


def affine_grid(matrices: Any, height: int, width: int) -> Any:
    return F.affine_grid(matrices, [matrices.shape[0], 3, height, width], align_corners=False)


def ctc(log_probabilities: Any, labels: Any) -> Any:
    frames, count, _ = log_probabilities.shape
    lengths = torch.full((count,), frames), torch.full((count,), labels.shape[1])
    return F.ctc_loss(log_probabilities, labels.long(), *lengths)


def newton_per_sample() -> Callable[[Any], Any]:
    def solve(a: Any) -> Any:
        x = torch.ones_like(a)
        while True:
            value = x * torch.exp(x) - a
            open_ = value.abs() > 1e-5 * a
            if not bool(open_.any()):
                return x
            x = torch.where(open_, x - value / (torch.exp(x) * (x + 1.0)), x)

    return solve


def put(cache: Any, at: Any, row: Any) -> Any:
    cache.index_copy_(0, at, row)
    return cache


def started(net: Any) -> Any:
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(initial_weight(name, tuple(p.shape))))
    return net.train()


def gradient(function: Callable[..., Any], position: Any) -> Callable[..., Any]:
    places = position if isinstance(position, tuple) else (position,)

    def run(*arguments: Any) -> Any:
        taken = [a.requires_grad_() if not a.requires_grad else a for a in arguments]
        out = function(*taken)
        found = torch.autograd.grad(out, [taken[i] for i in places], create_graph=not isinstance(position, tuple))
        return list(found) if isinstance(position, tuple) else found[0]

    return run


def tree_step(net: Any) -> Callable[[Any, Any], Any]:
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)

    def step(tree: Any, words: Any) -> Any:
        loss = net.out(net.node(tree, words)[0]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class Workloads:
    """The programs, in eager mode or compiled."""

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        linear = torch.linalg
        T = SimpleNamespace(
            **{name: getattr(torch, name) for name in PLAIN},
            abs2=lambda x: x.real**2 + x.imag**2,
            rfft=torch.fft.rfft,
            rfft2=torch.fft.rfft2,
            irfft2=torch.fft.irfft2,
            re=torch.real,
            im=torch.imag,
            pad=lambda x, pads, value: F.pad(x, pads, value=value),
            gelu=F.gelu,
            log_softmax=lambda x: F.log_softmax(x, -1),
            max_pool1d=F.max_pool1d,
            to_int=lambda x: x.long(),
            to_float=lambda x: x.float(),
            to_bf16=lambda x: x.bfloat16(),
            take=lambda x, index: x[index],
            take_along=lambda x, index: torch.gather(x, 1, index.long()),
            index_add=lambda x, index, rows: x.index_add(0, index, rows),
            cholesky=linear.cholesky,
            solve_lower=lambda a, b: linear.solve_triangular(a, b, upper=False),
            eigh=linear.eigh,
            singular_values=linear.svdvals,
            sort_down=lambda x: torch.sort(x, 1, True),
            sort_values=lambda x: torch.sort(x, 1).values,
            topk_values=lambda x, k: torch.topk(x, k, 1).values,
            flip=lambda x, axis: torch.flip(x, (axis,)),
            detach=lambda x: x.detach(),
            affine_grid=affine_grid,
            grid_sample=lambda x, grid: F.grid_sample(x, grid, align_corners=False),
            ctc=ctc,
            attention=lambda q, k, v, causal: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
            sparse_embedding=lambda n, width: nn.Embedding(n, width, sparse=True),
            lstm=lambda inputs, width, layers: nn.LSTM(inputs, width, layers, batch_first=True),
            gru=lambda inputs, width: nn.GRU(inputs, width, batch_first=True),
            newton_per_sample=newton_per_sample,
            put=put,
            state=lambda shape: nn.Buffer(torch.zeros(shape)),
            copy=lambda x: x.clone(),
            number=lambda k: torch.tensor([k]),
            started=started,
            gradient=gradient,
            tree_step=tree_step,
            jit=self.jit,
            inference=self.inference,
            trainer=self.trainer,
        )
        self.networks = networks(nn, F, T)
        self.functions, self.steps = functions(T), steps(nn, F, T, self.networks["wl_gpt"])

    def jit(self, function: Any) -> Any:
        return torch.compile(function) if self.compiled else function

    def inference(self, function: Any) -> Any:
        return torch.no_grad()(self.jit(function))

    def trainer(self, net: Any, kind: str, owner: Any = None) -> Callable[..., Any]:
        """Return a training step: what it is called with goes to the network, which gives the
        loss.
        """
        parameters = (owner or net).parameters()
        if kind == "adam":
            optimizer: Any = torch.optim.Adam(parameters, 1e-3, fused=not self.compiled)
        else:
            optimizer = torch.optim.SGD(parameters, 1e-3)
        forward = self.jit(net)

        def step(*data: Any) -> Any:
            loss = forward(*data)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    def network(self, name: str) -> tuple[Any, int]:
        """Return a network with its weights, and how many numbers are trained."""
        net = started(self.networks[name]())
        return net, sum(p.numel() for p in net.parameters())
