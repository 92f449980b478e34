#!/bin/sh
# safetensors 0.8.0 with NumPy 2.4.6: arrays that are not in C order are saved with their elements
# in another order, without an error or a warning.
#
# `safetensors.numpy.save` and `save_file` take `array.T`, or an array in Fortran's order, write its
# bytes as they lie in memory and its shape as it is. What is loaded has the right shape, the right
# type and the right elements in wrong places.
#
# Output seen:
#   safetensors 0.8.0, numpy 2.4.6
#   saved  [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
#   loaded [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
#   Fortran's order: saved  [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
#   Fortran's order: loaded [[0.0, 3.0, 1.0], [4.0, 2.0, 5.0]]
#   in C order first: equal
#
# Tensors of Mycel lie in C order, so its checkpoints are not affected.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import safetensors
from safetensors.numpy import load, save


def again(array):
    return load(save({"a": array}))["a"]


print(f"safetensors {safetensors.__version__}, numpy {np.__version__}")
transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
print("saved ", transposed.tolist())
print("loaded", again(transposed).tolist())
fortran = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
print("Fortran's order: saved ", fortran.tolist())
print("Fortran's order: loaded", again(fortran).tolist())
equal = np.array_equal(again(np.ascontiguousarray(transposed)), transposed)
print("in C order first:", "equal" if equal else "different")
assert again(transposed).shape == transposed.shape and equal
assert again(transposed).tolist() == [[0, 1], [2, 3], [4, 5]], "transposed arrays are saved otherwise now"
assert again(fortran).tolist() == [[0, 3, 1], [4, 2, 5]], "arrays in Fortran's order are saved otherwise now"
PROGRAM
