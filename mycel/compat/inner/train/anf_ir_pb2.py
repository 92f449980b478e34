"""`mindspore.train.anf_ir_pb2`: the messages of MindSpore's files of this kind."""

from mycel.compat.messages import module_of

globals().update(module_of("anf_ir_pb2"))
