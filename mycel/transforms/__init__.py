"""Functions from graphs to graphs."""

from mycel.transforms import grad as grad
from mycel.transforms import jvp as jvp
