#!/bin/sh
# ml_dtypes 0.6.0 with NumPy 2.4.6: the mean of a thousand ones in bfloat16 is 0.256.
#
# NumPy computes means of float16 in float32, which its documentation of `mean` promises for
# float16 alone. Those of bfloat16 are added up in bfloat16: 256 + 1 is 256 there, so the sum stays
# at 256 from then on, and it is divided by the count. So are variances. The array has the right
# type and the result no warning. `mean(dtype=np.float32)` is right.
#
# Output seen:
#   ml_dtypes 0.6.0, numpy 2.4.6
#   float16  mean 1.0
#   bfloat16 mean 0.255859375
#   bfloat16 mean with dtype=np.float32: 1.0
#
# Mycel adds up bfloat16 in float32.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check ml_dtypes==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import ml_dtypes
import numpy as np

print(f"ml_dtypes {ml_dtypes.__version__}, numpy {np.__version__}")
half, brain = np.ones(1000, np.float16), np.ones(1000, ml_dtypes.bfloat16)
print("float16  mean", float(half.mean()))
print("bfloat16 mean", float(brain.mean()))
print("bfloat16 mean with dtype=np.float32:", float(brain.mean(dtype=np.float32)))
assert float(half.mean()) == float(brain.mean(dtype=np.float32)) == 1
assert float(brain.mean()) < 0.3, "means of bfloat16 are computed otherwise now"
PROGRAM
