"""`mindspore.common.file_system`: the functions that open checkpoints."""

from __future__ import annotations

from typing import Any

from mycel.compat.unserved import Group, served_on_request

__all__ = ["FileSystem"]


class FileSystem:
    """How files are opened, for writing (`create`) and reading (`open`): function and mode."""

    def __init__(self) -> None:
        self.create: Any = open
        self.create_args: tuple[str, ...] = ("ab",)
        self.open: Any = open
        self.open_args: tuple[str, ...] = ("rb",)
        self.backend = "basic"


def _register_basic_file_system(fs: FileSystem) -> bool:
    """Let files be opened by Python's `open`, and return True."""
    vars(fs).update(vars(FileSystem()))
    return True


def _register_mindio_file_system(fs: FileSystem) -> bool:
    """Return False: MindIO, a service of clusters, is not there."""
    return False


def _init_mindio() -> None:
    """Return None: MindIO, a service of clusters, is not there."""


def mindio_preload(ckpt_file_name: str) -> bool:
    """Return False: nothing is loaded ahead, as MindIO, a service of clusters, is not there."""
    return False


mindio_server_info = {"memfs.data_block_pool_capacity_in_gb": "100"}
__getattr__ = served_on_request(
    "mindspore.common.file_system",
    (
        Group(
            "sets up MindIO, a service of clusters that keeps checkpoints in memory; save_checkpoint writes files",
            functions=("set_mindio_server_info(data_block_pool_capacity_in_gb=100)",),
        ),
    ),
)
