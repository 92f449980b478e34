"""`web`: compiles a network for browsers, to a WebAssembly and a JavaScript module."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from mycel._src.engines.aot.c_header import Argument
from mycel._src.engines.aot.library import Library
from mycel._src.engines.aot.size_arguments import formula
from mycel._src.engines.aot.target_plan import ALIGN
from mycel._src.engines.aot.wasm_linker import linked
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.atomic_files import write_folder

__all__ = ["WebModule", "web"]

# The arrays of JavaScript for the types of C.
_ARRAYS = {
    "float": "Float32Array",
    "double": "Float64Array",
    **{f"{u}int{n}_t": f"{u.upper()}{'i' if u else 'I'}nt{n}Array" for u in ("", "u") for n in (8, 16, 32)},
    "int64_t": "BigInt64Array",
    "uint64_t": "BigUint64Array",
}


@dataclass(frozen=True)
class WebModule:
    """A program for browsers and for Node: a module of WebAssembly, and how to call it.

    Args:
        name (str): Its name.
        wasm (bytes): The module.
        script (str): The text of the module of JavaScript.
        types (str): Its declarations for TypeScript.
        memory_bytes (int): What a model takes in all.
    """

    name: str
    wasm: bytes
    script: str
    types: str
    memory_bytes: int

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write `.wasm`, `.mjs` and `.d.mts` to a folder, which is made, each whole or not."""
        files = {".wasm": self.wasm, ".mjs": self.script.encode(), ".d.mts": self.types.encode()}
        write_folder(folder, {self.name + suffix: content for suffix, content in files.items()})


def web(library: Library) -> WebModule:
    """Return the modules of a library that was built for the target `wasm32`.

    The module of JavaScript has a function `load`, which takes the bytes of the other module, a
    `Response` or an address, and resolves to a model: ``model.resize({batch: 3})`` sets sizes that
    vary, which are the largest before, `model.inputs` and `model.outputs` are arrays
    in the module's memory by name, `model.call()` computes the outputs of the inputs, and
    `model.run(...)` does so with copies. `model.state` is what the program keeps from call to call:
    its bytes can be saved and set. A model needs no other file and no network.

    Raises Unsupported for libraries of other targets or with state that the caller keeps, and where
    the program calls functions that WebAssembly does not have.

    >>> import mycel as ms
    >>> from mycel.deploy import build, web
    >>> made = build(ms.nn.Dense(4, 2), ms.ops.ones((1, 4)), target="wasm32", name="dense")
    >>> module = web(made)
    >>> module.wasm[:4], "export async function load" in module.script
    (b'\\x00asm', True)
    """
    if library.target != "wasm32":
        raise Unsupported(f"web: the library is for {library.target}; build it for wasm32")
    if library.lends:
        raise Unsupported(f"web: the caller keeps the state of {library.name}; build it with state='library'")
    if library.divides:
        raise Unsupported(f"web: the caller divides the work of {library.name}; build it with parallel=False")
    places, room = [], 0
    for argument in (*library.inputs, *library.outputs):
        places.append(room)
        room += -(-argument.nbytes // ALIGN) * ALIGN
    found = linked(library.object, [library.name], room + library.arena_bytes)
    tables = []
    for arguments, starts in (
        (library.inputs, places[: len(library.inputs)]),
        (library.outputs, places[len(library.inputs) :]),
    ):
        entries = [
            {"name": a.name, "array": _array(a), "shape": list(a.largest), "at": found.free + start}
            for a, start in zip(arguments, starts)
        ]
        tables.append("[\n" + "".join(f"  {json.dumps(e)},\n" for e in entries) + "]")
    text = _SCRIPT
    for word, value in {
        "NAME": library.name,
        "INPUTS": tables[0],
        "OUTPUTS": tables[1],
        "ARENA": str(found.free + room),
        "SIZES": _sizes(library),
        "SHAPES": _shapes(library),
        "STATE": f"{found.state}, {found.free - found.state}",
    }.items():
        text = text.replace(f"@{word}@", value)
    return WebModule(library.name, found.module, text, _types(library), found.free + room + library.arena_bytes)


def _sizes(library: Library) -> str:
    """Return the table of sizes that the function takes."""
    facts = [{"name": s.name, "least": s.least, "most": s.most, "step": s.divisor} for s in library.sizes]
    return "[" + "".join(f"\n  {json.dumps(f)}," for f in facts) + ("\n]" if facts else "]")


def _shapes(library: Library) -> str:
    """Return the function from sizes to the shapes of inputs and results."""
    names = {s.symbol: f"n{k}" for k, s in enumerate(library.sizes)}
    lines = []
    for k, s in enumerate(library.sizes):
        given = f"sizes.{s.name}"
        value = given if s.divisor == 1 else f"({given} - {s.remainder}) / {s.divisor}"
        lines.append(f"  const n{k} = {value};\n")
    rows = []
    for argument in (*library.inputs, *library.outputs):
        dims = [formula(d, names, "Math.max", "quotient", "rest") for d in argument.type.shape]
        rows.append(f"    [{', '.join(dims)}],\n")
    return "(sizes) => {\n" + "".join(lines) + "  return [\n" + "".join(rows) + "  ];\n}"


def _array(argument: Argument) -> str:
    return _ARRAYS[argument.c_type]


def _types(library: Library) -> str:
    """Return the declarations of TypeScript."""

    def group(arguments: tuple[Argument, ...]) -> str:
        return "{ " + " ".join(f"readonly {a.name}: {_array(a)};" for a in arguments) + " }"

    given = ", ".join(f"{a.name}: ArrayLike<{'bigint' if 'Big' in _array(a) else 'number'}>" for a in library.inputs)
    results = [_array(a) for a in library.outputs]
    returned = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    return _TYPES.format(
        name=library.name,
        sizes="{ " + " ".join(f"{s.name}: number;" for s in library.sizes) + " }",
        inputs=group(library.inputs),
        outputs=group(library.outputs),
        given=given,
        returned=returned,
    )


_SCRIPT = """// @NAME@: a program as a module of WebAssembly, which @NAME@.wasm holds.
export const inputs = @INPUTS@;
export const outputs = @OUTPUTS@;
// The sizes that may differ from call to call, and the shapes that inputs and then outputs have with them.
export const sizes = @SIZES@;
const quotient = (a, b) => Math.floor(a / b), rest = (a, b) => a - b * Math.floor(a / b);
export const shapes = @SHAPES@;

async function instance(source) {
  if (typeof source === "string" || source instanceof URL) source = await fetch(source);
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new Error(`@NAME@: ${source.url} answers ${source.status}`);
    source = await source.arrayBuffer();
  }
  return (await WebAssembly.instantiate(source, {})).instance;
}

// Returns a model of its own memory; `source` is an address, a Response, or the bytes of @NAME@.wasm.
export async function load(source) {
  const made = (await instance(source)).exports;
  const places = [...inputs, ...outputs].map((entry) => entry.at);
  const model = {
    state: new Uint8Array(made.memory.buffer, @STATE@),
    // Makes arrays for other sizes, of which those that are left out are as they were.
    resize(wanted) {
      const all = { ...model.sizes, ...wanted };
      for (const name of Object.keys(all)) {
        const size = sizes.find((one) => one.name === name), value = all[name];
        if (!size) throw new TypeError(`@NAME@ has no size ${name}`);
        const within = Number.isInteger(value) && value >= size.least && value <= size.most;
        if (!within || (value - size.least) % size.step) {
          const steps = size.step > 1 ? ` in steps of ${size.step}` : "";
          throw new RangeError(`@NAME@: ${name} is from ${size.least} to ${size.most}${steps}, not ${value}`);
        }
      }
      const found = shapes(all);
      const view = (entry, k) => {
        const size = found[k].reduce((a, b) => a * b, 1);
        return [entry.name, new globalThis[entry.array](made.memory.buffer, entry.at, size)];
      };
      model.sizes = all;
      model.shapes = Object.fromEntries([...inputs, ...outputs].map(({ name }, k) => [name, found[k]]));
      model.inputs = Object.fromEntries(inputs.map(view));
      model.outputs = Object.fromEntries(outputs.map((entry, k) => view(entry, inputs.length + k)));
    },
    call() {
      const numbers = sizes.map(({ name }) => model.sizes[name]);
      if (made.@NAME@(...numbers, ...places, @ARENA@) !== 0) throw new RangeError("@NAME@: an index was out of range");
    },
    run(...values) {
      if (values.length !== inputs.length) {
        throw new TypeError(`@NAME@ takes ${inputs.length} arrays, not ${values.length}`);
      }
      inputs.forEach(({ name }, k) => {
        if (values[k].length !== model.inputs[name].length) {
          const wanted = `${model.inputs[name].length} numbers, of shape [${model.shapes[name]}]`;
          throw new RangeError(`@NAME@: ${name} has ${wanted}, not ${values[k].length}`);
        }
      });
      inputs.forEach(({ name }, k) => model.inputs[name].set(values[k]));
      model.call();
      const copies = outputs.map(({ name }) => model.outputs[name].slice());
      return copies.length === 1 ? copies[0] : copies;
    },
  };
  model.resize(Object.fromEntries(sizes.map(({ name, most }) => [name, most])));
  return model;
}
"""

_TYPES = """// The declarations of {name}.mjs.
export interface Argument {{
  name: string;
  array: string;
  shape: number[];
  at: number;
}}
export const inputs: Argument[];
export const outputs: Argument[];
export interface Size {{
  name: string;
  least: number;
  most: number;
  step: number;
}}
export const sizes: Size[];
export interface Model {{
  readonly inputs: {inputs};
  readonly outputs: {outputs};
  readonly shapes: Record<string, number[]>;
  readonly sizes: {sizes};
  readonly state: Uint8Array;
  resize(sizes: Partial<{sizes}>): void;
  call(): void;
  run({given}): {returned};
}}
export function load(source: string | URL | Response | BufferSource): Promise<Model>;
"""
