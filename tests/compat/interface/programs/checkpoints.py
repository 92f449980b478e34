# ruff: noqa: B023, F821
import mindspore as ms
import mindspore.train.serialization as S
import numpy as np
from mindspore import Parameter, Tensor, nn
from mindspore.train import _utils as U


def p(value, dtype=ms.float32, name="w"):
    return Parameter(Tensor(np.array(value), dtype), name=name)


a = p([1.0, 2.0])
say("update", lambda: (S._update_param(a, p([3.0, 4.0]), False), a))
say("another shape", lambda: S._update_param(a, p([3.0, 4.0, 5.0]), False))
say("narrower", lambda: (S._update_param(a, p([5.0, 6.0], ms.float16), False), a))
say("narrower, strictly", lambda: S._update_param(a, p([5.0, 6.0], ms.float16), True))
say("integers", lambda: S._update_param(a, p([5, 6], ms.int32), False))
say("a tensor", lambda: (S._update_param(a, Tensor([7.0, 8.0]), False), a))
b = p(1.0)
say("one element", lambda: (S._update_param(b, p([9.0]), False), b.asnumpy().item()))
ms.save_checkpoint([{"name": "a", "data": Tensor([1.0, 2.0])}, {"name": "n", "data": Tensor(3)}], "x.ckpt")
message = S._parse_ckpt_proto("x.ckpt", None, "AES-GCM", False)
say("parsed", lambda: [(v.tag, list(v.tensor.dims), v.tensor.tensor_type) for v in message.value])
say("content", lambda: message.value[0].tensor.tensor_content)
say("message", lambda: isinstance(message, S.Checkpoint))
for name in "Float32 Foo str Int4 Int8".split():
    say(f"type {name}", lambda: str(S.tensor_to_np_type(name)))
say("types", lambda: sorted(S.tensor_to_ms_type))
say("numbers of types", lambda: {n: str(kind) for n, kind in S.mindir_to_tensor_type.items()})
say("sizes", lambda: (S.SLICE_SIZE, S.PROTO_LIMIT_SIZE, S.TOTAL_SAVE, S.PARAMETER_SPLIT_SIZE, S.ENCRYPT_BLOCK_SIZE))
S._exec_save("y.ckpt", {"a": [[2], "Float32", np.array([1.0, 2.0], np.float32)]})
say("saved", lambda: ms.load_checkpoint("y.ckpt")["a"])
S._exec_save("z.safetensors", {"a": [[2], "Float32", Tensor([1.0, 2.0])]}, format="safetensors")
say("saved again", lambda: ms.load_checkpoint("z.safetensors", format="safetensors")["a"])
net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
say("of a cell", lambda: [(d["name"], d["data"]) for d in S._convert_cell_to_param_list(net, True, None, None)])
say("of a list", lambda: S._convert_list_to_param_list([{"name": "a", "data": Tensor([1.0])}], None))
say("of a dict", lambda: [d["name"] for d in S._convert_dict_to_param_dict({"a": p([1.0])}, None)])
for prefix in ("a", "", None, 3, ["a", "b"], ["a", 3]):
    say(f"prefix {prefix!r}", lambda: S._check_prefix(prefix))
say("loaded", lambda: (S._whether_load_param(None, None, "a"), S._whether_load_param(["b"], None, "a")))
say("kept and dropped", lambda: S._whether_load_param(["a"], ["a"], "abc"))
for extra in ({"a": 1}, {"a": nn.ReLU()}, 3, {3: 3}):
    say("extra", lambda: S._check_append_dict(extra))
say(
    "converts",
    lambda: (
        S._type_convert(p([1.0]), p([2.0], ms.float16), False),
        S._type_convert(p([1.0]), p([2], ms.int32), False),
    ),
)
say("strictly", lambda: S._type_convert(p([1.0]), p([2.0], ms.float16), True))
say("divided", lambda: S._is_auto_parallel_mode(net))
say("directory", lambda: U._make_directory("a/b").endswith("a/b"))
say("no directory", lambda: U._make_directory(3))
say("blank", lambda: U._make_directory(""))
say("a type", lambda: U.check_value_type("x", 1, (str,)))
say("types of arrays", lambda: U._convert_type([np.dtype("float32"), np.int32]))
say("tensors", lambda: (U._to_tensor(np.ones(3, np.float32)), U._to_tensor([1, 2]), U._to_tensor(2)))
say("zeros", lambda: U._construct_tensor_list([ms.float32, ms.int32], [(2, 3), (4,)], 1))
say("turned", lambda: U._rotate_list_elements(1, [1, 2, 3, 4]))
say("values", lambda: (U._check_to_numpy("Scalar", Tensor(1.0)), U._check_to_numpy("Tensor", Tensor([1.0]))))
say("a name", lambda: U.check_summary_param("n", "tag", 3))
layout = {"a": ([2, 2], [0, -1], [4, 4], 0, True, ""), "b": ([2, 2], [-1, -1], [4, 4], 0, True, "")}
say("held twice", lambda: U.get_parameter_redundancy(layout))
held = {"a": ((0, 1), (2, 3)), "b": ((0, 1, 2, 3),), "c": ((0, 1), (2, 3))}
saved = lambda keep: U.remove_param_redundancy(held, keep)
say("saved once", lambda: sorted(n for names in saved(1).values() for n in names))
say("saved twice", lambda: sorted(n for names in saved(2).values() for n in names))
data = ms.dataset.NumpySlicesDataset(np.ones((4, 2), np.float32), ["a"]).batch(2)
say("of a data set", lambda: U._get_types_and_shapes(data))
say("no file", lambda: U.parse_hccl_file("nothing"))
say("no message", lambda: U.read_proto("nothing"))
say("no strategy", lambda: U.parse_strategy_ckpt("nothing"))
say("decorated", lambda: U._mstx_range_decorator("m")(lambda x: x + 1)(1))
