"""ONNX operators that read images at places that a network chooses, beside the package's own."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel.formats import onnx as ours

onnx = pytest.importorskip("onnx")
reference = pytest.importorskip("onnx.reference")
helper = onnx.helper


def model(operator: str, inputs: dict[str, Any], version: int = 22, **attributes: Any) -> bytes:
    """A model of one node; inputs that are None are left out."""
    given = [k if v is not None else "" for k, v in inputs.items()]
    node = helper.make_node(operator, given, ["y"], **attributes)
    declared = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in inputs.items()
        if v is not None
    ]
    graph = helper.make_graph([node], "g", declared, [helper.make_tensor_value_info("y", 1, None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    return bytes(made.SerializeToString())


def check(content: bytes, inputs: dict[str, Any]) -> None:
    given = {k: v for k, v in inputs.items() if v is not None}
    (wanted,) = reference.ReferenceEvaluator(onnx.ModelProto.FromString(content)).run(None, given)
    net = ours.loads(content)
    x = [ms.Tensor(v) for v in given.values()]
    for call in (net, ms.jit(net.construct, fullgraph=True)):
        np.testing.assert_allclose(call(*x).asnumpy(), wanted, rtol=1e-4, atol=1e-5)


def values(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("where", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions(mode: str, where: str, samples: int) -> None:
    rois = np.array(
        [[1, 2, 7, 9], [0, 0, 11.5, 3.2], [4, 4, 4, 4], [-3, -2, 2, 20], [6, 5, 3, 1], [8, 8, 8.2, 12]], np.float32
    )
    inputs = {"x": values(2, 3, 8, 7), "rois": rois, "which": np.array([0, 1, 1, 0, 1, 0])}
    more = {"coordinate_transformation_mode": where, "mode": mode, "sampling_ratio": samples}
    check(model("RoiAlign", inputs, output_height=3, output_width=2, spatial_scale=0.7, **more), inputs)


def test_regions_of_the_first_version_have_no_half_pixels() -> None:
    inputs = {"x": values(1, 1, 6, 6), "rois": np.array([[1, 1, 4, 5]], np.float32), "which": np.array([0])}
    plain = model("RoiAlign", inputs, 10, output_height=2, output_width=2, sampling_ratio=2)
    newer = model(
        "RoiAlign", inputs, 16, output_height=2, output_width=2, sampling_ratio=2,
        coordinate_transformation_mode="output_half_pixel",
    )  # fmt: skip
    x = [ms.Tensor(v) for v in inputs.values()]
    assert ours.loads(plain)(*x).tolist() == ours.loads(newer)(*x).tolist()
    with pytest.raises(ValueError, match="it takes .N, C, H, W., .R, 4. and .R,.*and -1"):
        ours.loads(model("RoiAlign", inputs, sampling_ratio=-1))(*x)
    with pytest.raises(ms.errors.Unsupported, match="the mode 'sum'"):
        ours.loads(model("RoiAlign", inputs, mode="sum"))(*x)


@pytest.mark.parametrize("form", [{}, {"group": 2, "offset_group": 2, "strides": [2, 1]}, {"pads": [1, 0, 2, 1]}])
def test_deformed_windows(form: dict[str, Any]) -> None:
    pads, (down, across) = form.get("pads", [0] * 4), form.get("strides", [1, 1])
    rows, columns = (6 + pads[0] + pads[2] - 2) // down + 1, (7 + pads[1] + pads[3] - 3) // across + 1
    groups = form.get("offset_group", 1)
    inputs = {
        "x": values(2, 4, 6, 7),
        "w": values(6, 4 // form.get("group", 1), 2, 3, seed=1),
        "offset": values(2, groups * 12, rows, columns, seed=2),
        "b": values(6, seed=3) if form else None,
        "mask": values(2, groups * 6, rows, columns, seed=4) if form else None,
    }
    check(model("DeformConv", inputs, **form), inputs)


@pytest.mark.parametrize("padding", ["zeros", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_bicubic_samples(padding: str, align: int) -> None:
    inputs = {"x": values(2, 2, 5, 4), "grid": values(2, 3, 6, 2, seed=1)}
    content = model("GridSample", inputs, mode="cubic", padding_mode=padding, align_corners=align)
    check(content, inputs)
    net = ours.loads(content)
    x, grid = (ms.Tensor(v) for v in inputs.values())
    slopes = ms.grad(lambda g: net(x, g).sum())(grid).asnumpy()
    assert np.isfinite(slopes).all() and np.abs(slopes).max() > 0.1


def test_a_border_is_repeated() -> None:
    """As in an image with its border around it, whose other positions are the same."""
    x, grid = values(1, 2, 5, 4), values(1, 3, 6, 2, seed=1)
    wide = np.pad(x, ((0, 0), (0, 0), (9, 9), (9, 9)), "edge")
    sizes = np.array([4, 5])
    inside = (((grid + 1) * sizes - 1) / 2 + 9.5) * 2 / (sizes + 18) - 1
    found = []
    for inputs, padding in (({"x": x, "grid": grid}, "border"), ({"x": wide, "grid": np.float32(inside)}, "zeros")):
        net = ours.loads(model("GridSample", inputs, mode="cubic", padding_mode=padding))
        found.append(net(*[ms.Tensor(v) for v in inputs.values()]).asnumpy())
    np.testing.assert_allclose(*found, atol=1e-4)


def test_places_that_are_no_numbers_read_something() -> None:
    inputs = {"x": values(1, 1, 3, 3), "grid": np.array([[[[np.nan, 0.5], [np.inf, 0.0]]]], np.float32)}
    net = ours.loads(model("GridSample", inputs, mode="cubic"))
    assert net(*[ms.Tensor(v) for v in inputs.values()]).shape == (1, 1, 1, 2)


def test_images_of_files() -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3)).astype(np.uint8)
    file = io.BytesIO()
    pillow.fromarray(pixels).save(file, "PNG")
    content = np.frombuffer(file.getvalue(), np.uint8)
    found = {}
    for form in ("RGB", "BGR", "Grayscale"):
        net = ours.loads(model("ImageDecoder", {"x": content}, pixel_format=form))
        found[form] = net(ms.Tensor(content)).asnumpy()
    np.testing.assert_array_equal(found["RGB"], pixels)
    np.testing.assert_array_equal(found["BGR"], pixels[:, :, ::-1])
    assert found["Grayscale"].shape == (5, 4, 1) and found["Grayscale"].dtype == np.uint8
    with pytest.raises(ValueError, match="ImageDecoder.*are not an image that Pillow can read"):
        net(ms.Tensor(np.zeros_like(content)))
