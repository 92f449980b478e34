"""Conversion between the two formats, of files and of folders."""

import numpy as np
import pytest

from mycel.train.checkpoint_conversion import ckpt_to_safetensors, safetensors_to_ckpt
from mycel.train.checkpoint_format import CheckpointError, read_ckpt, read_safetensors, write_ckpt

ENTRIES = {"w": np.arange(6, dtype=np.float16).reshape(2, 3), "n": np.array(3)}


def test_there_and_back(tmp_path):
    write_ckpt(tmp_path / "a.ckpt", ENTRIES)
    ckpt_to_safetensors(tmp_path / "a.ckpt", tmp_path / "other", name_map={"w": "weight"})
    there = read_safetensors(tmp_path / "other" / "a.safetensors")
    assert there["weight"].tolist() == ENTRIES["w"].tolist() and there["weight"].dtype == np.float16 and there["n"] == 3
    safetensors_to_ckpt(str(tmp_path / "other" / "a.safetensors"), name_map={"weight": "w"})
    back = read_ckpt(tmp_path / "other" / "a.ckpt")
    assert {name: back[name].tolist() for name in back} == {name: ENTRIES[name].tolist() for name in ENTRIES}


def test_folders_keep_their_shape(tmp_path):
    (tmp_path / "in" / "rank_1").mkdir(parents=True)
    for place in ("a.ckpt", "b.ckpt", "rank_1/a.ckpt"):
        write_ckpt(tmp_path / "in" / place, ENTRIES)
    ckpt_to_safetensors(tmp_path / "in", tmp_path / "out", file_name_regex="a")
    made = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*"))
    assert made == ["a.safetensors", "rank_1/a.safetensors"]


def test_what_does_not_fit_is_refused(tmp_path):
    write_ckpt(tmp_path / "a.ckpt", {**ENTRIES, "text": "x"})
    with pytest.raises(CheckpointError, match="entry 'text' is a string"):
        ckpt_to_safetensors(tmp_path / "a.ckpt")
    with pytest.raises(CheckpointError, match="name_map gives two entries the name 'n'"):
        ckpt_to_safetensors(tmp_path / "a.ckpt", name_map={"w": "n"})
    with pytest.raises(ValueError, match="is neither a .safetensors file nor a folder with files to convert"):
        safetensors_to_ckpt(tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="save_path must be a folder"):
        ckpt_to_safetensors(tmp_path / "a.ckpt", tmp_path / "a.ckpt")
    with pytest.raises(ValueError, match="processes_num must be at least 1, not 0"):
        ckpt_to_safetensors(tmp_path / "a.ckpt", processes_num=0)
