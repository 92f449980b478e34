"""The common parts of the public libraries: initializers, seeds and generators."""

from mycel._src.foundation.public_names import listing as _listing

__dir__ = _listing(__name__)
