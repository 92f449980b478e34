"""Files of code are told apart wherever packages lie: here, in an environment that this one sees,
in the system's folder or the user's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np

from mycel._src.foundation.python_runtime.code_origins import _recorded, is_installed, is_standard

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys, numpy as np
import mycel as ms
from mycel._src.staging.frontend.calls.user_code import is_native
assert "elsewhere" in np.__file__, np.__file__
assert is_native(np.iinfo.__init__)
step = ms.jit(lambda x: ms.ops.cumsum(x * float(np.iinfo(np.int8).max), 0))
print(step(ms.Tensor([1.0, 2.0])).tolist())
"""


def test_kinds_of_files() -> None:
    assert is_installed(np.__file__) and not is_standard(np.__file__)
    assert is_standard(json.__file__) and not is_installed(json.__file__)
    assert not is_standard(__file__) and not is_installed(__file__)
    for folder in ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/site-packages"):
        assert is_installed(os.path.join(folder, "numpy", "core.py").replace("/", os.sep))
    assert not is_installed(os.path.join(os.sep, "opt", "my-site-packages", "train.py"))
    inside = os.path.join(sysconfig.get_paths()["stdlib"], "site-packages", "a.py")
    assert is_installed(inside) and not is_standard(inside)


def test_packages_of_another_environment_run_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "site-packages"
    folder.mkdir(parents=True)
    for name in ("numpy", "numpy.libs"):
        source = Path(np.__file__).parents[1] / name
        if source.exists():
            (folder / name).symlink_to(source, target_is_directory=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert found.returncode == 0 and found.stdout.strip() == "[127.0, 381.0]", found.stdout + found.stderr


def test_programs_beside_packages_of_a_target_folder(tmp_path: Path) -> None:
    record = tmp_path / "numpy-2.3.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("numpy/__init__.py,sha256=x,3\nsix.py,,\nnumpy-2.3.0.dist-info/RECORD,,\n../bin/f2py,,\n")
    starts = _recorded(tmp_path)
    assert str(tmp_path / "numpy" / "core.py").startswith(starts) and str(tmp_path / "six.py").startswith(starts)
    assert not str(tmp_path / "train.py").startswith(starts)
