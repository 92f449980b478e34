"""Loss landscapes: the loss on a plane through the parameters of a trained network.

While training, `LandscapeKeeper` (for `SummaryCollector`) saves the parameters at chosen steps or
epochs, and lists these in ``train_metadata.json``. `SummaryLandscape` then spans planes from them,
after Li, Xu, Taylor, Studer and Goldstein, "Visualizing the loss landscape of neural nets", 2018.
With the last parameters of an interval as origin o:

* *train*: the directions are the two leading right singular vectors of the differences to o, and
  the plane holds the path of the training, projected by least squares, with a margin of a fifth on
  each side.
* *result*: the directions are drawn from a normal distribution; the plane reaches from -1 to 1 on
  both.

In both, the part of a direction that belongs to a parameter is scaled to the norm of that parameter
in o. As in MindSpore, parameters are those with "weight" or "bias" and without "moment" in their
name; the others stay. The loss at o + a v + b w is the mean of a training step's losses over
batches, without an optimizer.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import arguments
from mycel._src.foundation.files import atomic_files as whole
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.seed import get_seed
from mycel.train._batches import Epochs
from mycel.train.callback.base import step_loss
from mycel.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint
from mycel.train.summary import SummaryRecord

__all__ = ["Landscape", "LandscapeKeeper", "SummaryLandscape"]

Array = NDArray[np.float64]
_METADATA = "train_metadata.json"
_MARGIN = 0.2


def checked_options(owner: str, given: Any) -> dict[str, Any]:
    """Return the options of `collect_landscape`, completed with the defaults.

    Raises TypeError and ValueError for invalid options.
    """
    arguments.instance(owner, "collect_landscape", given, dict)
    whole: dict[str, Any] = {
        "landscape_size": 40,
        "unit": "step",
        "create_landscape": {"train": True, "result": True},
        "num_samples": 2048,
        "intervals": None,
    }
    for name in given:
        if name not in whole:
            raise ValueError(f"{owner}: collect_landscape has {name!r}; known: {', '.join(whole)}")
    whole.update(given)
    for name, low, high in (("landscape_size", 3, 256), ("num_samples", 1, None)):
        value = whole[name]
        arguments.integer(owner, name, value, numpy=False)
        if value < low or (high is not None and value > high):
            raise ValueError(
                f"{owner}: {name} must be at least {low}{f' and at most {high}' if high else ''}, not {value}"
            )
    arguments.one_of(owner, "unit", whole["unit"], ("epoch", "step"))
    kinds = whole["create_landscape"]
    if not isinstance(kinds, dict) or not all(
        k in ("train", "result") and isinstance(v, bool) for k, v in kinds.items()
    ):
        raise ValueError(f"{owner}: create_landscape maps 'train' and 'result' to True or False, not {kinds!r}")
    whole["create_landscape"] = {"train": True, "result": True, **kinds}
    intervals = whole["intervals"]
    if intervals is not None:
        fits = isinstance(intervals, list) and intervals and all(isinstance(i, list) and len(i) >= 3 for i in intervals)
        if not fits or not all(isinstance(n, int) and n > 0 for i in intervals for n in i):
            raise ValueError(f"{owner}: intervals must be lists of three or more steps or epochs, not {intervals!r}")
    return whole


class LandscapeKeeper:
    """The collector of a network's parameters at the steps or epochs of intervals, with the facts
    that `SummaryLandscape` needs about them.
    """

    def __init__(self, summary_dir: Any, options: Any) -> None:
        self.options = checked_options("SummaryCollector", options)
        if self.options["intervals"] is None:
            raise ValueError("SummaryCollector: collect_landscape wants intervals, as [[1, 2, 3, 4, 5]]")
        self.folder = os.path.join(os.path.realpath(summary_dir), "ckpt_dir")
        self.unit = self.options["unit"]
        self._wanted = {number for interval in self.options["intervals"] for number in interval}
        self._files: dict[str, str] = {}

    def keep(self, unit: str, number: int, network: Any) -> None:
        """Save the parameters if those of this step or epoch are wanted."""
        if unit == self.unit and number in self._wanted:
            os.makedirs(self.folder, exist_ok=True)
            self._files[str(number)] = os.path.join(self.folder, f"{unit}_{number}.ckpt")
            save_checkpoint(network, self._files[str(number)])

    def finish(self, steps: int) -> None:
        """Write the list of the saved parameters."""
        known = {"unit", "num_samples", "landscape_size", "create_landscape"}
        groups = {str(k): interval for k, interval in enumerate(self.options["intervals"])}
        data = {name: self.options[name] for name in known}
        data.update(epoch_group=groups, model_params_file_map=self._files, step_per_epoch=steps)
        os.makedirs(self.folder, exist_ok=True)
        whole.write(os.path.join(self.folder, _METADATA), json.dumps(data, indent=1, sort_keys=True).encode())


class Landscape(NamedTuple):
    """The losses on a plane: `z` [size, size] at the places `x` and `y` [size] along both
    directions.

    `path` [points, 3] has x, y and the loss of the training's points; its last point is the origin.
    """

    x: Array
    y: Array
    z: Array
    path: Array


class SummaryLandscape:
    """The maker of loss landscapes from the parameters that a `SummaryCollector` with
    "collect_landscape" has saved in `summary_dir` (see the module's description).

    >>> import tempfile
    >>> landscape = SummaryLandscape(tempfile.mkdtemp())
    >>> landscape.clean_ckpt()
    """

    def __init__(self, summary_dir: Any) -> None:
        arguments.path("SummaryLandscape", "summary_dir", summary_dir)
        self._dir = os.path.realpath(summary_dir)
        self._folder = os.path.join(self._dir, "ckpt_dir")

    def clean_ckpt(self) -> None:
        """Remove the saved parameters."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def gen_landscapes_with_multi_process(
        self,
        callback_fn: Callable[[], tuple[Any, Any, Any, Any]],
        collect_landscape: dict[str, Any] | None = None,
        device_ids: list[int] | None = None,
        output: Any = None,
    ) -> None:
        """Compute the landscapes and write them into a summary file.

        For each landscape the tensors x, y, z and path and a picture of z (bright where the loss is
        high) are recorded as ``landscape_[first, last]/z`` and so on.

        Args:
            callback_fn (Callable[[], tuple[Any, Any, Any, Any]]): Gives the model (without an
                optimizer, so that its steps give losses), its network, a dataset and metrics, of
                which only the loss is used.
            collect_landscape (dict[str, Any] | None): Options that override those of the collector:
                "landscape_size" (3 to 256 points on each side), "create_landscape" ({"train": ...,
                "result": ...}), "num_samples" (how much of the dataset), "intervals". Default:
                None.
            device_ids (list[int] | None): Has no effect: one process computes. Default: None.
            output (str | None): The folder; None for beside the parameters. Default: None.

        Raises:
            FileNotFoundError: If nothing was saved.
            TypeError, ValueError: For arguments that do not fit.
        """
        if device_ids is not None and (
            not isinstance(device_ids, list) or not all(isinstance(i, int) for i in device_ids)
        ):
            raise TypeError(f"SummaryLandscape: device_ids must be a list of integers, not {device_ids!r}")
        data = self._metadata(collect_landscape)
        with SummaryRecord(self._dir if output is None else output) as record:
            for title, found in self._landscapes(data, callback_fn):
                for name, values in found._asdict().items():
                    record.add_value("tensor", f"{title}/{name}", values)
                low, high = float(found.z.min()), float(found.z.max())
                record.add_value(
                    "image", f"{title}/picture", ((found.z - low) / ((high - low) or 1.0))[None, None, ::-1]
                )
                record.record(0)
                record.flush()

    def _metadata(self, given: dict[str, Any] | None) -> dict[str, Any]:
        path = os.path.join(self._folder, _METADATA)
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"SummaryLandscape: there is no {path}; train with SummaryCollector(..., "
                "collect_specified_data={'collect_landscape': ...})"
            )
        with open(path, encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
        if given is not None:
            whole = checked_options("SummaryLandscape", given)
            data.update({name: whole[name] for name in given if name != "intervals"})
            if whole["intervals"] is not None:
                data["epoch_group"] = {str(k): interval for k, interval in enumerate(whole["intervals"])}
        return data

    def _landscapes(self, data: dict[str, Any], callback_fn: Callable[[], Any]) -> Any:
        model, network, dataset, _ = callback_fn()
        loss = _LossAt(model, network, dataset, data["num_samples"])
        groups = list(data["epoch_group"].values())
        for interval in groups if data["create_landscape"]["train"] else ():
            kept = [self._kept(data, number) for number in interval]
            yield f"landscape_{[interval[0], interval[-1]]}", along_path(kept, loss, data["landscape_size"])
        if data["create_landscape"]["result"]:
            last = groups[-1][-1]
            yield f"landscape_{[last]}", around(self._kept(data, last), loss, data["landscape_size"])

    def _kept(self, data: dict[str, Any], number: int) -> dict[str, NDArray[Any]]:
        file = data["model_params_file_map"].get(str(number))
        if file is None:
            raise ValueError(
                f"SummaryLandscape: the parameters of {data['unit']} {number} were not saved; saved are "
                f"{', '.join(data['model_params_file_map'])}"
            )
        path = os.path.join(self._folder, os.path.basename(file))
        return {name: value.asnumpy() for name, value in load_checkpoint(path).items() if isinstance(value, Tensor)}


def _moves(name: str) -> bool:
    return ("weight" in name or "bias" in name) and "moment" not in name


def _flat(parameters: dict[str, NDArray[Any]], names: Sequence[str]) -> Array:
    return np.concatenate([parameters[name].astype(np.float64).ravel() for name in names])


def _scaled(direction: Array, origin: dict[str, NDArray[Any]], names: Sequence[str]) -> Array:
    """Return the direction with each parameter's part scaled to the norm of the parameter."""
    parts, start = [], 0
    for name in names:
        part = direction[start : start + origin[name].size]
        norm = float(np.linalg.norm(part))
        parts.append(part * (np.linalg.norm(origin[name].astype(np.float64)) / norm if norm else 0.0))
        start += origin[name].size
    return np.concatenate(parts)


def along_path(kept: Sequence[dict[str, NDArray[Any]]], loss: Any, size: int) -> Landscape:
    """Return the landscape on the plane in which the path of a training lies best."""
    origin = kept[-1]
    names = [name for name in origin if _moves(name)]
    differences = np.stack([_flat(p, names) - _flat(origin, names) for p in kept])
    leading = np.linalg.svd(differences[:-1], full_matrices=False)[2][:2]
    # The sign of a singular vector is arbitrary: the first parameters shall lie on the positive
    # side.
    v, w = (_scaled(u if float(differences[0] @ u) >= 0 else -u, origin, names) for u in leading)
    places = np.linalg.lstsq(np.stack([v, w], 1), differences.T, rcond=None)[0].T
    low, high = places.min(0), places.max(0)
    margin = _MARGIN * (high - low)
    x, y = np.linspace(low - margin, high + margin, size).T
    values = loss.on_grid(origin, names, v, w, x, y)
    path = np.column_stack([places, [loss.at(origin, names, a * v + b * w) for a, b in places]])
    return Landscape(x, y, values, path)


def around(origin: dict[str, NDArray[Any]], loss: Any, size: int) -> Landscape:
    """Return the landscape on a plane of two random directions."""
    names = [name for name in origin if _moves(name)]
    random = np.random.default_rng(get_seed())
    v, w = (_scaled(random.normal(size=sum(origin[n].size for n in names)), origin, names) for _ in range(2))
    axis = np.linspace(-1, 1, size)
    values = loss.on_grid(origin, names, v, w, axis, axis)
    return Landscape(axis, axis, values, np.array([[0.0, 0.0, loss.at(origin, names, 0 * v)]]))


class _LossAt:
    """The mean loss of `model` over the first `samples` samples of `dataset`, for any values of the
    parameters of `network`.
    """

    def __init__(self, model: Any, network: Any, dataset: Any, samples: int) -> None:
        self.network, self.step = network, model.train_network
        if model._optimizer is not None:
            raise ValueError("SummaryLandscape: the model must have no optimizer, as its steps would train it")
        size = max(dataset.get_batch_size(), 1)
        epochs = Epochs(dataset)
        self.batches: list[Any] = []
        for batch in epochs.epoch():
            self.batches.append(batch)
            if len(self.batches) >= max(samples // size, 1):
                break
        epochs.close()

    def at(self, origin: dict[str, NDArray[Any]], names: Sequence[str], move: Array) -> float:
        """Return the loss at `move` from the origin."""
        values, start = dict(origin), 0
        for name in names:
            part = move[start : start + origin[name].size].reshape(origin[name].shape)
            values[name] = (origin[name] + part).astype(origin[name].dtype)
            start += origin[name].size
        own = {p.name for p in self.network.get_parameters()}
        load_param_into_net(self.network, {n: Tensor.from_numpy(v.copy()) for n, v in values.items() if n in own})
        self.step.set_train(True)
        return float(np.mean([step_loss(self.step(*batch)) for batch in self.batches]))

    def on_grid(
        self, origin: dict[str, NDArray[Any]], names: Sequence[str], v: Array, w: Array, x: Array, y: Array
    ) -> Array:
        """Return the losses [len(y), len(x)] at the points ``origin + a * v + b * w`` for a in `x`,
        b in `y`.

        `origin` has the parameters' values; `names` lists the parameters that the directions `v`
        and `w` move.
        """
        return np.array([[self.at(origin, names, a * v + b * w) for a in x] for b in y])
