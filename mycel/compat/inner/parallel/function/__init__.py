"""`mindspore.parallel.function`: layouts of single values."""

from mycel.ops import reshard as reshard

__all__ = ["reshard"]
