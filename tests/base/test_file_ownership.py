"""Code is taken from nobody but the user: folders, files, links and libraries of others are
refused, and work goes on without them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import mycel as ms
from mycel._src.engines.native.onednn import c_interface as dense_library
from mycel._src.foundation.files import code_cache as cache
from mycel._src.foundation.files import file_ownership as private

pytestmark = pytest.mark.skipif(not private.HAS_OWNERS, reason="this system has no owners of files")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files of others")

KIND, DIGEST, OTHER = "objects-0123456789abcdef", "ab" * 32, 54321
MEMBERS = ["", KIND, f"{KIND}/ab", f"{KIND}/ab/{DIGEST}"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "above" / "cache"))
    return tmp_path / "above" / "cache"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(private, "_said", set())
    monkeypatch.setattr(private.logger, "warning", lambda form, *values: texts.append(form % values))
    return texts


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.lstat().st_mode, p.read_bytes() if p.is_file() else b"")
        for p in folder.rglob("*")
    }


def test_what_is_made_is_for_the_user_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        cache.write(KIND, DIGEST, b"code")
        cache.write_note("note.json", "{}")
    finally:
        os.umask(before)
    assert cache.read(KIND, DIGEST) == b"code" and cache.read_note("note.json") == "{}"
    assert {p.stat().st_mode & 0o777 for p in [folder.parent, folder, *folder.rglob("*")] if p.is_dir()} == {0o700}
    assert {p.stat().st_mode & 0o777 for p in folder.rglob("*") if p.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o020, 0o002, 0o022])
@pytest.mark.parametrize("member", MEMBERS)
def test_what_others_may_write_is_refused(folder: Path, said: list[str], member: str, mode: int) -> None:
    cache.write(KIND, DIGEST, b"code")
    place = folder / member
    place.chmod(place.stat().st_mode | mode)
    before = state(folder)
    assert cache.read(KIND, DIGEST) is None and cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and f"{place} may be written by" in said[0] and f"chmod go-w {place}" in said[0]
    if member != MEMBERS[-1]:
        cache.write(KIND, DIGEST, b"other")
        assert cache.trim(0) >= 0
        assert state(folder) == before
    else:
        # A folder that is sound is written, and what others put there goes.
        cache.write(KIND, DIGEST, b"anew")
        assert cache.read(KIND, DIGEST) == b"anew"


@as_root
@pytest.mark.parametrize("member", MEMBERS)
def test_what_belongs_to_another_is_refused(folder: Path, said: list[str], member: str) -> None:
    cache.write(KIND, DIGEST, b"code")
    os.chown(folder / member, OTHER, OTHER)
    assert cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and f"{folder / member}".rstrip("/") in said[0]
    assert f"belongs to uid {OTHER}, not to root (uid 0)" in said[0]


def test_all_is_foreign_to_another_user(folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write(KIND, DIGEST, b"code")
    before = state(folder)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    if own != 0:
        # Root may do all of this anyway.
        pytest.importorskip("pwd")
    assert cache.read(KIND, DIGEST) is None
    cache.write(KIND, DIGEST, b"other")
    assert len(said) == 1 and "belongs to" in said[0]
    with pytest.raises(private.Refused):
        cache.clear()
    assert state(folder) == before


@pytest.mark.parametrize("mode, good", [(0o777, False), (0o775, False), (0o1777, True), (0o755, True)])
def test_folders_above(folder: Path, said: list[str], mode: int, good: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "_own_group", lambda: -1)
    cache.write(KIND, DIGEST, b"code")
    folder.parent.chmod(mode)
    private._reached.clear()
    assert (cache.read(KIND, DIGEST) == b"code") == good
    assert bool(said) != good and all(f"{folder.parent} may be written by" in text for text in said)


def test_a_group_of_ones_own_is_nobody_else_above(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "_own_group", lambda: folder.parent.stat().st_gid)
    cache.write(KIND, DIGEST, b"code")
    folder.parent.chmod(0o775)
    private._reached.clear()
    assert cache.read(KIND, DIGEST) == b"code"
    folder.parent.chmod(0o777)
    private._reached.clear()
    assert cache.read(KIND, DIGEST) is None


@pytest.mark.parametrize("member", MEMBERS[1:])
def test_links_below_are_not_followed(folder: Path, said: list[str], tmp_path: Path, member: str) -> None:
    cache.write(KIND, DIGEST, b"code")
    place, target = folder / member, tmp_path / "target"
    place.rename(target)
    place.symlink_to(target)
    before = state(tmp_path)
    assert cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and f"{place} is a link" in said[0]
    if member == MEMBERS[-1]:
        cache.write(KIND, DIGEST, b"anew")
        assert target.read_bytes() == before["target"][1] and not place.is_symlink()
        assert cache.read(KIND, DIGEST) == b"anew"
    else:
        cache.write(KIND, DIGEST, b"other")
        cache.trim(0)
        assert state(tmp_path) == before


def test_a_link_to_ones_own_folder_is_a_name_for_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write(KIND, DIGEST, b"code")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("MYCEL_CACHE", str(tmp_path / "link"))
    assert cache.read(KIND, DIGEST) == b"code"


@as_root
def test_a_link_of_another_user_is_not_followed(folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder such as /tmp it would lead to files of the user that somebody else chose."""
    cache.write(KIND, DIGEST, b"code")
    public = folder.parent / "public"
    public.mkdir()
    public.chmod(0o1777)
    (public / "link").symlink_to(folder)
    monkeypatch.setenv("MYCEL_CACHE", str(public / "link"))
    assert cache.read(KIND, DIGEST) == b"code"
    private._reached.clear()
    os.chown(public / "link", OTHER, OTHER, follow_symlinks=False)
    assert cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and f"{public / 'link'} is a link of uid {OTHER}" in said[0]


def test_links_where_others_may_write(folder: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write(KIND, DIGEST, b"code")
    public = folder.parent / "public"
    public.mkdir()
    (public / "link").symlink_to("../cache")
    monkeypatch.setenv("MYCEL_CACHE", str(public / "link"))
    assert cache.read(KIND, DIGEST) == b"code"
    private._reached.clear()
    public.chmod(0o777)
    assert cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and f"{public} may be written by everybody" in said[0]
    (public / "around").symlink_to("around")
    monkeypatch.setenv("MYCEL_CACHE", str(public / "around"))
    assert cache.read(KIND, DIGEST) is None


def test_a_pipe_does_not_keep_its_reader_waiting(folder: Path, said: list[str]) -> None:
    cache.write(KIND, DIGEST, b"code")
    (folder / MEMBERS[-1]).unlink()
    os.mkfifo(folder / MEMBERS[-1])
    assert cache.read(KIND, DIGEST) is None
    assert len(said) == 1 and "is no file" in said[0]


def test_a_file_without_end_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYCEL_CACHE_SIZE", "64")
    cache.write(KIND, DIGEST, b"code")
    os.truncate(folder / MEMBERS[-1], 1 << 36)
    assert cache.read(KIND, DIGEST) is None


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user may reach."""
    place = Path(tempfile.mkdtemp(prefix="mycel-private-", dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


AS_OTHER = """
    import os, sys
    sys.path.insert(0, {path!r})
    from mycel._src.foundation.files import code_cache as cache
    os.environ["MYCEL_CACHE"] = {cache!r}
    os.setgroups([]); os.setgid({other}); os.setuid({other})
"""


def other_user(cache: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that has become another user after its imports."""
    head = AS_OTHER.format(path=str(Path(ms.__file__).parent.parent), cache=str(cache), other=OTHER)
    text = textwrap.dedent(head) + textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)


@as_root
def test_machine_code_of_another_user_does_not_run(public: Path) -> None:
    """The attack: a folder with objects whose names and seals are right, and whose code is
    another's.
    """
    program = """
        import sys
        import mycel as ms, numpy as np
        from mycel import ops
        from mycel._src.engines.native.llvm import jit
        if "poison" in sys.argv:
            real = jit.Machine.compile
            jit.Machine.compile = lambda self, text: real(self, text.replace("fadd ", "fsub "))
        f = ms.jit(lambda x: (x * 2 + 1) * 3 + x)
        print(f(ms.Tensor(np.full((4, 5), 2, np.float32))).asnumpy()[0, 0])
    """

    def run(*arguments: str) -> tuple[float, int]:
        environment = {**os.environ, "MYCEL_CACHE": str(public), "PYTHONPATH": str(Path(ms.__file__).parent.parent)}
        command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return float(done.stdout), done.stderr.count("compiled code is neither taken from there nor kept")

    wrong = run("poison")[0]
    # One's own folder is believed.
    assert wrong != 17 and run() == (wrong, 0)
    for folder, _, files in os.walk(public):
        for name in ("", *files):
            os.chown(os.path.join(folder, name), OTHER, OTHER)
    before = state(public)
    assert run() == (17, 1)
    assert state(public) == before


@as_root
def test_a_folder_of_another_user_is_not_written(public: Path) -> None:
    mine = public / "mine"
    mine.mkdir(mode=0o777)
    mine.chmod(0o777)
    run = other_user(
        mine,
        f"""
        cache.write({KIND!r}, {DIGEST!r}, b"code")
        print(cache.read({KIND!r}, {DIGEST!r}), os.listdir({str(mine)!r}))
        """,
    )
    assert run.stdout.split() == ["None", "[]"] and run.stderr.count("belongs to root (uid 0), not to uid") == 1


@as_root
def test_a_folder_that_can_only_be_read(public: Path) -> None:
    theirs = public / "theirs"
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    run = other_user(
        theirs,
        f"""
        cache.write({KIND!r}, {DIGEST!r}, b"code")
        for folder, folders, files in os.walk({str(theirs)!r}, topdown=False):
            os.chmod(folder, 0o500)
        cache.write({KIND!r}, {DIGEST!r}, b"other")
        cache.write({KIND!r}, "cd" * 32, b"other")
        print(cache.read({KIND!r}, {DIGEST!r}), cache.read({KIND!r}, "cd" * 32), cache.trim(0) > 0)
        """,
    )
    assert run.stdout.split() == ["b'code'", "None", "True"], run


def test_a_race_is_not_won(folder: Path, tmp_path: Path) -> None:
    """While one thread swaps a sound folder for a link to one that is not, no read gives what lies
    in that.
    """
    cache.write(KIND, DIGEST, b"code")
    evil = tmp_path / "evil"
    shutil.copytree(folder / KIND, evil)
    content = b"evil"
    (evil / "ab" / DIGEST).write_bytes(content + cache._seal(DIGEST, content))
    evil.chmod(0o777)
    stop = threading.Event()

    def swap() -> None:
        # As somebody could in a folder that others may write, which is refused first; here the
        # folder above is sound.
        while not stop.is_set():
            (folder / KIND).rename(folder / "aside")
            (folder / KIND).symlink_to(evil)
            (folder / KIND).unlink()
            (folder / "aside").rename(folder / KIND)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        found = {cache.read(KIND, DIGEST) for _ in range(2000)}
    finally:
        stop.set()
        thread.join()
    assert found <= {None, b"code"}


# Libraries.


def test_libraries_that_others_may_write_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(dense_library.candidates(), None)
    if path is None:
        pytest.skip("there is no oneDNN here")
    copy = tmp_path / "libdnnl.so.3"
    copy.write_bytes(b"\x7fELF")
    monkeypatch.setenv("MYCEL_ONEDNN", str(copy))
    copy.chmod(0o666)
    with pytest.raises(
        dense_library.Unavailable, match="is not loaded: .* may be written by everybody .mode 0666.; chmod go-w"
    ):
        dense_library.load()
    copy.chmod(0o644)
    tmp_path.chmod(0o777)
    with pytest.raises(dense_library.Unavailable, match=f"{tmp_path} may be written by everybody"):
        dense_library.load()
    tmp_path.chmod(0o700)
    with pytest.raises(dense_library.Unavailable, match="cannot load"):
        dense_library.load()


def test_custom_operations_from_where_others_may_write(tmp_path: Path) -> None:
    library = tmp_path / "add.so"
    library.write_bytes(b"")
    library.chmod(0o666)
    with pytest.raises(ValueError, match="add.so cannot be loaded: .* may be written by everybody"):
        ms.ops.Custom(f"{library}:add", out_shape=lambda x: x, out_dtype=lambda x: x, func_type="aot")(ms.Tensor([1.0]))


@as_root
def test_libraries_of_others(tmp_path: Path) -> None:
    library = tmp_path / "add.so"
    library.write_bytes(b"")
    private.check_code(library)
    os.chown(library, OTHER, OTHER)
    with pytest.raises(private.Refused, match=f"belongs to uid {OTHER}; use a copy in a folder of your own"):
        private.check_code(library)
