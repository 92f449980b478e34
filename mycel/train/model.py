"""Model: trains, evaluates and predicts with a network, a loss, an optimizer and metrics.

One training step is one call of `train_network`, a Cell that computes the loss, differentiates it
and updates the parameters; in GRAPH_MODE it is compiled as one program. Between the steps,
callbacks run (`mycel.train.callback`). Batches are read by a thread while steps run, and what
callbacks log is written by another.

*Sinking.* With `dataset_sink_mode` the steps of an epoch, `sink_size` of them, are one *sink*:
rounds of one native loop over the batches that are ready (`mycel.train.sinking`), compiled in any
mode. Callbacks see a sink as one step: step_begin runs before it and step_end after it, with the
last step's outputs, the outputs of all steps in `sink_outputs`, and `cur_step_num` increased by the
number of steps.

A step is done completely or not at all: Ctrl-C takes effect between steps, and at once where the
next batch is awaited. KeyboardInterrupt is raised there, and no end hook runs, as after any error:
the epoch and the training have not ended. What callbacks do then they do in `__exit__`, where
ModelCheckpoint saves the last step. A second Ctrl-C stops at once; a step that it interrupts is not
saved.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from mycel import nn
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.log import logger
from mycel._src.foundation.python_runtime.tracebacks import border
from mycel._src.foundation.settings.ignored_settings import unused, without_effect
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.staging.compiled.repeated_execution import Results, held
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor
from mycel.communication import get_group_size
from mycel.dataset import offloading
from mycel.nn.grad_reducer import broadcast_parameters
from mycel.nn.optim import Optimizer
from mycel.train._background import Later
from mycel.train._batches import LONGEST, Epochs, OneBatch, check_dataset
from mycel.train._interrupt import DeferredInterrupt
from mycel.train._layout_inference import ModelLayouts
from mycel.train._network_calls import FunctionLoss, called, check_columns, check_counts, checked_indexes, settings_of
from mycel.train.callback.base import CallbackList, CallbackParameters, RunContext
from mycel.train.callback.progress import ProgressBar, TrainingHistory, shown
from mycel.train.metrics import Loss, get_metrics
from mycel.train.sinking import Runner

__all__ = ["Model"]

_OPTIONS = ("loss_scale_manager", "keep_batchnorm_fp32", "boost_config_dict", "acc_level")
_LEVELS = ("O0", "O1", "O2", "O3", "auto")
_BOOSTS = ("O0", "O1", "O2")


@contextlib.contextmanager
def _closing(epochs: Epochs | None, later: Later) -> Iterator[None]:
    """Do the deferred tasks and end the threads at the end of this context, whatever fails.

    The first error is the one that is raised.
    """
    try:
        yield
    except BaseException:
        try:
            later.close()
        except Exception as error:
            logger.warning("Model: what was to be done later has failed too: %s: %s", type(error).__name__, error)
        raise
    else:
        later.close()
    finally:
        if epochs is not None:
            epochs.close()


class Model(ModelLayouts):
    """A network with everything that trains and evaluates it.

    Args:
        network (Cell): The network.
        loss_fn (Callable[..., Any] | None): Called as ``loss_fn(prediction, label)``, gives the
            loss; None where the network itself gives it. Default: None.
        optimizer (Cell | None): What updates the parameters; None, also without a `loss_fn`, where
            the network is the whole training step. Default: None.
        metrics (dict[str, Any] | set[str] | None): A set of names (`mycel.train.names()`) or a dict
            of metrics. Default: None.
        eval_network (Cell | None): What replaces the network in evaluations. Default: None.
        eval_indexes (list[int] | None): The positions of loss, prediction and label among its
            outputs. Default: None.
        amp_level (str): The level of mixed precision, "O0" for none. Default: "O0".
        boost_level (str): Must be "O0": others raise Unsupported. Default: "O0".
        **kwargs (Any): Options of `build_train_network`, such as `loss_scale_manager`.

    Raises:
        TypeError, ValueError: For arguments that do not fit.

    Examples:
        >>> import numpy as np, mycel as ms, mycel.dataset as ds
        >>> from mycel.train import Model
        >>> net = ms.nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
        >>> model = Model(net, ms.nn.MSELoss(), ms.nn.SGD(net.trainable_params(), 0.1), metrics={
        ...     "mse"})
        >>> columns = (np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))
        >>> data = ds.NumpySlicesDataset(columns, ["x", "y"]).batch(2)
        >>> model.eval(data)
        {'mse': 1.0}
        >>> history = model.train(20, data)
        >>> history.loss[-1] < 0.01
        True
        >>> model.eval(data)["mse"] < 0.01
        True
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Any = None,
        optimizer: Cell | None = None,
        metrics: Any = None,
        eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        **kwargs: Any,
    ) -> None:
        if isinstance(loss_fn, Optimizer) and not isinstance(optimizer, Optimizer):
            logger.warning("Model: loss_fn and optimizer were given in each other's place and are exchanged")
            loss_fn, optimizer = optimizer, loss_fn
        arguments.instance("Model", "network", network, Cell)
        if loss_fn is not None and not isinstance(loss_fn, Cell):
            arguments.function("Model", "loss_fn", loss_fn, "a Cell or a function")
            loss_fn = FunctionLoss(loss_fn)
        if optimizer is not None:
            arguments.instance("Model", "optimizer", optimizer, Optimizer)
        if eval_network is not None:
            arguments.instance("Model", "eval_network", eval_network, Cell)
        if optimizer is None and amp_level != "O0":
            raise ValueError(f"Model: amp_level {amp_level!r} wants an optimizer")
        arguments.choice("Model", "amp_level", amp_level, _LEVELS)
        for name in kwargs:
            if name not in _OPTIONS:
                raise ValueError(f"Model: unknown argument {name!r}; further arguments are {', '.join(_OPTIONS)}")
        if not isinstance(boost_level, Hashable):
            raise arguments.wrong_type("Model", "boost_level", "a string", boost_level)
        # The level is about training: without an optimizer it may be anything, as in MindSpore.
        if optimizer is not None:
            arguments.one_of("Model", "boost_level", boost_level, _BOOSTS)
        boosts = isinstance(boost_level, str) and boost_level in _BOOSTS[1:]
        if boosts or kwargs.get("acc_level", "O0") != "O0" or kwargs.get("boost_config_dict"):
            raise Unsupported(f"Model: boost_level {boost_level!r} is not supported; leave it at 'O0'")
        self._network = network
        self._loss_fn = loss_fn
        self._optimizer = optimizer
        self._metrics = get_metrics(metrics)
        self._amp_level = amp_level
        self._loss_scale_manager = kwargs.get("loss_scale_manager")
        self._keep_bn_fp32 = kwargs.get("keep_batchnorm_fp32")
        self._eval_indexes = checked_indexes(eval_indexes)
        # Of the last evaluation that began with the end of its pipeline: what it had, and ran.
        self._front: tuple[Any, Cell, Cell] | None = None
        self._eval_network = eval_network
        self._train_network = self._build_train_network()
        if eval_network is None and self._metrics:
            if loss_fn is None:
                raise ValueError("Model: metrics want a loss_fn, or an eval_network whose outputs they take")
            self._eval_network = nn.WithEvalCell(network, loss_fn, amp_level in ("O2", "O3", "auto"))
            self._eval_indexes = [0, 1, 2]

    def _build_train_network(self) -> Cell:
        if self._amp_level != "O0" or self._loss_scale_manager is not None:
            from mycel.amp import build_train_network

            if self._optimizer is None:
                raise ValueError("Model: amp_level and loss_scale_manager want an optimizer")
            options = {"loss_scale_manager": self._loss_scale_manager, "keep_batchnorm_fp32": self._keep_bn_fp32}
            given = {name: value for name, value in options.items() if value is not None}
            return build_train_network(self._network, self._optimizer, self._loss_fn, level=self._amp_level, **given)
        network = self._network if self._loss_fn is None else nn.WithLossCell(self._network, self._loss_fn)
        return network if self._optimizer is None else nn.TrainOneStepCell(network, self._optimizer)

    @property
    def train_network(self) -> Cell:
        """The Cell of a training step: batch in, loss out."""
        return self._train_network

    @property
    def eval_network(self) -> Cell | None:
        """The Cell of an evaluation: batch in, loss, prediction and label out; None without
        metrics.
        """
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        """The Cell of a prediction: the network."""
        return self._network

    # Training.

    @border
    def train(
        self,
        epoch: Any,
        train_dataset: Any = None,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        dataset: Any = None,
        *,
        progress: bool | None = None,
    ) -> TrainingHistory:
        """Train until `epoch` epochs are done.

        A dataset with `set_init_step` continues within its epoch. ``train(data, label)`` with two
        tensors is one training step on them. Whatever is raised, end hooks of callbacks do not run
        then, but their `__exit__` does.

        Args:
            epoch (int): The number of epochs after which training ends; with tensors as (data,
                label), data.
            train_dataset (Dataset | None): Batches of (data, label) where the model has a loss
                function, else whatever the network takes. Default: None.
            callbacks (Callback | list[Callback] | None): A callback or a list of them. Default:
                None.
            dataset_sink_mode (bool): Whether the batches of an epoch run in one native loop with no
                Python in between; callbacks see them as one step. Default: False.
            sink_size (int): The number of batches of such an epoch; -1 for the whole dataset. The
                next epoch continues in the dataset where this one stopped. Default: -1.
            initial_epoch (int): The number of finished epochs of a run that is resumed, which
                continues with the data of the next epoch. Default: 0.
            dataset (Dataset | None): Another name for `train_dataset`. Default: None.
            progress (bool | None): Whether a bar on the standard error stream shows the progress,
                or a line an epoch where that is no terminal (`ProgressBar`); None for unless there
                is a `LossMonitor` or `TimeMonitor`. Default: None.

        Returns:
            TrainingHistory: The course of the losses.

        Raises:
            TypeError, ValueError: For arguments that do not fit.
            KeyboardInterrupt: After Ctrl-C, between two training steps.
        """
        if train_dataset is None:
            train_dataset = dataset
        elif dataset is not None:
            raise TypeError("Model.train: give train_dataset or dataset, which mean the same, not both")
        if isinstance(epoch, Tensor) and isinstance(train_dataset, Tensor):
            epoch, train_dataset = 1, OneBatch(epoch, train_dataset)
        given = (epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, progress)
        with settings_of(self._network):
            return self._run_training("train", lambda *_: None, *given)

    @border
    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: Any = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
        *,
        progress: bool | None = None,
    ) -> TrainingHistory:
        """Train like `train`, and evaluate after every `valid_frequency` epochs.

        Args:
            epoch (int): The number of epochs after which training ends; with tensors as (data,
                label), data.
            train_dataset (Dataset): Batches of (data, label) where the model has a loss function,
                else whatever the network takes.
            valid_dataset (Dataset | None): The dataset of evaluations. Default: None.
            valid_frequency (int | list[int]): After how many epochs to evaluate, or after which
                epochs. Default: 1.
            callbacks (Callback | list[Callback] | None): A callback or a list of them. Default:
                None.
            dataset_sink_mode (bool): Whether the batches of an epoch run in one native loop with no
                Python in between; callbacks see them as one step. Default: False.
            valid_dataset_sink_mode (bool): The `dataset_sink_mode` of evaluations. Default: False.
            sink_size (int): The number of batches of such an epoch; -1 for the whole dataset. The
                next epoch continues in the dataset where this one stopped. Default: -1.
            initial_epoch (int): The number of finished epochs of a run that is resumed, which
                continues with the data of the next epoch. Default: 0.
            progress (bool | None): Whether a bar on the standard error stream shows the progress,
                or a line an epoch where that is no terminal (`ProgressBar`); None for unless there
                is a `LossMonitor` or `TimeMonitor`. Default: None.

        Returns:
            TrainingHistory: The losses, and the metrics of evaluations.

        Raises:
            TypeError, ValueError: As `train`, and for evaluation without metrics.
        """
        if valid_dataset is not None:
            check_dataset(valid_dataset, "Model.fit", "valid_dataset")
            self._need_metrics("Model.fit")
        if isinstance(valid_frequency, int) and not isinstance(valid_frequency, bool):
            wanted: Callable[[int], bool] = lambda done: done % valid_frequency == 0
            fits = valid_frequency > 0
        else:
            fits = isinstance(valid_frequency, (list, tuple, set)) and all(isinstance(e, int) for e in valid_frequency)
            wanted = lambda done: done in valid_frequency
        if not fits:
            raise ValueError(
                f"Model.fit: valid_frequency must be a positive integer or a list of epochs, not {valid_frequency!r}"
            )

        def validate(params: CallbackParameters, callback_list: CallbackList, interrupt: DeferredInterrupt) -> None:
            params["eval_results"] = params["metrics"] = None
            if valid_dataset is not None and wanted(params.cur_epoch_num):
                known = self._evaluate(valid_dataset, callback_list, valid_dataset_sink_mode, params, interrupt)
                params["eval_results"], params["metrics"] = known["eval_results"], known["metrics"]
                self._train_network.set_train(True)

        given = (epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch, progress)
        with settings_of(self._network):
            return self._run_training("fit", validate, *given)

    def _run_training(
        self,
        name: str,
        validate: Callable[[CallbackParameters, CallbackList, DeferredInterrupt], None],
        epoch: int,
        dataset: Any,
        callbacks: Any,
        sink: bool,
        sink_size: int,
        initial_epoch: int,
        progress: bool | None,
    ) -> TrainingHistory:
        function = f"Model.{name}"
        if progress is not None:
            arguments.flag(function, "progress", progress)
        check_counts(function, epoch, initial_epoch, sink, sink_size)
        check_dataset(dataset, function, "train_dataset")
        if self._optimizer is None and self._loss_fn is not None:
            raise ValueError(f"{function}: the model has no optimizer, so nothing would be trained; give it one")
        size = int(dataset.get_dataset_size())
        if size < 1:
            raise ValueError(
                f"{function}: train_dataset has no batches; is the batch larger than the data (drop_remainder)?"
            )
        sink_size = sink_size if sink else -1
        steps = size if sink_size == -1 else sink_size
        first_step = int(dataset.get_init_step()) if hasattr(dataset, "get_init_step") else 0
        first_epoch = initial_epoch + first_step // steps
        later = Later()
        callback_list = CallbackList(callbacks, later)
        watching = ProgressBar() if shown(progress, callback_list.callbacks) else ProgressBar.silent()
        params = CallbackParameters(
            train_network=self._train_network,
            network=self._network,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            loss_scale_mananger=self._loss_scale_manager,
            mode="train",
            validates=name == "fit",
            epoch_num=epoch - initial_epoch,
            batch_num=steps,
            parallel_mode=current().parallel_mode,
            device_number=get_group_size(),
            train_dataset=dataset,
            train_dataset_element=None,
            dataset_sink_mode=sink,
            list_callback=list(callback_list.callbacks),
            initial_step=first_step,
            first_row=initial_epoch * steps,
            cur_step_num=first_step,
            last_save_ckpt_step=None,
            latest_ckpt_file=None,
            step_running=False,
        )
        callback_list.callbacks.append(watching)
        context = RunContext(params, later=later)
        self._train_network.set_train(True)
        if current().parameter_broadcast and get_group_size() > 1:
            broadcast_parameters(self._train_network.get_parameters())
        read, network = offloading.parts(dataset, self._train_network)
        train_epoch = functools.partial(self._train_epoch, network)
        if sink and not offloading.awaits_steps(dataset, function):
            train_epoch = functools.partial(self._sink_epoch, Runner(network._compiled()), watching)
        count, rest = epoch - first_epoch, steps - first_step % steps
        epochs = Epochs(read, sink_size, count, rest, min(steps, LONGEST) if sink else 0, initial_epoch * steps)
        with _closing(epochs, later), DeferredInterrupt() as interrupt, callback_list:
            callback_list.on_train_begin(context)
            for done in range(first_epoch, epoch):
                params["cur_epoch_num"] = done + 1
                callback_list.on_train_epoch_begin(context)
                train_epoch(epochs, params, callback_list, context, interrupt)
                validate(params, callback_list, interrupt)
                callback_list.on_train_epoch_end(context)
                interrupt.check()
                if context.get_stop_requested():
                    break
            callback_list.on_train_end(context)
            later.flush()
            interrupt.check()
        return watching.history

    def _sink_epoch(
        self,
        runner: Runner,
        watching: ProgressBar,
        epochs: Epochs,
        params: CallbackParameters,
        callback_list: CallbackList,
        context: RunContext,
        interrupt: DeferredInterrupt,
    ) -> None:
        """Run the steps of an epoch as one, until a Ctrl-C."""
        begun, results = params.cur_step_num, Results()
        steps = params.batch_num - begun % params.batch_num
        epochs.begin()
        try:
            while batches := interrupt.awaited(epochs.take, runner.stretch):
                for batch in batches:
                    check_columns("train_dataset", batch, self._loss_fn)
                if not len(results):
                    params["train_dataset_element"] = batches[0]
                    params["cur_step_num"] = begun + steps
                    callback_list.on_train_step_begin(context)
                params["step_running"] = True
                results.extend(runner.run(batches))
                params["step_running"] = False
                params["train_dataset_element"] = batches[-1]
                watching.on_stretch_end(params, begun + len(results), results[-1])
                if interrupt.requested:
                    break
        finally:
            # As many as were done, where a sink ends early; with the one that is running, where
            # that fails.
            params["cur_step_num"] = begun + len(results) + bool(params["step_running"])
        if len(results):
            params["net_outputs"], params["sink_outputs"] = results[-1], results
            callback_list.on_train_step_end(context)
        interrupt.check()

    def _train_epoch(
        self,
        network: Cell,
        epochs: Epochs,
        params: CallbackParameters,
        callback_list: CallbackList,
        context: RunContext,
        interrupt: DeferredInterrupt,
    ) -> None:
        epochs.begin()
        while batches := interrupt.awaited(epochs.take, 1):
            (batch,) = batches
            check_columns("train_dataset", batch, self._loss_fn)
            params["train_dataset_element"] = batch
            params["cur_step_num"] += 1
            try:
                callback_list.on_train_step_begin(context)
            except BaseException:
                params["cur_step_num"] -= 1  # so many were done
                raise
            params["step_running"] = True
            params["net_outputs"] = called(network, batch)
            params["step_running"] = False
            callback_list.on_train_step_end(context)
            interrupt.check()
            if context.get_stop_requested():
                break

    # Evaluating and predicting.

    @border
    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """Return the metrics over a dataset, by name, with the network in evaluation mode.

        Raises ValueError if the model has no metrics, or no outputs to compute them from.
        """
        check_dataset(valid_dataset, "Model.eval", "valid_dataset")
        self._need_metrics("Model.eval")
        later = Later()
        callback_list = CallbackList(callbacks, later)
        with settings_of(self._network), _closing(None, later), callback_list:
            results: dict[str, Any] = self._evaluate(valid_dataset, callback_list, dataset_sink_mode, {})["metrics"]
            return results

    def _need_metrics(self, function: str) -> None:
        if not self._metrics:
            raise ValueError(f"{function}: the model has no metrics; give some, as Model(..., metrics={{'accuracy'}})")

    def _evaluate(
        self,
        dataset: Any,
        callback_list: CallbackList,
        sink: bool,
        known: dict[str, Any],
        interrupt: DeferredInterrupt | None = None,
    ) -> CallbackParameters:
        """Evaluate, and return the parameters of the callbacks at the end.

        A validation also has the parameters of its training (`known`).
        """
        network = self._eval_network
        assert network is not None
        params = CallbackParameters(known)
        params.update(
            eval_network=network,
            network=self._network,
            mode="eval",
            batch_num=int(dataset.get_dataset_size()),
            valid_dataset=dataset,
            dataset_sink_mode=sink,
            list_callback=known.get("list_callback", callback_list.callbacks),
            cur_step_num=0,
        )
        context = RunContext(params, later=callback_list.later)
        for metric in self._metrics.values():
            metric.clear()
        mean_loss = Loss()
        network.set_train(False)
        callback_list.on_eval_begin(context)
        callback_list.on_eval_epoch_begin(context)
        watching = callback_list.having("on_eval_step_begin", "on_eval_step_end")
        read, network = self._offloaded(dataset, network)
        runner = Runner(network._compiled(), keep=True) if sink and not watching else None
        # Metrics take in a batch while the next one is computed, unless somebody could see that.
        updates = Later(2)
        alone = any(not callback.writes_later for callback in watching)
        epochs = Epochs(read)
        with _closing(epochs, updates):
            most = runner.stretch if runner is not None else 1
            while batches := epochs.take(most) if interrupt is None else interrupt.awaited(epochs.take, most):
                for batch in batches:
                    check_columns("valid_dataset", batch, self._loss_fn if self._eval_indexes == [0, 1, 2] else None)
                if runner is not None:
                    results: Any = runner.run(batches)
                    params["cur_step_num"] += len(results)
                    params["net_outputs"] = results[-1]
                else:
                    params["cur_step_num"] += 1
                    params["eval_dataset_element"] = batches[0]
                    callback_list.on_eval_step_begin(context)
                    params["net_outputs"] = called(network, batches[0])
                    callback_list.on_eval_step_end(context)
                    results = [held(params["net_outputs"])]
                updates(self._update_metrics, results, mean_loss)
                if alone:
                    updates.flush()
                if interrupt is not None:
                    interrupt.check()
                if context.get_stop_requested():
                    break
        callback_list.on_eval_epoch_end(context)
        params["metrics"] = {name: metric.eval() for name, metric in self._metrics.items()}
        params["eval_results"] = dict(params["metrics"])
        if self._eval_indexes is not None:
            params["eval_results"]["eval_loss"] = mean_loss.eval()
        callback_list.on_eval_end(context)
        return params

    def _offloaded(self, dataset: Any, network: Cell) -> tuple[Any, Cell]:
        """Return what `offloading.parts` gives; the same network where a dataset comes again."""
        read, front = offloading.parts(dataset, network)
        if front is network:
            return read, network
        if self._front is None or self._front[0] is not dataset or self._front[1] is not network:
            self._front = (dataset, network, front)
        return read, self._front[2]

    def _update_metrics(self, results: Any, mean_loss: Loss) -> None:
        for outputs in results:
            self._update_metrics_with(outputs, mean_loss)

    def _update_metrics_with(self, outputs: Any, mean_loss: Loss) -> None:
        outputs = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
        if self._eval_indexes is None:
            for metric in self._metrics.values():
                metric.update(*outputs)
            return
        if len(outputs) <= max(self._eval_indexes):
            raise ValueError(
                f"Model.eval: eval_indexes {self._eval_indexes} choose from {len(outputs)} outputs of eval_network"
            )
        loss, prediction, label = (outputs[index] for index in self._eval_indexes)
        mean_loss.update(loss)
        for metric in self._metrics.values():
            if isinstance(metric, Loss):
                metric.update(loss)
            else:
                metric.update(prediction, label)

    @border
    def predict(self, *predict_data: Any, backend: str | None = None, config: Any = None) -> Any:
        """Return the network's output for a batch, in evaluation mode.

        `config` has no effect, which is logged. Raises ValueError for a `backend` other than None
        and "ge".
        """
        if backend not in (None, "ge"):
            raise ValueError(f"Model.predict: backend {backend!r} is not available; leave it out")
        if config is not None:
            without_effect("Model.predict(config=...)", "it is of the backend 'lite', which is not here")
        self._network.set_train(False)
        given = tuple([Tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in predict_data])
        with settings_of(self._network):
            return called(self._network, given)

    @border
    def build(
        self,
        train_dataset: Any = None,
        valid_dataset: Any = None,
        sink_size: int = -1,
        epoch: int = 1,
        sink_mode: bool = True,
    ) -> None:
        """Compile the training and evaluation networks, without running them, for the types of the
        first batches.

        Args:
            train_dataset (Dataset | None): The data of trainings. Default: None.
            valid_dataset (Dataset | None): The data of evaluations. Default: None.
            sink_size (int): Has no effect, which is logged. Default: -1.
            epoch (int): Has no effect, which is logged. Default: 1.
            sink_mode (bool): Has no effect, which is logged. Default: True.
        """
        why = "what is compiled does not depend on how many steps run"
        unused("Model.build", why, sink_size=(sink_size, -1), epoch=(epoch, 1), sink_mode=(sink_mode, True))
        for dataset, argument, network, mode in (
            (train_dataset, "train_dataset", self._train_network, True),
            (valid_dataset, "valid_dataset", self._eval_network, False),
        ):
            if dataset is None:
                continue
            check_dataset(dataset, "Model.build", argument)
            if network is None:
                self._need_metrics("Model.build")
                return
            network.set_train(mode)
            epochs = Epochs(dataset)
            try:
                network.compile(*epochs.take(1)[0])
            finally:
                epochs.close()
