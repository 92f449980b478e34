"""Measures the reference count that `sys.getrefcount` gives for an object with one owner.

`sys.getrefcount(x)` of a variable counts the owners, the variable, and the argument of the call as
well where the interpreter makes a reference for it; from Python 3.14 on it makes none. So what is
counted of one owner is measured, in the form in which it is used: a variable that is the argument.
"""

from __future__ import annotations

import sys

__all__ = ["ONE_OWNER"]


def _of_one_owner() -> int:
    owner = [object()]
    one = owner[0]
    return sys.getrefcount(one)


ONE_OWNER = _of_one_owner()  # the owner, a variable, and perhaps an argument
