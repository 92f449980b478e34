"""`JitConfig`: MindSpore's compilation options.

They come from `JitConfig`, from `jit` and from `set_context(jit_config=...)`. One of them
matters here: `jit_syntax_level`, which decides whether a function that cannot be one graph is an
error. The nearest setting wins: the function's own, the Cell's, the context's. The others choose
between compilers that do not exist here; they are checked, and logged as having no effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

__all__ = ["JitConfig", "check_options", "is_strict", "set_recursion_limit"]

_ALLOWED: dict[str, tuple[str, ...]] = {
    "jit_level": ("", "O0", "O1", "O2"),
    "exc_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("", "STRICT", "COMPATIBLE", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"),
    "infer_boost": ("off", "on"),
    "exec_order": ("", "bfs", "dfs"),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "disable_format_transform": (bool,),
    "ge_options": (dict,),
    "hash_args": (object,),
    "compile_once": (bool,),
    "input_signature": (object,),
}


class JitConfig:
    """Options of compilation for `Cell.set_jit_config`, kept in `jit_config_dict`.

    Args:
        jit_level (str): Checked; has no effect here. Default: "".
        exc_mode (str): Checked; has no effect here. Default: "auto".
        jit_syntax_level (str): "STRICT" makes it an error where a Cell cannot be one graph; with
            "LAX" or "" it runs in segments. Default: "".
        debug_level (str): Checked; has no effect here. Default: "RELEASE".
        infer_boost (str): Checked; has no effect here. Default: "off".
        **kwargs (Any): Further options, which have no effect here.

    Raises:
        ValueError: For a value that an option does not have.

    Examples:
        >>> import mycel as ms
        >>> ms.JitConfig(jit_syntax_level="STRICT").jit_config_dict["jit_syntax_level"]
        'STRICT'
    """

    def __init__(
        self,
        jit_level: str = "",
        exc_mode: str = "auto",
        jit_syntax_level: str = "",
        debug_level: str = "RELEASE",
        infer_boost: str = "off",
        **kwargs: Any,
    ) -> None:
        self.jit_config_dict: dict[str, Any] = dict(kwargs)
        self.jit_config_dict.update(
            jit_level=jit_level,
            exc_mode=exc_mode,
            jit_syntax_level=jit_syntax_level,
            debug_level=debug_level,
            infer_boost=infer_boost,
        )
        check_options("JitConfig", self.jit_config_dict)

    def __repr__(self) -> str:
        return f"JitConfig({', '.join(f'{k}={v!r}' for k, v in self.jit_config_dict.items())})"


def check_options(what: str, options: Mapping[str, Any]) -> None:
    """Log each option that has no effect.

    `what` names the caller in messages. Raises ValueError or TypeError for a wrong value.
    """
    for name, value in options.items():
        allowed = _ALLOWED.get(name)
        if allowed is not None:
            arguments.one_of(what, name, value, allowed)
        if name in _TYPES and not isinstance(value, _TYPES[name]):
            raise arguments.wrong_type(what, name, f"a {_TYPES[name][0].__name__}", value)
        if name == "jit_config":
            _dict_of(what, value)
        elif name == "jit_syntax_level":
            continue
        elif allowed is None and name not in _TYPES:
            logger.warning("%s: there is no option %r; it has no effect", what, name)
        elif allowed is None or value != allowed[0]:
            logger.info("%s(%s=%r) has no effect: the compiler needs no choice here", what, name, value)


def _dict_of(what: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, JitConfig):
        return value.jit_config_dict
    if isinstance(value, Mapping):
        return value
    raise arguments.wrong_type(what, "jit_config", "a JitConfig", value)


def is_strict(options: Mapping[str, Any], function: Any) -> bool:
    """Return whether it is an error where a function cannot be one graph.

    The function's options decide, else those of its Cell, else the context's.
    """
    owner = getattr(function, "__self__", function)
    places = (
        options,
        _dict_of("jit", options.get("jit_config")),
        getattr(owner, "jit_config_dict", None),
        _dict_of("set_context", config._context.get("jit_config")),
    )
    for found in places:
        level = found.get("jit_syntax_level") if isinstance(found, Mapping) else None
        if level:
            return bool(level == "STRICT")
    return bool(config._context["jit_syntax_level"] == config.STRICT)


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Set the context's `max_call_depth`.

    It has no effect, as calls nest as deep as memory allows. Raises TypeError unless
    `recursion_limit` is an int, ValueError unless it is positive.

    >>> import mycel as ms
    >>> ms.set_recursion_limit(2000)
    """
    arguments.integer("set_recursion_limit", "the limit", recursion_limit, 1, numpy=False)
    config.set_context(max_call_depth=recursion_limit)
