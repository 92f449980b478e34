"""Cells: the building blocks of networks, which own parameters and other cells.

Assigning a `Parameter` or a `Cell` to an attribute registers it; a cell's parameters are named by
the path of attributes that leads to them ("conv1.weight"). Calling a cell runs `construct`:
directly in PYNATIVE_MODE, as one compiled graph in GRAPH_MODE, and as part of the surrounding graph
while one is being staged. `state_epoch` changes with every attribute of any cell, so that compiled
code can tell by one comparison that nothing it read has changed.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.jit_config import JitConfig
from mycel._src.tensors.cells.compatibility_methods import CellExtras
from mycel._src.tensors.cells.hooks import CellHooks, WithKwargs
from mycel._src.tensors.cells.hooks import state_epoch as state_epoch
from mycel._src.tensors.cells.printing import CellText, warn_of_hidden
from mycel._src.tensors.cells.state_dict import CellState
from mycel._src.tensors.core import eager, precision
from mycel._src.tensors.core.parameter import Parameter, ParameterTuple
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Cell", "GraphCell"]


class _Compiler:
    """The function that makes the compiled call of a cell; `compiled.jit` puts
    its own here.
    """

    make: Callable[[Any], Any]
    unit: Callable[[Any], Any]


compiler = _Compiler()
_set = object.__setattr__
P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class _Constructs(Protocol[P, R]):
    """What has a `construct`, whose signature is that of a call."""

    def construct(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Cell(CellHooks, CellState, CellExtras, CellText):
    """The base class of layers, networks, losses and optimizers; subclasses define `construct`.

    `auto_prefix` says whether parameters are named by the path of attributes that leads to them;
    `flags` is a dictionary of which each entry becomes an attribute.

    >>> import mycel as ms
    >>> class Scale(ms.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = ms.Parameter(ms.Tensor(2.0))
    ...     def construct(self, x):
    ...         return x * self.factor
    >>> float(Scale()(ms.Tensor(3.0)))
    6.0
    """

    training: bool
    IGNORE_LIST = ["_scope", "_cell_init_args", "_auto_prefix", "_cells", "_params"]

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        own = self.__dict__
        own["_params"] = OrderedDict()
        own["_cells"] = OrderedDict()
        own["_buffers"] = OrderedDict()
        own["_auto_prefix"] = auto_prefix
        own["_param_prefix"] = ""
        own["_tuples"] = {}
        arguments.optional(type(self).__name__, "flags", flags, dict)
        own["_flags"] = dict(flags or {})
        own["training"] = False
        own["requires_grad"] = False
        own["_pre_hooks"] = OrderedDict()
        own["_hooks"] = OrderedDict()
        own["_backward_pre_hooks"] = OrderedDict()
        own["_backward_hooks"] = OrderedDict()
        own["_recomputed"] = False
        own["_compiled_call"] = None
        own["_recorded_call"] = own["_parameters_known"] = None
        own["_cast_to"] = None
        own["_inputs_declared"] = None
        own["cls_name"] = type(self).__name__
        own["bprop_debug"] = False
        own["_created"] = time.time_ns()
        for name, value in own["_flags"].items():
            own[name] = value

    # Registration.

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        state_epoch.value += 1
        if "_params" not in own:
            if isinstance(value, (Parameter, Cell)):
                raise AttributeError(f"{type(self).__name__}: call super().__init__() before assigning {name!r}")
            _set(self, name, value)
            return
        if isinstance(value, Parameter):
            if own["_cells"].get(name) is not None:
                raise KeyError(f"{type(self).__name__}.{name} is a cell; delete it before assigning a parameter")
            self._enter_parameter(name, value)
        elif isinstance(value, Cell):
            if own["_params"].get(name) is not None:
                raise KeyError(f"{type(self).__name__}.{name} is a parameter; delete it before assigning a cell")
            self._forget(name, "_cells")
            if own["_auto_prefix"]:
                value.update_parameters_name(f"{name}.", recurse=True)
            own["_cells"][name] = value
            own[name] = value
        elif isinstance(value, ParameterTuple):
            for i, member in enumerate(value):
                self._name_new(member, f"{name}.{i}")
            self._forget(name)
            own["_tuples"][name] = tuple([member.name for member in value])
            own[name] = value
        elif isinstance(value, Tensor) and name in own["_params"]:
            held = own["_params"][name]
            held.set_data(value, slice_shape=held.shape != value.shape)
        elif isinstance(value, Tensor) and name in own["_buffers"]:
            own["_buffers"][name] = own[name] = value
        elif value is None and (name in own["_params"] or name in own["_cells"]):
            self._forget(name)
            own[name] = None
        elif name in own["_params"] or name in own["_cells"]:
            kind = "parameter" if name in own["_params"] else "cell"
            raise TypeError(
                f"{type(self).__name__}.{name} is a {kind}; a value of type {type(value).__name__} would drop it: "
                "delete it first, or assign None"
            )
        else:
            if isinstance(value, (list, tuple, dict)) and value:
                warn_of_hidden(self, name, value)
            self._forget(name)
            _set(self, name, value)

    def _forget(self, name: str, but: str = "") -> None:
        """Remove what is registered under a name, except in the table `but`, where the caller
        replaces it so that the order is kept.
        """
        for table in ("_params", "_cells", "_buffers", "_tuples"):
            if table != but:
                self.__dict__[table].pop(name, None)

    def _name_new(self, parameter: Parameter, name: str) -> None:
        if not parameter.__dict__["has_name"]:
            parameter.name = name
            parameter.__dict__["has_name"] = True

    def _enter_parameter(self, name: str, value: Parameter) -> None:
        self._forget(name, "_params")
        self._name_new(value, name)
        self.__dict__["_params"][name] = value
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        state_epoch.value += 1
        if name not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        self._forget(name)
        del self.__dict__[name]

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Register a parameter under a name.

        Raises KeyError for a name with a dot and TypeError for a `param` that is no parameter.
        """
        if not param_name:
            raise KeyError("insert_param_to_cell: the name must not be empty")
        if check_name_contain_dot and "." in param_name:
            raise KeyError(f"insert_param_to_cell: the name {param_name!r} must not contain a dot")
        if hasattr(self, param_name) and param_name not in self._params:
            raise KeyError(f"insert_param_to_cell: {type(self).__name__} already has an attribute {param_name!r}")
        if param is not None and not isinstance(param, Parameter):
            raise arguments.wrong_type("insert_param_to_cell", f"{param_name!r}", "a Parameter", param)
        if param is None:
            setattr(self, param_name, None)
        else:
            state_epoch.value += 1
            self._enter_parameter(param_name, param)

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Register a cell under a name; the names of its parameters stay as they are.

        Raises KeyError if the name is taken.
        """
        arguments.text("insert_child_to_cell", "the name", child_name)
        if not child_name:
            raise KeyError("insert_child_to_cell: the name must not be empty")
        if hasattr(self, child_name) and child_name not in self._cells:
            raise KeyError(f"insert_child_to_cell: {type(self).__name__} already has an attribute {child_name!r}")
        if not isinstance(child_cell, Cell):
            raise arguments.wrong_type("insert_child_to_cell", f"{child_name!r}", "a Cell", child_cell)
        state_epoch.value += 1
        self._cells[child_name] = self.__dict__[child_name] = child_cell

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but not trained.

        A `persistent` one is part of `state_dict`. Raises KeyError for a name with a dot or one
        that is taken.
        """
        arguments.text("register_buffer", "name", name)
        if not name or "." in name:
            raise KeyError(f"register_buffer: {name!r} is not a name; give one without dots")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"register_buffer: {type(self).__name__} already has an attribute {name!r}")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise arguments.wrong_type("register_buffer", f"{name!r}", "a Tensor or None", tensor)
        if persistent:
            self.__dict__.get("_transient", set()).discard(name)
        else:
            self.__dict__.setdefault("_transient", set()).add(name)
        setattr(self, name, tensor)
        self._buffers[name] = tensor

    # Walking.

    def cells(self) -> Iterable[Cell]:
        """Return the cells directly inside."""
        return self.name_cells().values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """Return the cells directly inside by name, each once."""
        seen: set[int] = set()
        found: OrderedDict[str, Cell] = OrderedDict()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                found[name] = cell
        return found

    def cells_and_names(self, cells: Any = None, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """Yield pairs of path and cell for this cell and all cells inside, depth first,
        each once.
        """
        seen = cells if cells is not None else set()
        if id(self) in seen:
            return
        seen.add(id(self))
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs of path and parameter, each parameter once.

        With `expand` the parameters of inner cells are among them.
        """
        seen: set[int] = set()
        for path, cell in self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]:
            for name, parameter in cell._own_parameters():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Yield the parameters; with `expand` those of inner cells too."""
        for _, parameter in self.parameters_and_names(expand=expand):
            yield parameter

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Return parameters by name."""
        return OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters whose `requires_grad` holds."""
        return [p for p in self.get_parameters(expand=recurse) if p.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """Return the parameters whose `requires_grad` does not hold."""
        return [p for p in self.get_parameters(expand=recurse) if not p.requires_grad]

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the registered buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the registered buffers with their paths."""
        for path, cell in self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]:
            for name in cell._buffers:
                buffer = cell.__dict__.get(name)
                if buffer is not None:
                    yield (f"{path}.{name}" if path else name), buffer

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every parameter by `prefix` and the path of attributes that leads to it."""
        if prefix and not isinstance(prefix, str):
            raise TypeError("update_parameters_name: the prefix must be a string")
        for path, parameter in list(self.parameters_and_names(expand=recurse)):
            parameter.name = prefix + path
            parameter.__dict__["has_name"] = True

    @property
    def param_prefix(self) -> str:
        """The path of this cell in its network, which `update_cell_prefix` sets."""
        prefix: str = self._param_prefix
        return prefix

    def update_cell_prefix(self) -> None:
        """Give every inner cell its path as `param_prefix`."""
        for path, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = path

    def apply(self, fn: Callable[[Cell], Any]) -> Cell:
        """Call `fn` on every inner cell, then on this one, and return this cell."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # Modes and flags.

    @property
    def jit_config_dict(self) -> dict[str, Any]:
        """The options of compilation that `set_jit_config` gave."""
        return dict(self.__dict__.get("_jit_config", ()))

    def set_jit_config(self, jit_config: Any) -> None:
        """Set the options of compilation of this cell, of which `jit_syntax_level` has an effect.

        A second call is logged and changes nothing, as in MindSpore. Raises TypeError for what is
        no `JitConfig`.
        """
        arguments.instance("set_jit_config", "jit_config", jit_config, JitConfig)
        if self.__dict__.get("_jit_config"):
            logger.warning("%s.set_jit_config: the options were set before, and stay as they are", type(self).__name__)
            return
        self.__dict__["_jit_config"] = dict(jit_config.jit_config_dict)

    def set_train(self, mode: bool = True) -> Cell:
        """Set `training` here and in all inner cells, and return this cell."""
        arguments.flag("set_train", "mode", mode, integers=True)
        mode = bool(mode)
        for _, cell in self.cells_and_names():
            if cell.training is not mode:
                cell.training = mode
        return self

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Note that this cell will be differentiated, and return it.

        In PYNATIVE_MODE a call then keeps what a gradient by the same arguments needs, which does
        not call the cell again.
        """
        self.requires_grad = requires_grad
        return self

    def freeze(self) -> Cell:
        """Exclude every parameter from training, and return this cell."""
        for parameter in self.get_parameters():
            parameter.requires_grad = False
        return self

    def add_flags(self, **flags: Any) -> Cell:
        """Keep flags as attributes, and return this cell."""
        self._flags.update(flags)
        for name, value in flags.items():
            setattr(self, name, value)
        return self

    def add_flags_recursive(self, **flags: Any) -> Cell:
        """Keep flags as attributes here and in all inner cells, and return this cell."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """Return the flags."""
        return dict(self._flags)

    def to_float(self, dst_type: Any) -> Cell:
        """Compute in float16, bfloat16 or float32, here and in all inner cells, and return this
        cell.

        Floating inputs, also those in tuples and lists, are cast when the cell is called, and
        parameters where they enter an operation. The parameters themselves keep their type, and so
        do their gradients. Raises ValueError for other types.

        >>> import mycel as ms
        >>> net = ms.nn.Dense(3, 2).to_float(ms.float16)
        >>> net(ms.ops.ones((1, 3))).dtype, net.weight.dtype
        (mindspore.float16, mindspore.float32)
        """
        flags = {D.float16: "fp16", D.float32: "fp32", D.bfloat16: "bf16"}
        if not isinstance(dst_type, D.DType) or dst_type not in flags:
            named = dst_type.name if isinstance(dst_type, D.DType) else repr(dst_type)
            raise ValueError(f"to_float: {named} is not supported; use float16, bfloat16 or float32")
        for _, cell in self.cells_and_names():
            cell._cast_to = precision.Precision(dst_type)
            cell.add_flags(**{name: kind is dst_type for kind, name in flags.items()})
        return self

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Draw parameters that were only declared."""
        for parameter in self.get_parameters():
            parameter.init_data()
        return {p: p for p in self.get_parameters()}

    init_params = init_parameters_data

    def set_inputs(self, *inputs: Any, **kwargs: Any) -> None:
        """Declare the inputs: each tensor gives a shape and type, with None or a `Symbol` for sizes
        that vary, or None as the whole shape.

        The cell is compiled once for all of these sizes, by number of dimensions. A compiled call
        with inputs that do not fit raises ValueError.
        """
        self._inputs_declared = (inputs, kwargs)

    def get_inputs(self) -> Any:
        """Return the inputs declared by `set_inputs`."""
        return self._inputs_declared[0] if self._inputs_declared else None

    # Calling.

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs of the cell; subclasses define it."""
        other = "; call its forward() construct()" if hasattr(self, "forward") else ""
        raise AttributeError(
            f"{type(self).__name__} does not define construct(); define it to say what calling the cell computes{other}"
        )

    if TYPE_CHECKING:

        def __call__(self: _Constructs[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
            """Call the cell: its `construct`, with the hooks and casts around it."""

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            try:
                if "_names_checked" not in self.__dict__:
                    self._before_first_call()
                if not eager.active or eager.local.context is None:
                    if config._context["mode"] == config.GRAPH_MODE:
                        return self._call_compiled(args, kwargs)
                    if self.requires_grad and not kwargs:
                        return self._call_recorded(args)
                elif (staging := eager.local.staging) is not None:
                    return staging.following.call_cell(self, args, kwargs)
                return self.run_with_hooks(self.construct, args, kwargs)
            except Exception as error:
                at_border(error)
                raise

    def _before_first_call(self) -> None:
        """Give parameters of equal names their paths as names, unless a function is compiled."""
        if "_params" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__}: super().__init__() was not called")
        if not eager.active or eager.local.context is None or eager.local.staging is None:
            self.check_names_and_refresh_name()
            for _, cell in self.cells_and_names():
                cell.__dict__["_names_checked"] = True

    def run_with_hooks(
        self, construct: Any, args: tuple[Any, ...], kwargs: dict[str, Any], invoke: Callable[..., Any] | None = None
    ) -> Any:
        """Return ``construct(*args, **kwargs)`` after the hooks and casts around it.

        Args:
            construct (Callable[..., Any]): The function.
            args (tuple[Any, ...]): Its arguments.
            kwargs (dict[str, Any]): Its arguments by name.
            invoke (Callable[..., Any] | None): Calls a hook, given the hook and its arguments; None
                to call hooks directly. Default: None.

        Returns:
            Any: What `construct` returns, after hooks.
        """
        invoke = invoke or _call
        for hook in self._pre_hooks.values():
            if isinstance(hook, WithKwargs):
                changed = invoke(hook.function, self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
                continue
            changed = invoke(hook, self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        if self._cast_to is not None or precision.active:
            construct = self._in_precision(construct)
        hooks = self._hooks
        try:
            if not eager.active:
                output = construct(*args, **kwargs)
            elif hooks and (self._backward_hooks or self._backward_pre_hooks):
                finish = functools.partial(self._after_hooks, invoke, args, kwargs)
                return self._differentiated(construct, args, kwargs, finish)
            else:
                output = self._differentiated(construct, args, kwargs)
        except Exception as error:
            self._after_failure(invoke, args, kwargs, error)
            raise
        return self._after_hooks(invoke, args, kwargs, output) if hooks else output

    def run_construct(self, cast_inputs: Any, kwargs: dict[str, Any]) -> Any:
        """Return `construct` of a tuple of inputs and a dictionary of named ones, after the hooks
        and casts around it, without compiling it.
        """
        return self.run_with_hooks(self.construct, tuple(cast_inputs), kwargs)

    def _in_precision(self, construct: Any) -> Any:
        wanted = self._cast_to or precision.Precision()

        def run(*args: Any, **kwargs: Any) -> Any:
            if wanted.dtype is not None:
                args, kwargs = precision.converted(args, wanted.dtype), precision.converted(kwargs, wanted.dtype)
            with precision.in_force(wanted):
                output = construct(*args, **kwargs)
            return output if wanted.output is None else precision.converted(output, wanted.output)

        return run

    def _compiled(self) -> Any:
        found = self.__dict__.get("_compiled_call")
        if found is None:
            found = self.__dict__["_compiled_call"] = compiler.make(self)
        return found

    def _call_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._compiled()(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the cell for arguments of these types without running it."""
        self._compiled().compile(*args, **kwargs)

    def compile_and_run(self, *args: Any, **kwargs: Any) -> Any:
        """Compile the cell for these arguments, run it, and return its outputs."""
        return self._call_compiled(args, kwargs)

    # Copying.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_compiled_call": None, "_recorded_call": None, "_parameters_known": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        state_epoch.value += 1

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return id(self)


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


class GraphCell(Cell):
    """A cell around a function of tensors: a compiled function, or a Cell.

    `params_init` maps names of the Cell's parameters to new values. Raises TypeError for what
    cannot be called, and ValueError for names that are not there and for a seed of obfuscation,
    which is not supported.

    >>> import mycel as ms
    >>> ms.nn.GraphCell(ms.jit(lambda x: x * 2))(ms.Tensor([3.0])).tolist()
    [6.0]
    """

    def __init__(self, graph: Any, params_init: Any = None, obf_random_seed: Any = None) -> None:
        super().__init__(auto_prefix=False)
        arguments.function("GraphCell", "graph", graph, "a function of tensors or a Cell")
        if obf_random_seed is not None:
            raise ValueError("GraphCell: obfuscated graphs are not supported; leave obf_random_seed out")
        self.graph = graph
        known = {p.name: p for p in self.get_parameters()}
        for name, value in ({} if params_init is None else dict(params_init)).items():
            if name not in known:
                raise ValueError(f"GraphCell: the graph has no parameter {name!r}; it has {', '.join(known) or 'none'}")
            known[name].set_data(value)

    def construct(self, *args: Any) -> Any:
        """Run the function."""
        return self.graph(*args)
