"""Programs for other machines: libraries of C without a runtime, models of C++, and modules
for browsers.
"""

from mycel.deploy.browser import WebModule, web
from mycel.deploy.building import build
from mycel.deploy.cplusplus import cpp
from mycel.engines.aot.library import Library
from mycel.engines.aot.targets import names as targets

__all__ = ["Library", "WebModule", "build", "cpp", "targets", "web"]
