"""The cases of the package onnx, run by our reader: ``python tests/formats/onnx_cases.py``.

Each is a model of one operator (or of what it expands to) with inputs and the results that are
right. The models lie in the package; nothing is downloaded.

    --match TEXT      cases whose names contain it
    --jit             compiled as one function, in place of operation by operation
    --light           the nine networks of data/light
    --failures FILE   writes names and reasons
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections import Counter
from typing import Any

import numpy as np

import mycel as ms
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats import onnx as ours
from mycel.formats.onnx.operation import has_tensor


def cases(kind: str = "node") -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(load_model_tests(kind=kind))


def _plain(value: Any) -> Any:
    """An array of a message; other values as they are."""
    if type(value).__name__ == "TensorProto":
        from onnx import numpy_helper

        return numpy_helper.to_array(value)
    return value


def _given(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, list):
        return [_given(v) for v in value]
    if value is None or (
        isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 0 and value.item() is None
    ):
        return None
    array = np.asarray(value)
    if array.dtype.kind in "US":
        array = array.astype(object)
    return ms.Tensor.from_numpy(array.copy()) if has_tensor(array.dtype) else array


def _array(value: Any) -> Any:
    return value.asnumpy() if isinstance(value, Tensor) else value


def _same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    wanted = _plain(wanted)
    if isinstance(wanted, list):
        assert isinstance(found, (list, tuple)), f"a {type(found).__name__}, not a sequence"
        assert len(found) == len(wanted), f"{len(found)} members, not {len(wanted)}"
        for a, b in zip(found, wanted):
            _same(a, b, rtol, atol)
        return
    if wanted is None:
        assert found is None, "a value where there is none"
        return
    found, wanted = _array(found), np.asarray(wanted)
    assert isinstance(found, np.ndarray), f"a {type(found).__name__}"
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        assert [str(v) for v in found.reshape(-1)] == [
            v.decode() if isinstance(v, bytes) else str(v) for v in wanted.reshape(-1)
        ], f"{found} not {wanted}"
        return
    assert found.dtype == wanted.dtype, f"{found.dtype}, not {wanted.dtype}"
    rtol = max(rtol, 2**-6) if wanted.dtype.name == "bfloat16" else rtol
    if wanted.dtype.kind in "V" or wanted.dtype.name.startswith(
        ("float8", "float4", "int4", "uint4", "int2", "uint2", "bfloat16")
    ):
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def arrays_of(case: Any) -> list[tuple[list[Any], list[Any]]]:
    """The inputs and results of a case."""
    import onnx
    from onnx import numpy_helper

    sets = []
    if case.data_sets:
        return [(list(i), list(o)) for i, o in case.data_sets]
    for number in range(100):
        folder = os.path.join(case.model_dir, f"test_data_set_{number}")
        if not os.path.isdir(folder):
            break
        model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
        both = []
        for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
            found = []
            for i, v in enumerate(values):
                with open(os.path.join(folder, f"{kind}_{i}.pb"), "rb") as file:
                    content = file.read()
                which = v.type.WhichOneof("value")
                if which == "sequence_type":
                    found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
                elif which == "optional_type":
                    found.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
                else:
                    found.append(numpy_helper.to_array(onnx.TensorProto.FromString(content)))
            both.append(found)
        sets.append((both[0], both[1]))
    return sets


def run(case: Any, compiled: bool = False) -> None:
    """Run a case; raises what goes wrong."""
    if case.model is not None:
        net = ours.loads(case.model.SerializeToString())
    else:
        net = ours.load(os.path.join(case.model_dir, "model.onnx"))
    call = ms.jit(net.construct, fullgraph=True) if compiled else net
    for inputs, outputs in arrays_of(case):
        given = [_given(v) for v in inputs]
        made = call(*given)
        made = list(made) if isinstance(made, tuple) else [made]
        assert len(made) == len(outputs), f"{len(made)} outputs, not {len(outputs)}"
        for a, b in zip(made, outputs):
            _same(a, b, case.rtol, case.atol)


def light() -> list[tuple[str, str]]:
    """The light networks and the files of their results."""
    import onnx

    folder = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    names = sorted(f for f in os.listdir(folder) if f.endswith(".onnx"))
    return [(os.path.join(folder, n), os.path.join(folder, n[:-5] + "_output_0.pb")) for n in names]


def run_light(model: str, result: str) -> None:
    """Run a light network as the package does: its inputs are ones of the declared shapes."""
    import onnx
    from onnx import numpy_helper

    net = ours.load(model)
    with open(result, "rb") as file:
        wanted = numpy_helper.to_array(onnx.TensorProto.FromString(file.read()))
    declared = {v.name: v for v in onnx.load(model).graph.input}
    given = []
    for name in net.input_names:
        shape = [d.dim_value for d in declared[name].type.tensor_type.shape.dim]
        size = int(np.prod(shape))
        given.append(ms.Tensor((np.arange(size).reshape(shape) / size).astype(np.float32)))
    _same(net(*given), wanted, 1e-3, 1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--light", action="store_true")
    parser.add_argument("--failures", default=os.path.join(tempfile.gettempdir(), "onnx_failures.txt"))
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    passed, failed = 0, []
    if given.light:
        todo: list[Any] = [(os.path.basename(m), (lambda m=m, r=r: run_light(m, r))) for m, r in light()]
    else:
        todo = [(c.name, (lambda c=c: run(c, given.jit))) for c in cases() if given.match in c.name]
    for name, call in todo:
        try:
            call()
            passed += 1
        except Exception as error:
            if given.trace:
                raise
            failed.append((name, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
    with open(given.failures, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\t{why}\n" for name, why in failed)
    kinds = Counter(why[:90] for _, why in failed)
    for why, count in kinds.most_common(60):
        print(f"{count:5}  {why}")
    print(f"{passed} of {len(todo)} cases pass; failures in {given.failures}", file=sys.stderr)


if __name__ == "__main__":
    main()
