"""Operators that users write as loops over elements (`mycel.te`), as kernels."""
