"""Names at the top of MindSpore that are tied to other devices, clusters and files of several
devices.
"""

from __future__ import annotations

from mycel.compat.unserved import Group, served_on_request

__all__: list[str] = []

__getattr__ = served_on_request(
    "mindspore",
    (
        Group(
            "watches the arithmetic of Ascend devices; use set_context(check_nan=True)",
            functions=(
                "sdc_detect_start()",
                "sdc_detect_stop()",
                "get_sdc_detect_result()",
                "stress_detect(detect_type='aic')",
                "set_dump(target, enabled=True)",
            ),
        ),
        Group(
            "recovers the work of clusters; save and load checkpoints with mindspore.train.ModelCheckpoint",
            functions=("set_mindio_server_info(data_block_pool_capacity_in_gb=100)",),
            classes=("RSCPluginHandle()", "TFTCommValue()"),
        ),
        Group(
            "divides the cores and the memory of an Ascend device; mindspore.set_memory limits the memory used",
            functions=(
                "get_device_limit()",
                "get_stream_limit(stream)",
                "set_device_limit(cube_num=-1, vector_num=-1)",
                "set_stream_limit(stream, cube_num=-1, vector_num=-1)",
                "reset_stream_limit(stream)",
                "use_mem_pool(pool)",
                "memory_replay(estimate_path)",
            ),
            classes=(
                "MemPool(allocator)",
                "PluggableAllocator(path_to_so_file, alloc_fn_name, free_fn_name)",
                "StreamLimitCtx(stream, cube_num=-1, vector_num=-1)",
            ),
        ),
        Group(
            "compares the work of several devices; there is one process",
            functions=("comm_exec_order_check(action)", "runtime_execution_order_check(action)"),
        ),
        Group(
            "splits or hides MindIR files; mindspore.export writes them whole",
            functions=(
                "export_split_mindir(file_name, device_num=8, rank_id=0, dynamic=True, sapp=False)",
                "load_obf_params_into_net(network, target, data_parallel_num=1, **kwargs)",
                "obfuscate_ckpt(network, ckpt_files, target_modules=None, saved_path='./', obfuscate_scale=100)",
            ),
        ),
    ),
)
