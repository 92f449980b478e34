"""Architecture search: once-for-all networks, tables of costs by device, evolution under limits."""

from mycel._src.foundation.public_names import listing as _listing
from mycel.search.architecture import Architecture, Block
from mycel.search.elastic import ElasticNetwork, Stage, recalibrate, sort_channels
from mycel.search.evolution import Found, Limits, NothingFits, search
from mycel.search.measuring import Cost, measure, measure_operator
from mycel.search.operators import Operator, operators_of
from mycel.search.shrinking import fit, train_elastic
from mycel.search.space import Space
from mycel.search.table import Prediction, Table
from mycel.search.tables import table_of

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
