"""Deployment: C libraries without a runtime, C++ models, WebAssembly, federated learning."""

from mycel._src.engines.aot.library import Library
from mycel._src.engines.aot.targets import names as targets
from mycel._src.foundation.public_names import listing as _listing
from mycel.deploy.building import build
from mycel.deploy.cplusplus import cpp
from mycel.deploy.federated import Aggregator, client_round, client_step
from mycel.deploy.webassembly import WebModule, web

__all__ = ["Aggregator", "Library", "WebModule", "build", "client_round", "client_step", "cpp", "targets", "web"]

__dir__ = _listing(__name__)
