"""Boards of qemu's, as tests of libraries use them."""

from mycel.deploy.boards import BOARDS, Board, BoardError, Run, missing_tools, run

__all__ = ["BOARDS", "Board", "BoardError", "Run", "missing_tools", "run"]
