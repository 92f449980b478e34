"""The loop of training and evaluation: the order of hooks, what they know, stopping, interrupts and
refused arguments.
"""

import os
import signal

import numpy as np
import pytest

from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.optim import Momentum
from mycel.train import Callback, CheckpointConfig, LambdaCallback, LossMonitor, Model, ModelCheckpoint, load_checkpoint
from mycel.train import model as model_module
from mycel.train.callback.base import HOOKS
from tests.train.support import Batches, Judge, Step, X, Y, losses


class Trace(Callback):
    def __init__(self):
        super().__init__()
        self.calls = []


def _tracing(hook):
    def method(self, run_context):
        params = run_context.original_args()
        self.calls.append((hook.removeprefix("on_"), params.get("cur_epoch_num"), params.cur_step_num))

    return method


for _hook in HOOKS:
    setattr(Trace, _hook, _tracing(_hook))


def judged(step=None):
    step = step or Step()
    return Model(step, eval_network=Judge(step), eval_indexes=[0, 1, 2], metrics={"loss", "mse"})


def test_training_calls_the_step_for_every_batch_and_the_hooks_in_order():
    step, trace, seen = Step(), Trace(), []
    keep = LambdaCallback(on_train_step_end=lambda context: seen.append(context.original_args().net_outputs.asnumpy()))
    Model(step).train(2, Batches(), callbacks=[trace, keep])
    np.testing.assert_allclose(seen, losses(6), rtol=1e-5)
    assert step.modes == [True] * 6
    expected = [("train_begin", None, 0)]
    for epoch, first in ((1, 1), (2, 4)):
        expected.append(("train_epoch_begin", epoch, first - 1))
        for number in range(first, first + 3):
            expected += [("train_step_begin", epoch, number), ("train_step_end", epoch, number)]
        expected.append(("train_epoch_end", epoch, first + 2))
    assert trace.calls == [*expected, ("train_end", 2, 6)]


def test_what_callbacks_know():
    step, data, known = Step(), Batches(), {}
    callback = LambdaCallback(on_train_step_end=lambda context: known.update(context.original_args()))
    Model(step).train(1, data, callback)
    assert known["train_network"] is step and known["train_dataset"] is data and known["mode"] == "train"
    assert (known["epoch_num"], known["batch_num"], known["cur_epoch_num"], known["cur_step_num"]) == (1, 3, 1, 3)
    assert (
        known["list_callback"] == [callback] and known["train_dataset_element"][0].asnumpy().tolist() == X[8:].tolist()
    )
    with pytest.raises(
        AttributeError, match="there is no 'metrics' at this point of the run; there are: batch_num, cur_epoch_num"
    ):
        Model(Step()).train(
            1, data, LambdaCallback(on_train_epoch_begin=lambda context: context.original_args().metrics)
        )


def test_old_hooks_serve_training_and_evaluation():
    class Old(Callback):
        def __init__(self):
            self.calls = []

    for hook in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"):
        setattr(Old, hook, lambda self, context, hook=hook: self.calls.append(hook))
    order = ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]
    old, model = Old(), judged()
    model.train(1, Batches(size=12), callbacks=old)
    assert old.calls == order
    model.eval(Batches(size=12), callbacks=old)
    assert old.calls == order * 2


def test_callbacks_are_entered_and_left_around_the_run():
    events = []

    class Context(Callback):
        def __enter__(self):
            events.append("enter")
            return self

        def __exit__(self, kind, error, trace):
            events.append(kind)

        def on_train_step_end(self, run_context):
            events.append("step")

    Model(Step()).train(1, Batches(size=12), Context())
    assert events == ["enter", "step", None]

    def fail(run_context):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Model(Step()).train(1, Batches(), [Context(), LambdaCallback(on_train_step_end=fail)])
    assert events[3:] == ["enter", "step", ZeroDivisionError]


def test_evaluation_gives_metrics_over_all_samples():
    step, trace = Step(), Trace()
    model = judged(step)
    results = model.eval(Batches(), trace)
    expected = float((Y.astype(np.float64) ** 2).mean())
    assert results.keys() == {"loss", "mse"} and results["mse"] == pytest.approx(expected) == results["loss"]
    assert model.eval(Batches()) == results
    assert (
        trace.calls[0] == ("eval_begin", None, 0)
        and trace.calls[-1] == ("eval_end", None, 3)
        and len(trace.calls) == 10
    )


def test_fit_validates_between_the_last_step_and_the_end_of_the_epoch(capsys):
    step, trace = Step(), Trace()
    judged(step).fit(3, Batches(), Batches(size=12), valid_frequency=2, callbacks=[trace, LossMonitor(0)])
    names = [name for name, epoch, _ in trace.calls if epoch == 2]
    assert names[-8:] == [
        "train_step_end",
        "eval_begin",
        "eval_epoch_begin",
        "eval_step_begin",
        "eval_step_end",
        "eval_epoch_end",
        "eval_end",
        "train_epoch_end",
    ]
    assert step.modes == [True] * 9
    assert [epoch for name, epoch, _ in trace.calls if name == "eval_begin"] == [2]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 and lines[0].startswith("Eval result: epoch 2, metrics: {")


def test_fit_validates_after_listed_epochs():
    trace = Trace()
    judged().fit(3, Batches(), Batches(), valid_frequency=[1, 3], callbacks=trace)
    assert [epoch for name, epoch, _ in trace.calls if name == "eval_end"] == [1, 3]


def test_a_requested_stop_ends_the_epoch_and_the_training():
    trace = Trace()
    stop = LambdaCallback(on_train_step_end=lambda context: context.request_stop())
    Model(Step()).train(3, Batches(), [trace, stop])
    assert [name for name, _, _ in trace.calls][-3:] == ["train_step_end", "train_epoch_end", "train_end"]
    assert trace.calls[-1] == ("train_end", 1, 1)


def test_initial_epoch_and_initial_step_go_on_counting():
    trace = Trace()
    Model(Step()).train(3, Batches(), trace, initial_epoch=2)
    assert trace.calls[1] == ("train_epoch_begin", 3, 0) and trace.calls[-1] == ("train_end", 3, 3)

    class Resumed(Batches):
        def get_init_step(self):
            return 4

        def create_tuple_iterator(self, num_epochs=-1):
            rows = super().create_tuple_iterator()

            class After:
                skipped = False

                def __iter__(self):
                    one = iter(rows)
                    if not self.skipped:
                        next(one)
                        self.skipped = True
                    return one

            return After()

    trace = Trace()
    Model(Step()).train(3, Resumed(), trace)
    steps = [(epoch, number) for name, epoch, number in trace.calls if name == "train_step_end"]
    assert steps == [(2, 5), (2, 6), (3, 7), (3, 8), (3, 9)]


def test_a_sink_is_one_step_for_callbacks_over_a_continuing_dataset():
    seen, data = [], Batches()
    keep = LambdaCallback(on_train_step_end=lambda context: seen.append(context.original_args().net_outputs.asnumpy()))
    trace, every = Trace(), []
    each = LambdaCallback(on_train_step_end=lambda c: every.extend(float(v) for v in c.original_args().sink_outputs))
    Model(Step()).train(2, data, [keep, trace, each], dataset_sink_mode=True, sink_size=2)
    np.testing.assert_allclose(every, losses(4), rtol=1e-5)
    np.testing.assert_allclose(seen, losses(4)[1::2], rtol=1e-5)
    assert trace.calls == [
        ("train_begin", None, 0),
        ("train_epoch_begin", 1, 0),
        ("train_step_begin", 1, 2),
        ("train_step_end", 1, 2),
        ("train_epoch_end", 1, 2),
        ("train_epoch_begin", 2, 2),
        ("train_step_begin", 2, 4),
        ("train_step_end", 2, 4),
        ("train_epoch_end", 2, 4),
        ("train_end", 2, 4),
    ]
    assert data.rows == 4
    Model(Step()).train(1, data, dataset_sink_mode=True)
    assert data.rows == 7


def test_dict_iterators_and_numpy_rows_are_accepted():
    class Plain:
        def get_dataset_size(self):
            return 3

        def create_dict_iterator(self, num_epochs=-1):
            class Rows:
                def __iter__(self):
                    return iter({"x": X[i : i + 4], "y": Y[i : i + 4]} for i in (0, 4, 8))

            return Rows()

    seen = []
    keep = LambdaCallback(on_train_step_end=lambda context: seen.append(context.original_args().net_outputs.asnumpy()))
    Model(Step()).train(1, dataset=Plain(), callbacks=keep)
    np.testing.assert_allclose(seen, losses(3), rtol=1e-5)


def test_training_on_two_tensors_is_one_step():
    step = Step()
    Model(step).train(Tensor(X[:4]), Tensor(Y[:4]))
    assert len(step.modes) == 1 and step.b.asnumpy()[0] == pytest.approx(0.2 * Y[:4].mean(), rel=1e-5)


class _Interrupting(Step):
    """Sends Ctrl-C to the process in the middle of its second step."""

    def construct(self, x, y):
        if len(self.modes) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return super().construct(x, y)


def test_ctrl_c_finishes_the_step_and_saves_it(tmp_path):
    step, trace = _Interrupting(), Trace()
    save = ModelCheckpoint("net", str(tmp_path), CheckpointConfig(save_checkpoint_steps=100, append_info=["step_num"]))
    with pytest.raises(KeyboardInterrupt):
        Model(step).train(2, Batches(), [trace, save])
    assert trace.calls[-1] == ("train_step_end", 1, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert os.listdir(tmp_path) == ["net-1_2.ckpt"]
    loaded = load_checkpoint(tmp_path / "net-1_2.ckpt")
    assert loaded["step_num"].asnumpy() == 2 and loaded["w"].asnumpy().tolist() == step.w.asnumpy().tolist()


def test_an_interrupt_within_a_step_does_not_save_it(tmp_path):
    class Twice(Step):
        def construct(self, x, y):
            if len(self.modes) == 1:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
            return super().construct(x, y)

    trace = Trace()
    save = ModelCheckpoint("net", str(tmp_path), CheckpointConfig())
    with pytest.raises(KeyboardInterrupt):
        Model(Twice()).train(2, Batches(), [trace, save])
    assert trace.calls[-1] == ("train_step_begin", 1, 2)
    assert os.listdir(tmp_path) == ["net-1_1.ckpt"]


def test_ctrl_c_during_validation_stops_it(tmp_path):
    model, trace = judged(), Trace()
    press = LambdaCallback(on_eval_step_end=lambda context: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        model.fit(2, Batches(), Batches(), callbacks=[trace, press])
    assert [name for name, _, _ in trace.calls][-1] == "eval_step_end"


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((0, Batches()), ValueError, "epoch must be at least 1, not 0"),
        ((1.5, Batches()), TypeError, "epoch must be an int, not float"),
        ((True, Batches()), TypeError, "epoch must be an int, not bool"),
        ((1, None), TypeError, "train_dataset must be a dataset .*not NoneType; arrays become one with"),
        ((1, X), TypeError, "train_dataset must be a dataset .*not ndarray"),
        ((Tensor(X), X), TypeError, "epoch must be an int, not Tensor"),
        ((1, Batches(), [3]), TypeError, "each of callbacks must be a Callback, not int"),
        ((1, Batches(), 3), TypeError, "callbacks must be a Callback or a list of them, not int"),
        ((1, Batches(), None, 1), TypeError, "dataset_sink_mode must be a bool"),
        ((1, Batches(), None, True, 0), ValueError, "sink_size must be -1 or positive, not 0"),
        ((2, Batches(), None, False, -1, 2), ValueError, "must be greater than initial_epoch; 2 is not > 2"),
        ((1, Batches(size=24)), ValueError, "train_dataset has no batches"),
    ],
)
def test_train_refuses_what_cannot_work(arguments, error, text):
    with pytest.raises(error, match=text):
        Model(Step()).train(*arguments)


class _Wrapper(Cell):
    """Stands for a Cell of nn that wraps others, and keeps what it was given."""

    def __init__(self, *given):
        super().__init__(auto_prefix=False)
        self.given = given

    def construct(self, *batch):
        return Tensor(0.0)


@pytest.fixture
def wrappers(monkeypatch):
    kinds = {name: type(name, (_Wrapper,), {}) for name in ("WithLossCell", "WithEvalCell", "TrainOneStepCell")}
    for name, kind in kinds.items():
        monkeypatch.setattr(model_module.nn, name, kind, raising=False)
    return kinds


def test_the_networks_that_are_built(wrappers):
    network, loss = Step(), Cell()
    optimizer = Momentum(network.trainable_params(), 0.1, 0.9)
    for model in (Model(network, loss, optimizer, {"mse"}), Model(network, optimizer, loss, {"mse"})):
        assert isinstance(model.train_network, wrappers["TrainOneStepCell"])
        with_loss, given = model.train_network.given
        assert isinstance(with_loss, wrappers["WithLossCell"]) and given is optimizer
        assert with_loss.given == (network, loss)
        assert isinstance(model.eval_network, wrappers["WithEvalCell"]) and model.eval_network.given == (
            network,
            loss,
            False,
        )
        assert model.predict_network is network
    own_loss = Model(network, optimizer=optimizer)
    assert own_loss.train_network.given == (network, optimizer) and own_loss.eval_network is None
    assert Model(network).train_network is network


def test_a_function_serves_as_a_loss(wrappers):
    model = Model(Step(), lambda prediction, label: (prediction, label))
    assert model.train_network.given[1](1, 2) == (1, 2)


def test_a_loss_without_an_optimizer_does_not_train(wrappers):
    with pytest.raises(ValueError, match="the model has no optimizer, so nothing would be trained"):
        Model(Step(), Cell()).train(1, Batches())


def test_a_loss_takes_data_and_label(wrappers):
    network = Step()
    model = Model(network, Cell(), Momentum(network.trainable_params(), 0.1, 0.9))
    with pytest.raises(
        ValueError, match="train_dataset gives 3 columns, and a model with a loss_fn takes two, data and label"
    ):
        model.train(1, Batches((X, Y, Y)))


def test_train_refuses_two_datasets():
    with pytest.raises(TypeError, match="give train_dataset or dataset"):
        Model(Step()).train(1, Batches(), dataset=Batches())


def test_model_refuses_what_cannot_work():
    for arguments, error, text in (
        ((3,), TypeError, "network must be a Cell, not int"),
        ((Step(), 3), TypeError, "loss_fn must be a Cell or a function, not int"),
        ((Step(), None, 3), TypeError, "optimizer must be an Optimizer, not int"),
        ((Step(), None, None, 3), TypeError, "metrics must be a set of names"),
        ((Step(), None, None, {"foo"}), KeyError, "there is no metric 'foo'"),
        ((Step(), None, None, None, 3), TypeError, "eval_network must be a Cell"),
        ((Step(), None, None, None, Step(), [0, 1]), ValueError, "eval_indexes must be three positions"),
        (
            (Step(), None, None, None, None, None, "O7"),
            ValueError,
            "amp_level 'O7' wants an optimizer",
        ),
        ((Step(), None, None, None, None, None, "O0", "O1"), Unsupported, "boost_level 'O1' is not supported"),
    ):
        with pytest.raises(error, match=text):
            Model(*arguments)
    with pytest.raises(ValueError, match="unknown argument 'foo'"):
        Model(Step(), foo=1)


def test_evaluation_needs_metrics_and_outputs_for_them():
    with pytest.raises(ValueError, match="the model has no metrics"):
        Model(Step()).eval(Batches())
    with pytest.raises(ValueError, match="metrics want a loss_fn, or an eval_network"):
        Model(Step(), metrics={"mse"}).eval(Batches())
    with pytest.raises(ValueError, match="the model has no metrics"):
        Model(Step()).fit(1, Batches(), Batches())
    with pytest.raises(ValueError, match="valid_frequency must be a positive integer or a list of epochs, not 0"):
        judged().fit(1, Batches(), Batches(), valid_frequency=0)
    with pytest.raises(ValueError, match=r"eval_indexes \[0, 1, 2\] choose from 1 outputs"):
        Model(Step(), metrics={"mse"}, eval_network=Step(), eval_indexes=[0, 1, 2]).eval(Batches())


def test_an_eval_network_without_indexes_feeds_metrics_directly():
    class Pair(Cell):
        def construct(self, x, y):
            return y, y

    assert Model(Step(), metrics={"mae"}, eval_network=Pair()).eval(Batches()) == {"mae": 0.0}


def test_predict_runs_the_network_in_evaluation_mode():
    class Double(Cell):
        def construct(self, x):
            assert not self.training
            return Tensor(x.asnumpy() * 2)

    network = Double()
    network.set_train()
    assert Model(network).predict(Tensor([1.0, 2.0])).asnumpy().tolist() == [2, 4]
    assert Model(network).predict_network is network
