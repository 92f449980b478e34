"""`PTQ` and `RoundToNearest`: dense layers with weights of few bits."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel.compat.golden_stick.algorithm import CompAlgo
from mycel.compat.golden_stick.ptq.config import (
    GPTQQuantConfig,
    OutliersSuppressionType,
    PrecisionRecovery,
    PTQConfig,
    PTQMode,
    QuantGranularity,
)
from mycel.compat.inner.common.dtype import qint4x2
from mycel.quantisation.packed_weights import Packing, packed

__all__ = ["PTQ", "RoundToNearest"]


def _refused(name: str, value: Any, supported: str) -> ValueError:
    return ValueError(f"PTQConfig: {name} {value!r} is not supported; it may be {supported}")


def _packing(config: PTQConfig) -> Packing:
    """Return a configuration as a packing; what has no effect here is refused."""
    if config.mode is not PTQMode.QUANTIZE:
        raise _refused("mode", config.mode, "PTQMode.QUANTIZE; networks load what was packed with load_param_into_net")
    if config.kvcache_quant_dtype is not None:
        raise _refused("kvcache_quant_dtype", config.kvcache_quant_dtype, "None")
    if config.weight_clip:
        raise _refused("weight_clip", True, "False")
    bits = 8 if config.weight_quant_dtype is D.int8 else 4
    if config.weight_quant_dtype not in (D.int8, qint4x2):
        raise _refused("weight_quant_dtype", config.weight_quant_dtype, "int8 or qint4x2")
    grouped = config.weight_quant_granularity is QuantGranularity.PER_GROUP
    if config.weight_quant_granularity not in (QuantGranularity.PER_CHANNEL, QuantGranularity.PER_GROUP):
        raise _refused("weight_quant_granularity", config.weight_quant_granularity, "PER_CHANNEL or PER_GROUP")
    if grouped != (config.group_size > 0):
        raise ValueError(
            f"PTQConfig: group_size {config.group_size} does not go with {config.weight_quant_granularity}; PER_GROUP "
            "needs a size above 0"
        )
    if config.outliers_suppression not in (OutliersSuppressionType.NONE, OutliersSuppressionType.SMOOTH):
        raise _refused("outliers_suppression", config.outliers_suppression, "NONE or SMOOTH")
    options = config.algo_args
    if isinstance(options, GPTQQuantConfig):
        if options != GPTQQuantConfig(options.block_size):
            raise _refused("algo_args", options, "GPTQQuantConfig() with another block_size, which changes no result")
        options = {}
    if set(options) - {"alpha"}:
        raise _refused("algo_args", options, "{'alpha': number} or GPTQQuantConfig()")
    values = "float"
    if config.act_quant_dtype is not None:
        if config.act_quant_dtype is not D.int8:
            raise _refused("act_quant_dtype", config.act_quant_dtype, "None or int8")
        kinds = {QuantGranularity.PER_TENSOR: "tensor", QuantGranularity.PER_TOKEN: "token"}
        if config.act_quant_granularity not in kinds:
            raise _refused("act_quant_granularity", config.act_quant_granularity, "PER_TENSOR or PER_TOKEN")
        values = kinds[config.act_quant_granularity]
    return Packing(
        bits,
        config.group_size,
        config.precision_recovery is PrecisionRecovery.GPTQ,
        config.outliers_suppression is OutliersSuppressionType.SMOOTH,
        float(options.get("alpha", 0.5)),
        values,
    )


class PTQ(CompAlgo):
    """Dense layers packed as a configuration says (`mycel.quantisation.packed_weights`).

    `config` is a `PTQConfig`, or its options as a dict. `layer_policies` are those of Ascend and
    must be None.
    """

    def __init__(self, config: Any = None, layer_policies: Any = None) -> None:
        super().__init__(config)
        if layer_policies is not None:
            raise ValueError(f"{type(self).__name__}: layer_policies must be None; there is one for dense layers")
        if isinstance(config, dict):
            config = PTQConfig(**config)
        if config is not None and not isinstance(config, PTQConfig):
            raise TypeError(f"{type(self).__name__}: config must be a PTQConfig or a dict, not {config!r:.80}")
        self._config = config or PTQConfig()
        _packing(self._config)

    def apply(self, network: Cell, network_helper: Any = None, datasets: Any = None, **kwargs: Any) -> Cell:
        """Return the network with packed layers, which replace those in it.

        `datasets` are batches of arguments, on which values are observed where the configuration
        needs that: a dataset, or a list of tensors or tuples. A `network_helper` has to be None.
        """
        if network_helper is not None or kwargs:
            raise ValueError(f"{type(self).__name__}.apply: network_helper and further arguments are not supported")
        rows = datasets.create_tuple_iterator(num_epochs=1) if hasattr(datasets, "create_tuple_iterator") else datasets
        return packed(network, _packing(self._config), list(rows or ()), tuple(self._config.opname_blacklist))


class RoundToNearest(PTQ):
    """Dense layers whose weights are the nearest of 8 bits."""

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        if self._config.precision_recovery is not PrecisionRecovery.NONE:
            raise ValueError("RoundToNearest: precision_recovery must be NONE; use PTQ for others")
