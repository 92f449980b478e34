# ruff: noqa: B023, F821
import mindspore as ms
import numpy as np
from mindspore.common import initializer as I

for shape in ((3,), (3, 4), (2, 3, 4), (5, 2, 3, 3, 3), ()):
    say(f"fans {shape}", lambda: I._calculate_fan_in_and_fan_out(shape))
    say(f"fan_out {shape}", lambda: I._calculate_correct_fan(shape, "fan_out"))
    say(f"in and out {shape}", lambda: I._calculate_in_and_out(np.zeros(shape)))
say("another mode", lambda: I._calculate_correct_fan((3, 4), "x"))
for name in "linear conv1d conv_transpose3d sigmoid tanh relu leaky_relu selu x".split():
    say(f"gain {name}", lambda: (I._calculate_gain(name), I._calculate_gain(name, 0.2)))
say("slopes", lambda: I._calculate_gain("leaky_relu", True))
a = np.zeros((2, 3), np.float32)
say("number", lambda: (I._assignment(a, 2.5), a))
say("array", lambda: (I._assignment(a, np.arange(6).reshape(2, 3)), a))
say("another shape", lambda: I._assignment(a, np.arange(4)))


@I._register("my_init", "mine")
class Mine(I.Initializer):
    def _initialize(self, arr):
        I._assignment(arr, 3.0)


say("registered", lambda: I.initializer("mine", (2,), ms.float32).init_data())
say("by its class", lambda: (I.initializer(Mine(), (2,), ms.float32).init_data(), I._INITIALIZER_ALIAS["mine"] is Mine))
say("aliases", lambda: sorted(set(I._INITIALIZER_ALIAS) & {"zeros", "ones", "he_uniform", "normal", "xavier_normal"}))
say("class", lambda: I._INITIALIZER_ALIAS.get("xavier_uniform").__name__)
for low, high, mean, sigma in ((-0.1, 0.1, 0, 1), (9, 11, 10, 1), (-1, 1, 10, 1)):
    drawn = I._init_truncated_normal(low, high, mean, sigma, (1000,))
    say("truncated", lambda: (str(drawn.dtype), bool((drawn >= low).all() and (drawn <= high).all()), drawn.shape))
drawn = I._init_random_uniform(5.0, 6.0, (1000,))
say(
    "uniform",
    lambda: (str(drawn.dtype), bool((drawn >= 5).all() and (drawn <= 6).all()), abs(drawn.mean() - 5.5) < 0.1),
)
drawn = I._init_random_normal(5.0, 0.1, (1000,))
say("normal", lambda: (str(drawn.dtype), bool(abs(drawn.mean() - 5) < 0.02), bool(abs(drawn.std() - 0.1) < 0.02)))
ms.set_seed(5)
say("seeds", lambda: I._get_graph_seed(3, "a"))
say("negative seed", lambda: I._get_graph_seed(-3, "a"))
