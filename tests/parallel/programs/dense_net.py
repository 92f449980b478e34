"""The dense network of the slides in its automatic mode, on ranks, against one device.

    mycel launch -n 4 --plain tests/parallel/programs/dense_net.py

The text is completed as in tests/seeds (`test_slides`), with ``init()`` before it. Ranks give 32
rows each, as MindSpore takes them without `full_batch`, so that the one device has them all; then
with `full_batch` 32 rows of all.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np

import mycel as ms
from mycel import compat
from mycel._src.compiler.transport.current_transport import transport
from tests.seeds.programs import completed, printed, run

compat.install()
BEFORE = (
    "import numpy as np\nimport mindspore\nfrom mindspore import context, nn, Model, Parameter\n"
    "from mindspore.context import ParallelMode\nfrom mindspore.ops import operations as P\n"
    "from mindspore.communication import init\n"
    "def Tensor(*arguments):\n    return mindspore.Tensor(embedding if len(arguments) == 2 else arguments[0])\n"
    "init()\n"
)
MODE = "parallel_mode=ParallelMode.AUTO_PARALLEL"
WEIGHT = (np.random.default_rng(11).standard_normal((12288, 128)) / 500).astype(np.float32)


def trained(mode: str, rows: int) -> dict[str, np.ndarray]:
    """The parameters after the program's step, with another mode and number of rows."""
    text = completed(
        printed("auto_parallel"),
        ("np.ones([32, 128])", f"np.ones([{rows}, 12288])"),
        ("np.zeros([32, 768])", f"np.zeros([{rows}, 768])"),
        (MODE, mode),
        (
            "    model = Model(net, opt, loss)",
            "    loss, opt = nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.5, 0.9)\n"
            "    model = Model(net, opt, loss)",
        ),
        before=BEFORE,
        after="DenseMutMulNet = DenseNet\n",
    )
    text = text.replace("    model.train(input, label)", "    model.train(input, label)\n    return net")
    ms.set_seed(5)
    with tempfile.TemporaryDirectory() as folder:
        net = run(text, Path(folder), embedding=WEIGHT).train_step()
    values = {p.name: p.asnumpy().copy() for p in net.get_parameters()}
    ms.reset_auto_parallel_context()
    return values


def main() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.communication.init()
    size = transport().size
    for mode, rows, alone in ((MODE, 32, 32 * size), (f"{MODE}, full_batch=True", 32, 32)):
        wanted = trained("parallel_mode=ParallelMode.STAND_ALONE", alone)
        found = trained(mode, rows)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5 * np.abs(value).max(), err_msg=name)
        print(f"rank {transport().rank}: {mode} agrees", flush=True)


if __name__ == "__main__":
    main()
