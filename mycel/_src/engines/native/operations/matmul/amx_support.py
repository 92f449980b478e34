"""Detects AMX (bfloat16 tile multiplication), and asks the system for its use.

x86 processors from 2023 on have them (AMX). A process has to ask Linux for the registers once,
before a program that uses them runs; its threads, and processes that it forks, have them then.
"""

from __future__ import annotations

import ctypes
import sys

from mycel._src.engines.native.llvm.target import host, target
from mycel._src.engines.native.runtime import bounds_check_setting
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

__all__ = ["available", "setting"]

# Of Linux on x86-64: the call, its request for a part of the registers' state, and that part.
_ARCH_PRCTL, _REQUEST, _TILES = 158, 0x1023, 18
_NEEDED = frozenset(("amx-tile", "amx-bf16", "avx512f", "avx512vl"))
_granted: list[bool] = []


def _ask() -> bool:
    """Return whether the processor has the units and the system lets the process use them."""
    if sys.platform != "linux" or not host().is_family("x86_64") or not _NEEDED <= host().feature_set:
        return False
    refused = ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST, _TILES)
    if refused:
        logger.info("the system does not let this process use the registers of matrix units")
    return not refused


def available() -> bool:
    """Return whether products may use the units.

    They are not used where each access is checked, as their own are not seen.
    """
    if not config._context["matrix_units"] or bounds_check_setting.is_on() or target() is not host():
        return False
    if not _granted:
        _granted.append(_ask())
    return _granted[0]


def setting() -> str:
    """Return whether the units are used, as a part of programs' digests."""
    return "matrix units" if available() else "vectors"
