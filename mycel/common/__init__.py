"""What the public libraries share: initializers, seeds and generators."""
