"""The methods and attributes of tensors, which importing `mycel.ops` attaches."""

from mycel.ops.tensors import methods as methods
