"""What MindSpore's modules show of their own machinery, under the same paths: `inner.common.api` is
of `mindspore.common.api`.

A name is here if programs use it and Mycel's libraries have no use for it. What a module only
imports is not here (`mycel.compat.names`).
"""
