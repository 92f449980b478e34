"""`mindspore.common.jit_begin_end`: marks of a part of a function to compile by its trace."""

from __future__ import annotations

from mycel.compat.unserved import Group, served_on_request

__all__: list[str] = []

__getattr__ = served_on_request(
    "mindspore.common.jit_begin_end",
    (
        Group(
            "marks operations to record as they run; decorate a function of them with mindspore.jit",
            functions=(
                "_jit_begin(fn_name, *args)",
                "_jit_end(*output_args)",
                "_jit_trace_begin(fn_name, *args)",
                "_jit_trace_end(*output_args)",
            ),
        ),
    ),
)
