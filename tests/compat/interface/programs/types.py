# ruff: noqa: B023, F821
import mindspore as ms
from mindspore import dtype as top
from mindspore._c_expression import typing as t
from mindspore.common import dtype as d

for kind in "Number Int UInt Float BFloat Complex".split():
    for width in ((), (16,), (32,), (64,)):
        if (kind, width) != ("Int", (16,)) and not (kind == "Number" and width):
            say(f"{kind}{width}", lambda: (repr(getattr(t, kind)(*width)), str(getattr(t, kind)(*width))))
KINDS = "bool_ int8 int64 uint8 float16 bfloat16 float32 float8_e4m3fn complex64 number string tensor_type list_"
for kind in "Number Int UInt Float BFloat Complex Bool Type".split():
    say(f"instances of {kind}", lambda: [k for k in KINDS.split() if isinstance(getattr(d, k), getattr(t, kind))])
say("tensor", lambda: (repr(t.TensorType(ms.float32)), str(t.TensorType(ms.float32)), t.TensorType() == d.tensor_type))
say("sequences", lambda: (repr(t.List([ms.float32])), str(t.Tuple([ms.int32])), str(t.Tuple())))
TYPES = (d.float32, d.int32, d.number, d.tensor_type, t.TensorType(ms.float32), d.list_, d.bool_, d.uint8)
for one in TYPES:
    say(f"subclass {one}", lambda: [str(other) for other in TYPES if t.is_subclass(one, other)])
say("subclass of a class", lambda: t.is_subclass(d.float32, t.Float))
for name in "float32 int8 Float32 float int tensor bool Tensor[Float32] list None x complex64 uint int4".split():
    say(f"str_to_type {name}", lambda: repr(t.str_to_type(name)))
for name in (KINDS + " int16 int32 uint64 float64 complex128 tuple_ type_none type_type hifloat8 qint4x2").split():
    kind = getattr(d, name)
    say(f"number of {name}", lambda: (t.type_to_type_id(kind), t.type_size_in_bytes(kind)))
say("number and back", lambda: repr(t.type_id_to_type(t.type_to_type_id(ms.float16))))
say("no such number", lambda: t.type_id_to_type(10000))
say("issubclass", lambda: (d._issubclass_(ms.float32, d.number), d._issubclass_(type(ms.float32), d.Int)))
say("signed", lambda: d.signed_type)
say("simple", lambda: sorted((kind.__name__.rstrip("_"), repr(v)) for kind, v in d._simple_types.items()))
say("size", lambda: d.type_size_in_bytes(ms.int16))
say("to Python", lambda: (d._dtype_to_nptype(ms.float32), d._dtype_to_pytype(ms.int8), d._pytype_to_dtype(int)))
say("of objects", lambda: (repr(d._get_py_obj_dtype(1)), repr(d._get_py_obj_dtype(ms.Tensor(1.0)))))
say("names", lambda: [repr(getattr(d, n)) for n in "half double single short byte long intc intp ubyte".split()])
say("further", lambda: [repr(getattr(d, n)) for n in "qint4x2 hifloat8 _null type_refkey coo_tensor env_type".split()])
say("top", lambda: (repr(ms.qint4x2), top.qint4x2 is d.qint4x2, ms.qint4x2 is d.qint4x2))
say("facts", lambda: (ms.float32.itemsize, ms.float32.is_floating_point, ms.int8.is_signed, ms.int8.is_complex))
say("complex", lambda: (str(ms.float32.to_complex()), str(ms.complex64.to_real()), str(ms.float64.to_complex())))
say("no complex", lambda: ms.int32.to_complex())
