"""Cases of mindyolo, mindocr and mindvision: networks of detection and of text, their losses and
the gradients of these.

mindyolo's wheel does not hold its configurations, so the networks are described here (the published
YOLOv5 and YOLOv8, at an eighth of their width).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from third_party_cases import Arrays, bare, case, fill, gradients, numbers, outputs

_ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]
_YOLOV5 = {
    "backbone": [
        [-1, 1, "ConvNormAct", [64, 6, 2, 2]],
        [-1, 1, "ConvNormAct", [128, 3, 2]],
        [-1, 3, "C3", [128]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [-1, 6, "C3", [256]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [-1, 9, "C3", [512]],
        [-1, 1, "ConvNormAct", [1024, 3, 2]],
        [-1, 3, "C3", [1024]],
        [-1, 1, "SPPF", [1024, 5]],
    ],
    "head": [
        [-1, 1, "ConvNormAct", [512, 1, 1]],
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 6], 1, "Concat", [1]],
        [-1, 3, "C3", [512, False]],
        [-1, 1, "ConvNormAct", [256, 1, 1]],
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 4], 1, "Concat", [1]],
        [-1, 3, "C3", [256, False]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [[-1, 14], 1, "Concat", [1]],
        [-1, 3, "C3", [512, False]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [[-1, 10], 1, "Concat", [1]],
        [-1, 3, "C3", [1024, False]],
        [[17, 20, 23], 1, "YOLOv5Head", ["nc", "anchors", "stride"]],
    ],
}
_YOLOV8 = {
    "backbone": [
        [-1, 1, "ConvNormAct", [64, 3, 2]],
        [-1, 1, "ConvNormAct", [128, 3, 2]],
        [-1, 3, "C2f", [128, True]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [-1, 6, "C2f", [256, True]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [-1, 6, "C2f", [512, True]],
        [-1, 1, "ConvNormAct", [1024, 3, 2]],
        [-1, 3, "C2f", [1024, True]],
        [-1, 1, "SPPF", [1024, 5]],
    ],
    "head": [
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 6], 1, "Concat", [1]],
        [-1, 3, "C2f", [512]],
        [-1, 1, "Upsample", ["None", 2, "nearest"]],
        [[-1, 4], 1, "Concat", [1]],
        [-1, 3, "C2f", [256]],
        [-1, 1, "ConvNormAct", [256, 3, 2]],
        [[-1, 12], 1, "Concat", [1]],
        [-1, 3, "C2f", [512]],
        [-1, 1, "ConvNormAct", [512, 3, 2]],
        [[-1, 9], 1, "Concat", [1]],
        [-1, 3, "C2f", [1024]],
        [[15, 18, 21], 1, "YOLOv8Head", ["nc", "reg_max", "stride"]],
    ],
}


def _yolo(kind: str) -> Any:
    from mindyolo.models import create_model
    from mindyolo.utils.config import Config

    layers, own = (
        (_YOLOV5, {"anchors": _ANCHORS}) if kind == "yolov5" else (_YOLOV8, {"reg_max": 16, "max_channels": 1024})
    )
    described = Config(
        {
            "model_name": kind,
            "depth_multiple": 0.33,
            "width_multiple": 0.125,
            "stride": [8, 16, 32],
            "nc": 4,
            **layers,
            **own,
        }
    )
    return fill(create_model(kind, described, num_classes=4))


@case("mindyolo", "yolov5", "forward")
def _yolov5() -> Arrays:
    return outputs(_yolo("yolov5").set_train(False)(numbers(1, 1, 3, 64, 64)))


@case("mindyolo", "yolov8", "forward")
def _yolov8() -> Arrays:
    return outputs(_yolo("yolov8").set_train(False)(numbers(1, 1, 3, 64, 64)))


@case("mindyolo", "yolov5.gradients", "gradients")
def _yolov5_gradients() -> Arrays:
    return _yolo_gradients("yolov5")


@case("mindyolo", "yolov8.gradients", "gradients")
def _yolov8_gradients() -> Arrays:
    return _yolo_gradients("yolov8")


def _yolo_gradients(kind: str) -> Arrays:
    network = _yolo(kind).set_train(True)
    return gradients(network, lambda x: sum([(y * y).mean() for y in network(x)]), numbers(1, 2, 3, 64, 64))


# mindocr 0.5.0 was written for MindSpore 2.5 to 2.6, whose `parallel._transformer` the whole
# package imports; its parts are loaded one by one.


def _ocr(*modules: str) -> list[Any]:
    return bare(
        [
            "mindocr",
            "mindocr.models",
            "mindocr.models.backbones",
            "mindocr.models.necks",
            "mindocr.models.heads",
            "mindocr.losses",
        ],
        modules,
    )


def _crnn() -> Any:
    from mindspore import nn

    backbone, neck, head = _ocr(
        "mindocr.models.backbones.rec_resnet", "mindocr.models.necks.rnn", "mindocr.models.heads.rec_ctc_head"
    )
    body = backbone.rec_resnet34()
    sequence = neck.RNNEncoder(
        body.out_channels[-1] if isinstance(body.out_channels, (list, tuple)) else body.out_channels, 32
    )
    return fill(nn.SequentialCell(body, sequence, head.CTCHead(sequence.out_channels, 37)))


@case("mindocr", "crnn", "forward")
def _crnn_forward() -> Arrays:
    return outputs(_crnn().set_train(False)(numbers(1, 1, 3, 32, 100)))


@case("mindocr", "crnn.ctc", "gradients")
def _crnn_gradients() -> Arrays:
    import mindspore as ms

    network = _crnn().set_train(True)
    (losses,) = _ocr("mindocr.losses.rec_loss")
    x = numbers(1, 2, 3, 32, 100)
    criterion = losses.CTCLoss(pred_seq_len=25, max_label_len=6, batch_size=2)
    label = ms.Tensor(np.random.RandomState(2).randint(0, 36, (2, 6)).astype(np.int32))
    return gradients(network, lambda x, y: criterion(network(x), y), x, label)


@case("mindocr", "dbnet", "forward")
def _dbnet() -> Arrays:
    from mindspore import nn

    bare(["mindocr", "mindocr.utils"], [])
    backbone, neck, head = _ocr(
        "mindocr.models.backbones.det_resnet", "mindocr.models.necks.fpn", "mindocr.models.heads.det_db_head"
    )
    body = backbone.det_resnet18(pretrained=False)
    pyramid = neck.DBFPN(body.out_channels, 64)
    network = fill(nn.SequentialCell(body, pyramid, head.DBHead(pyramid.out_channels, 50))).set_train(False)
    return outputs(network(numbers(1, 1, 3, 64, 96)))


# mindvision.


def _mindvision(name: str, size: int, channels: int, **options: Any) -> Any:
    def run() -> Arrays:
        from mindvision.classification import models

        network = fill(getattr(models, name)(num_classes=10, **options)).set_train(False)
        return outputs(network(numbers(1, 2, channels, size, size)))

    return run


for _name, _size, _channels in (("lenet", 32, 1), ("mobilenet_v2", 64, 3), ("resnet18", 64, 3)):
    case("mindvision", _name, "forward")(_mindvision(_name, _size, _channels))
