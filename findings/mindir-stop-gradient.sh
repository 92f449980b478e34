#!/bin/sh
# MindSpore 2.10.0: a MindIR file does not keep where gradients stop, nor a Cell's own `bprop`.
#
# `mindspore.export` writes a network with `ops.stop_gradient`, or with a Cell that defines `bprop`,
# without an error or a warning. What `mindspore.load` makes of the file gives the same values and
# other gradients: those of the plain operations. So a network that is exported, loaded and trained
# further may learn something else than the one it came from.
#
# Output seen:
#   mindspore 2.10.0
#   stop_gradient: values [27.0] [27.0], gradients [9.0] [27.0]
#   bprop:         values [9.0] [9.0], gradients [100.0] [6.0]
#
# Mycel writes stops of gradients so that it reads them again and MindSpore reads past them, and
# networks with derivatives of their own as graph files, with a warning.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check mindspore==2.10.0 'numpy<2'
cat > "$folder/program.py" <<'PROGRAM'
import os
import tempfile

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Stopped(nn.Cell):
    def construct(self, x):
        return ops.stop_gradient(x * x) * x


class Own(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * 100,)


def both(net):
    path = os.path.join(tempfile.mkdtemp(), "net.mindir")
    ms.export(net, x, file_name=path, file_format="MINDIR")
    loaded = nn.GraphCell(ms.load(path))
    values = [n(x).asnumpy().tolist() for n in (net, loaded)]
    return values, [ms.grad(n)(x).asnumpy().tolist() for n in (net, loaded)]


ms.set_context(mode=ms.GRAPH_MODE)
x = ms.Tensor(np.array([3.0], np.float32))
print(f"mindspore {ms.__version__}")
stopped, own = both(Stopped()), both(Own())
print("stop_gradient: values {} {}, gradients {} {}".format(*stopped[0], *stopped[1]))
print("bprop:         values {} {}, gradients {} {}".format(*own[0], *own[1]))
assert stopped == ([[27.0], [27.0]], [[9.0], [27.0]]), "files keep where gradients stop now"
assert own == ([[9.0], [9.0]], [[100.0], [6.0]]), "files keep a Cell's bprop now"
PROGRAM
"$folder/venv/bin/python" "$folder/program.py" 2>/dev/null
