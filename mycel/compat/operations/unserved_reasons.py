"""Why a name that MindSpore has is not served, and what to use instead.

A name has the first reason of which a pattern fits; what none fits is a helper of MindSpore's own
functions or a description of its kernels.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

from mycel.compat.operations.private_primitives.unserved_primitives import PRIVATE

__all__ = ["advice_for"]

_REASONS: tuple[tuple[str, str], ...] = (
    (
        "is a collective of a device's backend; use mindspore.communication, or ops.AllReduce and its neighbours",
        """
        DistComm* dist_comm_* InnerComm* inner_comm_* AShardIdentity shard_identity* MatmulAllReduceAddRmsNorm
        matmul_allreduce_add_rmsnorm* CreateSymmetricMemory create_symmetric_memory GetMem get_mem PutMem* put_mem*
        SignalOp signal_op SignalWaitUntil signal_wait_until MoeDistribute* moe_distribute_*
        """,
    ),
    (
        "moves a tensor between a processor and a device's memory; there is one memory here, so leave it out",
        """
        CopyToDevice CopyToHost copy_to_device copy_to_host Detach detach Free free UpdateToDevice UpdateToRemote
        update_to_device update_to_remote FormatCast format_cast
        """,
    ),
    (
        "is a step of an attention kernel for Ascend devices; use ops.flash_attention_score, "
        "ops.fused_infer_attention_score or their gradients by mindspore.grad",
        """
        Mla Mla* mla mla_* FlashAttentionScore* flash_attention_score* FusedInferAttentionScore
        fused_infer_attention_score* LightningIndexerGrad lightning_indexer_grad* SparseFlashAttentionGrad
        sparse_flash_attention_grad* SpeedFusionAttention* speed_fusion_attention* Nsa*Grad nsa_*_grad* KvScaleCache
        kv_scale_cache DynamicNTK dynamic_ntk MultiScaleDeformableAttn* paged_attention* GroupTopk group_topk
        ffn* FFNExt TopKRouter TopPRouter topkrouter topprouter
        """,
    ),
    (
        "is a quantised kernel for Ascend devices; use ops on numbers, or ops.auto_generate.QuantBatchMatmul",
        "QuantLinearSparse DequantSwigluQuant dequant_swiglu_quant DynamicBlockQuant dynamic_block_quant",
    ),
    (
        "looks for faults of Ascend devices; use ops.isfinite or set_context(check_nan=True)",
        """
        SilentCheck* silent_check_* GenerateEodMaskV2 InsertGemV2InBackward generate_eod_mask* insert_gem*
        NPU*FloatStatus*
        """,
    ),
    (
        "is a part of a fused optimizer or gradient of Ascend devices; use nn.AdamWeightDecay, or mindspore.grad of "
        "the forward operation",
        """
        ApplyAdamW ApplyCamePart* Gmm*Backward* gmm_*backward* GmmBackward* AddLayerNormGrad
        add_layer_norm_grad* BatchNormElemtGrad
        BatchNormReduceGrad batch_norm_elemt_grad* batch_norm_reduce_grad* LstsqV2Grad lstsq_v2_grad*
        """,
    ),
    (
        "is a step of another operation inside MindSpore; call the whole operation in mindspore.ops or mindspore.mint",
        "Inner* inner_* IRFFTDouble irfft_double* Generator DumpGradient dump_gradient* _*",
    ),
    (
        "is the entry of a compiled kernel of MindSpore; call the operation of the same name in mindspore.ops",
        "*Prim_ _Pyboost*",
    ),
)
_OTHERS = "is an inner part of MindSpore that Mycel does not have; use the public functions of mindspore.ops"


@cache
def _patterns() -> list[tuple[str, str]]:
    return [(pattern, advice) for advice, words in _REASONS for pattern in words.split()]


def advice_for(name: str) -> str:
    """Return what goes on after the name in an error: what it is tied to, and what to use.

    >>> advice_for("CopyToDevice").partition(";")[0]
    "moves a tensor between a processor and a device's memory"
    """
    if name in PRIVATE:
        return PRIVATE[name]
    return next((advice for pattern, advice in _patterns() if fnmatchcase(name, pattern)), _OTHERS)
