"""Communication between processes: groups of them, collective operations, and a store of keys and
values that several share.

One process is supported now; in it every operation has its exact meaning for a group of one
(`mycel.communication.groups`). The operations on tensors and objects (`collectives`, `processes`)
and the store are public as functions of `mycel.ops`, as they are in MindSpore.
"""

from mycel._src.foundation.public_names import listing as _listing
from mycel.communication.groups import HCCL_WORLD_COMM_GROUP as HCCL_WORLD_COMM_GROUP
from mycel.communication.groups import MCCL_WORLD_COMM_GROUP as MCCL_WORLD_COMM_GROUP
from mycel.communication.groups import NCCL_WORLD_COMM_GROUP as NCCL_WORLD_COMM_GROUP
from mycel.communication.groups import GlobalComm as GlobalComm
from mycel.communication.groups import create_group as create_group
from mycel.communication.groups import destroy_group as destroy_group
from mycel.communication.groups import get_comm_name as get_comm_name
from mycel.communication.groups import get_group_rank_from_world_rank as get_group_rank_from_world_rank
from mycel.communication.groups import get_group_size as get_group_size
from mycel.communication.groups import get_local_rank as get_local_rank
from mycel.communication.groups import get_local_rank_size as get_local_rank_size
from mycel.communication.groups import get_process_group_ranks as get_process_group_ranks
from mycel.communication.groups import get_rank as get_rank
from mycel.communication.groups import get_world_rank_from_group_rank as get_world_rank_from_group_rank
from mycel.communication.groups import init as init
from mycel.communication.groups import release as release

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

__dir__ = _listing(__name__)
