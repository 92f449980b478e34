"""Ask MindSpore what its image operations give for every kind of image.

    python tests/dataset/ask_image_kinds.py > tests/dataset/values/image_kinds.json

It runs with an interpreter that has MindSpore 2.10 and Pillow.
"""

from __future__ import annotations

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from image_kinds import answers

if __name__ == "__main__":
    from mindspore.dataset import vision

    lines = [
        f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}" for name, found in answers(vision).items()
    ]
    print("{\n" + ",\n".join(lines) + "\n}")
