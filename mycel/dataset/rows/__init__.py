"""Rows as blocks of columns: stacking, padding, copies and who owns the arrays."""
