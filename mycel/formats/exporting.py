"""`export` and `load`: a network as a graph file with its parameters, read without its source.

`load` makes a Cell of the file.

The network is staged once, as a compiled function is, for the arguments given. Sizes that are None
or a `Symbol` stay symbolic. A decision of the program that depends on such a size is kept as a
condition, and a later call that does not meet it raises an error. State that a call changes (moving
averages, the state of the random generator) is changed by the loaded network, too. Anything else
than tensors in and tensors out (prints, changed Python objects, sizes that depend on data) has no
form in a file and is refused.

The structure of the result is written as a *form*, made of lists and dicts for JSON: ``{"tensor":
i}`` is output i, ``{"argument": i}`` and ``{"state": i}`` a tensor that comes back as it is,
``{"number": i}`` a Python number from output i; tuples, lists and dicts hold forms, and other
values stand for themselves. Arguments are forms of arguments only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.transforms.operator_regions import unmarked
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError, Unsupported, VerifyError
from mycel._src.foundation.files.atomic_files import replacing
from mycel._src.foundation.log import logger
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.frontend.ast_interpreter.graph_breaks import REFUSALS
from mycel._src.staging.frontend.source_code.tracebacks import show_user_lines
from mycel._src.staging.frontend.specialization.dynamic_shapes import Plan, is_open
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.cells.eval_mode import outside_of_training
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.generator import default_generator
from mycel.formats import mindir
from mycel.formats.encryption import Encrypted, check_key, decrypted, is_encrypted
from mycel.formats.graph_files.graph_file import GraphFileError, Model, State, write_model
from mycel.formats.graph_files.graph_reader import check_loaded, read_model
from mycel.formats.graph_files.validation import check_sizes
from mycel.formats.mindir.export_rules import mindir_parts
from mycel.formats.mindir.network import MindIRGraph

__all__ = ["LoadedGraph", "export", "load", "load_mindir", "save_mindir"]

# Sizes that a program is unlikely to ask for by name.
_HINTS = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
_MOST_CHECKED = 4096
_PLAIN = (bool, int, float, str, type(None))


def export(net: Any, *inputs: Any, file_name: Any, file_format: str, **kwargs: Any) -> None:
    """Write a Cell or a function of tensors to a file, with the parameters it uses, whole or not at
    all.

    Args:
        net (Cell | Callable[..., Any]): The Cell or function of tensors.
        *inputs (Tensor): Example arguments. Of tensors the shape and element type count
            (``Tensor(shape=[None, 3], dtype=...)`` leaves a size open); containers and numbers are
            taken as they are.
        file_name (str | os.PathLike[str]): The file; a missing suffix is added.
        file_format (str): "MINDIR", "MYCEL" or "ONNX". "MINDIR" writes MindSpore's format wherever
            it can express the network; where it cannot, the file is a graph file of Mycel's own,
            which `load` reads and MindSpore does not, and a warning says why. "MYCEL" always writes
            a graph file (`graph_files.graph_file`). "ONNX" writes ONNX (see `onnx.export`), of the
            network as it is outside of training.
        **kwargs (Any): `enc_key` and `enc_mode` encrypt a file as `save_checkpoint` does,
            `user_info`, a dict of strings, is kept with it (both not for "ONNX"). With
            ``for_mindspore=True`` "MINDIR" raises Unsupported where MindIR cannot express the
            network, and arguments that are containers become tensors one after another, as they do
            in MindSpore.

    Raises:
        CompileError: If the network is not one graph.
        Unsupported: If it has no form in the file.
        ValueError, TypeError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "square.mindir"
        >>> any_vector = ms.Tensor(shape=[None], dtype=ms.float32)
        >>> ms.export(ms.ops.square, any_vector, file_name=path, file_format="MINDIR")
        >>> ms.nn.GraphCell(ms.load(path))(ms.Tensor([3.0, 4.0])).asnumpy()
        array([ 9., 16.], dtype=float32)
    """
    if file_format == "AIR":
        raise Unsupported("export: 'AIR' files are for Ascend devices; file_format 'MINDIR' and 'ONNX' are supported")
    if file_format not in ("MINDIR", "MYCEL", "ONNX"):
        raise ValueError(f"export: file_format must be 'MINDIR', 'MYCEL' or 'ONNX', not {file_format!r}")
    for name in ("dataset", "incremental", "custom_func", "obf_func"):
        if kwargs.get(name):
            raise Unsupported(f"export: {name} is not supported; leave it out")
    known = ("enc_key", "enc_mode", "user_info", "dataset", "incremental", "custom_func", "obf_func", "for_mindspore")
    for name in kwargs:
        if name not in known:
            raise TypeError(f"export: unknown argument {name!r}")
    strict = bool(kwargs.get("for_mindspore"))
    if strict and file_format != "MINDIR":
        raise ValueError(f"export: for_mindspore is for file_format 'MINDIR', not {file_format!r}")
    path = _named(file_name, file_format.lower(), "export")
    info = dict(kwargs.get("user_info") or {})
    if not all(isinstance(k, str) and isinstance(v, str) for k, v in info.items()):
        raise TypeError(f"export: user_info must be strings by name, not {info!r}")
    key, mode = kwargs.get("enc_key"), kwargs.get("enc_mode", "AES-GCM")
    if key is not None:
        check_key(key, mode, "export", "enc")
    if file_format == "ONNX":
        from mycel.formats.onnx.export.node_rules import onnx_bytes

        if key is not None or info:
            raise Unsupported("export: ONNX files are not encrypted and hold no user_info; leave enc_key and it out")
        with replacing(path, "model") as temporary:
            rounded = net.rounded() if isinstance(net, LoadedGraph) else net
            temporary.write_bytes(onnx_bytes(_outside_of_training(rounded, inputs)))
        return
    model = model_of(net, inputs)
    model.user_info = info
    _write(path, model, key, mode, strict)


def load(file_name: Any, **kwargs: Any) -> LoadedGraph | MindIRGraph:
    """Return the network in a file that `export` or MindSpore wrote, as a Cell; `nn.GraphCell`
    takes this Cell, too.

    `dec_key` and `dec_mode` are those of `load_checkpoint`. Raises ValueError (GraphFileError) for
    a file that is missing or damaged.
    """
    found = _content(file_name, **kwargs)
    return LoadedGraph(found) if isinstance(found, Model) else found


def load_mindir(file_name: Any, **kwargs: Any) -> Model:
    """Return the content of a file of `export` or of MindSpore's, as an object with `graph`,
    `states` (tensors with their names and values) and `user_info`; see `load` for a network that
    runs.

    >>> import mycel as ms, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "square.mindir"
    >>> options = {"file_name": path, "file_format": "MINDIR", "user_info": {"author": "me"}}
    >>> ms.export(ms.ops.square, ms.Tensor([1.0]), **options)
    >>> ms.load_mindir(path).user_info
    {'author': 'me'}
    """
    found = _content(file_name, **kwargs)
    return found if isinstance(found, Model) else _restaged(found)


def _content(file_name: Any, **kwargs: Any) -> Model | MindIRGraph:
    """Return what is in a file: a graph of Mycel's own, or a network of MindSpore's."""
    for name in set(kwargs) - {"dec_key", "dec_mode"}:
        raise TypeError(f"load: unknown argument {name!r}")
    path = _path(file_name, "load")
    if not path.endswith((".mindir", ".mycel")):
        raise ValueError(f"load: {path!r} does not end in '.mindir' or '.mycel', as the files do that export writes")
    if not os.path.isfile(path):
        raise GraphFileError(f"load: there is no file {path!r}")
    key, mode = kwargs.get("dec_key"), kwargs.get("dec_mode", "AES-GCM")
    if key is not None:
        check_key(key, mode, "load", "dec")
    with open(path, "rb") as file:
        content: BinaryIO = file
        if key is None and is_encrypted(file):
            raise GraphFileError(f"{path}: it is encrypted; give its key as dec_key")
        if key is not None and not is_encrypted(file):
            raise GraphFileError(f"{path}: it is not encrypted; leave dec_key out")
        if key is not None:
            try:
                content = decrypted(file, path, key, mode)
            except ValueError as error:
                raise GraphFileError(str(error)) from None
        content.seek(0)
        if mindir.begins(content.read(1)):
            content.seek(0)
            return mindir.of_content(content.read(), path)
        model = read_model(content, path)
    check_loaded(model, path)
    return model


def _restaged(net: MindIRGraph) -> Model:
    """Return the network of a file of MindSpore's as a model."""
    described = net.model.main.inputs
    if any(-2 in info.shape for info in described):
        raise Unsupported("load_mindir: an input of the network has an open number of axes; load gives a Cell of it")
    shapes = [[None if d < 0 else d for d in info.shape] for info in described]
    kinds = [mindir.TENSOR_KINDS[info.kind] for info in described]
    model = model_of(net, [Tensor(shape=shape, dtype=kind) for shape, kind in zip(shapes, kinds)])
    model.user_info, model.producer = dict(net.model.user_info), net.model.producer
    return model


def save_mindir(model: Model, file_name: Any) -> None:
    """Write a result of `load_mindir`, perhaps with other values or `user_info`, to a file, whole
    or not at all.
    """
    arguments.instance("save_mindir", "model", model, Model, "what load_mindir gives")
    given = len(model.graph.inputs) - len(model.states)
    for node, state in zip(model.graph.inputs[given:], model.states):
        if tuple(node.shape) != np.shape(state.value) or node.dtype.numpy != state.value.dtype:
            found = f"{state.value.dtype}{list(np.shape(state.value))}"
            raise ValueError(f"save_mindir: {state.name!r} is {found}, and the graph takes {node.type}")
    path = _path(file_name, "save_mindir")
    _write(path if path.endswith(".mycel") else _named(path, "mindir", "save_mindir"), model, None, "", False)


def _write(path: str, model: Model, key: bytes | None, mode: str, strict: bool) -> None:
    """Write a model to a file: to a ".mindir" file as MindIR where that can express it, or `strict`
    says that it must.
    """
    parts = None
    if path.endswith(".mindir"):
        try:
            parts = mindir_parts(model, lossless=not strict)
        except Unsupported as error:
            if strict:
                raise
            reason = str(error).removeprefix("export: ")
            logger.warning(
                "export: %s is a graph file of Mycel's own, which MindSpore does not read, as %s "
                "(file_format 'MYCEL' writes such files as .mycel)",
                path,
                reason,
            )
    with replacing(path, "model") as temporary, open(temporary, "wb") as file:
        target = file if key is None else Encrypted(file, key, mode)
        if parts is None:
            write_model(target, model)
        else:
            for part in parts:
                target.write(part)
        if isinstance(target, Encrypted):
            target.close()


def _path(file_name: Any, function: str) -> str:
    if not isinstance(file_name, (str, os.PathLike)) or not os.fspath(file_name):
        raise TypeError(f"{function}: file_name must be a path, not {file_name!r}")
    return str(os.fspath(file_name))


def _named(file_name: Any, suffix: str, function: str) -> str:
    path = _path(file_name, function)
    return path if path.endswith("." + suffix) else f"{path}.{suffix}"


# From a network to a model.


def model_of(net: Any, inputs: Sequence[Any], sizes: Mapping[str, int] | None = None) -> Model:
    """Return the staged network with its states and forms.

    What the network decides by sizes that are open is decided as for `sizes`, by symbol (None:
    sizes that nobody asks for by name, and a warning where something was decided).
    """
    arguments.function("export", "net", net, "a Cell or a function")
    function = net.__wrapped__ if isinstance(net, Jit) else net
    tensors: list[Tensor] = []
    form = _argument_form(tuple(inputs), tensors)
    types = [t._type for t in tensors]
    plan = None
    symbols = symbols_in(*[t.shape for t in types])
    if symbols:
        hints = {name: _hint(i, atom) for i, (name, atom) in enumerate(symbols.items())}
        plan = Plan(types, hints if sizes is None else {name: sizes[name] for name in symbols})
    try:
        version = Jit(function, fullgraph=True)._stage(tuple(inputs), {}, plan)
    except REFUSALS as error:
        raise CompileError(f"export: the network is not one graph: {error}") from show_user_lines(error)
    if is_open(version.graph):
        raise Unsupported(
            "export: data decide a size in this network (nonzero, unique, indexing by a mask), which files do not "
            "hold; "
            "use operations of fixed size such as where"
        )
    if version.deferred:
        raise Unsupported("export: the network prints or records something when it runs; take that out to export it")
    if version.effects:
        effect = version.effects[0][0]
        raise Unsupported(f"export: a call of the network changes {effect}; take that out to export it")
    if version.argument_writes:
        raise Unsupported("export: the network writes into its arguments; return the new values instead")
    states = [_state(t, number) for number, t in enumerate(version.tensors)]
    decisions = {} if plan is None else dict(plan.decisions.guards)
    if plan is not None and decisions and sizes is None:
        logger.warning(
            "export: the network decides by sizes that were left open; the file is good for %s",
            "; ".join(plan.decisions.describe()),
        )
    taken = {} if plan is None else dict(plan.sizes)
    model = Model(
        unmarked(version.graph), states, form, _result_form(version, tensors), list(version.writes), decisions, taken
    )
    model.producer = f"mycel {_version()}"
    return model


def _version() -> str:
    import mycel

    return mycel.__version__


def _outside_of_training(net: Any, inputs: Sequence[Any]) -> Model:
    with outside_of_training(net):
        return model_of(net, inputs)


def _hint(number: int, atom: Any) -> int:
    wanted = _HINTS[number % len(_HINTS)]
    low = max(int(atom.low), 2)
    wanted = max(wanted, low + number)
    return int(min(wanted, atom.high))


def _argument_form(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value)
        return {"argument": len(tensors) - 1}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_argument_form(v, tensors) for v in value]}
    if type(value) is dict and all(type(k) is str for k in value):
        return {"dict": [[k, _argument_form(v, tensors)] for k, v in value.items()]}
    if type(value) in _PLAIN:
        return _plain_form(value)
    raise Unsupported(
        f"export: an argument is a {type(value).__name__}; files hold tensors, numbers, strings, lists, tuples and "
        "dicts"
    )


def _plain_form(value: Any) -> Any:
    return {"float": value.hex()} if type(value) is float else value


def _state(t: Tensor, number: int) -> State:
    if t is default_generator.state:
        return State("generator", np.zeros(2, np.uint64), "generator", False)
    if isinstance(t, Parameter) and t.name != "generator_state":
        return State(t.name if t.has_name else f"parameter{number}", t.asnumpy(), "parameter", bool(t.requires_grad))
    return State(f"tensor{number}", t.asnumpy(), "tensor", False)


class _Slot:
    """A placeholder for an output or an argument while a result is built to see its form."""

    def __init__(self, form: Any) -> None:
        self.form = form
        self._view: Any = None
        self._views: Any = None

    def item(self) -> _Slot:
        return _Slot({"number": self.form["tensor"]} if "tensor" in self.form else self.form)


def _result_form(version: Version, tensors: Sequence[Tensor]) -> Any:
    outputs = [_Slot({"tensor": i}) for i in range(len(version.graph.outputs))]
    arguments = [_Slot({"argument": i}) for i in range(len(tensors))]
    states = {id(t): i for i, t in enumerate(version.tensors)}
    return _form(version.build(outputs, arguments), states)


def _form(value: Any, states: Mapping[int, int]) -> Any:
    if isinstance(value, _Slot):
        return value.form
    if isinstance(value, Tensor):
        if id(value) not in states:
            raise Unsupported(
                "export: the network returns a tensor from outside that it does not compute with; return a copy of it"
            )
        return {"state": states[id(value)]}
    kind = type(value)
    if kind in (list, tuple):
        return {kind.__name__: [_form(v, states) for v in value]}
    if isinstance(value, dict) and all(type(k) is str for k in value):
        return {"dict": [[k, _form(v, states)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_form(v, states) for v in value]}
    if kind in _PLAIN:
        return _plain_form(value)
    raise Unsupported(
        f"export: the network returns a {kind.__name__}; files hold tensors, numbers, strings, lists, tuples and dicts"
    )


# From a model to a network.


class LoadedGraph(Cell):
    """A network that `load` made of a file: its parameters have their former names, and it runs,
    compiles and differentiates as any Cell does.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(auto_prefix=False)
        self.model = model
        self._bind = Binder(model.graph.input_types[: len(model.graph.inputs) - len(model.states)])
        decisions = Decisions(model.sizes)
        decisions.guards.update(model.conditions)
        self._holds: Callable[[Mapping[str, int]], bool] = decisions.condition()
        self._described = decisions.describe()
        self._checked: set[Any] = set()
        self._states: list[Tensor | None] = []
        for number, state in enumerate(model.states):
            made: Tensor | None = None
            if state.kind == "parameter":
                made = Parameter(
                    Tensor.from_numpy(state.value.copy()), name=state.name, requires_grad=state.requires_grad
                )
                self.insert_param_to_cell(f"parameter{number}", made)
            elif state.kind == "tensor":
                made = Tensor.from_numpy(state.value.copy())
            self._states.append(made)

    def construct(self, *args: Any) -> Any:
        """Run the graph."""
        model = self.model
        tensors: list[Tensor] = []
        _fill(model.arguments, args, tensors, "the arguments")
        sizes = self._sizes(tensors)
        states = [t if t is not None else default_generator.state for t in self._states]
        graph: Graph = model.graph
        if sizes and eager.active and eager.local.staging is not None:
            graph = specialize(graph, sizes)
        out = eager.apply(control.call, *tensors, *states, graph=graph) if graph.outputs else ()
        for state, output in model.writes:
            states[state]._replace(out[output])
        return _built(model.result, out, tensors, states)

    def _sizes(self, tensors: Sequence[Tensor]) -> Any:
        types = [t._type for t in tensors]
        sizes = self._bind(types)
        if sizes is None:
            raise ValueError(f"{self._title()}: it takes {_listed(self._bind.types)}, not {_listed(types)}")
        if not self._holds(sizes):
            raise ValueError(
                f"{self._title()}: it was exported for sizes with {'; '.join(self._described)}, not for {sizes}"
            )
        if sizes and frozenset(sizes.items()) not in self._checked:
            self._check(sizes)
        return sizes

    def _check(self, sizes: Any) -> None:
        """Check the graph once for each set of sizes, as rules of operations cannot compare all
        symbolic sizes.
        """
        try:
            check_sizes(self.model.graph, sizes)
        except (VerifyError, ValueError, TypeError, ArithmeticError) as error:
            raise ValueError(f"{self._title()}: it is no graph for {sizes}: {error}") from error
        if len(self._checked) >= _MOST_CHECKED:
            self._checked.clear()
        self._checked.add(frozenset(sizes.items()))

    def _title(self) -> str:
        return f"the loaded network {self.model.graph.name!r}"

    def rounded(self) -> LoadedGraph:
        """Return the network as other frameworks take it: of a network of integers, the values and
        the scales that they are rounded to, and this network where it is none.
        """
        return self

    def extend_repr(self) -> str:
        """Return the name of the graph and the types of its inputs."""
        return f"{self.model.graph.name}: {_listed(self._bind.types)}"


def _listed(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types)) or "no tensors"


def _fill(form: Any, value: Any, tensors: list[Tensor], what: str) -> None:
    """Collect the tensors of a call's arguments in the order of the graph's inputs."""
    if type(form) is not dict:
        fits = type(value) is type(form) and value == form
    elif "argument" in form:
        fits = isinstance(value, Tensor)
        tensors.append(value)
    elif "float" in form:
        fits = type(value) is float and value.hex() == form["float"]
    elif "dict" in form:
        fits = type(value) is dict and list(value) == [k for k, _ in form["dict"]]
        for name, part in form["dict"] if fits else ():
            _fill(part, value[name], tensors, f"{what}[{name!r}]")
    else:
        ((kind, parts),) = form.items()
        fits = type(value).__name__ == kind and len(value) == len(parts)
        for number, part in enumerate(parts if fits else ()):
            _fill(part, value[number], tensors, f"{what}[{number}]")
    if not fits:
        raise TypeError(
            f"the loaded network takes {what} as they were when it was exported, {_shown(form)}, not {value!r}"
        )


def _shown(form: Any) -> str:
    if type(form) is not dict:
        return repr(form)
    if "argument" in form:
        return "a tensor"
    if "float" in form:
        return repr(float.fromhex(form["float"]))
    if "dict" in form:
        return "{" + ", ".join(f"{k!r}: {_shown(v)}" for k, v in form["dict"]) + "}"
    ((kind, parts),) = form.items()
    return f"a {kind} of {len(parts)}: " + ", ".join(map(_shown, parts))


def _built(form: Any, out: Any, tensors: Sequence[Tensor], states: Sequence[Tensor]) -> Any:
    if type(form) is not dict:
        return form
    ((kind, content),) = form.items()
    if kind in ("tensor", "argument", "state"):
        return {"tensor": out, "argument": tensors, "state": states}[kind][content]
    if kind == "number":
        return out[content].item()
    if kind == "float":
        return float.fromhex(content)
    if kind == "dict":
        return {name: _built(part, out, tensors, states) for name, part in content}
    parts = [_built(part, out, tensors, states) for part in content]
    return tuple(parts) if kind == "tuple" else parts
