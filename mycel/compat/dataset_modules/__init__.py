"""Internal and older names of `mindspore.dataset`, and its data engine."""
