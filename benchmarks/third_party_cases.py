"""Third-party programs and models as cases: each gives named arrays, which Mycel and MindSpore
compare.

A case is plain MindSpore and the package's own code. Parameters get the same numbers under both
frameworks: normal ones from a generator seeded by the parameter's name, with the deviation that
keeps activations of size one.
"""

from __future__ import annotations

import importlib
import os
import sys
import types
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CASES", "Case"]

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What is run: the package (as it is imported), a title, and the function that gives arrays."""

    package: str
    name: str
    run: Callable[[], Arrays]
    kind: str
    modes: tuple[str, ...] = ("pynative", "graph")

    @property
    def key(self) -> str:
        return f"{self.package}.{self.name}"


CASES: dict[str, Case] = {}


def _add(
    package: str, name: str, kind: str, run: Callable[[], Arrays], modes: tuple[str, ...] = ("pynative", "graph")
) -> None:
    case = Case(package, name, run, kind, modes)
    CASES[case.key] = case


def case(package: str, name: str, kind: str, modes: tuple[str, ...] = ("pynative", "graph")) -> Any:
    """Return a decorator that enters a case."""

    def enter(run: Callable[[], Arrays]) -> Callable[[], Arrays]:
        _add(package, name, kind, run, modes)
        return run

    return enter


# What cases share.


def numbers(seed: int, *shape: int) -> Any:
    """Return standard normal numbers as a tensor."""
    import mindspore as ms

    return ms.Tensor(np.random.RandomState(seed).standard_normal(shape).astype(np.float32))


def fill(network: Any) -> Any:
    """Give a network's float parameters numbers that follow from their names."""
    import mindspore as ms

    for p in network.get_parameters():
        if "float" not in str(p.dtype).lower() or "relative_position_index" in p.name:
            continue
        random = np.random.RandomState(zlib.crc32(p.name.encode()) % 2**32)
        value = random.standard_normal(p.shape)
        if p.name.endswith(("gamma", "moving_variance")):
            value = 1 + 0.1 * np.clip(value, -3, 3)
        elif len(p.shape) >= 2:
            value = value / np.sqrt(max(int(np.prod(p.shape[1:])), 1))
        else:
            value = 0.02 * value
        p.set_data(ms.Tensor(value.astype(np.float32)))
    return network


def outputs(result: Any, prefix: str = "y") -> Arrays:
    """Return the tensors of a nested result, by their place."""
    if isinstance(result, dict):
        return {k: v for name, one in sorted(result.items()) for k, v in outputs(one, f"{prefix}.{name}").items()}
    if isinstance(result, (tuple, list)):
        return {k: v for i, one in enumerate(result) for k, v in outputs(one, f"{prefix}.{i}").items()}
    return {prefix: np.asarray(result.asnumpy() if hasattr(result, "asnumpy") else result)}


def gradients(network: Any, loss: Callable[..., Any], *data: Any) -> Arrays:
    """Return the loss and its gradients by a network's parameters."""
    import mindspore as ms

    weights = network.trainable_params()
    value, found = ms.value_and_grad(loss, None, weights)(*data)
    return {"loss": value.asnumpy(), **{f"d {w.name}": g.asnumpy() for w, g in zip(weights, found)}}


def bare(packages: Sequence[str], modules: Sequence[str]) -> list[Any]:
    """Return modules of packages whose own `__init__` is not run, because it imports what MindSpore
    2.10 or Mycel does not have.
    """
    for name in packages:
        if name not in sys.modules:
            parent, _, last = name.rpartition(".")
            places = sys.modules[parent].__path__ if parent else sys.path
            module = types.ModuleType(name)
            module.__path__ = [os.path.join(p, last) for p in places if os.path.isdir(os.path.join(p, last))]
            sys.modules[name] = module
    return [importlib.import_module(name) for name in modules]


# mindcv: one model of each family, gradients, and training with the package's own parts.

_FAMILIES = {
    "BiT_resnet50": 64,
    "cait_xxs24_224": 224,
    "cmt_tiny": 160,
    "coat_lite_tiny": 224,
    "convit_tiny": 224,
    "convnext_tiny": 96,
    "convnextv2_atto": 96,
    "crossvit_9": 240,
    "densenet121": 96,
    "dpn92": 96,
    "edgenext_xx_small": 128,
    "efficientnet_b0": 96,
    "efficientnet_v2_s": 96,
    "ghostnet_050": 96,
    "googlenet": 96,
    "halonet_50t": 256,
    "hrnet_w32": 96,
    "inception_v3": 299,
    "inception_v4": 160,
    "mae_b_16_224_finetune": 224,
    "mixnet_s": 96,
    "mlp_mixer_s_p32": 224,
    "mnasnet_050": 96,
    "mobilenet_v1_025": 96,
    "mobilenet_v2_035_96": 96,
    "mobilenet_v3_small_075": 96,
    "mobilevit_xx_small": 256,
    "nasnet_a_4x1056": 224,
    "pit_ti": 224,
    "pnasnet": 224,
    "poolformer_s12": 96,
    "pvt_tiny": 224,
    "pvt_v2_b0": 224,
    "regnet_x_200mf": 96,
    "regnet_y_200mf": 96,
    "repmlp_t224": 224,
    "repvgg_a0": 96,
    "res2net50": 96,
    "resnest14": 96,
    "resnet18": 96,
    "resnet50": 96,
    "resnext50_32x4d": 96,
    "resnetv2_50": 96,
    "rexnet_09": 96,
    "seresnet18": 96,
    "shufflenet_v1_g3_05": 96,
    "shufflenet_v2_x0_5": 96,
    "skresnet18": 96,
    "squeezenet1_0": 96,
    "swin_tiny": 224,
    "swinv2_tiny_window8": 256,
    "vgg11": 224,
    "visformer_tiny": 224,
    "vit_b_32_224": 224,
    "volo_d1": 224,
    "xception": 96,
    "xcit_tiny_12_p16_224": 224,
}


def _mindcv_forward(name: str, size: int) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindcv.models import create_model

        network = fill(create_model(name, num_classes=10)).set_train(False)
        return outputs(network(numbers(1, 1, 3, size, size)))

    return run


def _mindcv_gradients(name: str, size: int) -> Callable[[], Arrays]:
    def run() -> Arrays:
        import mindspore as ms
        from mindcv.loss import create_loss
        from mindcv.models import create_model

        network = fill(create_model(name, num_classes=10)).set_train(True)
        criterion = create_loss(name="CE", label_smoothing=0.1)
        label = ms.Tensor(np.array([3, 7], np.int32))
        return gradients(network, lambda x, y: criterion(network(x), y), numbers(1, 2, 3, size, size), label)

    return run


def _mindcv_training(optimizer: str, **options: Any) -> Callable[[], Arrays]:
    def run() -> Arrays:
        import mindspore as ms
        from mindcv.loss import create_loss
        from mindcv.models.resnet import BasicBlock, ResNet
        from mindcv.optim import create_optimizer
        from mindcv.scheduler import create_scheduler
        from mindcv.utils import create_trainer
        from mindspore import train

        losses: list[float] = []

        class Keep(train.Callback):
            def step_end(self, run_context: Any) -> None:
                result = run_context.original_args().net_outputs
                losses.append(float((result[0] if isinstance(result, tuple) else result).asnumpy()))

        def rows() -> Any:
            for k in range(4):
                random = np.random.RandomState(k)
                yield (
                    random.standard_normal((8, 3, 32, 32)).astype(np.float32),
                    random.randint(0, 4, 8).astype(np.int32),
                )

        data = ms.dataset.GeneratorDataset(rows, ["image", "label"], shuffle=False)
        network = fill(ResNet(BasicBlock, [1, 1, 1, 1], num_classes=4))
        rate_of = options.get("rate", 1e-3)
        rate = create_scheduler(4, scheduler="cosine_decay", lr=rate_of, min_lr=1e-5, warmup_epochs=1, decay_epochs=1)
        stepper = create_optimizer(network, opt=optimizer, lr=rate, weight_decay=1e-2, **options.get("arguments", {}))
        trainer = create_trainer(
            network,
            create_loss(name="CE", label_smoothing=0.1),
            stepper,
            None,
            amp_level="O0",
            amp_cast_list=None,
            **{"loss_scale_type": "fixed", **options.get("trainer", {})},
        )
        trainer.train(2, data, callbacks=[Keep()], dataset_sink_mode=False)
        return {"losses": np.array(losses)}

    return run


for _name, _size in _FAMILIES.items():
    _add("mindcv", _name, "forward", _mindcv_forward(_name, _size))
for _name, _size in {"resnet18": 64, "regnet_x_200mf": 64, "convnextv2_atto": 64, "shufflenet_v2_x0_5": 64}.items():
    _add("mindcv", f"{_name}.gradients", "gradients", _mindcv_gradients(_name, _size))
for _name in ("sgd", "momentum", "adam", "adamw", "lion", "nadam", "adan", "rmsprop"):
    _add("mindcv", f"training.{_name}", "training", _mindcv_training(_name, rate=1e-4 if _name == "lion" else 1e-3))
_add(
    "mindcv",
    "training.ema",
    "training",
    _mindcv_training("adamw", trainer={"ema": True, "clip_grad": True, "clip_value": 1.0}),
)
_add(
    "mindcv",
    "training.accumulated",
    "training",
    _mindcv_training("momentum", trainer={"gradient_accumulation_steps": 2}),
    ("graph",),
)
_add(
    "mindcv",
    "training.loss_scale",
    "training",
    _mindcv_training("momentum", trainer={"loss_scale": 1024.0, "clip_grad": True}),
)

# The other packages bring their cases in modules of their own, beside this one.
for _module in (
    "third_party_vision",
    "third_party_speech",
    "third_party_methods",
    "third_party_language",
    "third_party_formers",
):
    importlib.import_module(_module)
