"""Operations of `mindspore.ops` that are tied to other devices, or to processes, that there are not
here. They can be created anywhere, and a call raises Unsupported.
"""

from __future__ import annotations

from mycel.compat.unserved import Group, served_on_request

__all__: list[str] = []

__getattr__ = served_on_request(
    "mindspore.ops",
    (
        Group(
            "reads a register of Ascend devices; look for overflow in values with ops.isfinite or ops.FloatStatus",
            operations=("NPUAllocFloatStatus()", "NPUClearFloatStatus()", "NPUGetFloatStatus()"),
        ),
        Group(
            "passes weights to a parameter server, which Mycel does not have; use ops.AllReduce between processes",
            operations=("Pull()", "Push(optim_type='ApplyMomentum', only_shape_indices=None)"),
        ),
        Group(
            "reads the queue of a dataset on an Ascend or GPU device; iterate over the dataset",
            operations=("GetNext(types, shapes, output_num, shared_name)",),
        ),
        Group(
            "joins branches of MindSpore's own graphs; write Python's if, or ops.cond",
            functions=("geswitch(data, pred)", "merge(*branches)"),
            operations=("GeSwitch()", "Merge()"),
        ),
        Group(
            "divides a tensor among devices; use the collectives of mindspore.ops",
            functions=("distribute(*args)", "reshard(tensor, layout)"),
            operations=("Reshard(in_layout, out_layout, in_strategy)",),
        ),
        Group(
            "belongs to MindSpore's compiler of graphs, which Mycel does not have; write Python and compile it with "
            "mindspore.jit",
            functions=(
                "array_reduce(*args)",
                "embed(*args)",
                "get_vm_impl_fn(prim)",
                "is_dynamic_sequence_element_unknown(*args)",
                "make_map_parameter(*args)",
            ),
        ),
        Group(
            "routes tokens between experts on Ascend devices; use ops.topk, ops.gather and the collectives of "
            "mindspore.ops",
            functions=(
                "moe_distribute_combine(expand_x, expert_ids, expand_idx, ep_send_counts, expert_scales, "
                "ep_world_size, ep_rank_id, moe_expert_num, *args, **kwargs)",
                "moe_distribute_dispatch(x, expert_ids, ep_world_size, ep_rank_id, moe_expert_num, *args, **kwargs)",
            ),
            operations=("GroupTopk()",),
        ),
        Group("keeps a table of embeddings on Ascend devices; use nn.EmbeddingLookup", operations=("MapCacheIdx()",)),
        Group(
            "compiles C++ for MindSpore's own kernels; use ops.Custom or ops.Morph",
            classes=(
                "CustomOpBuilder(name, sources, backend=None, include_paths=None, cflags=None, ldflags=None, **kwargs)",
            ),
        ),
    ),
)
