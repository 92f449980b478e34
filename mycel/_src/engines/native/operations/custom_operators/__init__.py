"""Custom operators: the loop programs of `mycel.te` as kernels."""
