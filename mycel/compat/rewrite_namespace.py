"""`mindspore.rewrite.common.namespace`: which calls of a network become trees of their own.

Both lists are the ones that `mycel.rewrite` reads: what programs add to them holds for trees that
are made afterwards.
"""

from __future__ import annotations

from mycel.rewrite.flattening import OPEN_PATHS as _ignore_third_party_paths
from mycel.rewrite.flattening import WHOLE as _subtree_black_list

__all__ = ["_ignore_third_party_paths", "_subtree_black_list"]
