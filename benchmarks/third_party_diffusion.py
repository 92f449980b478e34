"""Cases of mindone: networks of its diffusers and transformers, made small, their schedulers, a
pipeline, and training with its own parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from third_party_cases import Arrays, case, fill, gradients, numbers, outputs
from third_party_steps import descend


def _whole(*values: Any) -> Any:
    import mindspore as ms

    return ms.Tensor(np.array(values, np.int32))


def _unet() -> Any:
    from mindone.diffusers import UNet2DConditionModel

    return fill(
        UNet2DConditionModel(
            sample_size=8,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            block_out_channels=(8, 16),
            layers_per_block=1,
            cross_attention_dim=16,
            attention_head_dim=4,
            norm_num_groups=4,
        )
    )


def _vae() -> Any:
    from mindone.diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return fill(AutoencoderKL(block_out_channels=(8, 8), latent_channels=4, norm_num_groups=4, **blocks))


def _clip() -> Any:
    from mindone.transformers import CLIPTextModel
    from transformers import CLIPTextConfig

    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "max_position_embeddings": 16}
    return fill(CLIPTextModel(CLIPTextConfig(num_hidden_layers=2, num_attention_heads=2, eos_token_id=2, **sizes)))


def _t5() -> Any:
    from mindone.transformers import T5EncoderModel
    from transformers import T5Config

    return fill(T5EncoderModel(T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)))


def _sd3() -> Any:
    from mindone.diffusers import SD3Transformer2DModel

    sizes = {"joint_attention_dim": 16, "caption_projection_dim": 16, "pooled_projection_dim": 16}
    heads = {"attention_head_dim": 8, "num_attention_heads": 2}
    return fill(
        SD3Transformer2DModel(
            sample_size=8, in_channels=4, out_channels=4, num_layers=2, patch_size=2, **heads, **sizes
        )
    )


def _flux() -> Any:
    from mindone.diffusers import FluxTransformer2DModel

    sizes = {"joint_attention_dim": 16, "pooled_projection_dim": 16, "axes_dims_rope": (4, 4, 8)}
    heads = {"attention_head_dim": 16, "num_attention_heads": 2}
    return fill(FluxTransformer2DModel(in_channels=4, num_layers=1, num_single_layers=1, **heads, **sizes))


def _dit() -> Any:
    from mindone.diffusers import DiTTransformer2DModel

    heads = {"attention_head_dim": 8, "num_attention_heads": 2, "num_embeds_ada_norm": 8}
    return fill(DiTTransformer2DModel(sample_size=8, num_layers=2, in_channels=4, out_channels=4, **heads))


def _prior() -> Any:
    from mindone.diffusers import PriorTransformer

    heads = {"attention_head_dim": 8, "num_attention_heads": 2}
    return fill(PriorTransformer(num_layers=1, embedding_dim=16, num_embeddings=5, additional_embeddings=4, **heads))


def _unet_of_pixels() -> Any:
    from mindone.diffusers import UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    return fill(UNet2DModel(sample_size=8, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, **blocks))


def _controlnet() -> Any:
    from mindone.diffusers import ControlNetModel

    return fill(
        ControlNetModel(
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            block_out_channels=(8, 16),
            layers_per_block=1,
            cross_attention_dim=16,
            attention_head_dim=4,
            norm_num_groups=4,
            conditioning_embedding_out_channels=(4, 8),
        )
    )


def _gpt2() -> Any:
    from mindone.transformers import GPT2LMHeadModel
    from transformers import GPT2Config

    return fill(GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16)))


def _qwen2() -> Any:
    from mindone.transformers import Qwen2ForCausalLM
    from transformers import Qwen2Config

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
    return fill(Qwen2ForCausalLM(Qwen2Config(vocab_size=50, **sizes, **heads)))


def _bert() -> Any:
    from mindone.transformers import BertModel
    from transformers import BertConfig

    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "max_position_embeddings": 16}
    return fill(BertModel(BertConfig(num_hidden_layers=2, num_attention_heads=2, **sizes)))


_WORDS = ([1, 4, 5, 8, 2], [1, 9, 8, 7, 2])
_NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "UNet2DConditionModel": (_unet, lambda: (numbers(1, 2, 4, 8, 8), _whole(3, 7), numbers(2, 2, 5, 16))),
    "UNet2DModel": (_unet_of_pixels, lambda: (numbers(1, 2, 3, 8, 8), _whole(3, 7))),
    "AutoencoderKL": (_vae, lambda: (numbers(1, 1, 3, 16, 16),)),
    "SD3Transformer2DModel": (
        _sd3,
        lambda: (numbers(1, 2, 4, 8, 8), numbers(2, 2, 5, 16), numbers(3, 2, 16), _whole(3, 7)),
    ),
    "FluxTransformer2DModel": (
        _flux,
        lambda: (*(numbers(k, *s) for k, s in enumerate([(1, 16, 4), (1, 5, 16), (1, 16), (1,), (16, 3), (5, 3)])),),
    ),
    "DiTTransformer2DModel": (_dit, lambda: (numbers(1, 2, 4, 8, 8), _whole(3, 7), _whole(1, 2))),
    "PriorTransformer": (_prior, lambda: (numbers(1, 2, 16), _whole(3, 7), numbers(2, 2, 16), numbers(3, 2, 5, 16))),
    "ControlNetModel": (
        _controlnet,
        lambda: (numbers(1, 2, 4, 8, 8), _whole(3, 7), numbers(2, 2, 5, 16), numbers(3, 2, 3, 16, 16)),
    ),
    "CLIPTextModel": (_clip, lambda: (_whole(*_WORDS),)),
    "T5EncoderModel": (_t5, lambda: (_whole(*_WORDS),)),
    "GPT2LMHeadModel": (_gpt2, lambda: (_whole(*_WORDS),)),
    "Qwen2ForCausalLM": (_qwen2, lambda: (_whole(*_WORDS),)),
    "BertModel": (_bert, lambda: (_whole(*_WORDS),)),
}


def _forward(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        make, data = _NETWORKS[name]
        return outputs(make().set_train(False)(*data())[0])

    return run


for _name in _NETWORKS:
    case("mindone", _name, "forward")(_forward(_name))


def _scheduled(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindone import diffusers

        scheduler = getattr(diffusers, name)()
        scheduler.set_timesteps(6)
        x = numbers(1, 1, 4, 8, 8)
        for k, t in enumerate(scheduler.timesteps):
            x = scheduler.step(numbers(2 + k, 1, 4, 8, 8), t, scheduler.scale_model_input(x, t))[0]
        return outputs(x)

    return run


for _name in ("DDIM", "EulerDiscrete", "DPMSolverMultistep", "PNDM", "UniPCMultistep", "LMSDiscrete", "HeunDiscrete"):
    case("mindone", f"{_name}Scheduler", "schedule")(_scheduled(f"{_name}Scheduler"))


@case("mindone", "StableDiffusionPipeline", "pipeline")
def _stable_diffusion() -> Arrays:
    from mindone.diffusers import DDIMScheduler, StableDiffusionPipeline

    pipeline = StableDiffusionPipeline(
        vae=_vae(),
        text_encoder=_clip(),
        tokenizer=None,
        unet=_unet(),
        scheduler=DDIMScheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.set_progress_bar_config(disable=True)
    return outputs(
        pipeline(
            prompt_embeds=numbers(1, 1, 5, 16),
            negative_prompt_embeds=numbers(2, 1, 5, 16),
            latents=numbers(3, 1, 4, 8, 8),
            num_inference_steps=4,
            output_type="np",
        )[0]
    )


@case("mindone", "UNet2DConditionModel.gradients", "gradients")
def _unet_gradients() -> Arrays:
    network = _unet()
    x, words = numbers(1, 2, 4, 8, 8), numbers(2, 2, 5, 16)
    found = gradients(network, lambda x, words: (network(x, _whole(3, 7), words)[0] ** 2).mean(), x, words)
    # By their places: MindSpore gives some of the parameters other names when the network runs.
    return {"loss": found.pop("loss"), **{f"d {k}": value for k, value in enumerate(found.values())}}


def _trained(optimizer: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        import mindspore as ms
        from mindone.diffusers import DDPMScheduler
        from mindone.diffusers.training_utils import TrainStep
        from mindone.trainers.optim import create_optimizer

        scheduler = DDPMScheduler()

        class Step(TrainStep):
            """The error of the noise that the network finds."""

            def forward(self, latents: Any, noise: Any, t: Any, words: Any) -> Any:
                noisy = scheduler.add_noise(latents, noise, t)
                found = self.model(noisy, t, encoder_hidden_states=words)[0]
                return self.scale_loss(ms.ops.mse_loss(found, noise)), found

        network = _unet().set_train()
        made = create_optimizer(network.trainable_params(), optimizer, lr=1e-3, weight_decay=1e-2)
        step = Step(network, made, gradient_accumulation_steps=1, max_grad_norm=1.0)
        rows = [
            (numbers(k, 2, 4, 8, 8), numbers(k + 50, 2, 4, 8, 8), _whole(3 + k, 90), numbers(k + 90, 2, 5, 16))
            for k in range(6)
        ]
        return descend(step.set_train(), rows)

    return run


for _name in ("adam", "adamw", "adamw_re"):
    case("mindone", f"training.{_name}", "training")(_trained(_name))
