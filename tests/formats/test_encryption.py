"""Encrypted checkpoints: files that MindSpore 2.10 wrote, our own, and what a wrong key, mode or
byte says.
"""

import numpy as np
import pytest

import mycel as ms
from mycel.formats import encryption
from mycel.train.checkpoint_format import CheckpointError

pytest.importorskip("cryptography")

KEY = b"0123456789abcdef"
# What MindSpore 2.10 wrote of {"w": [0, 1, 2] in float32, "epoch": 3} with this key.
THEIRS = {
    "AES-GCM": "d85e3a7f26750334958269c4b93198f2287e7a5f540000001000000014a75dfb"
    "7d63db9c1c40bf4a524b32e93c0000000d979732654729f1d20b4cd1"
    "61be2975e1ffb32127109e3bfe85209b619893434d6196301fe485a8efe675261fabf3026eeced698ef5e6299bc8d3be",
    "AES-CBC": "d95e3a7f58000000100000000d90b060e5cb784ffcfcbe96d24aa9a440000000"
    "6ea516f5f5ad39c90d6f2bd7315bd403e2ad33f4e10dbc55a4e99ae8"
    "27b260b4f21e3b10b6e87ef6c73b0974124b74e2b7bd12daab0b6a0f27e2d32d2d7fea7a",
    "SM4-CBC": "da5e3a7f58000000100000000b4ff4688c62fd69da4148e65d93f6c540000000"
    "c92765364de866e86f1b253ff65d8afc555496ccfe7031b85b4679c0"
    "ce2340816b6eee5277ec2ad44ad4c61b45b9870fef25fb204389a4d392cfa34bd41d4ac0",
}
MODES = list(THEIRS)


def saved(path, mode="AES-GCM", **options):
    w = np.arange(600, dtype=np.float32).reshape(20, 30)
    ms.save_checkpoint(
        {"w": ms.Parameter(ms.Tensor(w))}, path, append_dict={"note": "x"}, enc_key=KEY, enc_mode=mode, **options
    )
    return w


@pytest.mark.parametrize("mode", MODES)
def test_files_of_mindspore_are_read(tmp_path, mode):
    (tmp_path / "a.ckpt").write_bytes(bytes.fromhex(THEIRS[mode]))
    found = ms.load_checkpoint(tmp_path / "a.ckpt", dec_key=KEY, dec_mode=mode)
    assert found["w"].asnumpy().tolist() == [0, 1, 2] and found["epoch"].asnumpy() == 3


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_is_saved_comes_back(tmp_path, mode, asynchronous, monkeypatch):
    monkeypatch.setattr(encryption, "BLOCK", 100)
    w = saved(tmp_path / "a.ckpt", mode, crc_check=True, async_save=asynchronous)
    found = ms.load_checkpoint(tmp_path / "a.ckpt", dec_key=KEY, dec_mode=mode, crc_check=True)
    np.testing.assert_array_equal(found["w"].asnumpy(), w)
    assert found["note"] == "x"
    assert w.tobytes()[:64] not in (tmp_path / "a.ckpt").read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_a_wrong_key_or_mode_is_told(tmp_path, mode):
    saved(tmp_path / "a.ckpt", mode)
    with pytest.raises(CheckpointError, match="a.ckpt: (dec_key is not the key|damaged)"):
        ms.load_checkpoint(tmp_path / "a.ckpt", dec_key=KEY[::-1], dec_mode=mode)
    other = MODES[MODES.index(mode) - 1]
    with pytest.raises(CheckpointError, match=f"encrypted in the mode {mode}, not {other}"):
        ms.load_checkpoint(tmp_path / "a.ckpt", dec_key=KEY, dec_mode=other)
    with pytest.raises(CheckpointError, match="it is encrypted; give its key as dec_key"):
        ms.load_checkpoint(tmp_path / "a.ckpt")
    ms.save_checkpoint({"w": ms.Parameter(1.0)}, tmp_path / "plain.ckpt")
    with pytest.raises(CheckpointError, match="not encrypted: no block begins at byte 0"):
        ms.load_checkpoint(tmp_path / "plain.ckpt", dec_key=KEY, dec_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_cut_and_changed_byte_is_told(tmp_path, mode, monkeypatch):
    monkeypatch.setattr(encryption, "BLOCK", 1000)
    path = tmp_path / "a.ckpt"
    w = saved(path, mode, crc_check=True)
    whole = path.read_bytes()
    for length in (1, 3, 4, 12, 25, 40, 60, 1000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="a.ckpt: .*damaged|a.ckpt: not encrypted"):
            ms.load_checkpoint(path, dec_key=KEY, dec_mode=mode)
    for place in range(0, len(whole), 37):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            found = ms.load_checkpoint(path, dec_key=KEY, dec_mode=mode, crc_check=True)
        except CheckpointError as error:
            assert "a.ckpt" in str(error)
        else:
            np.testing.assert_array_equal(found["w"].asnumpy(), w)
            assert mode == "AES-GCM" and 40 <= place % 1048 < 44


def test_arguments_are_checked(tmp_path):
    net = {"w": ms.Parameter(1.0)}
    with pytest.raises(ValueError, match="enc_key must be bytes, not str"):
        ms.save_checkpoint(net, tmp_path / "a.ckpt", enc_key="0123456789abcdef")
    with pytest.raises(ValueError, match="enc_key must have 16 or 24 or 32 bytes for AES-GCM, not 3"):
        ms.save_checkpoint(net, tmp_path / "a.ckpt", enc_key=b"abc")
    with pytest.raises(ValueError, match="enc_key must have 16 bytes for SM4-CBC, not 32"):
        ms.save_checkpoint(net, tmp_path / "a.ckpt", enc_key=KEY * 2, enc_mode="SM4-CBC")
    with pytest.raises(ValueError, match="enc_mode must be one of 'AES-GCM', 'AES-CBC', 'SM4-CBC', not 'AES'"):
        ms.save_checkpoint(net, tmp_path / "a.ckpt", enc_key=KEY, enc_mode="AES")
    with pytest.raises(ValueError, match="enc_key goes with format='ckpt'"):
        ms.save_checkpoint(net, tmp_path / "a.safetensors", enc_key=KEY, format="safetensors")
    with pytest.raises(ValueError, match="load_checkpoint: dec_key must be bytes"):
        ms.load_checkpoint(tmp_path / "a.ckpt", dec_key="0")
    assert not list(tmp_path.iterdir())
