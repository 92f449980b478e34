"""Workloads that are networks under training or at work, written once for PyTorch and for Mycel's
`mint`.

`networks(nn, F, T)` gives them over a module of layers, whose `Module` is the base of networks, one
of functions of layers, and one of functions of tensors, with PyTorch's names. A network under
training gives its loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["networks"]


def _inverted(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Inverted(nn.Module):
        def __init__(self, inputs, outputs, stride, expand, kernel=3, squeeze=False):
            super().__init__()
            inner = inputs * expand
            self.up, self.bn1 = nn.Conv2d(inputs, inner, 1, bias=False), nn.BatchNorm2d(inner)
            self.mid = nn.Conv2d(inner, inner, kernel, stride, kernel // 2, groups=inner, bias=False)
            self.bn2 = nn.BatchNorm2d(inner)
            self.down, self.bn3 = nn.Conv2d(inner, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
            self.squeeze = squeeze
            if squeeze:
                self.less, self.more = nn.Conv2d(inner, inputs // 4, 1), nn.Conv2d(inputs // 4, inner, 1)
            self.same = stride == 1 and inputs == outputs

        def forward(self, x):
            if self.squeeze:
                y = F.silu(self.bn2(self.mid(F.silu(self.bn1(self.up(x))))))
                y = y * T.sigmoid(self.more(F.silu(self.less(y.mean((2, 3), True)))))
            else:
                y = F.relu6(self.bn2(self.mid(F.relu6(self.bn1(self.up(x))))))
            y = self.bn3(self.down(y))
            return x + y if self.same else y

    def inverted(plan, width, squeeze=False):
        blocks = []
        for expand, outputs, count, stride, kernel in plan:
            for i in range(count):
                blocks.append(Inverted(width, outputs, stride if i == 0 else 1, expand, kernel, squeeze))
                width = outputs
        return nn.Sequential(*blocks)

    class MobileNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
            plan = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3))
            self.blocks = inverted((*plan, (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)), 32)
            self.last, self.bn2 = nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280)
            self.out = nn.Linear(1280, 100)

        def forward(self, x, label):
            x = self.blocks(F.relu6(self.bn1(self.stem(x))))
            return F.cross_entropy(self.out(F.relu6(self.bn2(self.last(x))).mean((2, 3))), label)

    class EfficientNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.bn1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
            plan = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5))
            self.blocks = inverted((*plan, (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)), 32, True)
            self.last, self.bn2 = nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280)
            self.out = nn.Linear(1280, 1000)

        def forward(self, x):
            x = self.blocks(F.silu(self.bn1(self.stem(x))))
            return self.out(F.silu(self.bn2(self.last(x))).mean((2, 3)))

    return {"wl_mobilenet": MobileNet, "wl_efficientnet": EfficientNet}


def _images(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Double(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
            self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)

        def forward(self, x):
            return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c, self.d = Double(1, 16), Double(16, 32), Double(32, 64), Double(64, 128)
            self.up1, self.up2 = nn.ConvTranspose2d(128, 64, 2, 2), nn.ConvTranspose2d(64, 32, 2, 2)
            self.up3 = nn.ConvTranspose2d(32, 16, 2, 2)
            self.e, self.f, self.g = Double(128, 64), Double(64, 32), Double(32, 16)
            self.out, self.pool = nn.Conv2d(16, 1, 1), nn.MaxPool2d(2)

        def forward(self, x, truth):
            a = self.a(x)
            b = self.b(self.pool(a))
            c = self.c(self.pool(b))
            d = self.d(self.pool(c))
            c = self.e(T.cat((self.up1(d), c), 1))
            b = self.f(T.cat((self.up2(c), b), 1))
            a = self.g(T.cat((self.up3(b), a), 1))
            return F.binary_cross_entropy_with_logits(self.out(a), truth)

    class Volume(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv3d(1, 16, 3, 1, 1), nn.BatchNorm3d(16)
            self.conv2, self.bn2 = nn.Conv3d(16, 32, 3, 2, 1), nn.BatchNorm3d(32)
            self.conv3, self.bn3 = nn.Conv3d(32, 64, 3, 2, 1), nn.BatchNorm3d(64)
            self.out = nn.Linear(64, 10)

        def forward(self, x, label):
            x = F.relu(self.bn1(self.conv1(x)))
            x = F.relu(self.bn3(self.conv3(F.relu(self.bn2(self.conv2(x))))))
            return F.cross_entropy(self.out(x.mean((2, 3, 4))), label)

    return {"wl_unet": UNet, "wl_conv3d": Volume}


def _diffusion(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Residual(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm1, self.norm2 = nn.GroupNorm(8, inputs), nn.GroupNorm(8, outputs)
            self.conv1, self.conv2 = nn.Conv2d(inputs, outputs, 3, 1, 1), nn.Conv2d(outputs, outputs, 3, 1, 1)
            self.time = nn.Linear(128, outputs)
            self.same = inputs == outputs
            if not self.same:
                self.skip = nn.Conv2d(inputs, outputs, 1)

        def forward(self, x, t):
            h = self.conv1(F.silu(self.norm1(x)))
            h = h + T.unsqueeze(T.unsqueeze(self.time(F.silu(t)), 2), 3)
            h = self.conv2(F.silu(self.norm2(h)))
            return h + (x if self.same else self.skip(x))

    class Diffusion(nn.Module):
        def __init__(self):
            super().__init__()
            self.time1, self.time2 = nn.Linear(64, 128), nn.Linear(128, 128)
            self.first, self.last = nn.Conv2d(3, 32, 3, 1, 1), nn.Conv2d(32, 3, 3, 1, 1)
            self.down1, self.down2, self.mid = Residual(32, 32), Residual(32, 64), Residual(64, 64)
            self.up1, self.up2 = Residual(128, 32), Residual(64, 32)
            self.less1, self.less2 = nn.Conv2d(32, 32, 3, 2, 1), nn.Conv2d(64, 64, 3, 2, 1)
            self.norm, self.qkv, self.o = nn.GroupNorm(8, 64), nn.Conv2d(64, 192, 1), nn.Conv2d(64, 64, 1)
            self.norm2 = nn.GroupNorm(8, 32)

        def attend(self, x):
            b, c, h, w = x.shape
            q, k, v = T.chunk(T.reshape(self.qkv(self.norm(x)), (b, 3 * c, h * w)), 3, 1)
            weight = T.softmax(T.matmul(T.transpose(q, 1, 2), k) / 8.0, -1)
            return x + self.o(T.reshape(T.matmul(v, T.transpose(weight, 1, 2)), (b, c, h, w)))

        def forward(self, x, t):
            t = self.time2(F.silu(self.time1(t)))
            noisy = x
            a = self.down1(self.first(x), t)
            b = self.down2(self.less1(a), t)
            c = self.attend(self.mid(self.less2(b), t))
            b = self.up1(T.cat((F.interpolate(c, scale_factor=2.0), b), 1), t)
            a = self.up2(T.cat((F.interpolate(b, scale_factor=2.0), a), 1), t)
            return noisy - 0.02 * self.last(F.silu(self.norm2(a)))

    return {"wl_diffusion": Diffusion}


def _detection(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (3, 16, 32, 64, 128, 128)
            pairs = list(zip(widths, widths[1:]))
            self.convs = nn.ModuleList([nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in pairs])
            self.norms = nn.ModuleList([nn.BatchNorm2d(b) for _, b in pairs])
            self.fine, self.coarse = nn.Conv2d(128, 3 * 25, 1), nn.Conv2d(128, 3 * 25, 1)

        def decode(self, x):
            b, _, h, w = x.shape
            x = T.reshape(T.permute(T.reshape(x, (b, 3, 25, h, w)), (0, 1, 3, 4, 2)), (b, -1, 25))
            return T.cat((T.sigmoid(x[..., :2]), T.exp(T.clamp(x[..., 2:4], -4.0, 4.0)), T.sigmoid(x[..., 4:])), -1)

        def forward(self, x):
            found = []
            for conv, norm in zip(self.convs, self.norms):
                x = F.leaky_relu(norm(conv(x)), 0.1)
                found.append(x)
            boxes = T.cat((self.decode(self.fine(found[3])), self.decode(self.coarse(found[4]))), 1)
            best = T.amax(boxes[..., 5:], -1) * boxes[..., 4]
            return boxes[..., :4], best

    return {"wl_detector": Detector}


def _blocks(nn: Any, F: Any, T: Any) -> tuple[Any, Any]:
    """Return attention, and a layer with it, of transformers that normalise first."""

    class Attention(nn.Module):
        def __init__(self, width, heads, causal=False):
            super().__init__()
            self.heads, self.causal = heads, causal
            self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = T.chunk(self.qkv(x), 3, -1)
            q = T.transpose(T.reshape(q, (b, t, self.heads, -1)), 1, 2)
            k = T.transpose(T.reshape(k, (b, t, self.heads, -1)), 1, 2)
            v = T.transpose(T.reshape(v, (b, t, self.heads, -1)), 1, 2)
            y = T.attention(q, k, v, self.causal)
            return self.o(T.reshape(T.transpose(y, 1, 2), (b, t, d)))

    class Block(nn.Module):
        def __init__(self, width, heads, causal=False):
            super().__init__()
            self.norm1, self.attend = nn.LayerNorm(width), Attention(width, heads, causal)
            self.norm2, self.up, self.down = (
                nn.LayerNorm(width),
                nn.Linear(width, 4 * width),
                nn.Linear(4 * width, width),
            )

        def forward(self, x):
            x = x + self.attend(self.norm1(x))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    return Attention, Block


def _formers(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    Attention, Block = _blocks(nn, F, T)

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 192, 8, 8)
            self.blocks, self.norm = nn.Sequential(*[Block(192, 3) for _ in range(6)]), nn.LayerNorm(192)
            self.out = nn.Linear(192, 100)

        def forward(self, x, label):
            x = T.transpose(T.reshape(self.patch(x), (x.shape[0], 192, -1)), 1, 2)
            return F.cross_entropy(self.out(self.norm(self.blocks(x)).mean(1)), label)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.pos = nn.Embedding(4000, 256), nn.Embedding(512, 256)
            self.blocks, self.norm = nn.Sequential(*[Block(256, 4, True) for _ in range(4)]), nn.LayerNorm(256)
            self.out = nn.Linear(256, 4000)

        def forward(self, x, label):
            x = self.embed(x) + self.pos.weight[: x.shape[1]]
            x = self.out(self.norm(self.blocks(x)))
            return F.cross_entropy(T.reshape(x, (-1, 4000)), T.reshape(label, (-1,)))

    class Windows(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(96, 3) for _ in range(4)])

        def forward(self, x):
            b, n = x.shape[0], 8
            for i, block in enumerate(self.blocks):
                if i % 2:
                    x = T.roll(x, (-4, -4), (1, 2))
                y = T.permute(T.reshape(x, (b, n, 7, n, 7, 96)), (0, 1, 3, 2, 4, 5))
                y = T.reshape(block(T.reshape(y, (-1, 49, 96))), (b, n, n, 7, 7, 96))
                x = T.reshape(T.permute(y, (0, 1, 3, 2, 4, 5)), (b, 56, 56, 96))
                if i % 2:
                    x = T.roll(x, (4, 4), (1, 2))
            return T.mean(x * x)

    return {"wl_vit": ViT, "wl_gpt": GPT, "wl_windows": Windows}


def _speech(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    Attention, _ = _blocks(nn, F, T)

    class Conformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.up1, self.down1 = nn.LayerNorm(144), nn.Linear(144, 576), nn.Linear(576, 144)
            self.norm2, self.attend, self.norm3 = nn.LayerNorm(144), Attention(144, 4), nn.LayerNorm(144)
            self.point1, self.point2 = nn.Conv1d(144, 288, 1), nn.Conv1d(144, 144, 1)
            self.depth, self.bn = nn.Conv1d(144, 144, 31, 1, 15, groups=144), nn.BatchNorm1d(144)
            self.norm4, self.up2, self.down2 = nn.LayerNorm(144), nn.Linear(144, 576), nn.Linear(576, 144)
            self.norm5 = nn.LayerNorm(144)

        def forward(self, x):
            x = x + 0.5 * self.down1(F.silu(self.up1(self.norm1(x))))
            x = x + self.attend(self.norm2(x))
            y = F.glu(self.point1(T.transpose(self.norm3(x), 1, 2)), 1)
            y = self.point2(F.silu(self.bn(self.depth(y))))
            x = x + T.transpose(y, 1, 2)
            x = x + 0.5 * self.down2(F.silu(self.up2(self.norm4(x))))
            return T.mean(self.norm5(x) ** 2 * x)

    class Temporal(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(8, 64, 1)
            self.convs = nn.ModuleList([nn.Conv1d(64, 64, 3, dilation=2**i) for i in range(6)])

        def forward(self, x, y):
            x = self.first(x)
            for i, conv in enumerate(self.convs):
                x = x + F.relu(conv(F.pad(x, (2 * 2**i, 0))))
            return T.mean((x.mean(1) - y) ** 2)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = T.lstm(64, 256, 2), nn.Linear(256, 1)

        def forward(self, x, y):
            return T.mean((self.out(self.rnn(x)[0][:, -1]) - y) ** 2)

    return {"wl_conformer": Conformer, "wl_tcn": Temporal, "wl_lstm": Recurrent}


def _sound(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Sound(nn.Module):
        def __init__(self):
            super().__init__()
            plan = ((1, 64, 10, 5), (64, 64, 3, 2), (64, 64, 3, 2), (64, 64, 3, 2), (64, 64, 2, 2))
            self.convs = nn.ModuleList([nn.Conv1d(a, b, k, s, bias=False) for a, b, k, s in plan])
            self.norm, self.out = nn.GroupNorm(64, 64), nn.Linear(64, 35)

        def forward(self, x, label):
            for i, conv in enumerate(self.convs):
                x = conv(x)
                x = F.gelu(self.norm(x) if i == 0 else x)
            return F.cross_entropy(self.out(x.mean(2)), label)

    class Audio(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv1d(1, 32, 80, 16), nn.BatchNorm1d(32)
            self.conv2, self.bn2 = nn.Conv1d(32, 32, 3), nn.BatchNorm1d(32)
            self.conv3, self.bn3 = nn.Conv1d(32, 64, 3), nn.BatchNorm1d(64)
            self.out = nn.Linear(64, 35)

        def forward(self, x, label):
            x = T.max_pool1d(F.relu(self.bn1(self.conv1(x))), 4)
            x = T.max_pool1d(F.relu(self.bn2(self.conv2(x))), 4)
            x = F.relu(self.bn3(self.conv3(x)))
            return F.cross_entropy(self.out(x.mean(2)), label)

    return {"wl_wav2vec": Sound, "wl_audio": Audio}


def _tables(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 16), nn.Linear(16, 1)

        def forward(self, x, y):
            return T.mean((self.b(T.tanh(self.a(x))) - y) ** 2)

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.m, self.s = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
            self.b, self.out = nn.Linear(20, 400), nn.Linear(400, 784)

        def forward(self, x, noise):
            h = F.relu(self.a(x))
            m, s = self.m(h), self.s(h)
            z = m + T.exp(0.5 * s) * noise
            y = self.out(F.relu(self.b(z)))
            apart = -0.5 * (1.0 + s - m * m - T.exp(s)).sum()
            return (F.binary_cross_entropy_with_logits(y, x) * 784.0 * 128.0 + apart) / 128.0

    class DLRM(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList([nn.Embedding(20000, 16) for _ in range(8)])
            self.a, self.b = nn.Linear(13, 64), nn.Linear(64, 16)
            self.c, self.d = nn.Linear(16 + 81, 64), nn.Linear(64, 1)

        def forward(self, dense, index, label):
            x = F.relu(self.b(F.relu(self.a(dense))))
            rows = T.stack([x] + [table(index[:, i]) for i, table in enumerate(self.tables)], 1)
            pairs = T.reshape(T.matmul(rows, T.transpose(rows, 1, 2)), (-1, 81))
            y = self.d(F.relu(self.c(T.cat((x, pairs), 1))))
            return F.binary_cross_entropy_with_logits(y[:, 0], label)

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = T.sparse_embedding(1000000, 16)

        def forward(self, index, y):
            return T.mean((self.table(index) - y) ** 2)

    return {"wl_tiny": Tiny, "wl_vae": VAE, "wl_dlrm": DLRM, "wl_table": Table}


def _values(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    class Points(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.bn1 = nn.Conv1d(3, 64, 1), nn.BatchNorm1d(64)
            self.b, self.bn2 = nn.Conv1d(64, 256, 1), nn.BatchNorm1d(256)
            self.c, self.out = nn.Linear(256, 64), nn.Linear(64, 40)

        def forward(self, x, label):
            x = F.relu(self.bn2(self.b(F.relu(self.bn1(self.a(x))))))
            return F.cross_entropy(self.out(F.relu(self.c(T.amax(x, 2)))), label)

    class DQN(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(8, 128), nn.Linear(128, 128), nn.Linear(128, 4)

        def value(self, x):
            return self.c(F.relu(self.b(F.relu(self.a(x)))))

        def forward(self, memory, action, at):
            now, after = T.take(memory, at), T.take(memory, at + 1)
            target = T.detach(now[:, 0] + 0.99 * T.amax(self.value(after), 1))
            chosen = T.take_along(self.value(now), T.unsqueeze(T.take(action, at), 1))
            return F.smooth_l1_loss(T.squeeze(chosen, 1), target)

    return {"wl_pointnet": Points, "wl_dqn": DQN}


def networks(nn: Any, F: Any, T: Any) -> Mapping[str, Callable[[], Any]]:
    """Return what makes each network, by their cases' names."""
    groups = (_inverted, _images, _diffusion, _detection, _formers, _speech, _sound, _tables, _values)
    return {name: network for group in groups for name, network in group(nn, F, T).items()}
