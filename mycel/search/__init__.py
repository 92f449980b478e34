"""Neural architecture search: once-for-all networks, cost tables by device, evolution."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.search.architecture import Architecture, Block
from mycel.search.bundled_tables import table_of
from mycel.search.cost_measurement import Cost, measure, measure_operator
from mycel.search.cost_table import Prediction, Table
from mycel.search.evolution import Found, Limits, NothingFits, search
from mycel.search.once_for_all import ElasticNetwork, Stage, recalibrate, sort_channels
from mycel.search.operators import Operator, operators_of
from mycel.search.progressive_shrinking import fit, train_elastic
from mycel.search.search_space import Space

__all__ = [
    "Architecture",
    "Block",
    "Cost",
    "ElasticNetwork",
    "Found",
    "Limits",
    "NothingFits",
    "Operator",
    "Prediction",
    "Space",
    "Stage",
    "Table",
    "fit",
    "measure",
    "measure_operator",
    "operators_of",
    "recalibrate",
    "search",
    "sort_channels",
    "table_of",
    "train_elastic",
]

__dir__ = _listing(__name__)
