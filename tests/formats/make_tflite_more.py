"""Write further samples in `tests/data/tflite`: open sizes, control flow, recurrent layers, other
kinds of quantisation, and operators that move elements. As `make_tflite`, but with the file and the
names to write: TensorFlow ends the process for some combinations.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

K, L, T, F = tf.keras, tf.keras.layers, tf.TensorSpec, tf.float32
tf.random.set_seed(3)
random = np.random.default_rng(3)


def f(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def of_function(function, *specs):
    concrete = tf.function(function, input_signature=specs).get_concrete_function()
    return tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())


def of_layers(shape, *layers, batch=None):
    return tf.lite.TFLiteConverter.from_keras_model(K.Sequential([L.Input(shape, batch_size=batch), *layers]))


def quantised(converter, shape, kind):
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
        return converter
    converter.representative_dataset = lambda: ([f(*shape)] for _ in range(32))
    sets = tf.lite.OpsSet
    whole = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec.supported_ops = [whole if kind == "int16" else sets.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = getattr(tf, kind)
    return converter


def images(batch=None):
    layers = [
        L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
        L.DepthwiseConv2D(3, padding="same"),
        L.BatchNormalization(),
        L.ReLU(6.0),
        L.Flatten(),
        L.Dense(7, activation="relu"),
        L.Dense(5, activation="softmax"),
    ]
    return of_layers((8, 8, 3), *layers, batch=batch)


def chosen(x, y):
    first = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0 + y, lambda: tf.tanh(x) - y)
    return first, tf.cond(tf.reduce_sum(y) > 0.0, lambda: y[:1], lambda: -y[1:])


def repeated(x, y):
    def going(i, t):
        return tf.logical_and(i < 5, tf.reduce_sum(tf.abs(t)) < 30.0)

    return tf.while_loop(going, lambda i, t: (i + 1, t * 1.5 + y), (tf.constant(0), x))


def nested(x, y):
    def body(i, t):
        u = tf.cond(tf.reduce_sum(t) > 1.0, lambda: t * 0.5, lambda: t + x)
        _, u = tf.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u + y * 0.1), (tf.constant(0), u))
        return i + 1, u

    return tf.while_loop(lambda i, t: i < 4, body, (tf.constant(0), x))[1]


def moves(x):
    a = tf.nn.space_to_depth(x, 2)
    c = tf.pad(x, [[0, 0], [1, 2], [2, 1], [0, 0]], "REFLECT")
    d = tf.pad(x, [[0, 0], [1, 1], [0, 1], [0, 0]], "SYMMETRIC")
    e = tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]])
    g = tf.batch_to_space(e, [2, 2], [[0, 0], [0, 0]])
    return a, tf.nn.depth_to_space(a, 2), c, d, e, g, tf.nn.l2_normalize(x, -1)


def picks(x, i):
    v, k = tf.math.top_k(x, 2)
    return (
        tf.gather_nd(x, tf.constant([[0, 1], [2, 3]])),
        tf.one_hot(i, 4, 2.0, -1.0),
        v,
        k,
        tf.cumsum(x, 1, exclusive=True, reverse=True),
        tf.cumsum(x, 0),
        tf.scatter_nd([[0], [2]], x[:2], [4, 4]),
        tf.reverse_sequence(x, [1, 2, 3], 1, 0),
        tf.reduce_any(x > 0.5, 1),
        tf.reduce_all(x > -0.5, 0),
        tf.fill([2, 3], x[0, 0]),
        tf.add_n([x, x * 2.0, x]),
        tf.sign(x),
        tf.atan2(x, x + 2.0),
        tf.math.unsorted_segment_sum(x, i, 3),
        tf.linalg.diag(x),
    )


def splits(x):
    a, b, c = tf.split(x, [1, 1, 2], 1)
    whole = tf.bitwise.bitwise_xor(tf.cast(x * 9.0, tf.int32), 5)
    return a, b, c, tf.cast(tf.range(4), F) + x, tf.clip_by_value(x, 0.0, 1.0), tf.where(x > 0.0), whole


def shapes(x):
    s = tf.shape(x)
    return (
        tf.reshape(x, [s[0] * 2, -1]),
        tf.zeros([s[0], 2]) + tf.reduce_sum(x),
        tf.broadcast_to(x[:, :1], s),
        tf.tile(x, [1, 2]),
        tf.reshape(x, tf.concat([s[:1], [2, -1]], 0)),
        tf.cast(tf.size(x), F) * x,
    )


TWO = (T([2, 3], F), T([2, 3], F))
UP = [
    L.Conv2DTranspose(4, 3, strides=2, padding="same"),
    L.UpSampling2D(2, interpolation="bilinear"),
    L.LeakyReLU(0.2),
    L.Conv2D(2, 1, activation="sigmoid"),
]
CASES = {
    "cnn_open": lambda: (images(), [f(3, 8, 8, 3)]),
    "cnn_open_int8": lambda: (quantised(images(), (1, 8, 8, 3), "int8"), [f(3, 8, 8, 3)]),
    "cnn_int16": lambda: (quantised(images(1), (1, 8, 8, 3), "int16"), [f(1, 8, 8, 3)]),
    "cnn_f16": lambda: (quantised(images(1), None, "float16"), [f(1, 8, 8, 3)]),
    "dense_int8": lambda: (
        quantised(of_layers((16,), L.Dense(32, activation="relu"), L.Dense(8), batch=1), (1, 16), "int8"),
        [f(1, 16)],
    ),
    "up_int8": lambda: (quantised(of_layers((4, 4, 3), *UP, batch=1), (1, 4, 4, 3), "int8"), [f(1, 4, 4, 3)]),
    "lstm": lambda: (
        of_layers((6, 4), L.LSTM(5, return_sequences=True), L.LSTM(3), L.Dense(2), batch=1),
        [f(1, 6, 4)],
    ),
    "rnn": lambda: (
        of_layers((6, 4), L.SimpleRNN(5, return_sequences=True), L.SimpleRNN(3), L.Dense(2), batch=1),
        [f(1, 6, 4)],
    ),
    "cond": lambda: (of_function(chosen, *TWO), [f(2, 3), f(2, 3)]),
    "loop": lambda: (of_function(repeated, *TWO), [f(2, 3), f(2, 3)]),
    "nested": lambda: (of_function(nested, *TWO), [f(2, 3), f(2, 3)]),
    "moves": lambda: (of_function(moves, T([1, 4, 6, 4], F)), [f(1, 4, 6, 4)]),
    "picks": lambda: (of_function(picks, T([3, 4], F), T([3], tf.int32)), [f(3, 4), np.array([0, 2, 1], np.int32)]),
    "splits": lambda: (of_function(splits, T([3, 4], F)), [f(3, 4)]),
    "shapes": lambda: (of_function(shapes, T([None, 4], F)), [f(3, 4)]),
    "three": lambda: (of_layers((4, 4, 4, 2), L.Conv3D(3, 2, padding="same"), batch=1), [f(1, 4, 4, 4, 2)]),
}


def write(folder, name, content, inputs):
    interpreter = tf.lite.Interpreter(
        model_content=content, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
    )
    details = interpreter.get_input_details()
    if len(details[0]["shape"]) != inputs[0].ndim:
        inputs = inputs[::-1]
    for info, value in zip(details, inputs):
        interpreter.resize_tensor_input(info["index"], value.shape)
    interpreter.allocate_tensors()
    kept = {}
    for i, (info, value) in enumerate(zip(details, inputs)):
        if info["dtype"] in (np.int8, np.int16):
            (scale, zero), ends = info["quantization"], np.iinfo(info["dtype"])
            value = np.clip(np.round(value / scale) + zero, ends.min, ends.max).astype(info["dtype"])
        kept[f"x{i}"] = value
        interpreter.set_tensor(info["index"], value)
    interpreter.invoke()
    for i, info in enumerate(interpreter.get_output_details()):
        kept[f"y{i:02}"] = interpreter.get_tensor(info["index"])
    (folder / f"{name}.tflite").write_bytes(content)
    np.savez_compressed(folder / f"{name}.npz", **kept)
    print(name, len(content), sorted({d["op_name"] for d in interpreter._get_ops_details()}))


if __name__ == "__main__":
    for name in sys.argv[2:] or CASES:
        converter, inputs = CASES[name]()
        write(Path(sys.argv[1]), name, converter.convert(), inputs)
