"""`mindspore.parallel`: how work is divided over devices, and checkpoints of divided work.

`distribute` divides one function by `Layouts` over a `Mesh`, whatever the mode of the process.
`mycel.parallel.simulation` tells how it would run on more devices than there are.
"""

from __future__ import annotations

from mycel._src.compiler.ir.sharding.mesh import Mesh as Mesh
from mycel._src.foundation.public_names import listing as _listing
from mycel._src.planner.simulation import simulate as simulate
from mycel._src.staging.distributed import Layouts as Layouts
from mycel._src.staging.distributed import distribute as distribute
from mycel.parallel.auto_parallel import set_op_strategy_config as set_op_strategy_config
from mycel.parallel.context import get_algo_parameters as get_algo_parameters
from mycel.parallel.context import reset_algo_parameters as reset_algo_parameters
from mycel.parallel.context import set_algo_parameters as set_algo_parameters
from mycel.parallel.layout import Layout as Layout
from mycel.parallel.layout import parameter_broadcast as parameter_broadcast
from mycel.parallel.layout import shard as shard
from mycel.parallel.layout import sync_pipeline_shared_parameters as sync_pipeline_shared_parameters
from mycel.train.distributed_checkpoints import merge_sliced_parameter as merge_sliced_parameter
from mycel.train.distributed_checkpoints import rank_list_for_transform as rank_list_for_convert
from mycel.train.distributed_checkpoints import rank_list_for_transform as rank_list_for_transform
from mycel.train.distributed_checkpoints import transform_checkpoint_by_rank as convert_checkpoint_by_rank
from mycel.train.distributed_checkpoints import transform_checkpoint_by_rank as transform_checkpoint_by_rank
from mycel.train.distributed_checkpoints import transform_checkpoints as convert_checkpoints
from mycel.train.distributed_checkpoints import transform_checkpoints as transform_checkpoints
from mycel.train.strategies import build_searched_strategy as build_searched_strategy
from mycel.train.strategies import merge_pipeline_strategys as merge_pipeline_strategys
from mycel.train.strategies import restore_group_info_list as restore_group_info_list
from mycel.train.unified_checkpoints import load_distributed_checkpoint as load_distributed_checkpoint
from mycel.train.unified_checkpoints import load_segmented_checkpoints as load_segmented_checkpoints
from mycel.train.unified_checkpoints import unified_safetensors as unified_safetensors

__all__ = [
    "Layout",
    "Layouts",
    "Mesh",
    "build_searched_strategy",
    "convert_checkpoint_by_rank",
    "convert_checkpoints",
    "distribute",
    "get_algo_parameters",
    "load_distributed_checkpoint",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "parameter_broadcast",
    "rank_list_for_convert",
    "rank_list_for_transform",
    "reset_algo_parameters",
    "restore_group_info_list",
    "set_algo_parameters",
    "set_op_strategy_config",
    "shard",
    "simulate",
    "sync_pipeline_shared_parameters",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
]

__dir__ = _listing(__name__)
