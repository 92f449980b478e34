"""Routines: plain loops over arrays of NumPy, written in Python and run as machine code.

A routine serves the host's own work around programs, as the images of a pipeline: sizes differ from
call to call, and a call has to cost microseconds. `routine` makes one of a Python function;
`routine_language` has what such functions may use.
"""

from mycel._src.engines.routines.compiled_routines import Routine, are_on, routine

__all__ = ["Routine", "are_on", "routine"]
