"""An LLVM IR builder for kernels that no loop nest describes, such as sorting and searching.

A `Code` is the body of one function. Values are SSA names; a value that changes is a variable, a
slot of the stack that the `sroa` pass turns into registers. Slots are made in the entry block, so
that loops do not grow the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Code"]


class Code:
    """The statements of one function.

    `index` is the type of numbers of elements and of loops.

    >>> code = Code()
    >>> code.do(f"ret i64 {code.put('add i64 1, 2')}")
    >>> print(code.function("i64", "three", ""))
    define internal i64 @three() {
    entry:
    %v1 = add i64 1, 2
    ret i64 %v1
    }
    """

    def __init__(self, index: str = "i64") -> None:
        self.index = index
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def _name(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def put(self, text: str) -> str:
        """Append an instruction that has a value; return the value's name."""
        name = "%" + self._name()
        self._lines.append(f"{name} = {text}")
        return name

    def op(self, name: str, a: str, b: str | int) -> str:
        """Append an instruction of two operands; return the name of its value."""
        return self.put(f"{name} {a}, {b}")

    def do(self, text: str) -> None:
        """Append an instruction without a value."""
        self._lines.append(text)

    def slot(self, kind: str, count: int = 1) -> str:
        """Return the address of stack memory for `count` values of a type."""
        name = "%" + self._name()
        self._entry.append(f"{name} = alloca {kind}, i64 {count}, align 64")
        return name

    def variable(self, kind: str, value: str) -> str:
        """Return a slot that holds `value`."""
        name = self.slot(kind)
        self.do(f"store {kind} {value}, ptr {name}")
        return name

    def at(self, kind: str, base: str, index: str) -> str:
        """Return the address of an element."""
        return self.put(f"getelementptr {kind}, ptr {base}, {self.index} {index}")

    def load(self, kind: str, base: str, index: str = "0", element: str = "", align: int = 0) -> str:
        """Return an element of type `kind`, number `index` from the address `base`.

        `element` is the type that the index counts, where it is not `kind`; `align` is the
        alignment in bytes (0: that of the type).
        """
        place = base if index == "0" else self.at(element or kind, base, index)
        return self.put(f"load {kind}, ptr {place}{f', align {align}' if align else ''}")

    def store(self, kind: str, value: str, base: str, index: str = "0", element: str = "", align: int = 0) -> None:
        """Write `value` of type `kind` as element number `index` from the address `base`.

        `element` is the type that the index counts, where it is not `kind`; `align` is the
        alignment in bytes (0: that of the type).
        """
        place = base if index == "0" else self.at(element or kind, base, index)
        self.do(f"store {kind} {value}, ptr {place}{f', align {align}' if align else ''}")

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self._lines.append(f"{name}:")
        self._block = name

    @contextmanager
    def loop(self, start: str, end: str, step: int = 1) -> Iterator[str]:
        """Write the block as a loop over start, start + step, ... below end; yield the number."""
        head, body, leave = self._name(), self._name(), self._name()
        before = self._block
        index, after = "%" + self._name(), "%" + self._name()
        self.do(f"br label %{head}")
        self.label(head)
        place = len(self._lines)
        self.do("")
        self.do(f"br i1 {self.put(f'icmp slt {self.index} {index}, {end}')}, label %{body}, label %{leave}")
        self.label(body)
        yield index
        self.do(f"{after} = add {self.index} {index}, {step}")
        self._lines[place] = f"{index} = phi {self.index} [ {start}, %{before} ], [ {after}, %{self._block} ]"
        self.do(f"br label %{head}")
        self.label(leave)

    @contextmanager
    def repeat(self, condition: Callable[[], str]) -> Iterator[None]:
        """Write the block as a loop that runs while the condition holds."""
        head, body, leave = self._name(), self._name(), self._name()
        self.do(f"br label %{head}")
        self.label(head)
        self.do(f"br i1 {condition()}, label %{body}, label %{leave}")
        self.label(body)
        yield
        self.do(f"br label %{head}")
        self.label(leave)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Write the block so that it runs if the condition holds."""
        body, leave = self._name(), self._name()
        self.do(f"br i1 {condition}, label %{body}, label %{leave}")
        self.label(body)
        yield
        self.do(f"br label %{leave}")
        self.label(leave)

    def leave_if(self, condition: str, result: str) -> None:
        """Return from the function with `result` if the condition holds."""
        leave, stay = self._name(), self._name()
        self.do(f"br i1 {condition}, label %{leave}, label %{stay}")
        self.label(leave)
        self.do(f"ret {result}")
        self.label(stay)

    def function(self, result: str, name: str, arguments: str, attributes: str = "internal ") -> str:
        """Return the text of the function.

        `name` is its name and `result` its type, `arguments` are its parameters in LLVM IR, and
        `attributes` stand before them.
        """
        return "\n".join(
            [f"define {attributes}{result} @{name}({arguments}) {{", "entry:", *self._entry, *self._lines, "}"]
        )
