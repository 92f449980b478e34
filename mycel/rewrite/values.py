"""Operands of statements: a name with its scope, a constant, a container of operands, or any
object.
"""

from __future__ import annotations

import ast
from enum import Enum
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.python_runtime import syntax_trees

__all__ = ["ScopedValue", "ValueType", "operand_of"]


class ValueType(Enum):
    """The kind of a `ScopedValue`: a name, a constant, a container of values, an object of another
    class, or an expression that is kept as it is written.
    """

    ConstantValue = 0
    TupleValue = 20
    ListValue = 21
    DictValue = 22
    NamingValue = 40
    CustomObjValue = 41
    UnsupportedValue = 50


class ScopedValue:
    """A value in the source of a network: the variable ``x``, the attribute ``self.x`` (scope
    "self"), a number, a container, an object.

    >>> from mycel.rewrite import ScopedValue
    >>> ScopedValue.create_naming_value("conv", "self")
    self.conv
    >>> ScopedValue.create_variable_value((1, "a"))
    (1, 'a')
    """

    def __init__(self, arg_type: ValueType, scope: str = "", value: Any = None) -> None:
        arguments.instance("ScopedValue", "arg_type", arg_type, ValueType)
        self.type, self.scope, self.value = arg_type, scope, value

    @classmethod
    def create_naming_value(cls, name: str, scope: str = "") -> ScopedValue:
        """Return a reference to the variable `name`, or to the attribute of that name of `scope`.

        Raises TypeError unless both are strings.
        """
        for what, text in (("name", name), ("scope", scope)):
            arguments.text("create_naming_value", what, text)
        return cls(ValueType.NamingValue, scope, name)

    @classmethod
    def create_variable_value(cls, value: Any) -> ScopedValue | None:
        """Return an operand for a Python value: a number, string or None, a container of such
        values, or any other object.

        >>> from mycel.rewrite import ScopedValue
        >>> ScopedValue.create_variable_value(2)
        2
        """
        if isinstance(value, ScopedValue):
            return value
        if value is None or isinstance(value, (bool, int, float, str)):
            return cls(ValueType.ConstantValue, "", value)
        if type(value) in (list, tuple):
            kind = ValueType.ListValue if type(value) is list else ValueType.TupleValue
            return cls(kind, "", type(value)([cls.create_variable_value(v) for v in value]))
        if type(value) is dict:
            return cls(ValueType.DictValue, "", {k: cls.create_variable_value(v) for k, v in value.items()})
        return cls(ValueType.CustomObjValue, "", value)

    @staticmethod
    def create_name_values(
        names: list[str] | tuple[str, ...], scopes: list[str] | tuple[str, ...] | None = None
    ) -> list[ScopedValue]:
        """Return references to several names, each in its scope.

        Raises TypeError unless both are lists or tuples of strings, ValueError unless there are as
        many scopes as names.

        >>> from mycel.rewrite import ScopedValue
        >>> ScopedValue.create_name_values(["z", "y"], ["self", "self"])
        [self.z, self.y]
        """
        for what, given in (("names", names), ("scopes", scopes)):
            if given is not None and (
                not isinstance(given, (list, tuple)) or not all(isinstance(text, str) for text in given)
            ):
                raise TypeError(f"create_name_values: {what} must be a list or tuple of strings, not {given!r}")
        if scopes is not None and len(scopes) != len(names):
            raise ValueError(f"create_name_values: {len(names)} names have {len(scopes)} scopes; give one for each")
        return [ScopedValue.create_naming_value(n, s) for n, s in zip(names, scopes or [""] * len(names))]

    def __str__(self) -> str:
        if self.type is ValueType.NamingValue:
            return f"{self.scope}.{self.value}" if self.scope else str(self.value)
        if self.type is ValueType.UnsupportedValue:
            return ast.unparse(self.value)
        return repr(self.value)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScopedValue) or (self.type, self.scope) != (other.type, other.scope):
            return False
        if self.type is ValueType.UnsupportedValue:
            return ast.dump(self.value) == ast.dump(other.value)
        return self.value is other.value or bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((self.type, self.scope, str(self)))

    def objects(self) -> list[Any]:
        """Return the objects in it that source cannot express."""
        if self.type is ValueType.CustomObjValue:
            return [self.value]
        members = self.value.values() if self.type is ValueType.DictValue else self.value
        inside = self.type in (ValueType.ListValue, ValueType.TupleValue, ValueType.DictValue)
        return [o for v in members for o in v.objects()] if inside else []

    def constant(self) -> Any:
        """Return the Python value; a name or an expression has none, which is a TypeError."""
        if self.type in (ValueType.NamingValue, ValueType.UnsupportedValue):
            raise TypeError(f"ScopedValue: {self} is not a constant")
        if self.type is ValueType.DictValue:
            return {k: v.constant() for k, v in self.value.items()}
        if self.type in (ValueType.ListValue, ValueType.TupleValue):
            return type(self.value)([v.constant() for v in self.value])
        return self.value

    def expression(self, names: dict[int, str]) -> ast.expr:
        """Return the Python expression of the value.

        `names` has the variables that stand for objects, by identity.
        """
        if self.type is ValueType.NamingValue:
            return syntax_trees.expression(str(self))
        if self.type is ValueType.UnsupportedValue:
            written: ast.expr = self.value
            return written
        if self.type is ValueType.CustomObjValue:
            return ast.Name(names[id(self.value)], ast.Load())
        if self.type is ValueType.DictValue:
            values = [v.expression(names) for v in self.value.values()]
            return ast.Dict([ast.Constant(k) for k in self.value], values)
        if self.type is ValueType.ConstantValue:
            return syntax_trees.expression(repr(self.value))
        made = ast.List if self.type is ValueType.ListValue else ast.Tuple
        return made([v.expression(names) for v in self.value], ast.Load())


def operand_of(expression: ast.expr) -> ScopedValue:
    """Return the operand of an expression: a name, an attribute or a constant.

    Other expressions are kept as they are written.
    """
    if isinstance(expression, ast.Name):
        return ScopedValue.create_naming_value(expression.id)
    if isinstance(expression, ast.Attribute) and _is_path(expression.value):
        return ScopedValue.create_naming_value(expression.attr, ast.unparse(expression.value))
    if isinstance(expression, ast.Constant) and isinstance(expression.value, (bool, int, float, str, type(None))):
        return ScopedValue(ValueType.ConstantValue, "", expression.value)
    return ScopedValue(ValueType.UnsupportedValue, "", expression)


def _is_path(expression: ast.expr) -> bool:
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return isinstance(expression, ast.Name)
