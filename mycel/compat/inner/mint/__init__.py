"""`mindspore.mint`: what else lies in its namespace."""

from mycel.mint.nn import functional as functional
