"""Cases of mindformers: transformers made small by their configurations, its losses, schedules and
optimizers, training with its own step, and generation of text.

The package's `__init__` imports transforms that MindSpore 2.10 has no more (`py_transforms`), so
its parts are loaded one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from third_party_cases import Arrays, bare, case, fill, gradients, numbers, outputs
from third_party_language import without_none

_PACKAGES = ("mindformers", *(f"mindformers.{name}" for name in ("models", "core", "dataset", "trainer")))
_FAMILIES = ("bert", "bloom", "clip", "glm", "gpt2", "llama", "mae", "pangualpha", "sam", "swin", "t5", "vit")


def _part(name: str) -> Any:
    return bare([*_PACKAGES, *(f"mindformers.models.{family}" for family in _FAMILIES)], [f"mindformers.{name}"])[0]


def _ids(seed: int, *shape: int, high: int = 60) -> Any:
    import mindspore as ms

    return ms.Tensor(np.random.RandomState(seed).randint(3, high, shape).astype(np.int32))


def _ones(*shape: int) -> Any:
    import mindspore as ms

    return ms.Tensor(np.ones(shape, np.float32))


def _labels(classes: int, *picks: int) -> Any:
    import mindspore as ms

    return ms.Tensor(np.eye(classes, dtype=np.float32)[list(picks)])


_TYPES = {"compute_dtype": "float32", "softmax_compute_type": "float32", "param_init_type": "float32"}
_STILL = {"hidden_dropout_rate": 0.0, "attention_dropout_rate": 0.0, "embedding_dropout_prob": 0.0}
_TEXT = {"batch_size": 2, "seq_length": 12, "vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_heads": 4}
_PICTURE = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_PICTURE |= {"intermediate_size": 64, "drop_path_rate": 0.0, "num_labels": 5}
_BERT = {"batch_size": 2, "seq_length": 12, "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2}
_BERT |= {"num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 12, "compute_dtype": "float32"}
_BERT |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "dropout_prob": 0.0, "num_labels": 5}
_MAE = {k: v for k, v in _PICTURE.items() if k != "num_labels"} | {"decoder_hidden_size": 32}
_MAE |= {"decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 64}
_SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
_SWIN |= {"num_labels": 5, "drop_path_rate": 0.0}

# Of each model: where it lies, its class, its configuration's class and arguments.
_MODELS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "gpt2": ("gpt2", "GPT2LMHeadModel", "GPT2Config", {**_TEXT, **_TYPES, **_STILL}),
    "gpt2.classes": ("gpt2", "GPT2ForSequenceClassification", "GPT2Config", {**_TEXT, **_TYPES, **_STILL}),
    "llama": ("llama", "LlamaForCausalLM", "LlamaConfig", {**_TEXT, **_TYPES, "multiple_of": 16}),
    "bloom": ("bloom", "BloomLMHeadModel", "BloomConfig", {**_TEXT, **_TYPES, **_STILL}),
    "pangualpha": (
        "pangualpha",
        "PanguAlphaHeadModel",
        "PanguAlphaConfig",
        {**_TEXT, **_TYPES, **_STILL, "ffn_hidden_size": 64},
    ),
    "t5": (
        "t5",
        "T5ForConditionalGeneration",
        "T5Config",
        {**_TEXT, **_TYPES, **_STILL, "d_kv": 8, "d_ff": 64, "max_decode_length": 12},
    ),
    "bert": ("bert", "BertForPreTraining", "BertConfig", _BERT),
    "bert.tokens": ("bert", "BertForTokenClassification", "BertConfig", _BERT),
    "vit": ("vit", "ViTForImageClassification", "ViTConfig", _PICTURE),
    "swin": ("swin", "SwinForImageClassification", "SwinConfig", _SWIN),
    "mae": ("mae", "ViTMAEForPreTraining", "ViTMAEConfig", _MAE),
}


def _model(name: str, **more: Any) -> Any:
    family, kind, config, options = _MODELS[name]
    made = getattr(_part(f"models.{family}.{family}_config"), config)(**{**options, **more})
    return fill(getattr(_part(f"models.{family}.{family}"), kind)(made))


def _given(name: str, training: bool, seed: int = 1) -> list[Any]:
    """Return the inputs of a model: with `training` those of which it makes a loss."""
    import mindspore as ms

    family = name.partition(".")[0]
    if name == "gpt2.classes":
        labels = [ms.Tensor(np.array([1, 0], np.int32))] if training else []
        return [_ids(seed, 2, 12), _ones(2, 12), *labels]
    if family in ("gpt2", "llama", "bloom", "pangualpha"):
        return [_ids(seed, 2, 13 if training else 12)]
    if family == "t5":
        return [_ids(seed, 2, 12), _ones(2, 12), _ids(seed + 50, 2, 12)]
    if name == "bert":
        places = ms.Tensor(np.array([[1, 4, 7], [2, 3, 9]], np.int32))
        kinds = ms.Tensor(np.random.RandomState(seed).randint(0, 2, (2, 12)).astype(np.int32))
        following = ms.Tensor(np.array([[0], [1]], np.int32))
        return [_ids(seed, 2, 12), _ones(2, 12), kinds, following, places, _ids(seed + 1, 2, 3), _ones(2, 3)]
    if family == "bert":
        kinds = ms.Tensor(np.zeros((2, 12), np.int32))
        labels = [ms.Tensor(np.random.RandomState(seed).randint(0, 5, (2, 12)).astype(np.int32))] if training else []
        return [_ids(seed, 2, 12), _ones(2, 12), kinds, *labels]
    picture = numbers(seed, 2, 3, 32, 32)
    if family == "mae":
        random = np.random.RandomState(seed)
        order = np.stack([random.permutation(16) for _ in range(2)]).astype(np.int32)
        mask = np.zeros((2, 16), np.int32)
        np.put_along_axis(mask, order[:, 4:], 1, 1)
        return [picture, *map(ms.Tensor, (mask, np.argsort(order, 1).astype(np.int32), order[:, :4]))]
    return [picture, *([_labels(5, 1, 3)] if training else [])]


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) else result


def _forward(name: str) -> Callable[[], Arrays]:
    return lambda: outputs(without_none(_model(name).set_train(False)(*_given(name, False))))


def _gradients(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        network = _model(name).set_train(True)
        return gradients(network, lambda *x: _first(network(*x)), *_given(name, True))

    return run


for _name in _MODELS:
    case("mindformers", _name, "forward")(_forward(_name))
# Pangu wants masks that its data part makes; the other three call what Cells have no more.
for _name in sorted(set(_MODELS) - {"pangualpha", "llama", "swin", "mae"}):
    case("mindformers", f"{_name}.gradients", "gradients")(_gradients(_name))


# Training with the package's losses, schedules, optimizers and clipping of gradients. Its own step
# asks the processor whether sums overflow, which MindSpore has for Ascend only.


def _training(name: str, optimizer: str, schedule: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        import mindspore as ms

        network = _model(name).set_train(True)
        rate = getattr(_part("core.lr"), schedule)(learning_rate=1e-3, warmup_steps=2, total_steps=8)
        weights = network.trainable_params()
        stepper = getattr(_part("core.optim"), optimizer)(weights, learning_rate=rate, weight_decay=0.01)
        clip = _part("core.clip_grad").ClipGradNorm(max_norm=1.0)
        step = ms.value_and_grad(lambda *x: _first(network(*x)), None, weights)
        losses = []
        for seed in (1, 2, 1, 2, 1, 2):
            loss, found = step(*_given(name, True, seed))
            stepper(_first(clip(found)))
            losses.append(float(loss.asnumpy()))
        return {"losses": np.array(losses)}

    return run


for _name, _optimizer, _schedule in (
    ("gpt2", "FP32StateAdamWeightDecay", "CosineWithWarmUpLR"),
    ("gpt2.classes", "FP32StateAdamWeightDecay", "CosineWithRestartsAndWarmUpLR"),
    ("bert.tokens", "FP32StateAdamWeightDecay", "PolynomialWithWarmUpLR"),
    ("vit", "FP32StateAdamWeightDecay", "LinearWithWarmUpLR"),
    ("t5", "Came", "ConstantWarmUpLR"),
):
    case("mindformers", f"training.{_name}", "training")(_training(_name, _optimizer, _schedule))


def _generation(name: str, **options: Any) -> Callable[[], Arrays]:
    def run() -> Arrays:
        network = _model(name, batch_size=1, use_past=False).set_train(False)
        wanted = {"max_length": 12, "do_sample": False, "eos_token_id": 63, "pad_token_id": 0, **options}
        found = network.generate([[5, 9, 13]], **wanted)
        return {"ids": np.asarray(found)}

    return run


case("mindformers", "generation.gpt2", "generation")(_generation("gpt2"))
case("mindformers", "generation.gpt2.repeated", "generation")(_generation("gpt2", repetition_penalty=1.5))


@case("mindformers", "losses", "forward")
def _losses() -> Arrays:
    part = _part("core.loss")
    logits, other = numbers(1, 6, 8), numbers(2, 2, 4, 3)
    return {
        "entropy": part.CrossEntropyLoss()(logits, _ids(1, 6, high=8), _ones(6)).asnumpy(),
        "soft": part.SoftTargetCrossEntropy()(logits, _labels(8, 1, 2, 3, 4, 5, 0)).asnumpy(),
        "squares": part.MSELoss()(other, numbers(3, 2, 4, 3), _ones(2, 4)).asnumpy(),
        "distance": part.L1Loss()(numbers(4, 2, 3, 4, 4), numbers(5, 2, 3, 4, 4)).asnumpy(),
    }
