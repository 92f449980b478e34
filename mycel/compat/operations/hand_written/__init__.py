"""Functions composed by hand, for names that no public function serves with these parameters.

Their names and parameters are those of the operations that they serve.
"""

from __future__ import annotations

from mycel.compat.operations.hand_written.exact_names import *  # noqa: F403
from mycel.compat.operations.hand_written.experts import *  # noqa: F403
from mycel.compat.operations.hand_written.gradients import *  # noqa: F403
from mycel.compat.operations.hand_written.in_place import *  # noqa: F403
from mycel.compat.operations.hand_written.layers import *  # noqa: F403
from mycel.compat.operations.hand_written.random_draws import *  # noqa: F403
from mycel.compat.operations.hand_written.renamed_functions import *  # noqa: F403
from mycel.compat.operations.hand_written.shapes import *  # noqa: F403
