"""`mindspore.train.callback`."""
