"""Graph transforms: functions from graphs to graphs."""

from mycel._src.compiler.transforms import grad as grad
from mycel._src.compiler.transforms import jvp as jvp
