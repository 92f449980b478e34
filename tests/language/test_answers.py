"""Compiled programs give what the real package gives for them, by stored answers: the types of
results, their values, or the class of the exception; through `import mindspore`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import mycel as ms
from mycel import compat
from tests.answers import agrees
from tests.language.answered import EXPECTED, programs, runner

ANSWERS = json.loads(EXPECTED.read_text(encoding="utf-8"))
PROGRAMS = programs()
# Programs that give something else, and why.
DIFFERENCES = {
    """
    containers.list_append containers.list_append_tensor containers.list_setitem
    containers.list_setitem_tensor containers.list_clear containers.list_iadd containers.list_noreturn
    containers.list_global2 containers.list_local containers.list_attr containers.list_sort
    containers.list_remove containers.list_slice_assign containers.list_nested containers.dict_upd
    containers.dict_clear containers.args_default_list containers.list_twice
    """: "what a function does to lists and dicts from outside is done, as in Python; "
    "MindSpore does so for extend, insert, pop and reverse alone, and sorts and removes "
    "nothing",
    """
    containers.list_del containers.dict_pop containers.args_func containers.selfref4 errors.raise_custom
    errors.try1 higher_order.partial_fn higher_order.partial_fn2 higher_order.functools_partial
    higher_order.morph_eager higher_order.hm_dict higher_order.hm_dict2 iterators.map_mixed
    iterators.map_uneven iterators.map_tensor_arg iterators.filter_none iterators.zip_uneven
    iterators.range_tensor0 iterators.range_tensor2 iterators.range_tensor_ret
    iterators.range_tensor_list mutable.mut_in_graph numbers.num_if_intfloat numbers.num_and_or
    numbers.num_mixed_tensor numbers.dict_key_of one_path.one_path_taken one_path.one_path_taken2
    one_path.one_path_const one_path.one_path_loop one_path.one_path_while one_path.one_path_else
    sizes.inbranch_nz sizes.rep_tensor sizes.rep_tensor2 sizes.mint_rep sizes.mint_nz
    higher_order.partial_eager higher_order.partial_kw_eager
    """: "MindSpore refuses what Python defines",
    """
    errors.raise_kinds errors.err_key errors.err_zero errors.err_zero2 errors.err_call errors.err_unpack
    errors.err_import errors.err_matmul mutable.mut_plain one_path.one_path_del containers.t2a4
    """: "the exception is Python's own, with its own text",
    """
    iterators.iter_list iterators.iter_zip_index iterators.iter_map_add iterators.iter_twice
    containers.dict_items_ret
    """: "iterators are Python's within a function, so that next() and a second pass do what they do eagerly",
    """
    higher_order.trace_if numbers.num_if_none numbers.num_if_str numbers.num_index numbers.num_shape_arg
    numbers.shape_of
    """: "MindSpore gives wrong values",
    """
    higher_order.hm_uneven higher_order.hm_uneven2
    """: "structures must match; MindSpore leaves out what is over",
    """
    mutable.mut_dyn_append mutable.mut_dyn_mixed mutable.mut_types
    """: "what is marked keeps its class, and items are checked at once",
    """
    numbers.num_bool_ops
    """: "a bool that a tensor decides is not the object True",
    """
    higher_order.partial_class
    """: "a function is a function",
    """
    arrays.np_mul_jit
    """: "an array of NumPy meets a tensor in the graph, which has no value",
}
_DIFFERENT = {name for names in DIFFERENCES for name in names.split()}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_all_answers_are_stored() -> None:
    assert list(ANSWERS) == list(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    expected = ANSWERS[name]
    found = agrees(runner(name, PROGRAMS[name], tmp_path), expected)
    assert (found != expected) == (name in _DIFFERENT), f"{found}, not {expected}"
