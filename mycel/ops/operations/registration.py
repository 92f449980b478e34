"""Descriptions of kernels as dictionaries, and their builders: names, inputs, outputs, attributes,
and the rows of element types and layouts that are supported.

One builder serves all targets, which differ in a name that the description has. `Custom` reads the
rows of types; the descriptions for devices of other kinds are plain data here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments

__all__ = [
    "AiCPURegOp",
    "AkgAscendRegOp",
    "AkgGpuRegOp",
    "CpuRegOp",
    "CustomRegOp",
    "DataType",
    "TBERegOp",
    "custom_info_register",
    "op_info_register",
]

Info = dict[str, Any]

_TYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "I32": "int32",
    "U32": "uint32",
    "I64": "int64",
    "U64": "uint64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "C128": "complex128",
}
_ALL, _COMPLEX, _NARROW, _BYTES = (
    "BOOL I8 U8 I16 U16 I32 U32 I64 U64 F16 BF16 F32 F64",
    "C64 C128",
    "F16 BF16 F32",
    "I8 U8",
)
# Which layouts there are of which types.
_LAYOUTS = {
    "None": ("", _ALL),
    "Default": ("DefaultFormat", f"{_ALL} {_COMPLEX}"),
    "5HD": ("NC1HWC0", _ALL),
    "FracZ": ("FRACTAL_Z", _ALL),
    "FracNZ": ("FRACTAL_NZ", _ALL),
    "C1HWNCoC0": ("C1HWNCoC0", _ALL),
    "NCHW": ("NCHW", _ALL),
    "NHWC": ("NHWC", _ALL),
    "HWCN": ("HWCN", _ALL),
    "NDHWC": ("NDHWC", _ALL),
    "ChannelLast": ("ChannelLast", _ALL),
    "NCDHW": ("NCDHW", f"{_NARROW} I32 {_BYTES}"),
    "NDC1HWC0": ("NDC1HWC0", f"{_NARROW} I32 {_BYTES}"),
    "NC1HWC0": ("NC1HWC0", _BYTES),
    "DHWCN": ("DHWCN", _NARROW),
    "FRACTAL_Z_3D": ("FRACTAL_Z_3D", _NARROW),
    "FracZNLSTM": ("FRACTAL_ZN_LSTM", _NARROW),
    "FracZNRNN": ("FRACTAL_ZN_RNN", _NARROW),
    "ND_RNNBIAS": ("ND_RNN_BIAS", _NARROW),
}


class DataType:
    """Pairs of an element type and a layout, as `CustomRegOp.dtype_format` takes them:
    ``F32_Default``, ``I32_NCHW`` and so on.

    >>> import mycel as ms
    >>> ms.ops.DataType.F16_Default
    ('float16', 'DefaultFormat')
    """

    None_None = ("", "")
    None_Default = ("", "DefaultFormat")


for _title, (_layout, _shorts) in _LAYOUTS.items():
    for _short in _shorts.split():
        setattr(DataType, f"{_short}_{_title}", (_TYPES[_short], _layout))
        if _title == "Default":
            setattr(DataType, f"{_short}_Default_Tuple", (_TYPES[_short], _layout, "tuple"))
            if _short[0] != "C":
                setattr(DataType, f"{_short}_Default_List", (_TYPES[_short], _layout, "list"))


class _Description:
    """A base of the builders; every method returns the builder itself."""

    extra: Info = {}
    defaults: Info = {}

    def __init__(self, op_name: str) -> None:
        arguments.text(type(self).__name__, "op_name", op_name, error=ValueError)
        self._info: Info = {
            "op_name": op_name,
            "inputs": [],
            "outputs": [],
            "attr": [],
            "fusion_type": "",
            "dtype_format": [],
            **self.extra,
        }

    def _put(self, kind: str, **given: Any) -> Any:
        """Add an entry to a list of the description, after checking its types."""
        for name, value in given.items():
            wanted = int if name == "index" else bool if "ompile" in name else str
            if (
                value is not None
                and name != "value"
                and (not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool))
            ):
                raise TypeError(f"{type(self).__name__}: {name} must be a {wanted.__name__}, not {value!r}")
        self._info[kind].append({k: v for k, v in given.items() if v is not None})
        return self

    def attr(
        self,
        name: str | None = None,
        param_type: str | None = None,
        value_type: str | None = None,
        value: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Describe the next attribute.

        `name` is its name, `param_type` whether it must be given ("required" or "optional"),
        `value_type` its type and `value` its value. None leaves an entry out.
        """
        return self._put("attr", name=name, paramType=param_type, type=value_type, value=value, **kwargs)

    def dtype_format(self, *args: Any) -> Any:
        """Add a row of supported types and layouts, one pair of `DataType` for each input and
        output.

        Raises ValueError for another number of pairs.
        """
        count = len(self._info["inputs"]) + len(self._info["outputs"])
        if len(args) != count:
            raise ValueError(
                f"{type(self).__name__}: dtype_format takes a pair for each of {count} inputs and outputs, not "
                f"{len(args)}"
            )
        for pair in args:
            if not isinstance(pair, tuple) or len(pair) < 2 or not all(isinstance(part, str) for part in pair):
                raise ValueError(f"{type(self).__name__}: {pair!r} is no pair of a type and a layout; use DataType")
        self._info["dtype_format"].append(tuple(args))
        return self

    def fusion_type(self, fusion_type: str) -> Any:
        """Name the way in which the kernel may be fused."""
        arguments.text(type(self).__name__, "fusion_type", fusion_type)
        self._info["fusion_type"] = fusion_type
        return self

    def get_op_info(self) -> Info:
        """Return the description."""
        return {k: list(v) if isinstance(v, list) else v for k, v in self._info.items()}


class _RegOp(_Description):
    """A builder whose inputs and outputs have a number, a name and whether they must be there."""

    def input(
        self, index: int | None = None, name: str | None = None, param_type: str | None = None, **kwargs: Any
    ) -> Any:
        """Describe the next input.

        `index` is its number, `name` its name, and `param_type` "required", "optional" or
        "dynamic".
        """
        return self._put(
            "inputs", index=index, name=name, paramType=param_type or self.defaults.get("paramType"), **kwargs
        )

    def output(
        self, index: int | None = None, name: str | None = None, param_type: str | None = None, **kwargs: Any
    ) -> Any:
        """Describe the next output."""
        return self._put(
            "outputs", index=index, name=name, paramType=param_type or self.defaults.get("paramType"), **kwargs
        )


class CustomRegOp(_RegOp):
    """The description of a `Custom` operation.

    >>> import mycel as ms
    >>> D, builder = ms.ops.DataType, ms.ops.CustomRegOp("double").input(0, "x").output(0, "y")
    >>> info = builder.dtype_format(D.F32_Default, D.F32_Default).get_op_info()
    >>> info["dtype_format"]
    [(('float32', 'DefaultFormat'), ('float32', 'DefaultFormat'))]
    """

    extra = {"target": "UnKnown"}
    defaults = {"paramType": "required"}

    def __init__(self, op_name: str = "Custom") -> None:
        super().__init__(op_name)

    def target(self, target: str | None = None) -> CustomRegOp:
        """Name the device: "CPU", "GPU" or "Ascend"."""
        arguments.text("CustomRegOp", "target", target)
        self._info["target"] = target
        return self


class CpuRegOp(_RegOp):
    """The description of a kernel for processors.

    >>> import mycel as ms
    >>> ms.ops.CpuRegOp("k").get_op_info()["imply_type"]
    'CPU'
    """

    extra = {"imply_type": "CPU"}


class AiCPURegOp(_RegOp):
    """The description of a kernel for the processors of an Ascend device.

    >>> import mycel as ms
    >>> ms.ops.AiCPURegOp("k").get_op_info()["imply_type"]
    'AiCPU'
    """

    extra = {"imply_type": "AiCPU"}


class AkgGpuRegOp(_RegOp):
    """The description of a generated kernel for CUDA.

    >>> import mycel as ms
    >>> ms.ops.AkgGpuRegOp("k").get_op_info()["processor"]
    'CUDA'
    """

    extra = {"imply_type": "AKG", "processor": "CUDA"}


class AkgAscendRegOp(_RegOp):
    """The description of a generated kernel for the cores of an Ascend device.

    >>> import mycel as ms
    >>> ms.ops.AkgAscendRegOp("k").get_op_info()["processor"]
    'AiCore'
    """

    extra = {"imply_type": "AKG", "processor": "AiCore"}


class TBERegOp(_Description):
    """The description of a generated kernel for Ascend devices.

    Beside the methods of the other builders there is one for each of its properties.

    >>> import mycel as ms
    >>> ms.ops.TBERegOp("k").async_flag(True).compute_cost(5).get_op_info()["compute_cost"]
    5
    """

    extra = {
        "imply_type": "TBE",
        "async_flag": False,
        "binfile": "",
        "compute_cost": 10,
        "kernel": "",
        "partial_flag": False,
        "reshape_type": "",
        "dynamicRankSupport": False,
        "dynamicShapeSupport": False,
        "dynamicCompileStatic": False,
        "needCheckSupport": False,
        "dynamicFormat": False,
        "op_pattern": "",
        "real_input_index": [],
        "input_to_attr_index": [],
        "unknown_shape_formats": [],
    }

    def input(
        self,
        index: Any = None,
        name: Any = None,
        need_compile: Any = None,
        param_type: Any = None,
        shape: Any = None,
        value_depend: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Describe the next input.

        None leaves an entry out.

        Args:
            index (Tensor | None): The number. Default: None.
            name (str | None): The name. Default: None.
            need_compile (bool | None): Whether it is compiled for. Default: None.
            param_type (str | None): "required", "optional" or "dynamic". Default: None.
            shape (str | None): "all" where every shape is supported. Default: None.
            value_depend (str | None): Whether the kernel depends on its value. Default: None.
            **kwargs (Any): More entries.

        Returns:
            TBERegOp: The description itself.
        """
        return self._put(
            "inputs",
            index=index,
            name=name,
            needCompile=need_compile,
            paramType=param_type,
            shape=shape,
            valueDepend=value_depend,
            **kwargs,
        )

    def output(
        self,
        index: Any = None,
        name: Any = None,
        need_compile: Any = None,
        param_type: Any = None,
        shape: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Describe the next output.

        None leaves an entry out.

        Args:
            index (Tensor | None): The number. Default: None.
            name (str | None): The name. Default: None.
            need_compile (bool | None): Whether it is compiled for. Default: None.
            param_type (str | None): "required", "optional" or "dynamic". Default: None.
            shape (str | None): "all" where every shape is supported. Default: None.
            **kwargs (Any): More entries.

        Returns:
            TBERegOp: The description itself.
        """
        return self._put(
            "outputs", index=index, name=name, need_compile=need_compile, paramType=param_type, shape=shape, **kwargs
        )

    def attr(
        self,
        name: Any = None,
        param_type: Any = None,
        value_type: Any = None,
        value: Any = None,
        default_value: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Describe the next attribute.

        None leaves an entry out.

        Args:
            name (str | None): The name. Default: None.
            param_type (str | None): Whether it must be given. Default: None.
            value_type (str | None): The type. Default: None.
            value (str | None): The values that it may have. Default: None.
            default_value (str | None): The value if it is not given. Default: None.
            **kwargs (Any): More entries.

        Returns:
            TBERegOp: The description itself.
        """
        return super().attr(name, param_type, value_type, value, defaultValue=default_value, **kwargs)


def _property(method: str, key: str, kind: type, default: Any = inspect.Parameter.empty, listed: bool = False) -> None:
    """Attach to `TBERegOp` a method that sets one property, whose value must be of a type."""
    signature = inspect.Signature(
        [inspect.Parameter("value", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)]
    )

    def put(self: TBERegOp, *args: Any, **kwargs: Any) -> TBERegOp:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        value = bound.arguments["value"]
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise TypeError(f"TBERegOp.{method}: takes a {kind.__name__}, not {value!r}")
        self._info[key] = [value] if listed else value
        return self

    put.__name__, put.__doc__ = method, f"Set {key} of the description."
    setattr(TBERegOp, method, put)


for _method, _key, _default in (
    ("async_flag", "async_flag", False),
    ("dynamic_compile_static", "dynamicCompileStatic", False),
    ("dynamic_shape", "dynamicShapeSupport", False),
    ("is_dynamic_format", "dynamicFormat", False),
    ("need_check_supported", "needCheckSupport", False),
    ("partial_flag", "partial_flag", True),
    ("dynamic_rank_support", "dynamicRankSupport", True),
):
    _property(_method, _key, bool, _default)
for _method, _key in (
    ("binfile_name", "binfile"),
    ("kernel_name", "kernel"),
    ("op_pattern", "op_pattern"),
    ("reshape_type", "reshape_type"),
):
    _property(_method, _key, str)
for _method in ("real_input_index", "input_to_attr_index"):
    _property(_method, _method, list)
_property("compute_cost", "compute_cost", int, 10)
_property("unknown_shape_formats", "unknown_shape_formats", list, listed=True)


def parsed(name: str, info: Any) -> Info:
    """Return a description given as a dictionary or as JSON."""
    import json

    found = json.loads(info) if isinstance(info, str) else info
    if not isinstance(found, dict) or "op_name" not in found:
        raise TypeError(f"{name}: a description is a dictionary, or JSON of one, with an op_name, not {info!r}")
    return {"dtype_format": [], **found}


def custom_info_register(*reg_info: Any) -> Callable[..., Any]:
    """Return a decorator that attaches descriptions from `CustomRegOp` to a function, for which
    `Custom` reads them.

    Raises TypeError for other descriptions.

    >>> import mycel as ms
    >>> D, builder = ms.ops.DataType, ms.ops.CustomRegOp().input(0, "x").output(0, "y")
    >>> info = builder.dtype_format(D.F32_Default, D.F32_Default).get_op_info()
    >>> double = ms.ops.custom_info_register(info)(lambda x: x * 2)
    >>> ms.ops.Custom(double, lambda s: s, lambda d: d)(ms.Tensor([1.0])).tolist()
    [2.0]
    """
    for info in reg_info:
        parsed("custom_info_register", info)

    def attach(func: Callable[..., Any]) -> Callable[..., Any]:
        arguments.function("custom_info_register", "what is decorated", func)
        setattr(func, "reg_info", reg_info)  # noqa: B010
        return func

    return attach


def op_info_register(op_info: Any) -> Callable[..., Any]:
    """Return a decorator that attaches the description of a kernel to a function.

    Raises TypeError for other descriptions.

    >>> import mycel as ms
    >>> f = ms.ops.op_info_register(ms.ops.CpuRegOp("k").get_op_info())(lambda: None)
    >>> f.op_info["op_name"]
    'k'
    """
    info = parsed("op_info_register", op_info)

    def attach(func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func) or not hasattr(func, "__dict__"):
            raise TypeError(f"op_info_register: decorates a function of the program's, not {func!r:.80}")
        setattr(func, "op_info", info)  # noqa: B010
        return func

    return attach
