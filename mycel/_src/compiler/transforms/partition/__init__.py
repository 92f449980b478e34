"""SPMD partitioning: a graph and layouts on a mesh become the one graph that every rank runs.

`partition` decides a division of every node, moves operands where layouts differ, and makes the
collectives explicit nodes. `Sharding` says how one tensor is laid out, `route` how it gets from one
layout to another and what that costs, `divisions_of` and `implied` what a node can do.
"""

from mycel._src.compiler.transforms.partition.collective_fusion import ALONE, BY_SIZE, Fusing
from mycel._src.compiler.transforms.partition.host_sharding import blocks, joined, places_along, places_of, shard, whole
from mycel._src.compiler.transforms.partition.node_sharding import divisions_of, implied
from mycel._src.compiler.transforms.partition.partition_records import Message
from mycel._src.compiler.transforms.partition.partitioner import Partitioned, opened, partition
from mycel._src.compiler.transforms.partition.resharding import Move, apply, route
from mycel._src.compiler.transforms.partition.sharding_propagation import flowing
from mycel._src.compiler.transforms.partition.tensor_sharding import (
    WHOLE,
    Part,
    Sharding,
    local_shape,
    local_type,
    part_of,
    sharding,
)

__all__ = [
    "ALONE",
    "BY_SIZE",
    "WHOLE",
    "Fusing",
    "Message",
    "Move",
    "Part",
    "Partitioned",
    "Sharding",
    "apply",
    "blocks",
    "divisions_of",
    "flowing",
    "implied",
    "joined",
    "local_shape",
    "local_type",
    "opened",
    "part_of",
    "partition",
    "places_along",
    "places_of",
    "route",
    "shard",
    "sharding",
    "whole",
]
