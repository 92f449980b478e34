"""The common parts of the public libraries: initializers, seeds and generators."""
