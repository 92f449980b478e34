"""Windows of signal processing, and the short-time Fourier transform.

A periodic window of n elements is a symmetric one of n + 1 without its last element. The parameters
of windows are numbers, so that NumPy computes them. In the short-time transform frame k is the
window times x[k hop : k hop + n_fft]; a window shorter than n_fft is centred among zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import fourier, gather_scatter
from mycel.ops._operands import floating, need_room, number_of, numbers, permuted, reshaped, size_of
from mycel.ops.arrange import pad
from mycel.ops.complex_numbers import view_as_real

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window", "stft"]


def _window(name: str, length: Any, periodic: bool, dtype: Any, default: Any, shape: Callable[[int], Any]) -> Tensor:
    if isinstance(length, Tensor):
        if not length.dtype.is_integer:
            raise TypeError(f"{name}: window_length must be an int or a tensor of one, not {length._type}")
        length = length.item()
    n = arguments.integer(name, "window_length", length)
    arguments.flag(name, "periodic", periodic)
    if n < 0:
        raise arguments.wrong_value(name, "window_length", "at least 0", n)
    need_room(name, (size_of(name, n),), D.float64)
    kind = default if dtype is None else D.from_any(dtype)
    if not kind.is_floating:
        raise TypeError(f"{name}: dtype must be a floating type, not {kind.name}")
    values = np.ones(n) if n < 2 else shape(n + 1)[:-1] if periodic else shape(n)
    return cast(as_tensor(values, D.float64), kind)


def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Return the triangular window, which is 0 at its ends; float32 unless `dtype` is given.

    >>> import mycel as ms
    >>> ms.ops.bartlett_window(5, False).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    arguments.flag("bartlett_window", "periodic", periodic)
    return _window("bartlett_window", window_length, periodic, dtype, D.float32, np.bartlett)


def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Return 0.42 - 0.5 cos(2 pi i / (n - 1)) + 0.08 cos(4 pi i / (n - 1)) for i in 0 .. n - 1,
    where n is `window_length`.

    A `periodic` window is one of n + 1 elements without its last. It is float32 unless `dtype` is
    given.

    >>> import mycel as ms
    >>> [round(v, 2) for v in ms.ops.blackman_window(4).tolist()]
    [0.0, 0.34, 1.0, 0.34]
    """
    arguments.flag("blackman_window", "periodic", periodic)
    return _window(
        "blackman_window", window_length, periodic, dtype, D.float32, lambda n: np.maximum(np.blackman(n), 0)
    )


def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Tensor:
    """Return the Hamming window ``alpha - beta * cos(2 * pi * i / (n - 1))``.

    Args:
        window_length (int): The number n of elements.
        periodic (bool): Whether the window is one of n + 1 elements without its last. Default:
            True.
        alpha (float): The first coefficient. Default: 0.54.
        beta (float): The second coefficient. Default: 0.46.
        dtype (DType | None): The element type; None for float32. Default: None.

    Returns:
        Tensor: (n,).

    Examples:
        >>> import mycel as ms
        >>> [round(v, 2) for v in ms.ops.hamming_window(4).tolist()]
        [0.08, 0.54, 1.0, 0.54]
    """
    arguments.instance("hamming_window", "alpha", alpha, float)
    arguments.instance("hamming_window", "beta", beta, float)
    arguments.flag("hamming_window", "periodic", periodic)

    number_of("hamming_window", "alpha", alpha), number_of("hamming_window", "beta", beta)

    def shape(n: int) -> Any:
        return alpha - beta * np.cos(numbers(n) * (2 * math.pi / (n - 1)))

    return _window("hamming_window", window_length, periodic, dtype, D.float32, shape)


def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Return 0.5 - 0.5 cos(2 pi i / (n - 1)) for i in 0 .. n - 1, where n is `window_length`.

    A `periodic` window is one of n + 1 elements without its last. It is float64 unless `dtype` is
    given.

    >>> import mycel as ms
    >>> [round(v, 2) for v in ms.ops.hann_window(4).tolist()]
    [0.0, 0.5, 1.0, 0.5]
    """
    arguments.flag("hann_window", "periodic", periodic)
    return _window("hann_window", window_length, periodic, dtype, D.float64, np.hanning)


def kaiser_window(window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """Return the Kaiser window ``I0(beta * sqrt(1 - (2 * i / (n - 1) - 1)**2)) / I0(beta)``.

    Args:
        window_length (int): The number n of elements.
        periodic (bool): Whether the window is one of n + 1 elements without its last. Default:
            True.
        beta (float): The shape; the larger, the narrower. Default: 12.0.
        dtype (DType | None): The element type; None for float64. Default: None.

    Returns:
        Tensor: (n,).

    Examples:
        >>> import mycel as ms
        >>> [round(v, 2) for v in ms.ops.kaiser_window(4, beta=1.0).tolist()]
        [0.79, 0.95, 1.0, 0.95]
    """
    arguments.instance("kaiser_window", "beta", beta, (int, float))
    arguments.flag("kaiser_window", "periodic", periodic)
    number_of("kaiser_window", "beta", beta)
    return _window("kaiser_window", window_length, periodic, dtype, D.float64, lambda n: np.kaiser(n, beta))


def stft(
    x: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "REFLECT",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of overlapping frames of a signal.

    Args:
        x (Tensor): The signal, ([B,] L).
        n_fft (int): The length of a frame.
        hop_length (int | None): The distance between frames; None for n_fft / 4. Default: None.
        win_length (int | None): The number of factors of a frame; None for `n_fft`. Default: None.
        window (Tensor | None): The factors of a frame; None for ones. Default: None.
        center (bool): Whether frame k is centred at k hop, with the ends padded. Default: True.
        pad_mode (str): How ends are padded, a mode of `pad`. Default: "REFLECT".
        normalized (bool): Whether results are divided by sqrt(n_fft). Default: False.
        onesided (bool | None): Whether frequencies above n_fft / 2 are left out; None for real
            signals alone. Default: None.
        return_complex (bool | None): Whether the result is complex, else its last axis has the real
            and imaginary parts; None for complex signals alone. Default: None.

    Returns:
        Tensor: ([B,] frequencies, frames), or with an axis of 2 behind.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.stft(ms.ops.ones(8), 4, return_complex=True).shape
        (3, 9)
    """
    name = "stft"
    signal = floating(name, x)
    if signal.ndim not in (1, 2):
        raise ShapeError(f"{name}: takes a signal (L,) or a batch (B, L), not {signal._type}")
    is_complex = signal.dtype.is_complex
    n_fft = size_of(name, n_fft)
    hop = n_fft // 4 if hop_length is None else size_of(name, hop_length)
    width = n_fft if win_length is None else size_of(name, win_length)
    arguments.text(name, "pad_mode", pad_mode)
    one_sided = not is_complex if onesided is None else onesided
    if n_fft < 1 or hop < 1 or not 1 <= width <= n_fft:
        raise ValueError(
            f"{name}: n_fft {n_fft} and hop_length {hop} must be positive, and win_length {width} in [1, n_fft]"
        )
    if one_sided and is_complex:
        raise ValueError(f"{name}: onesided is for real signals; the signal is {signal.dtype.name}")
    single = signal.ndim == 1
    if single:
        signal = reshaped(signal, (1, *signal.shape))
    if center:
        half = n_fft // 2
        signal = reshaped(
            pad(reshaped(signal, (1, *signal.shape)), (half, half), mode=pad_mode.lower()),
            (signal.shape[0], signal.shape[1] + 2 * half),
        )
    length = int(signal.shape[1])
    if length < n_fft:
        raise ValueError(f"{name}: a signal of {length} elements is shorter than n_fft {n_fft}")
    real = {D.complex64: D.float32, D.complex128: D.float64}.get(signal.dtype, signal.dtype)
    shape = as_tensor(np.ones(width), real) if window is None else floating(name, window)
    if shape.shape != (width,):
        raise ShapeError(f"{name}: the window must have win_length {width} elements, not {shape._type}")
    left = (n_fft - width) // 2
    if width < n_fft:
        shape = pad(shape, (left, n_fft - width - left))
    hop = min(hop, length)
    frames = 1 + (length - n_fft) // hop
    places = np.arange(frames)[:, None] * hop + np.arange(n_fft)
    parts = gather_scatter.gather(signal, as_tensor(places.astype(np.int32)), 1) * shape
    scale = "ortho" if normalized else "backward"
    found = fourier.rfft(parts, norm=scale) if one_sided else fourier.fft(parts, norm=scale)
    found = permuted(found, (0, 2, 1))
    if single:
        found = reshaped(found, found.shape[1:])
    pairs = not is_complex if return_complex is None else not return_complex
    return view_as_real(found) if pairs else found
