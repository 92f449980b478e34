"""How many public functions of MindSpore, exported by itself, load here with equal results.

The cases are those of `tests/ops/test_meaning_*.py`. Three steps, as MindSpore is in another
environment than Mycel:

    python -m tests.formats.mindir_cases collect FOLDER           (Mycel) the calls, as pickles
    python tests/formats/mindir_cases.py export FOLDER            (MindSpore) a file for each
    python -m tests.formats.mindir_cases compare FOLDER [WORD]    (Mycel) what loads, and what not
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import linecache
import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

PREFIXES = ("ops.", "mint.", "Tensor.", "nn.")
# Results that MindSpore leaves without a value, so that they are others in each run.
UNSET = {"ops.BatchNorm": (1, 2, 3, 4)}
OF_NOTHING = ("ops.any", "Tensor.any", "ops.ReduceAny")


def collect(folder: Path) -> None:
    from tests.meaning import Array

    found = []
    here = Path(__file__).parent.parent
    for file in sorted([*(here / "ops").glob("test_meaning_*.py"), *(here / "nn").glob("test_*oracles*.py")]):
        module = importlib.import_module(f"tests.{file.parent.name}.{file.stem}")
        for check in getattr(module, "checks", None).all if hasattr(module, "checks") else ():
            if not check.name.startswith(PREFIXES):
                continue
            dtype = "float32" if "float32" in check.dtypes else check.dtypes[0]
            drawn = check.drawn(dtype)

            def array(spec: Any, value: Any, dtype: str = dtype) -> Any:
                if isinstance(spec, Array):
                    made = spec.tensor(value, dtype)
                    return np.asarray(made.asnumpy())
                if type(spec) in (list, tuple):
                    return type(spec)(array(s, v) for s, v in zip(spec, value))
                return spec

            try:
                args = [array(s, v) for s, v in zip(check.args, drawn)]
                pickled = pickle.dumps((check.name, args, check.kwargs, check.init))
            except Exception:
                continue
            if b"mycel" not in pickled:
                found.append(pickled)
    named: dict[str, list[bytes]] = {}
    for pickled in dict.fromkeys(found):
        named.setdefault(pickle.loads(pickled)[0], []).append(pickled)
    # Of each name the first, the last and one between.
    unique = [c for k in named.values() for c in dict.fromkeys((k[0], k[len(k) // 2], k[-1]))]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.pickle").write_bytes(pickle.dumps(unique))
    print(len(unique), "cases of", len({pickle.loads(c)[0] for c in unique}), "names")


def _target(name: str, init: dict[str, Any]) -> Any:
    import mindspore

    found: Any = mindspore
    for part in name.split("."):
        found = getattr(found, part)
    return found(**init) if isinstance(found, type) else found


def _net(folder: Path, name: str, init: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """A Cell whose construct calls the function with its tensors as inputs, and these."""
    from mindspore import Tensor

    tensors: list[Any] = []

    def text(value: Any) -> str:
        if isinstance(value, np.ndarray):
            tensors.append(Tensor(value))
            return f"x{len(tensors) - 1}"
        if type(value) in (tuple, list):
            inner = "".join(text(v) + ", " for v in value)
            return f"({inner})" if type(value) is tuple else f"[{inner}]"
        if isinstance(value, float) and not np.isfinite(value):
            return f"float('{value}')"
        return repr(value.item() if isinstance(value, np.generic) else value)

    parts = [text(a) for a in args]
    named = [f"{k}={text(v)}" for k, v in kwargs.items()]
    target = None
    if name.startswith("Tensor."):
        call = f"{parts[0]}.{name[7:]}"
        if callable(getattr(Tensor, name[7:])):
            call += f"({', '.join([*parts[1:], *named])})"
    else:
        call, target = f"self.target({', '.join([*parts, *named])})", _target(name, init)
    names = "".join(f", x{i}" for i in range(len(tensors)))
    path = folder / "source.py"
    path.write_text(
        "import mindspore\nfrom mindspore import nn\nclass Net(nn.Cell):\n"
        "    def __init__(self, target):\n        super().__init__()\n        self.target = target\n"
        f"    def construct(self{names}):\n        return {call}\n"
    )
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location("source", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["source"] = module
    spec.loader.exec_module(module)
    return module.Net(target).set_train(False), tensors


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, (tuple, list)) else [value]


def export(folder: Path) -> None:
    """Export every case that has no result yet; one that ends the process counts as failed."""
    import mindspore as ms
    from mindspore import nn

    sys.dont_write_bytecode = True
    for number, pickled in enumerate(pickle.loads((folder / "cases.pickle").read_bytes())):
        name, args, kwargs, init = pickle.loads(pickled)
        path, failed = folder / f"{number}.mindir", folder / f"{number}.failed"
        if path.exists() or failed.exists():
            continue
        failed.write_text(f"{name}: it ended the process")
        try:
            net, tensors = _net(folder, name, init, args, kwargs)
            if not tensors:
                raise ValueError("no tensor among the arguments")
            ms.export(net, *tensors, file_name=str(path), file_format="MINDIR")
            # Before the call, which may write into them.
            kept = {f"x{i}": t.asnumpy().copy() for i, t in enumerate(tensors)}
            out = _flat(nn.GraphCell(ms.load(str(path)))(*tensors))
            kept |= {f"y{i}": o.asnumpy() if isinstance(o, ms.Tensor) else np.asarray(o) for i, o in enumerate(out)}
            np.savez(folder / f"{number}.npz", **kept)
            failed.unlink()
        except Exception as error:
            failed.write_text(f"{name}: {type(error).__name__}: {str(error)[:300]}")
            if path.exists():
                path.chmod(0o600)
                path.unlink()


def compare(folder: Path, *words: str) -> None:
    import mycel as ms
    from mycel._src.foundation.pytree import flatten

    cases = [pickle.loads(c) for c in pickle.loads((folder / "cases.pickle").read_bytes())]
    good: set[str] = set()
    bad: dict[str, str] = {}
    count = 0
    for number, (name, *_) in enumerate(cases):
        if not (folder / f"{number}.npz").exists() or words and name not in words:
            continue
        count += 1
        kept = np.load(folder / f"{number}.npz", allow_pickle=True)
        inputs = [ms.Tensor(kept[f"x{i}"]) for i in range(sum(k[0] == "x" for k in kept))]
        wanted = [kept[f"y{i}"] for i in range(sum(k[0] == "y" for k in kept))]
        try:
            out = [v for v in flatten(ms.load(folder / f"{number}.mindir")(*inputs))[0]]
            assert len(out) == len(wanted), f"{len(out)} results, not {len(wanted)}"
            if name in OF_NOTHING and not inputs[0].size:
                wanted = []
            for place, (got, want) in enumerate(zip(out, wanted)):
                if place in UNSET.get(name, ()):
                    continue
                array = got.asnumpy() if isinstance(got, ms.Tensor) else np.asarray(got)
                want = want.view(array.dtype) if want.dtype.kind == "V" else want
                assert array.shape == want.shape, f"shape {array.shape}, not {want.shape}"
                assert array.dtype == want.dtype or not isinstance(got, ms.Tensor), f"{array.dtype}, not {want.dtype}"
                near = 4e-3 if want.dtype == np.float16 else 2e-5
                np.testing.assert_allclose(
                    array.astype(np.complex128 if want.dtype.kind == "c" else np.float64),
                    want.astype(np.complex128 if want.dtype.kind == "c" else np.float64),
                    rtol=near,
                    atol=near,
                )
            good.add(name)
        except Exception as error:
            if words:
                traceback.print_exc()
            bad[f"{name} #{number}"] = f"{type(error).__name__}: {' '.join(str(error).split())[:220]}"
    failing = {k.split(" #")[0] for k in bad}
    for key, text in bad.items():
        print(key, text)
    reasons = collections.Counter(text[:60] for text in bad.values())
    print(*(f"{n} x {t}" for t, n in reasons.most_common(15)), sep="\n")
    print(f"{count} cases, {count - len(bad)} equal; names: {len(good - failing)} whole of {len(good | failing)}")


if __name__ == "__main__":
    {"collect": collect, "export": export, "compare": compare}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
