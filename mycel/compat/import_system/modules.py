"""The modules of MindSpore 2.10 that programs import from, by their packages.

Names that MindSpore defines in such a module are looked up in the sources of its package, as
Mycel's files are divided differently.
"""

from __future__ import annotations

from mycel.compat.operations.facts import has_facts

__all__ = ["is_module"]

_MODULES: dict[str, str] = {
    "common": """
        api dtype dynamic_shape file_system generator hook_handle initializer jit_config lazy_inline
        mutable no_inline np_dtype parameter recompute seed sparse_tensor storage symbol tensor
    """,
    "common.dynamic_shape": "auto_dynamic_shape enable_dynamic",
    "communication": "comm_func management",
    "dataset": "audio callback core debug engine text transforms utils vision",
    "dataset.audio": "transforms utils validators",
    "dataset.callback": "ds_callback validators",
    "dataset.debug": "debug_hook pre_defined_hook",
    "dataset.text": "transforms utils",
    "dataset.transforms": "transforms",
    "dataset.vision": "transforms",
    "experimental": "map_parameter optim",
    "experimental.optim": """
        adadelta adagrad adam adamax adamw asgd lr_scheduler nadam optimizer radam rmsprop rprop sgd
    """,
    "mindrecord": "config filereader filewriter mindpage",
    "mindrecord.tools": """
        cifar10 cifar100 cifar100_to_mr cifar10_to_mr csv_to_mr imagenet_to_mr mnist_to_mr
        tfrecord_to_mr
    """,
    "mint": "distributed linalg nn optim special",
    "mint.distributed": "distributed",
    "mint.nn": "functional layer",
    "mint.nn.layer": "activation basic conv normalization padding pooling",
    "mint.optim": "adam adamw fused_adamw sgd",
    "nn": "cell dynamic_lr grad layer learning_rate_schedule loss metrics optim probability sparse wrap",
    "nn.grad": "cell_grad",
    "nn.layer": """
        activation basic channel_shuffle combined container conv dense embedding image math
        normalization padding pooling rnn_cells rnns thor_layer timedistributed transformer
    """,
    "nn.loss": "loss",
    "nn.optim": """
        ada_grad adadelta adafactor adam adamax adasum asgd ftrl lamb lars lazyadam momentum
        optimizer proximal_ada_grad rmsprop rprop sgd tft_wrapper thor
    """,
    "nn.probability": "bijector distribution",
    "nn.probability.bijector": "bijector exp gumbel_cdf invert power_transform scalar_affine softplus",
    "nn.probability.distribution": """
        bernoulli beta categorical cauchy distribution exponential gamma geometric gumbel
        half_normal laplace log_normal logistic normal poisson student_t transformed_distribution
        uniform
    """,
    "nn.sparse": "sparse",
    "nn.utils": "init",
    "nn.wrap": "cell_wrapper grad_reducer loss_scale",
    "numpy": "array_creations array_ops dtypes fft logic_ops math_ops",
    "ops": """
        _primitive_cache _utils auto_generate communication composite deprecated function functional functional_overload
        operations primitive signature tensor_method
    """,
    "ops.composite": "base env_ops math_ops",
    "ops.function": """
        _add_attr_func array_func clip_func comm_func debug_func fft_func grad image_func linalg_func math_func
        nn_func other_func parameter_func random_func reshard_func sparse_func sparse_unary_func
        spectral_func vmap_func
    """,
    "ops.function.grad": "grad_func",
    "ops.operations": """
        _csr_ops _custom_grad _grad_ops _infer_ops _inner_ops _quant_ops _rl_inner_ops _scalar_ops
        _sequence_ops _sparse_grad_ops array_ops comm_ops control_ops custom_ops debug_ops image_ops
        inner_ops linalg_ops manually_defined math_ops nn_ops other_ops random_ops reshard_ops sparse_ops
        spectral_ops
    """,
    "parallel": "shard",
    "rewrite": "api common",
    "rewrite.api": "node node_type pattern_engine scoped_value symbol_tree",
    "rewrite.common": "namespace",
    "scipy": "fft linalg ops optimize",
    "scipy.optimize": "gradient_optimization_algorithm line_search linear_sum_assignment minimize",
    "train": """
        amp callback data_sink dataset_helper loss_scale_manager metrics model serialization summary
        train_thor
    """,
    "train.callback": """
        _backup_and_restore _callback _checkpoint _early_stop _flops_collector _history
        _lambda_callback _landscape _loss_monitor _lr_scheduler_callback _on_request_exit
        _reduce_lr_on_plateau _summary_collector _time_monitor
    """,
    "train.metrics": """
        accuracy auc bleu_score confusion_matrix cosine_similarity dice error fbeta
        hausdorff_distance loss mean_surface_distance metric occlusion_sensitivity perplexity
        precision recall roc root_mean_square_surface_distance topk
    """,
    "train.summary": "enums summary_record writer",
    "train.train_thor": "convert_utils dataset_helper model_thor",
    "ops.auto_generate": "cpp_create_prim_instance_helper gen_extend_func gen_ops_def gen_ops_prim pyboost_inner_prim",
    "ops._utils": "arg_dtype_cast arg_handler utils",
    "ops.operations.manually_defined": "ops_def",
}
_KNOWN = frozenset(f"{package}.{name}" for package, names in _MODULES.items() for name in names.split())


def is_module(path: str) -> bool:
    """Return whether MindSpore 2.10 has a module of this path below its root.

    >>> is_module("nn.optim.adam"), is_module("nn.optim.adams")
    (True, False)
    """
    return path in _KNOWN or has_facts(path)
