"""`mindspore.parallel.function.reshard_func`: layouts of single values."""

from mycel.ops import reshard as reshard

__all__ = ["reshard"]
