"""What `mindspore.dataset` shows of its own machinery."""
