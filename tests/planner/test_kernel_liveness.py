"""What is stored of a graph, and in which order its kernels run."""

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.planner.kernel_liveness import kernels_of
from tests.planner.graphs import node, training_step


def test_values_inside_of_kernels_are_not_stored():
    x = node((64, 64))
    a = E.exp(x)
    b = E.mul(a, x)
    product = matmul(b, x)
    found = kernels_of(Graph([x], [product]), ())
    assert b in found.stored and product in found.stored and a not in found.stored
    # The kernel of both reads x once.
    assert {(n.op, k) for n, k in found.reads} == {("exp", 0), ("matmul", 0), ("matmul", 1)}


def test_updates_run_as_soon_as_they_can():
    graph, aliases = training_step(256, 64, layers=4)
    found = kernels_of(graph, aliases)
    moments = [found.moment[graph.outputs[o]] for o in (4, 3, 2, 1)]
    assert moments == sorted(moments) and moments[0] < moments[-1] - 6
    assert all(found.moment[i] <= found.moment[n] for n in graph.nodes for i in n.inputs if i.prim is not None)
