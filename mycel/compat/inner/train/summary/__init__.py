"""`mindspore.train.summary`."""
