"""Neural-network layers, losses and optimizers."""

from mycel.nn.cell import Cell as Cell
from mycel.nn.cell import GraphCell as GraphCell
