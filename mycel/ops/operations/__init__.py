"""Operations as objects: parameters at construction, tensors at the call, as in
``ops.MatMul(transpose_b=True)(x, y)``.

Every class is one statement over a function of `mycel.ops`, one module a topic
(`mycel.ops.operations.primitive`). What the constructor was given are attributes of the object.
"""

from __future__ import annotations

from mycel._src.staging.frontend.parallelism.operator_marks import KINDS
from mycel.ops.operations import (
    advanced as advanced,
)
from mycel.ops.operations import (
    arithmetic as arithmetic,
)
from mycel.ops.operations import (
    arrays as arrays,
)
from mycel.ops.operations import (
    attention as attention,
)
from mycel.ops.operations import (
    collectives as collectives,
)
from mycel.ops.operations import (
    control as control,
)
from mycel.ops.operations import (
    custom as custom,
)
from mycel.ops.operations import (
    custom_builder as custom_builder,
)
from mycel.ops.operations import debugging as showing
from mycel.ops.operations import (
    images as images,
)
from mycel.ops.operations import (
    layers as layers,
)
from mycel.ops.operations import (
    mathematics as mathematics,
)
from mycel.ops.operations import (
    morph as morph,
)
from mycel.ops.operations import optimizer_updates as updates
from mycel.ops.operations import python_values as program
from mycel.ops.operations import (
    random as random,
)
from mycel.ops.operations import (
    recurrent as recurrent,
)
from mycel.ops.operations import (
    reductions as reductions,
)
from mycel.ops.operations import (
    registration as registration,
)
from mycel.ops.operations import resharding as layouts
from mycel.ops.operations import (
    shapes as shapes,
)
from mycel.ops.operations import (
    sparse as sparse,
)
from mycel.ops.operations import (
    windows as windows,
)
from mycel.ops.operations.advanced import *  # noqa: F403
from mycel.ops.operations.arithmetic import *  # noqa: F403
from mycel.ops.operations.arrays import *  # noqa: F403
from mycel.ops.operations.attention import *  # noqa: F403
from mycel.ops.operations.collectives import *  # noqa: F403
from mycel.ops.operations.control import *  # noqa: F403
from mycel.ops.operations.custom import *  # noqa: F403
from mycel.ops.operations.custom_builder import *  # noqa: F403
from mycel.ops.operations.debugging import *  # noqa: F403
from mycel.ops.operations.images import *  # noqa: F403
from mycel.ops.operations.layers import *  # noqa: F403
from mycel.ops.operations.mathematics import *  # noqa: F403
from mycel.ops.operations.morph import *  # noqa: F403
from mycel.ops.operations.optimizer_updates import *  # noqa: F403
from mycel.ops.operations.primitive import Primitive as Primitive
from mycel.ops.operations.python_values import *  # noqa: F403
from mycel.ops.operations.random import *  # noqa: F403
from mycel.ops.operations.recurrent import *  # noqa: F403
from mycel.ops.operations.reductions import *  # noqa: F403
from mycel.ops.operations.registration import *  # noqa: F403
from mycel.ops.operations.resharding import *  # noqa: F403
from mycel.ops.operations.shapes import *  # noqa: F403
from mycel.ops.operations.sparse import *  # noqa: F403
from mycel.ops.operations.windows import *  # noqa: F403

__all__ = ["Primitive"]
for _topic in (
    arithmetic,
    reductions,
    shapes,
    layers,
    advanced,
    updates,
    sparse,
    images,
    windows,
    attention,
    mathematics,
    arrays,
    random,
    recurrent,
    control,
    showing,
    program,
    registration,
    custom,
    custom_builder,
    morph,
    collectives,
    layouts,
):
    __all__ += _topic.__all__
KINDS.update({name.lower(): name for name in __all__})
