#!/bin/sh
# NumPy 2.4.6 with Python 3.11: reading a .npy file raises SystemError where a garbage collection
# that begins meanwhile runs something that parses Python's text, in the same thread or another.
#
# numpy.load reads headers with ast.literal_eval. Python 3.11 keeps how deep `ast.parse` is in a tree
# in one place of the interpreter, for all threads. A collection within it runs finalizers and
# callbacks, and may let another thread have its turn; if that parses too (as numpy.load,
# inspect.signature and pytest do), the first finds its depth changed: "AST constructor recursion
# depth mismatch". The file and both texts are right. Worker threads that read files met it rarely;
# here a callback of the collector makes it certain. Python 3.10, 3.12 and 3.13 do not have it.
#
# Output seen:
#   python 3.11.7, numpy 2.4.6
#   SystemError: AST constructor recursion depth mismatch
#   read again: 400 fields
#
# Mycel reads such a text or header again.
set -eu
python=${PYTHON311:-python3.11}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import ast
import gc
import io
import sys

import numpy as np

assert sys.version_info[:2] == (3, 11), "this is what Python 3.11 does"
print(f"python {sys.version.split()[0]}, numpy {np.__version__}")
file = io.BytesIO()
np.save(file, np.zeros(2, [(f"field{n}", "<i4") for n in range(400)]))
content, parsed = file.getvalue(), []


def deeper(n):
    return deeper(n - 1) if n else ast.parse("0")


def collected(phase, _):
    # What a finalizer or another thread may do at this moment.
    if phase == "start" and len(parsed) < 100:
        parsed.append(deeper(5))


gc.callbacks.append(collected)
gc.set_threshold(10)
try:
    np.load(io.BytesIO(content))
except SystemError as error:
    print(f"SystemError: {str(error).split(' (')[0]}")
else:
    raise SystemExit("numpy.load reads the file now")
print(f"read again: {len(np.load(io.BytesIO(content)).dtype.names)} fields")
PROGRAM
