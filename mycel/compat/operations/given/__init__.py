"""Functions composed by hand, for names that no public function serves with these parameters.

Their names and parameters are those of the operations that they serve.
"""

from __future__ import annotations

from mycel.compat.operations.given.experts import *  # noqa: F403
from mycel.compat.operations.given.gradients import *  # noqa: F403
from mycel.compat.operations.given.in_place import *  # noqa: F403
from mycel.compat.operations.given.layers import *  # noqa: F403
from mycel.compat.operations.given.names import *  # noqa: F403
from mycel.compat.operations.given.private import *  # noqa: F403
from mycel.compat.operations.given.random import *  # noqa: F403
from mycel.compat.operations.given.shapes import *  # noqa: F403
