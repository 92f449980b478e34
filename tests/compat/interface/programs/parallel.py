# ruff: noqa: B023, F821
import mindspore as ms
from mindspore import nn, ops
from mindspore.common.sparse_tensor import RowTensorInner
from mindspore.communication import _comm_helper as H
from mindspore.nn.layer import conv
from mindspore.nn.utils import no_init_parameters
from mindspore.nn.wrap import cell_wrapper, loss_scale
from mindspore.parallel import _auto_parallel_context as A
from mindspore.parallel import _cost_model_context as C
from mindspore.parallel import _utils as U
from mindspore.parallel import algo_parameter_config as G
from mindspore.parallel import nn as pn
from mindspore.parallel.auto_parallel import AutoParallel

context = A.auto_parallel_context()
say("one object", lambda: context is A.auto_parallel_context())
GETTERS = """
    auto_parallel_search_mode auto_pipeline communi_parallel_mode dataset_strategy device_num
    dump_local_norm dump_local_norm_path enable_all_gather_fusion enable_all_reduce_fusion
    enable_alltoall enable_fold_pipeline enable_parallel_optimizer force_fp32_communication full_batch
    full_batch_is_set global_rank grad_accumulation_step grad_accumulation_shard gradient_fp32_sync
    gradients_mean loss_repeated_mean optimizer_weight_shard_aggregated_save
    optimizer_weight_shard_size parallel_mode parallel_optimizer_threshold parameter_broadcast
    pipeline_interleave pipeline_scheduler pipeline_stages sharding_propagation strategy_ckpt_config
    strategy_ckpt_load_file strategy_search_mode device_num_is_set parameter_broadcast_is_set
    pipeline_segments auto_parallel_new_interface init_param_in_compile comm_fusion
"""
for name in GETTERS.split():
    say(name, lambda: getattr(context, f"get_{name}")())
say("set", lambda: (context.set_gradients_mean(True), context.get_gradients_mean(), U._get_gradients_mean()))
say("through the function", lambda: ms.get_auto_parallel_context("gradients_mean"))
say("strategies", lambda: (context.set_strategy_search_mode("dynamic_programming"), context.get_strategy_search_mode()))
say("another", lambda: context.set_strategy_search_mode("x"))
say(
    "indices",
    lambda: (context.set_all_reduce_fusion_split_indices([1, 2]), context.get_all_reduce_fusion_split_indices()),
)
say("twice", lambda: context.set_all_reduce_fusion_split_indices([1, 1]))
say("given", lambda: (context.set_full_batch(True), context.get_full_batch_is_set()))
say("reset", lambda: (context.reset(), context.get_gradients_mean(), context.get_full_batch_is_set()))
for name, value in (
    ("costmodel_alpha", 2.0),
    ("costmodel_alpha", "x"),
    ("costmodel_alpha", -2.0),
    ("run_phase", 7),
    ("foo", 1),
):
    say(f"cost {name} {value}", lambda: (C.set_cost_model_context(**{name: value}), C.get_cost_model_context(name)))
say("reset cost", lambda: (C.reset_cost_model_context(), C.get_cost_model_context("costmodel_alpha")))
say("gamma", lambda: C.cost_model_context().get_costmodel_gamma())
say(
    "subgraphs",
    lambda: (
        C._get_multi_subgraphs(),
        C._set_multi_subgraphs(),
        C._get_multi_subgraphs(),
        C._set_multi_subgraphs(False),
    ),
)
say("coefficient", lambda: (C._set_rp_matmul_mem_coef(0.5), C._get_rp_matmul_mem_coef()))
say("no such", lambda: C.get_cost_model_context("foo"))
algorithm = G._algo_parameter_config()
say("algorithm", lambda: (algorithm.set_fully_use_devices(True), algorithm.get_fully_use_devices()))
say("epsilon", lambda: algorithm.set_dp_algo_approxi_epsilon(2.0))
say("algorithm again", lambda: (algorithm.reset_algo_parameters(), algorithm.get_tensor_slice_align_size()))
say("numbers", lambda: (U._device_number_check("stand_alone", 1), U._parameter_broadcast_check("data_parallel", True)))
say("two devices", lambda: U._device_number_check("stand_alone", 2))
say("broadcast", lambda: U._parameter_broadcast_check("stand_alone", True))
say("modes", lambda: (U._is_parallel_mode(), U._need_to_full(), U._get_parallel_mode()))
say("facts", lambda: (H._is_initialized(), H._is_hccl_available(), H._is_mpi_available(), H._is_available()))
say("backend", lambda: (H.Backend("HCCL"), H.Backend.UNDEFINED, H.DEVICE_TO_BACKEND))
say("no backend", lambda: H.Backend("foo"))
say("a number", lambda: H.Backend(3))
x = ms.Tensor([[1.0, 2.0], [3.0, 4.0]])
net = nn.Dense(2, 3, weight_init="ones", bias_init="zeros")
say("accumulated", lambda: pn.GradAccumulation(net, 2)(x))
say("interleaved", lambda: pn.MicroBatchInterleaved(net, 2)(x))
say("pipeline", lambda: pn.Pipeline(net, 2)(x))
say("no parts", lambda: pn.Pipeline(net, 0))
say("automatic", lambda: AutoParallel(net)(x))
say("another mode", lambda: AutoParallel(net, parallel_mode="x"))
with no_init_parameters():
    later = nn.Dense(2, 3)
say("declared", lambda: (later.weight.has_init, later.weight.shape, later(x).shape))
ms.load_param_into_net(
    later, {"weight": ms.Parameter(ops.ones((3, 2)), "weight"), "bias": ms.Parameter(ops.zeros(3), "bias")}
)
say("loaded", lambda: later(x))
say("scaled", lambda: (loss_scale._grad_scale(ms.Tensor(2.0), x), loss_scale.tensor_grad_scale(ms.Tensor(2.0), x)))
total = ms.Parameter(ops.ones((2, 2)), "total")
say("shares", lambda: loss_scale.shard_grad_scale(ms.Tensor(2.0), x, total))
say("parts", lambda: cell_wrapper._MicroBatch(2)(1, x)[0].shape)
say("unequal", lambda: cell_wrapper._MicroBatch(3)(0, x))
say("three", lambda: (conv._check_input_3d((1, 2, 3), "op"), conv._check_input_3d((1, 2, 3), "op")))
say("two", lambda: conv._check_input_3d((1, 2), "op"))
for case in (
    (True, False, False, 5, 3, 2, 1, 2),
    (False, True, False, 4, 5, 2, 1, 3),
    (False, False, True, 7, 2, 3, 2, 1),
):
    say("length", lambda: conv._deconv_output_length(*case))
say("slices", lambda: (nn.EmbeddingLookup.TABLE_ROW_SLICE, nn.EmbeddingLookup.FIELD_SLICE))
say("rows", lambda: isinstance(RowTensorInner, type))
