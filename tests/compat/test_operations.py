"""Names that MindSpore generates: by rule, from tables of the real package."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import mycel as ms
from mycel import compat
from mycel._src.foundation.errors import Unsupported
from mycel.compat.operations.facts import facts_of
from mycel.compat.operations.parameter_binding import parsed
from mycel.ops import Primitive

MODULES = [p.stem for p in sorted((importlib.resources.files("mycel") / "compat/operations/facts").iterdir())]

# Modules under names of their own that Mycel does not have.
ABSENT = {"_constants", "_inner", "const_utils", "op_enum", "security", "typing"}


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    compat.install()
    yield
    compat.uninstall()


def tensor(*values: float) -> ms.Tensor:
    return ms.Tensor(np.array(values, np.float32))


def signature(value: object) -> list[tuple[str, str]]:
    return [(p.name, repr(p.default)) for p in inspect.signature(value).parameters.values() if p.name != "self"]


def same(found: list[tuple[str, str]], known: list[tuple[str, str]]) -> bool:
    """Return whether signatures are the same, but for defaults that the table cannot write."""
    return [n for n, _ in found] == [n for n, _ in known] and all(
        b in (a, "Ellipsis") for (_, a), (_, b) in zip(found, known)
    )


@pytest.mark.parametrize("path", MODULES)
def test_every_name_is_there_with_its_parameters(path: str) -> None:
    module = importlib.import_module(f"mindspore.{path}")
    for name, fact in facts_of(path).names.items():
        if name in ABSENT and not hasattr(module, name):
            continue
        value = getattr(module, name)
        assert value is getattr(module, name)
        if fact.kind == "classes":
            assert issubclass(value, Primitive) and value.__name__ == name
            assert signature(value) == signature(parsed_function(fact.content[0])), name
            if len(fact.content) > 1:
                assert signature(value.__call__) == signature(parsed_function(fact.content[1])), name
        elif fact.kind == "functions":
            assert callable(value) and same(signature(value), signature(parsed_function(fact.content))), name
        elif fact.kind == "instances":
            assert isinstance(value, Primitive) or callable(value), name


def parsed_function(parameters: str) -> object:
    def function() -> None: ...

    function.__signature__ = parsed(parameters)  # type: ignore[attr-defined]
    return function


def test_classes_work_at_once_compiled_and_under_gradients() -> None:
    from mindspore.ops.auto_generate import AddExt, gen_ops_prim

    assert gen_ops_prim.AddExt is AddExt and gen_ops_prim.Abs is ms.ops.Abs
    x = tensor(1.0, 2.0)

    @ms.jit
    def compiled(x: ms.Tensor) -> ms.Tensor:
        return gen_ops_prim.AddExt()(x, x, alpha=3) + gen_ops_prim.sum_ext_op(x)

    assert compiled(x).tolist() == [7.0, 11.0]
    assert ms.grad(lambda x: AddExt()(x, x * x, 3).sum())(x).tolist() == [7.0, 13.0]


def test_a_class_can_be_a_base() -> None:
    from mindspore.ops.auto_generate import AddExt

    class Twice(AddExt):
        def __call__(self, input: ms.Tensor) -> ms.Tensor:
            return super().__call__(input, input)

    assert Twice()(tensor(1.5)).tolist() == [3.0]


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    from mindspore.ops.auto_generate import AddExt

    with pytest.raises(TypeError, match="AddExt: .*input, other, alpha=1"):
        AddExt()(tensor(1.0))


def test_what_is_not_served_says_so_when_it_is_used() -> None:
    from mindspore.ops.auto_generate import MlaPreprocess

    operation = MlaPreprocess()
    with pytest.raises(Unsupported, match=r"mindspore\.ops\.auto_generate\.gen_ops_prim\.MlaPreprocess "):
        operation()


def test_writing_operations_write() -> None:
    from mindspore.ops.auto_generate import gen_ops_prim as g

    calls = {
        "InplaceAddExt": (tensor(2.0, 3.0), 2),
        "InplaceAddsExt": (1.5, 2),
        "InplaceMuls": (3.0,),
        "InplaceDivMods": (0.3, "floor"),
        "InplaceCopy": (tensor(5.0, 6.0),),
        "InplaceFillScalar": (0.5,),
        "InplaceClampScalar": (-0.5, 0.5),
        "InplaceMaskedFillScalar": (ms.Tensor([True, False]), 9.0),
        "InplaceSiLU": (),
        "InplaceThreshold": (0.0, 7.0),
        "InplaceScatterValue": (0, ms.Tensor([1]), 8.0),
    }
    for name, rest in calls.items():
        x = tensor(-1.0, 2.0)
        alias = x[0:2]
        found = getattr(g, name)()(x, *rest)
        assert found is x and x.tolist() == alias.tolist() and x.tolist() != [-1.0, 2.0], name


def test_writing_operations_write_in_compiled_functions() -> None:
    from mindspore.ops.auto_generate import gen_ops_prim as g

    @ms.jit
    def compiled(x: ms.Tensor) -> ms.Tensor:
        y = x * 1
        g.inplace_add_ext_op(y, x, 2)
        g.inplace_muls_op(y, 2.0)
        return y

    assert compiled(tensor(1.0, 2.0)).tolist() == [6.0, 12.0]


def test_views_share_elements() -> None:
    from mindspore.ops.auto_generate import gen_ops_prim as g

    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    views = {
        "narrow_view_op": (0, 1, 2),
        "slice_ext_view_op": (0, 0, 3, 2),
        "select_ext_view_op": (0, 1),
        "transpose_ext_view_op": (0, 1),
        "view_op": ((4, 3),),
        "expand_dims_view_op": (0,),
        "diagonal_view_op": (0, 0, 1),
    }
    for name, rest in views.items():
        view = getattr(g, name)(x, *rest)
        before = x.asnumpy().copy()
        view.add_(100)
        assert (x.asnumpy() != before).sum() == view.size, name
    for name, size in {"split_tensor_view_op": 2, "split_with_size_view_op": (1, 2), "chunk_view_op": 3}.items():
        part = getattr(g, name)(x, size, 0)[0]
        before = x.asnumpy().copy()
        part.add_(100)
        assert (x.asnumpy() != before).sum() == part.size, name


def test_operations_in_networks_and_their_gradients() -> None:
    from mindspore.ops.auto_generate import GroupedMatmulV4, SplitWithSize, gen_ops_prim

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.split, self.product = SplitWithSize(), GroupedMatmulV4()
            self.weight = ms.Parameter(ms.Tensor(np.ones((2, 3, 2), np.float32)), name="w")

        def construct(self, x: ms.Tensor) -> ms.Tensor:
            first, second = self.split(x, (1, 3), 0)
            found = self.product([x], [self.weight], group_list=[1, 4], split_item=3, group_type=0)[0]
            return found.sum() + gen_ops_prim.sum_ext_op(first) + gen_ops_prim.MeanExt()(second)

    x = ms.Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Net()
        value, gradient = ms.value_and_grad(net, None, net.trainable_params())(x)
        assert value.item() == 66 * 2 + 3 + 7 and gradient[0].asnumpy()[0].tolist() == [[0, 0], [1, 1], [2, 2]]
        assert ms.grad(net)(x).asnumpy()[0].tolist() == [3.0, 3.0, 3.0]
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_draws_with_a_seed_repeat() -> None:
    from mindspore.ops.auto_generate import gen_ops_prim as g

    x, seed, offset = ms.Tensor(np.full((64, 64), 0.25, np.float32)), ms.Tensor(3), ms.Tensor(5)

    def twice(call: object) -> np.ndarray:
        first, second, other = (call(seed, at) for at in (offset, offset, ms.Tensor(6)))  # type: ignore[operator]
        assert (first.asnumpy() == second.asnumpy()).all() and (first.asnumpy() != other.asnumpy()).any()
        return first.asnumpy()

    assert abs(twice(lambda s, o: g.bernoulli_ext_op(x, s, o)).mean() - 0.25) < 0.03
    dropped = twice(lambda s, o: g.dropout_ext_op(x, 0.5, s, o)[0])
    assert set(np.unique(dropped)) == {0.0, 0.5} and abs((dropped == 0).mean() - 0.5) < 0.03
    assert abs(twice(lambda s, o: g.inplace_uniform_op(x.copy(), -1.0, 3.0, s, o)).mean() - 1) < 0.1
    assert abs(twice(lambda s, o: g.inplace_normal_op(x.copy(), 2.0, 3.0, s, o)).std() - 3) < 0.2
    assert set(np.unique(twice(lambda s, o: g.randint_op(0, 3, (64, 64), s, o)))) == {0, 1, 2}
    assert abs(twice(lambda s, o: g.rand_ext_op((64, 64), s, o)).mean() - 0.5) < 0.03
    assert abs(twice(lambda s, o: g.randn_op((64, 64), s, o)).std() - 1) < 0.1
    assert sorted(twice(lambda s, o: g.randperm_ext_op(16, s, o)).tolist()) == list(range(16))
    weights = tensor(0.0, 1.0, 1.0)
    assert 0 not in twice(lambda s, o: g.multinomial_ext_op(weights, 64, True, s, o))
    assert abs(twice(lambda s, o: g.normal_tensor_float_op(x, 1.0, s, o)).mean() - 0.25) < 0.1
    assert abs(twice(lambda s, o: g.uniform_ext_op(x, 1.0, 2.0, s, o)).mean() - 1.5) < 0.03
    assert abs(twice(lambda s, o: g.inplace_exponential_op(x.copy(), 2.0, s, o)).mean() - 0.5) < 0.05


def test_operations_are_kept_by_their_parameters() -> None:
    from mindspore.ops._primitive_cache import _get_cache_prim
    from mindspore.ops.function.nn_func import _get_cache_prim as same
    from mindspore.ops.function.nn_func import _innner_log_softmax

    assert same is _get_cache_prim
    first = _get_cache_prim(ms.ops.Softmax)(axis=1)
    assert first is _get_cache_prim(ms.ops.Softmax)(axis=1) and first is not _get_cache_prim(ms.ops.Softmax)(axis=0)
    x = ms.Tensor([[1.0, 2.0]])
    np.testing.assert_allclose(first(x).asnumpy(), ms.ops.softmax(x, 1).asnumpy())
    np.testing.assert_allclose(_innner_log_softmax(x, 1).asnumpy(), ms.ops.log_softmax(x, 1).asnumpy())

    @ms.jit
    def compiled(x: ms.Tensor) -> ms.Tensor:
        return _get_cache_prim(ms.ops.Softmax)(1)(x)

    np.testing.assert_allclose(compiled(x).asnumpy(), first(x).asnumpy())


def test_rotations_and_kernels_that_programs_call() -> None:
    from mindspore.ops.auto_generate import gen_ops_prim as g
    from mindspore.ops.auto_generate import pyboost_abs, weight_quant_batch_matmul
    from mindspore.ops.auto_generate.gen_ops_def import apply_rotary_pos_emb_

    rng = np.random.RandomState(0)
    query, key = (ms.Tensor(rng.randn(2, 1, 8).astype(np.float32)) for _ in range(2))
    cos, sin = (ms.Tensor(rng.randn(4, 8).astype(np.float32)) for _ in range(2))
    places = ms.Tensor([2, 3], ms.int32)
    for found, given in zip(apply_rotary_pos_emb_(query, key, cos, sin, places), (query, key)):
        row = given.asnumpy()
        turned = np.concatenate([-row[..., 4:], row[..., :4]], -1)
        expected = row * cos.asnumpy()[2:4, None] + turned * sin.asnumpy()[2:4, None]
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5)
    x, c, s = (ms.Tensor(rng.randn(1, 1, 2, 4).astype(np.float32)) for _ in range(3))
    turned = np.concatenate([-x.asnumpy()[..., 2:], x.asnumpy()[..., :2]], -1)
    expected_rotation = x.asnumpy() * c.asnumpy() + turned * s.asnumpy()
    np.testing.assert_allclose(g.RotaryPositionEmbedding()(x, c, s).asnumpy(), expected_rotation, rtol=1e-5)
    assert g.matmul_ext_op.set_device("CPU") is g.matmul_ext_op
    assert pyboost_abs(ms.ops.Abs(), [tensor(-1.0)]).tolist() == [1.0]
    weight = ms.Tensor(np.ones((2, 2), np.int8))
    assert weight_quant_batch_matmul(tensor(1.0, 2.0).reshape(1, 2), weight, tensor(2.0, 3.0)).tolist() == [[6.0, 9.0]]


def test_what_is_not_served_has_a_reason() -> None:
    from mycel.compat.operations.unserved_reasons import advice_for

    path = "ops.auto_generate.gen_ops_prim"
    module = importlib.import_module(f"mindspore.{path}")
    classes = {n: fact.content for n, fact in facts_of(path).names.items() if fact.kind == "classes"}
    left = [n for n in classes if "Raise Unsupported" in (getattr(module, n).__doc__ or "")]
    assert [n for n in left if advice_for(n).startswith("is an inner part")] == [] and len(left) < 90
    for name in left:
        needed = {p.name: 1 for p in parsed(classes[name][0]).parameters.values() if p.default is p.empty}
        with pytest.raises(Unsupported, match=f"{name} (is|moves|looks|reads|belongs)"):
            getattr(module, name)(**needed)()


def test_import_of_everything_brings_names_and_no_modules() -> None:
    scope: dict[str, object] = {"np": "mine", "ops": "mine"}
    exec("from mindspore.ops.auto_generate.gen_ops_def import *", scope)
    assert scope["np"] == scope["ops"] == "mine" and len(scope) > 2000
    assert scope["AddExt"] is importlib.import_module("mindspore.ops.auto_generate").AddExt
    before = {}
    exec("from mindspore.ops.auto_generate import *", before)  # where the real package lists no names
    assert list(before) == ["__builtins__"]


def test_operations_are_copied_and_pickled() -> None:
    import copy
    import pickle

    from mindspore.ops.auto_generate import MaxPoolWithIndices

    operation = MaxPoolWithIndices(2, strides=1)
    for other in (copy.deepcopy(operation), pickle.loads(pickle.dumps(operation))):
        assert type(other) is MaxPoolWithIndices and (other.kernel_size, other.strides) == (2, 1)


def test_functions_that_work_out_constants() -> None:
    import __future__

    from mindspore.ops.auto_generate import gen_ops_def
    from mindspore.ops.operations.manually_defined import ops_def

    x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert ops_def.infer_value_for_ReduceMax(x, (1,), True).tolist() == [[2.0], [4.0]]
    assert ops_def.infer_value_for_ReduceSum(x, (0,), False, False).tolist() == [4.0, 6.0]
    assert ops_def.infer_value_for_Concat((x, x), 0).shape == (4, 2)
    assert gen_ops_def.division is __future__.division
