# ruff: noqa: F821
from mindspore.train import checkpoint_pb2 as c
from mindspore.train import mind_ir_pb2 as m
from mindspore.train import node_strategy_pb2 as n
from mindspore.train import summary_pb2 as s

model = m.ModelProto()
model.ir_version, model.producer_name, model.graph.name = "1", "x", "g"
tensor = model.graph.input.add().tensor.add()
tensor.dims.extend([1, -2])
tensor.data_type = m.TensorProto.FLOAT
node = model.graph.node.add()
node.op_type = "Add"
node.input.append("a")
attribute = node.attribute.add()
attribute.name, attribute.i, attribute.f, attribute.type = "k", 3, 1.5, m.AttributeProto.INT64
model.user_info["k"] = "v"
print(model)
raw = model.SerializeToString()
print(raw)
say("again", lambda: (m.ModelProto.FromString(raw) == model, model.ByteSize(), model.ParseFromString(raw)))
say(
    "fields",
    lambda: (model.HasField("graph"), model.HasField("model_version"), [f.name for f, _ in model.ListFields()]),
)
say("enumeration", lambda: (m.TensorProto.FLOAT, m.TensorProto.DataType.Name(1), m.TensorProto.DataType.Value("FLOAT")))
say("no such value", lambda: m.TensorProto.DataType.Value("x"))
say("versions", lambda: (list(m.Version.keys()), m.IR_VERSION))
checkpoint = c.Checkpoint()
value = checkpoint.value.add()
value.tag, value.tensor.tensor_type, value.tensor.tensor_content = "w", "Float32", b"\x00\x01"
value.tensor.dims.append(2)
print(checkpoint, checkpoint.SerializeToString())
event = s.Event(wall_time=1.5, step=3)
scalar = event.summary.value.add()
scalar.tag, scalar.scalar_value = "l", 0.1
print(event, event.SerializeToString())
copied = s.Event()
copied.CopyFrom(event)
say("copied", lambda: (copied == event, copied.summary.value[0].scalar_value, len(copied.summary.value)))
strategies = n.ParallelStrategyMap()
strategies.current_stage = 2
item = strategies.parallel_strategy_item.add()
item.node_name, item.parallel_strategys.stage = "x", 0
item.parallel_strategys.parallel_strategy.add().dim.extend([1, 2])
print(strategies, strategies.SerializeToString())
say("text", lambda: setattr(value, "tag", 3))
say("number", lambda: setattr(tensor, "data_type", "x"))
say("no field", lambda: setattr(model.graph, "zz", 1))
say("a message", lambda: setattr(model, "graph", 1))
say("in a list", lambda: tensor.dims.append("a"))
say("too large", lambda: tensor.dims.append(1 << 70))
say("no such field", lambda: model.HasField("zz"))
say("repeated", lambda: model.graph.HasField("input"))
say("another class", lambda: checkpoint.CopyFrom(model))
print(m.TensorProto(name="q", dims=[1, 2]))
model.graph.ClearField("node")
say("cleared", lambda: (len(model.graph.node), model.WhichOneof("nothing")))
