"""Writes TensorFlow Lite files of the networks of `mobile.py`, of floats and of 8 bits.

    python mobile_torch.py FOLDER NAME ...

It wants torch, litert-torch and ai-edge-quantizer. FOLDER has a network's parameters in order
(`NAME_parameters.npz`), its argument and data of calibration.
"""

from __future__ import annotations

import sys
from pathlib import Path

import litert_torch
import numpy as np
import torch
from torch import nn

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolved(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    made = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [made, nn.BatchNorm2d(outputs)]


class Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        cells = [] if expansion == 1 else [*convolved(inputs, wide, 1), nn.ReLU6()]
        cells += [*convolved(wide, wide, 3, stride, wide), nn.ReLU6(), *convolved(wide, outputs, 1)]
        self.body, self.adds = nn.Sequential(*cells), stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        cells = [*convolved(3, 32, 3, 2), nn.ReLU6()]
        width = 32
        for expansion, channels, blocks, stride in STAGES:
            for k in range(blocks):
                cells.append(Inverted(width, channels, stride if k == 0 else 1, expansion))
                width = channels
        self.features = nn.Sequential(*cells, *convolved(width, 1280, 1), nn.ReLU6())
        self.head = nn.Linear(1280, 1000)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        cells = [*convolved(inputs, outputs, 3, stride), nn.ReLU(), *convolved(outputs, outputs, 3)]
        self.body = nn.Sequential(*cells)
        self.down = nn.Sequential(*convolved(inputs, outputs, 1, stride)) if stride > 1 else None

    def forward(self, x):
        return torch.relu(self.body(x) + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        cells = [*convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        width = 64
        for outputs in (64, 128, 256, 512):
            for stride in (1 if outputs == 64 else 2, 1):
                cells.append(Residual(width, outputs, stride))
                width = outputs
        self.features, self.head = nn.Sequential(*cells), nn.Linear(512, 1000)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


NETWORKS = {"mobilenet": MobileNetV2, "resnet": ResNet18}


class ChannelsLast(nn.Module):
    """A network whose images have their channels last, as files of TensorFlow Lite have them."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x.permute(0, 3, 1, 2))


def filled(net: nn.Module, given: list[np.ndarray]) -> nn.Module:
    """Give a network the parameters of its counterpart, which has the same order of layers."""
    values = iter(given)
    with torch.no_grad():
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                # Mean, variance, factor, term.
                places = (layer.running_mean, layer.running_var, layer.weight, layer.bias)
            elif isinstance(layer, (nn.Conv2d, nn.Linear)):
                places = tuple(p for p in (layer.weight, layer.bias) if p is not None)
            else:
                continue
            for place in places:
                place.copy_(torch.from_numpy(next(values)))
    return net.eval()


def main() -> None:
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        if name not in NETWORKS:
            continue
        held = np.load(folder / f"{name}_parameters.npz")
        net = ChannelsLast(filled(NETWORKS[name](), [held[k] for k in held.files]))
        x = torch.from_numpy(np.load(folder / f"{name}_x.npy")).permute(0, 2, 3, 1).contiguous()
        plain = folder / f"{name}_float.tflite"
        litert_torch.convert(net.eval(), (x,)).export(str(plain))
        print(plain, flush=True)
        from ai_edge_quantizer import quantizer, recipe

        made = quantizer.Quantizer(str(plain), recipe.static_wi8_ai8())
        from ai_edge_quantizer.utils import tfl_interpreter_utils as utils

        interpreter = utils.create_tfl_interpreter(str(plain))
        key = next(iter(interpreter.get_signature_list()))
        argument = interpreter.get_signature_list()[key]["inputs"][0]
        rows = np.load(folder / f"{name}_data.npy").transpose(0, 1, 3, 4, 2)
        found = made.calibrate({key: [{argument: row} for row in rows]})
        target = folder / f"{name}_int8.tflite"
        target.unlink(missing_ok=True)
        made.quantize(found).export_model(str(target))
        print(target, flush=True)


main()
