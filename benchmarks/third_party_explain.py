"""Cases of mindspore_xai (explanations of classifiers and what measures them) and mindspore_gs
(training with quantised weights and activations, pruning).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from third_party_cases import Arrays, case, fill, numbers, outputs
from third_party_steps import classify, descend

# mindspore_xai.


def _classifier() -> Any:
    from mindspore import nn

    class Classifier(nn.Cell):
        """Two convolutions and a dense layer."""

        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm, self.relu1 = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()
            self.pool, self.conv2, self.relu2 = nn.MaxPool2d(2, 2), nn.Conv2d(8, 8, 3), nn.ReLU()
            self.flatten, self.dense = nn.Flatten(), nn.Dense(512, 5)

        def construct(self, x: Any) -> Any:
            x = self.pool(self.relu1(self.norm(self.conv1(x))))
            return self.dense(self.flatten(self.relu2(self.conv2(x))))

    return fill(Classifier()).set_train(False)


def _classes(*values: int) -> Any:
    import mindspore as ms

    return ms.Tensor(np.array(values, np.int32))


def _explained(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindspore_xai import explainer

        return outputs(getattr(explainer, name)(_classifier())(numbers(1, 2, 3, 16, 16), _classes(1, 3)))

    return run


for _name in ("Gradient", "Deconvolution", "GuidedBackprop"):
    case("mindspore_xai", _name, "explanation")(_explained(_name))


@case("mindspore_xai", "GradCAM", "explanation", ("pynative",))
def _grad_cam() -> Arrays:
    from mindspore_xai.explainer import GradCAM

    return outputs(GradCAM(_classifier(), layer="conv2")(numbers(1, 2, 3, 16, 16), _classes(1, 3)))


def _perturbed(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindspore import nn
        from mindspore_xai import explainer

        explain = getattr(explainer, name)(_classifier(), nn.Softmax())
        np.random.seed(1)
        return outputs(explain(numbers(1, 2, 3, 16, 16), _classes(1, 3)))

    return run


for _name in ("Occlusion", "RISE"):
    case("mindspore_xai", _name, "explanation")(_perturbed(_name))


def _of_rows() -> Any:
    from mindspore import nn

    return fill(nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 3), nn.Softmax()))


@case("mindspore_xai", "SHAPGradient", "explanation")
def _shap_gradient() -> Arrays:
    from mindspore_xai.explainer import SHAPGradient

    explain = SHAPGradient(_of_rows(), numbers(2, 8, 4))
    np.random.seed(1)
    return outputs(explain(numbers(3, 2, 4), _classes(1, 2)))


@case("mindspore_xai", "SHAPKernel", "explanation")
def _shap_kernel() -> Arrays:
    from mindspore_xai.explainer import SHAPKernel

    explain = SHAPKernel(_of_rows(), numbers(2, 8, 4))
    np.random.seed(1)
    return outputs(explain(numbers(3, 2, 4), _classes(1, 2)))


@case("mindspore_xai", "LIMETabular", "explanation")
def _lime() -> Arrays:
    from mindspore_xai.explainer import LIMETabular

    names = ["a", "b", "c", "d"]
    known = LIMETabular.to_feat_stats(numbers(2, 50, 4), feature_names=names)
    explain = LIMETabular(_of_rows(), known, feature_names=names, class_names=["x", "y", "z"], num_perturbs=200)
    np.random.seed(1)
    (told,) = explain(numbers(3, 1, 4), _classes(1))
    return {name: np.array(value, np.float32) for rows in told for name, value in rows}


@case("mindspore_xai", "Faithfulness", "measure")
def _faithfulness() -> Arrays:
    from mindspore import nn
    from mindspore_xai.benchmark import Faithfulness
    from mindspore_xai.explainer import Gradient

    network = _classifier()
    measure = Faithfulness(5, nn.Softmax(), "NaiveFaithfulness")
    return {"faithfulness": measure.evaluate(Gradient(network), numbers(1, 1, 3, 16, 16), _classes(3))}


@case("mindspore_xai", "ClassSensitivity", "measure")
def _sensitivity() -> Arrays:
    from mindspore_xai.benchmark import ClassSensitivity
    from mindspore_xai.explainer import Gradient

    return {"sensitivity": ClassSensitivity().evaluate(Gradient(_classifier()), numbers(1, 1, 3, 16, 16))}


@case("mindspore_xai", "OoDNet", "training")
def _out_of_distribution() -> Arrays:
    from mindspore import nn
    from mindspore_xai.tool.cv import OoDNet

    class Features(nn.Cell):
        """A convolution as the last layer before the classes."""

        def __init__(self) -> None:
            super().__init__()
            self.num_features, self.output_features = 16, False
            self.conv, self.relu = nn.Conv2d(3, 8, 3, stride=2), nn.ReLU()
            self.flatten, self.feature, self.output = nn.Flatten(), nn.Dense(512, 16), nn.Dense(16, 5)

        def construct(self, x: Any) -> Any:
            x = self.feature(self.flatten(self.relu(self.conv(x))))
            return x if self.output_features else self.output(x)

    network = OoDNet(fill(Features()), 5)
    network.prepare_train(train_underlying=True)
    fill(network).set_train()
    step = classify(network, nn.Adam(network.trainable_params(), 1e-3))
    return descend(step, [(numbers(k, 4, 3, 16, 16), _classes(0, 1, 2, 3)) for k in range(6)])


# mindspore_gs.


def _lenet() -> Any:
    from quantised_network import LeNet

    return fill(LeNet())


_QUANTISERS = {
    "SimulatedQuantizationAwareTraining": "simulated_quantization",
    "SlbQuantAwareTraining": "slb",
    "LearnedStepSizeQuantizationAwareTraining": "learned_step_size_quantization",
}


def _quantiser(name: str) -> Any:
    from mindspore.common.dtype import QuantDtype

    module = importlib.import_module(f"mindspore_gs.quantization.{_QUANTISERS[name]}")
    made = getattr(module, name)()
    if name.startswith("Simulated"):
        made.set_act_quant_delay(0)
        made.set_weight_quant_delay(0)
    if name.startswith("Slb"):
        made.set_weight_quant_dtype(QuantDtype.INT1)
        made.set_epoch_size(4)
    return made


def _quantised(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindspore import nn

        network = fill(_quantiser(name).apply(_lenet()))
        step = classify(network, nn.Momentum(network.trainable_params(), 0.01, 0.9))
        return descend(step, [(numbers(k, 4, 1, 14, 14), _classes(0, 1, 2, 3)) for k in range(6)])

    return run


for _name in _QUANTISERS:
    case("mindspore_gs", _name, "training")(_quantised(_name))


def _knockoffs() -> Any:
    from mindspore_gs.pruner import PrunerKfCompressAlgo

    return fill(PrunerKfCompressAlgo({}).apply(_lenet()))


@case("mindspore_gs", "PrunerKfCompressAlgo", "forward")
def _with_knockoffs() -> Arrays:
    return outputs(_knockoffs().set_train()(numbers(1, 4, 1, 14, 14)))


@case("mindspore_gs", "PrunerFtCompressAlgo", "training")
def _pruned() -> Arrays:
    from mindspore import nn
    from mindspore_gs.pruner import PrunerFtCompressAlgo

    network = PrunerFtCompressAlgo({"prune_rate": 0.5}).apply(_knockoffs())
    step = classify(network, nn.Momentum(network.trainable_params(), 0.01, 0.9))
    return descend(step, [(numbers(k, 4, 1, 14, 14), _classes(0, 1, 2, 3)) for k in range(6)])
