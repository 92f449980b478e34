"""Cases of mindaudio: networks of speech, loaded without the package's own data part, which needs
`mindspore.dataset.audio`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from third_party_cases import Arrays, bare, case, fill, gradients, numbers, outputs


def _model(name: str) -> Any:
    return bare(["mindaudio", "mindaudio.models"], [f"mindaudio.models.{name}"])[0]


def _ecapa() -> Any:
    return fill(
        _model("ecapatdnn").EcapaTDNN(
            16, lin_neurons=12, channels=[32, 32, 32, 32, 96], attention_channels=8, se_channels=8, res2net_scale=4
        )
    )


@case("mindaudio", "ecapa_tdnn", "forward")
def _ecapa_forward() -> Arrays:
    return outputs(_ecapa().set_train(False)(numbers(1, 2, 40, 16)))


@case("mindaudio", "ecapa_tdnn.gradients", "gradients")
def _ecapa_gradients() -> Arrays:
    network = _ecapa().set_train(True)
    return gradients(network, lambda x: (network(x) ** 2).mean(), numbers(1, 2, 40, 16))


@case("mindaudio", "conv_tasnet", "forward")
def _conv_tasnet() -> Arrays:
    network = fill(_model("conv_tasnet").ConvTasNet(16, 20, 8, 16, 3, 2, 2, 2)).set_train(False)
    return outputs(network(numbers(1, 1, 32000)))


@case("mindaudio", "deepspeech2", "forward")
def _deepspeech2() -> Arrays:
    import mindspore as ms

    part = _model("deepspeech2")
    network = part.DeepSpeechModel(
        batch_size=2, labels=list("abcd_"), rnn_hidden_size=16, nb_layers=2, audio_conf=_Audio(), bidirectional=True
    )
    return outputs(fill(network).set_train(False)(numbers(1, 2, 1, 161, 60), ms.Tensor(np.array([60, 48], np.int32))))


class _Audio:
    sample_rate, window_size, window_stride, window = 16000, 0.02, 0.01, "hamming"
