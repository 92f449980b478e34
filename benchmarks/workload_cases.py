"""The table of workloads: what people run, each with its data.

A name with the functions is differentiated by `wrt`, or runs forward; one with the networks is
trained by the optimizer told, or runs forward; one with the steps runs as it is.
"""

from __future__ import annotations

from case_types import Array, Case

__all__ = ["workloads"]


def _function(name: str, title: str, inputs: tuple[Array, ...], wrt: tuple[int, ...] = (), **more: float) -> Case:
    return Case(f"wl_{name}", "workloads", title, inputs, wrt, kind="function", **more)


def _network(name: str, title: str, inputs: tuple[Array, ...], optimizer: str = "sgd", **more: float) -> Case:
    return Case(f"wl_{name}", "workloads", title, inputs, kind="network", optimizer=optimizer, **more)


def _course(name: str, title: str, inputs: tuple[Array, ...], **more: float) -> Case:
    return Case(f"wl_{name}", "workloads", title, inputs, kind="course", **more)


def _weight(*shape: int) -> Array:
    return Array(shape, scale=shape[0] ** -0.5)


def _science() -> list[Case]:
    A = Array
    big = A((2048, 2048))
    mlp = (_weight(64, 256), A((256,)), _weight(256, 64), A((64,)))
    return [
        _function("chain", "element-wise chain with gradient, 2048 x 2048", (big, big), (0, 1)),
        _function("rfft", "power spectra of 1000 real rows of 1000", (A((1000, 1000)),), tolerance=1e-3),
        _function(
            "fno",
            "spectral convolution (FNO) with gradient, 8 x 16 x 64 x 64",
            (A((8, 16, 64, 64)), A((16, 16, 12, 12), scale=0.1), A((16, 16, 12, 12), scale=0.1)),
            (0, 1, 2),
        ),
        _function("ode", "neural ODE, 20 steps of RK4 with gradient", (A((256, 64)), *mlp), (0, 1, 2, 3, 4)),
        _function(
            "particles",
            "100,000 particles on a grid, 10 steps",
            (A((100000, 2), kind="uniform", scale=0.9), A((100000, 2)), A((16384,), scale=0.0)),
        ),
        _function(
            "hmc",
            "HMC of a logistic regression, 20 leaps, 5000 x 64",
            (A((5000, 64)), A((5000,), kind="uniform"), A((64,), scale=0.1), A((64,))),
            tolerance=1e-3,
        ),
        _function(
            "kmeans", "k-means, 20,000 x 32, 64 centres, 10 rounds", (A((20000, 32)), A((64, 32))), tolerance=1e-2
        ),
        _function(
            "gp",
            "Gaussian process of 1000 points with gradient",
            (A((1000, 8)), A((1000,)), A((8,), kind="uniform", scale=3.0)),
            (2,),
            tolerance=1e-2,
        ),
        _function("whitening", "whitening by eigenvectors, 4000 x 256", (A((4000, 256)),), tolerance=1e-2),
        _function("svd", "singular values of 8 x 200 x 200", (A((8, 200, 200)),), tolerance=1e-3),
    ]


def _learning() -> list[Case]:
    A, W = Array, _weight
    nodes = (A((10000, 64)), W(64, 64), W(64, 16), A((100000,), 10000), A((100000,), 10000))
    factors = (A((4096,), 50000), A((4096,), 20000), A((4096,)), A((50000, 32)), A((20000, 32)))
    fields = (W(39, 128), W(128, 128), W(128, 128), W(128, 4))
    return [
        _function("gcn", "graph convolution, 10,000 nodes, 100,000 edges, with gradient", nodes, (0, 1, 2)),
        _function("nerf", "NeRF, 512 rays of 64 samples, with gradient", (A((512, 64, 3)), *fields), (1, 2, 3, 4)),
        _function("soft_rank", "soft ranks of 16 x 512 with gradient", (A((16, 512)), A((16, 512))), (0,)),
        _function(
            "lovasz", "Lovasz hinge of 4 x 16384 with gradient", (A((4, 16384)), A((4, 16384), 2, "flags")), (0,)
        ),
        _function("soft_dtw", "soft DTW of 64 pairs of 32 with gradient", (A((64, 32)), A((64, 32))), (0,)),
        _function(
            "ctc", "CTC of 100 x 16 x 32, 20 labels, with gradient", (A((100, 16, 32)), A((16, 20), 31, "labels")), (0,)
        ),
        _function("augment", "rotated images, 16 x 3 x 128 x 128", (A((16, 3, 128, 128)), A((16, 2, 3), scale=0.7))),
        _function("quantiles", "quantiles and the first 100 of 64 x 10,000", (A((64, 10000), kind="normal"),)),
        _function("mf", "matrix factors, 4096 ratings, with gradient", factors, (3, 4)),
        _function(
            "ppo",
            "PPO's loss with GAE over 128 steps, with gradient",
            (A((128, 64)), A((129, 64)), A((128, 64)), A((128, 64))),
            (1, 2),
        ),
    ]


def _networks() -> list[Case]:
    A = Array
    return [
        _network(
            "mobilenet",
            "MobileNetV2, batch 8 of 128 x 128, a step",
            (A((8, 3, 128, 128)), A((8,), 100)),
            tolerance=3e-3,
        ),
        _network("efficientnet", "EfficientNet-B0 at batch 1, 224 x 224", (A((1, 3, 224, 224)),), ""),
        _network("unet", "U-Net, batch 4 of 96 x 96, a step", (A((4, 1, 96, 96)), A((4, 1, 96, 96), 2, "flags"))),
        _network("diffusion", "a sampling step of a diffusion U-Net, 4 x 32 x 32", (A((4, 3, 32, 32)), A((4, 64))), ""),
        _network("conv3d", "3-d convolutions, 2 x 16 x 32 x 32, a step", (A((2, 1, 16, 32, 32)), A((2,), 10))),
        _network("detector", "YOLO-like detector, 320 x 320", (A((1, 3, 320, 320)),), ""),
        _network("vit", "ViT of 6 layers of 192, batch 8, a step", (A((8, 3, 64, 64)), A((8,), 100)), "adam"),
        _network("gpt", "GPT of 4 layers of 256, 8 x 128, a step", (A((8, 128), 4000), A((8, 128), 4000)), "adam"),
        _network("windows", "Swin windows, 4 layers, 2 x 56 x 56 x 96, a step", (A((2, 56, 56, 96)),)),
        _network("conformer", "Conformer block, 8 x 200 x 144, a step", (A((8, 200, 144)),)),
        _network("tcn", "temporal convolutions, 16 x 8 x 500, a step", (A((16, 8, 500)), A((16, 500)))),
        _network("wav2vec", "encoder of sound, 2 x 16000, a step", (A((2, 1, 16000)), A((2,), 35))),
        _network("audio", "1-d convolutions of sound, 16 x 16000, a step", (A((16, 1, 16000)), A((16,), 35))),
        _network("lstm", "LSTM of 2 layers of 256, 100 steps, batch 32, a step", (A((32, 100, 64)), A((32, 1)))),
        _network("tiny", "a network of 97 numbers, batch 8, a step", (A((8, 4)), A((8, 1)))),
        _network(
            "vae",
            "VAE of 784, batch 128, a step of Adam",
            (A((128, 784), kind="uniform", scale=0.9), A((128, 20))),
            "adam",
        ),
        _network(
            "dlrm", "DLRM of 8 tables, batch 2048, a step", (A((2048, 13)), A((2048, 8), 20000), A((2048,), 2, "flags"))
        ),
        _network("table", "table of 1,000,000 x 16, batch 4096, a step", (A((4096,), 1000000), A((4096, 16)))),
        _network("pointnet", "PointNet, 16 x 1024 points, a step", (A((16, 3, 1024)), A((16,), 40))),
        _network(
            "dqn",
            "DQN with replay of 100,001 x 8, batch 256, a step",
            (A((100001, 8)), A((100000,), 4), A((256,), 100000)),
            "adam",
        ),
    ]


def _courses() -> list[Case]:
    A, W = Array, _weight
    physics = (W(2, 64), A((64,)), W(64, 64), A((64,)), W(64, 1), A((2000, 2), kind="uniform"))
    return [
        _course("newton", "Newton's method per sample, 20,000", (A((20000,), kind="uniform", scale=5.0),)),
        _course("pinn", "physics-informed network, 2000 points, gradient", physics, tolerance=1e-3),
        _course("nms", "suppression of 300 boxes", (A((1, 300, 4), kind="uniform"), A((1, 300), kind="distinct"))),
        _course("trees", "TreeLSTM of 100 over trees that are new each time, a step", (A((24, 100)),)),
        _course("decode", "a token of a decoder of 4 layers with cache of 512", (A((1, 256)), A((512,)))),
        _course("lengths_gru", "GRU steps of 20 lengths", (A((16, 70, 32)), A((16, 1)))),
        _course("lengths_gpt", "GPT steps of 16 lengths", (A((4, 128), 4000), A((4, 128), 4000)), tolerance=5e-3),
        _course(
            "bf16",
            "three dense layers in bfloat16, 256 x 1024",
            (A((256, 1024)), W(1024, 1024), W(1024, 1024), W(1024, 1024)),
            tolerance=2e-2,
        ),
        _course("adam", "Adam on 25 million numbers, batch 8", (A((8, 2500)),), tolerance=1e-3),
        _course("gan", "DCGAN, batch 32 of 32 x 32, a step", (A((32, 64, 1, 1)), A((32, 3, 32, 32))), tolerance=1e-2),
    ]


def workloads() -> list[Case]:
    """Return all workloads."""
    return [*_science(), *_learning(), *_networks(), *_courses()]
