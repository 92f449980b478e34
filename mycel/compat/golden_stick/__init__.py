"""MindSpore's golden stick (`mindspore_gs`), answered by Mycel's quantisation.

`import mindspore_gs` gives these modules while `import mindspore` gives Mycel. Names, arguments and
defaults are those of release 1.4.1; what it does for Ascend's kernels alone is refused by name.
"""

from mycel.compat.golden_stick.algorithm import CompAlgo

__all__ = ["CompAlgo"]
__version__ = "1.4.1"
