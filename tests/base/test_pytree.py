"""Nested containers as leaves and structure, and back."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mycel._src.foundation.pytree import LEAF, flatten, map_leaves, unflatten

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


@pytest.mark.parametrize(
    "value, leaves",
    [
        (3, [3]),
        (None, [None]),
        ("ab", ["ab"]),
        ((), []),
        ([], []),
        ({}, []),
        ((1,), [1]),
        ([1, (2, [3])], [1, 2, 3]),
        ({"b": 1, "a": (2, 3)}, [1, 2, 3]),
        (Point(1, [2]), [1, 2]),
        (Pair(1, Pair((2,), {"k": 3})), [1, 2, 3]),
        (Frozen([1]), [1]),
        ({1, 2}, [{1, 2}]),
        (range(3), [range(3)]),
    ],
    ids=str,
)
def test_leaves_come_from_left_to_right(value: Any, leaves: list[Any]) -> None:
    found, structure = flatten(value)
    assert found == leaves
    back = unflatten(structure, found)
    assert back == value and type(back) is type(value)


def test_kinds_of_containers_are_kept() -> None:
    value = {"p": Point((1,), [2]), "q": Frozen(Pair(3, 4))}
    back = map_leaves(lambda v: v * 10, value)
    assert back == {"p": Point((10,), [20]), "q": Frozen(Pair(30, 40))}
    assert type(back["p"]) is Point and type(back["q"].value) is Pair


def test_structures_compare_and_hash() -> None:
    same = flatten((1, [2, {"a": 3}]))[1], flatten(("x", [None, {"a": ()[:0] or 5}]))[1]
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    for other in ((1, (2, {"a": 3})), (1, [2, {"b": 3}]), (1, [2]), [1, [2, {"a": 3}]], 1):
        assert flatten(other)[1] != same[0]
    assert flatten(Point(1, 2))[1] != flatten((1, 2))[1] and flatten(7)[1] is LEAF
    assert repr(flatten((1, [2]))[1]) == "tuple(*, list(*))" and flatten(1)[1] != "leaf"


def test_what_is_no_plain_container_is_a_leaf() -> None:
    ordered = OrderedDict(a=1)
    assert flatten(ordered)[0] == [ordered] and flatten(Pair)[0] == [Pair]


nested = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Pair, inner, inner)
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(nested)
def test_unflatten_undoes_flatten(value: Any) -> None:
    leaves, structure = flatten(value)
    assert unflatten(structure, leaves) == value
    assert flatten(map_leaves(lambda v: (v,), value))[0] == leaves
