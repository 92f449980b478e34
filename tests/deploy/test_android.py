"""The Android example on this machine: C++ by its own CMake file, and Java where there is a JDK."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "android"
TOOLS = [t for t in ("cmake", "g++", "make") if shutil.which(t) is None]
pytestmark = pytest.mark.skipif(
    bool(TOOLS) or platform.machine() not in ("x86_64", "AMD64"), reason="needs cmake, make and g++ for x86-64"
)
TRY = """
import org.mycel.digits.Digits;
public class Try {
  public static void main(String[] given) {
    float[] pixels = new float[64];
    try (Digits digits = new Digits()) {
      for (int row = 0; row < given.length / 64; row++) {
        for (int k = 0; k < 64; k++) pixels[k] = Float.parseFloat(given[64 * row + k]);
        System.out.println(digits.read(pixels));
      }
      try { digits.read(new float[3]); } catch (IllegalArgumentException error) { System.out.println("refused"); }
    }
  }
}
"""


def _run(*command: Any, folder: Path, given: str = "") -> str:
    done = subprocess.run(
        [*map(str, command)], cwd=folder, input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_reads_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sys.path.insert(0, str(EXAMPLE))
    try:
        import make_library  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(EXAMPLE))
    import mycel as ms
    from mycel.deploy import build, cpp

    images, labels, held, held_labels = make_library.digits()
    net = make_library.learned(images, labels, 3)
    wanted = net(ms.Tensor(held)).asnumpy().argmax(1)
    assert (wanted == held_labels).mean() > 0.85
    cpp(build(net, ms.Tensor(held[:1]), target="x86-64-v2", name="digits_net"), tmp_path / "lib")
    android = build(net, ms.Tensor(held[:1]), target="android-arm64", name="digits_net")
    assert android.object[:4] == b"\x7fELF" and android.object[18] == 183

    folder, javac = tmp_path / "build", shutil.which("javac")
    home = None if javac is None else Path(javac).resolve().parents[1]
    if home is not None and shutil.which("java") is not None and (home / "include" / "jni.h").exists():
        monkeypatch.setenv("JAVA_HOME", str(home))
    else:
        home = None
    _run("cmake", "-S", EXAMPLE, "-B", folder, f"-DDIGITS_LIBRARY={tmp_path / 'lib'}", folder=tmp_path)
    _run("cmake", "--build", folder, folder=tmp_path)
    words = [f"{v:.9g}" for v in held.reshape(-1)]
    found = _run(folder / "digits_main", folder=tmp_path, given=" ".join(words)).split()
    np.testing.assert_array_equal(np.array(found, int), wanted)
    if home is None:
        return
    assert (folder / "libdigits.so").exists()
    (tmp_path / "Try.java").write_text(TRY)
    java = EXAMPLE / "java" / "org" / "mycel" / "digits" / "Digits.java"
    _run("javac", "-d", tmp_path / "classes", java, tmp_path / "Try.java", folder=tmp_path)
    path = ("-cp", tmp_path / "classes", f"-Djava.library.path={folder}")
    said = _run("java", *path, "Try", *words[: 64 * 20], folder=tmp_path).split()
    assert said == [*map(str, wanted[:20]), "refused"]
