"""Operations on Python's own values give what MindSpore 2.10 gives in its graphs, eagerly and
compiled; tensors may be members, conditions and indices.
"""

import numpy as np
import pytest

import mycel as ms
from mycel import Tensor, ops

# What a call is given, and what MindSpore 2.10 gives for it.
CASES = {
    "tuple_getitem": [(((1, 2), 0), 1), (((1, 2), -1), 2)],
    "list_getitem": [(([1, 2], 1), 2), (([1, 2], -2), 1)],
    "tuple_setitem": [(((1, 2), 0, 5), (5, 2)), (((1, 2), -1, 3), (1, 3))],
    "list_setitem": [(([1, 2], 0, 5), [5, 2]), (([1, 2], -1, 3), [1, 3])],
    "tuple_len": [(((1, 2, 3),), 3), (((),), 0)],
    "list_len": [(([1, 2],), 2), (([],), 0)],
    "tuple_reversed": [(((1, 2, 3),), (3, 2, 1)), (((),), ())],
    "tail": [(((1, 2, 3),), (2, 3)), (([1],), [])],
    "tuple_equal": [(((1, 2), (1, 3)), False), (((1, 2), (1, 2)), True)],
    "list_equal": [(([1, 2], [1, 2]), True), (([1, 2], [1, 2, 3]), False), (([1, "a"], [1, "a"]), True)],
    "tuple_div": [(((4, 6), (2, 3)), (2, 2)), (((-4,), (2,)), (-2,))],
    "make_tuple": [((1, 2), (1, 2)), ((), ())],
    "make_list": [((1, 2), [1, 2])],
    "make_dict": [((("a", "b"), (1, 2)), {"a": 1, "b": 2})],
    "make_range": [
        ((3,), (0, 1, 2)),
        ((1, 7, 2), (1, 3, 5)),
        ((5, 0, -2), (5, 3, 1)),
        ((0,), ()),
        ((1, 5), (1, 2, 3, 4)),
    ],
    "make_slice": [((1, 5, 2), slice(1, 5, 2)), ((None, 5, None), slice(None, 5, None))],
    "dict_getitem": [(({"a": 1}, "a"), 1)],
    "dict_setitem": [(({"a": 1}, "b", 2), {"a": 1, "b": 2}), (({"a": 1}, "a", 2), {"a": 2})],
    "in_dict": [(("a", {"a": 1}), True), (("b", {"a": 1}), False)],
    "not_in_dict": [(("a", {"a": 1}), False), (("b", {"a": 1}), True)],
    "bool_not": [((True,), False), ((False,), True)],
    "bool_and": [((True, False), False), ((True, True), True)],
    "bool_or": [((True, False), True), ((False, False), False)],
    "bool_eq": [((True, False), False), ((False, False), True)],
    "is_": [
        ((1, 1), True),
        ((None, None), True),
        ((1, 2), False),
        ((None, 1), False),
        (("a", "a"), True),
        ((True, 1), False),
    ],
    "is_not": [((None, 1), True), ((True, True), False)],
    "string_eq": [(("a", "b"), False), (("a", "a"), True)],
    "string_concat": [(("a", "b"), "ab")],
    "iter_converter": [(((1, 2),), (1, 2)), (({"a": 1},), ("a",))],
    "ms_hasnext": [(((1, 2),), True), (((),), False)],
    "ms_next": [(((1, 2),), (1, (2,)))],
    "zip_operation": [(((1, 2), (3, 4)), ((1, 3), (2, 4)))],
    "augassign_add": [(([1, 2], [3]), [1, 2, 3]), (((1,), (2,)), (1, 2)), (("a", "b"), "ab"), ((1, 2), 3)],
    "augassign_sub": [((3, 1), 2)],
    "augassign_mul": [(([1, 2], 2), [1, 2, 1, 2]), (("ab", 2), "abab"), (((1,), 2), (1, 1))],
    "augassign_div": [((3, 2), 1.5)],
    "augassign_floordiv": [((7, 2), 3)],
    "augassign_mod": [((7, 4), 3), (("%d", 4), "4")],
}
CHECKED = {f"ops.{name}": "MindSpore 2.10" for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_what_mindspore_gives(name):
    function = getattr(ops, name)
    for args, wanted in CASES[name]:
        before = repr(args)
        compiled = ms.jit(lambda *a, function=function: function(*a))
        for found in (function(*args), compiled(*args)):
            assert type(found) is type(wanted) and found == wanted
        assert repr(args) == before, "the arguments were changed"


ARITHMETIC = {
    "augassign_add": np.add,
    "augassign_sub": np.subtract,
    "augassign_mul": np.multiply,
    "augassign_div": np.divide,
    "augassign_floordiv": np.floor_divide,
    "augassign_mod": np.mod,
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_augmented_assignments_of_tensors(name):
    function = getattr(ops, name)
    x = np.array([7.0, -7.0, 2.5], np.float32)
    for other in (2.0, np.array([4.0, 4.0, -1.5], np.float32)):
        y = other if isinstance(other, float) else Tensor(other)
        for run in (function, ms.jit(lambda a, b: function(a, b))):
            given = Tensor(x.copy())
            np.testing.assert_allclose(run(given, y).asnumpy(), ARITHMETIC[name](x, np.float32(other)), rtol=1e-6)
            np.testing.assert_array_equal(given.asnumpy(), x)


def test_tensors_in_containers():
    def program(x):
        pair = ops.make_tuple(x, x * 2)
        table = ops.dict_setitem(ops.make_dict(("a",), (x,)), "b", x + 1)
        items = ops.list_setitem(ops.make_list(x, x), 1, x * 5)
        first, rest = ops.ms_next(ops.iter_converter(pair))
        return (
            ops.tuple_getitem(pair, 1),
            ops.dict_getitem(table, "b"),
            items,
            first,
            ops.tail(pair),
            ops.zip_operation((1, 2), pair),
            ops.bool_and(x > 1, x < 5),
            ops.bool_or(x > 5, x > 6),
            ops.bool_not(x > 1),
            ops.bool_eq(x > 1, True),
            ops.is_(x, None),
            rest,
        )

    def plain(value):
        if isinstance(value, (tuple, list)):
            return [plain(v) for v in value]
        return value.item() if isinstance(value, Tensor) else value

    wanted = [4, 3, [2, 10], 2, [4], [[1, 2], [2, 4]], True, False, False, True, False, [4]]
    compiled = ms.jit(program)
    assert plain(program(Tensor(2.0))) == wanted and plain(compiled(Tensor(2.0))) == wanted
    assert "1 graph, 0 breaks" in str(ms.explain(compiled, Tensor(2.0)))
    gradient = ms.grad(lambda x: ops.tuple_getitem(ops.tuple_setitem((x, x), 0, x * x), 0))
    assert gradient(Tensor(3.0)).item() == 6 and ms.jit(gradient)(Tensor(3.0)).item() == 6


def test_a_container_from_outside_is_read_again():
    shared = [1.0, 2.0]
    function = ms.jit(lambda x: x * ops.list_getitem(shared, 0) + ops.list_len(shared))
    assert function(Tensor(3.0)).item() == 5
    shared[0] = 10.0
    shared.append(0.0)
    assert function(Tensor(3.0)).item() == 33


def test_rows_of_tensors():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    rows = ops.iter_converter(x)
    assert [r.tolist() for r in rows] == [[1, 2], [3, 4]]
    assert ops.ms_hasnext(x) and ops.ms_next(rows)[0].tolist() == [1, 2]


REFUSED = [
    ("tuple_getitem", ((1, 2), 5), IndexError),
    ("list_getitem", ([1, 2], 5), IndexError),
    ("tuple_getitem", ([1], 0), TypeError),
    ("tuple_setitem", ((1, 2), 5, 3), IndexError),
    ("list_setitem", ([1], 0.5, 3), IndexError),
    ("dict_getitem", ({"a": 1}, "b"), KeyError),
    ("dict_getitem", ([1], 0), TypeError),
    ("tuple_div", ((4, 6), (2, 4)), ValueError),
    ("tuple_div", ((4, 6), (2,)), ValueError),
    ("tuple_div", ((4.0, 6), (2, 4)), TypeError),
    ("tuple_div", ((4, 6), 2), TypeError),
    ("tuple_div", ((4,), (0,)), ValueError),
    ("make_range", (1, 5, 0), ValueError),
    ("make_range", (1.5,), TypeError),
    ("make_slice", (1, 5), TypeError),
    ("make_dict", (("a",), ()), ValueError),
    ("string_concat", ("a", 1), TypeError),
    ("string_eq", (1, "a"), TypeError),
    ("tail", ((),), TypeError),
    ("ms_next", ((),), IndexError),
    ("augassign_sub", ([1], [2]), TypeError),
    ("augassign_add", (None, 2), TypeError),
    ("bool_and", (True,), TypeError),
]


@pytest.mark.parametrize(("name", "args", "error"), REFUSED)
def test_what_is_refused(name, args, error):
    with pytest.raises(error):
        getattr(ops, name)(*args)


def test_tensors_are_not_compared_as_plain_values():
    with pytest.raises(TypeError, match="ops.equal"):
        ops.tuple_equal((Tensor(1.0),), (Tensor(1.0),))
