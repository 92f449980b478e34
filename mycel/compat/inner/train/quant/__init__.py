"""`mindspore.train.quant`, of MindSpore's first releases."""
