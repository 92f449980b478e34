"""Cases of mindarmour (attacks, privacy), mindpet (LoRA) and tinyms (its LeNet program): methods
around networks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from third_party_cases import Arrays, bare, case, fill, gradients, numbers, outputs

# mindarmour.


def _lenet() -> Any:
    from mindspore import nn

    return fill(
        nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Dense(400, 120),
            nn.ReLU(),
            nn.Dense(120, 84),
            nn.ReLU(),
            nn.Dense(84, 10),
        )
    )


def _attack(name: str, **options: Any) -> Any:
    def run() -> Arrays:
        from mindarmour.adv_robustness import attacks
        from mindspore import nn

        random = np.random.RandomState(1)
        images = random.uniform(0, 1, (4, 1, 32, 32)).astype(np.float32)
        labels = np.eye(10, dtype=np.float32)[random.randint(0, 10, 4)]
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=False)
        return {"adversarial": getattr(attacks, name)(_lenet(), loss_fn=loss, **options).generate(images, labels)}

    return run


for _name, _options in {
    "FastGradientMethod": {"eps": 0.1},
    "FastGradientSignMethod": {"eps": 0.1},
    "LeastLikelyClassMethod": {"eps": 0.1},
    "BasicIterativeMethod": {"nb_iter": 3},
    "MomentumIterativeMethod": {"nb_iter": 3},
    "ProjectedGradientDescent": {"nb_iter": 3},
}.items():
    case("mindarmour", _name, "attack")(_attack(_name, **_options))


@case("mindarmour", "DeepFool", "attack")
def _deep_fool() -> Arrays:
    from mindarmour.adv_robustness import attacks

    random = np.random.RandomState(1)
    images, labels = random.uniform(0, 1, (2, 1, 32, 32)).astype(np.float32), np.array([3, 5], np.int32)
    return {"adversarial": attacks.DeepFool(_lenet(), 10, max_iters=5).generate(images, labels)}


@case("mindarmour", "AdversarialDefense", "training")
def _defense() -> Arrays:
    from mindarmour.adv_robustness.defenses import AdversarialDefense
    from mindspore import nn

    network, random = _lenet(), np.random.RandomState(1)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    defense = AdversarialDefense(network, loss, nn.Momentum(network.trainable_params(), 0.01, 0.9))
    images, labels = random.uniform(0, 1, (8, 1, 32, 32)).astype(np.float32), random.randint(0, 10, 8).astype(np.int32)
    return {"losses": np.array([np.asarray(defense.defense(images, labels)) for _ in range(4)], np.float32)}


@case("mindarmour", "NoiseMechanisms", "privacy")
def _mechanisms() -> Arrays:
    import mindspore as ms
    from mindarmour.privacy.diff_privacy import NoiseMechanismsFactory

    made = NoiseMechanismsFactory().create("Gaussian", norm_bound=1.0, initial_noise_multiplier=0.1)
    noise = made(ms.ops.zeros((2000,), ms.float32)).asnumpy()
    return {"near its deviation": np.array([abs(noise.std() - 0.1) < 0.01, abs(noise.mean()) < 0.01])}


# mindpet.


def _lora() -> Any:
    import mindspore as ms

    (part,) = bare(["mindpet", "mindpet.delta"], ["mindpet.delta.lora"])
    network = fill(part.LoRADense(8, 6, lora_rank=4, lora_alpha=16, lora_dropout=0.0, compute_dtype=ms.float32))
    for p in network.get_parameters():
        p.requires_grad = "lora" in p.name
    return network


@case("mindpet", "lora", "forward")
def _lora_forward() -> Arrays:
    return outputs(_lora()(numbers(1, 3, 5, 8)))


@case("mindpet", "lora.gradients", "gradients")
def _lora_gradients() -> Arrays:
    network = _lora()
    return gradients(network, lambda x: (network(x) ** 2).mean(), numbers(1, 3, 5, 8))


@case("mindpet", "lora.training", "training")
def _lora_training() -> Arrays:
    from mindspore import nn

    network = _lora()
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), nn.Adam(network.trainable_params(), 0.01))
    return {"losses": np.array([float(step(numbers(k, 4, 8), numbers(k + 100, 4, 6)).asnumpy()) for k in range(10)])}


# tinyms: its `model` package reads pictures, by transforms that MindSpore 2.10 has no more.


@case("tinyms", "lenet5", "training")
def _tinyms() -> Arrays:
    import tinyms as ts
    from tinyms import layers
    from tinyms.optimizers import Momentum

    (part,) = bare(["tinyms.model"], ["tinyms.model.lenet5"])
    network = fill(part.lenet5(class_num=10))
    with_loss = layers.WithLossCell(network, layers.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"))
    step = layers.TrainOneStepCell(with_loss, Momentum(network.trainable_params(), 0.02, 0.9))
    losses = []
    for k in range(6):
        random = np.random.RandomState(k)
        x, y = random.standard_normal((8, 1, 32, 32)).astype(np.float32), random.randint(0, 10, 8).astype(np.int32)
        losses.append(float(step(ts.array(x), ts.array(y)).asnumpy()))
    return {"losses": np.array(losses)}
