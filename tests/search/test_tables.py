"""Tables of costs: operators of networks, what is measured, and how far predictions are off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mycel as ms
from mycel import nn
from mycel.deploy.boards import missing_tools
from mycel.search import Architecture, Block, Cost, Operator, Table, measure, measure_operator, operators_of, table_of
from mycel.search.bundled_tables import DEVICES, operators_to_measure
from mycel.search.operators import KINDS

on_boards = pytest.mark.skipif(bool(missing_tools()), reason=f"needs {missing_tools()}: make device installs it")
SMALL = Architecture((1, 8, 8), 10, 4, 1, (Block(8, 8, 3, 2, False), Block(8, 16, 5, 1, True)))


def test_operators_of_a_network() -> None:
    found = operators_of(SMALL.cell(), SMALL.shape)
    assert [o.kind for o in found] == [
        *["conv", "pointwise", "depthwise", "pointwise"],
        *["pointwise", "depthwise", "pointwise", "add", "mean", "dense"],
    ]
    assert found[0] == Operator("conv", 1, 4, 8, 8, (3, 3), (1, 1)) and found[0].macs == 64 * 4 * 9
    assert found[2] == Operator("depthwise", 8, 8, 8, 8, (3, 3), (2, 2)) and found[2].macs == 16 * 8 * 9
    assert found[5].weights == 8 * 2 * 25 and found[-1].macs == 80
    assert all(Operator.read_key(o.key) == o for o in found)
    weights = sum(p.size for p in SMALL.cell().trainable_params() if p.name.endswith("weight"))
    assert sum(o.weights for o in found) == weights


def test_layers_without_rows_are_refused_and_the_network_stays_as_it_was() -> None:
    net = nn.SequentialCell(nn.Conv2d(4, 4, 3, group=2))
    net.set_train(True)
    with pytest.raises(ValueError, match="tables have no rows for"):
        operators_of(net, (4, 8, 8))
    assert net.training
    net(ms.ops.ones((1, 4, 8, 8)))


@pytest.mark.parametrize(
    "key", ["", "conv 1 2", "other 1 1 1 1 1 1 1 1", "conv 1 1 1 1 1 1 1 -1", "conv 1 1 1 1 1 1 1 x"]
)
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(ValueError, match="is no key"):
        Operator.read_key(key)


def exact(operator: Operator) -> Cost:
    return Cost(500 + 3 * operator.macs + 7 * operator.written, 0, 0, 0, 0, operator.macs)


def test_interpolation_of_a_cost_that_is_a_sum_is_exact() -> None:
    some = [o for o in operators_to_measure() if o.kind in ("pointwise", "dense")]
    table = Table("cortex-m4", {o: exact(o) for o in some})
    others = [Operator("pointwise", 20, 40, 10, 10), Operator("dense", 30, 20)]
    found = table.predict(others)
    assert found.instructions == pytest.approx(sum(exact(o).instructions for o in others), rel=0.01)
    assert found.measured == 0 and found.error < 0.01
    assert table.predict(some[:3]).measured == 1 and table.predict(some[:3]).error == 0
    assert table.predict(some[:3]).instructions == sum(exact(o).instructions for o in some[:3])


def test_factors_are_found_by_networks() -> None:
    some = operators_to_measure()
    table = Table("cortex-m4", {o: exact(o) for o in some})
    random = np.random.default_rng(0)
    shares = dict(zip(KINDS, (0.5, 1.5, 0.3, 1.0, 0.8, 1.2)))
    networks = []
    for _ in range(20):
        operators = [some[k] for k in random.integers(0, len(some), 12)]
        networks.append((operators, round(sum(shares[o.kind] * exact(o).instructions for o in operators))))
    made = table.fitted(networks[:15])
    assert 0 < made.off < 0.2 and made.rows == table.rows and not table.factors
    for operators, count in networks[15:]:
        found = made.predict(operators)
        assert abs(found.instructions / count - 1) < 0.2 and found.error >= made.off
    with pytest.raises(ValueError, match="at least two networks"):
        table.fitted(networks[:1])


@on_boards
def test_rows_are_measured() -> None:
    told: list[Operator] = []
    operators = [Operator("dense", 8, 4), Operator("mean", 8, 8, 4, 4), Operator("dense", 8, 4)]
    table = Table.measure("cortex-m4", operators, lambda operator, cost: told.append(operator))
    assert told == sorted(set(operators)) == sorted(table.rows)
    assert table.predict(operators[:2]).measured == 1


def test_a_kind_with_few_rows_is_refused() -> None:
    table = Table("cortex-m4", {Operator("dense", 4, 4): exact(Operator("dense", 4, 4))})
    with pytest.raises(ValueError, match="1 rows of dense for cortex-m4 are too few"):
        table.predict([Operator("dense", 8, 4)])
    assert table.error("dense") == float("inf")


def test_files_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    table = table_of("cortex-m4")
    table.save(path)
    again = Table.load(path)
    assert again.rows == table.rows and again.device == table.device
    assert again.factors == table.factors and again.off == table.off > 0
    text = path.read_text()
    for damaged in ("", "{}", "[1]", text[:-4], text.replace('"conv ', '"knot '), text.replace("instructions", "tea")):
        path.write_text(damaged)
        with pytest.raises(ValueError, match="holds no table of costs"):
            Table.load(path)
    with pytest.raises(ValueError, match="there are tables of"):
        table_of("cortex-m0")
    with pytest.raises(ValueError, match="device must be one of"):
        Table("toaster", {})


@pytest.mark.parametrize("device", DEVICES)
def test_bundled_tables_have_all_operators(device: str) -> None:
    table = table_of(device)
    missing = set(operators_to_measure()) - set(table.rows)
    assert len(missing) <= 2 and {o.kind for o in missing} <= {"add"}, "python tools/device_tables.py"
    for kind in ("pointwise", "dense"):
        assert table.error(kind) < 0.4


@on_boards
def test_the_prediction_of_a_network_is_near_what_is_counted() -> None:
    ms.set_seed(0)
    net = SMALL.cell()
    net.set_train(False)
    operators = operators_of(net, SMALL.shape)
    table = table_of("cortex-m4")
    predicted = table.predict(operators)
    counted = measure(net, np.random.default_rng(0).normal(size=(16, *SMALL.shape)).astype("f4"), "cortex-m4")
    assert abs(predicted.instructions / counted.instructions - 1) < 3 * predicted.error
    figures = table.figures(operators)
    assert figures["ram"] <= counted.ram and figures["flash"] <= counted.flash


@on_boards
@pytest.mark.parametrize("device", DEVICES)
def test_an_operator_costs_what_its_row_says(device: str) -> None:
    operator = min((o for o in table_of(device).rows if o.kind == "dense"), key=lambda o: o.macs)
    # The code may have become quicker since; then tools/device_tables.py measures anew.
    assert measure_operator(operator, device).instructions <= 1.05 * table_of(device).rows[operator].instructions


def test_the_host_is_a_device() -> None:
    cost = measure_operator(Operator("dense", 16, 8), "host")
    assert cost.instructions > 0 and cost.macs == 128
    with pytest.raises(ValueError, match="device must be one of"):
        measure_operator(Operator("dense", 4, 4), "abacus")
