"""What `mindspore.dataset.engine` shows of its own machinery."""
