"""Write the samples in `tests/data/tflite`: networks that TensorFlow converted, with the values
that LiteRT's reference kernels compute. Run it with an environment that has TensorFlow, and the
folder to write to.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
random = np.random.default_rng(1)
K, L = tf.keras, tf.keras.layers


def f(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def convolutions():
    return K.Sequential(
        [
            L.Input((12, 12, 3), batch_size=2),
            L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
            L.DepthwiseConv2D(3, padding="same", activation="relu6"),
            L.BatchNormalization(),
            L.Conv2D(6, 1, activation="relu"),
            L.AveragePooling2D(2),
            L.Flatten(),
            L.Dense(5, activation="softmax"),
        ]
    )


def residual():
    x = L.Input((8, 8, 4), batch_size=1)
    y = L.Conv2D(4, 3, padding="same", activation="relu")(x)
    y = L.Conv2D(4, 3, padding="valid")(L.ZeroPadding2D(1)(y))
    y = L.ReLU()(L.Add()([x, y]))
    y = L.MaxPooling2D(3, 2, padding="same")(y)
    y = L.GlobalAveragePooling2D()(y)
    return K.Model(x, L.Dense(3)(L.Concatenate()([y, y * 0.5])))


def upsampling():
    x = L.Input((4, 5, 3), batch_size=1)
    y = L.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu")(x)
    y = L.UpSampling2D(2, interpolation="bilinear")(y)
    return K.Model(x, [L.Activation("sigmoid")(y), L.UpSampling2D(2)(x)])


class Mix(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([3, 4]), tf.TensorSpec([3, 4])])
    def __call__(self, x, y):
        a = tf.concat([x[:, 1:], y[:, ::2]], 1)
        b = tf.where(a > 0.2, a, tf.zeros_like(a) - 1.0)
        c = tf.transpose(tf.tanh(b) - tf.exp(a) * tf.math.rsqrt(tf.abs(a) + 1.0))
        d = tf.gather(c, tf.argmax(c, 0), axis=0)
        e = tf.matmul(x, y, transpose_b=True)
        return c, d, e, tf.pad(tf.reduce_sum(e, 1, keepdims=True), [[1, 0], [0, 2]]), tf.nn.log_softmax(e)


def attention():
    x = L.Input((6, 8), batch_size=1)
    y = L.MultiHeadAttention(2, 4)(x, x)
    y = L.LayerNormalization()(x + y)
    return K.Model(x, L.Dense(4, activation="gelu")(y))


def converter_of(made):
    if isinstance(made, tf.Module) and not isinstance(made, K.Model):
        return tf.lite.TFLiteConverter.from_concrete_functions([made.__call__.get_concrete_function()], made)
    return tf.lite.TFLiteConverter.from_keras_model(made)


def quantised(converter, shapes, per_tensor=False):
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([f(*s) for s in shapes] for _ in range(32))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter


CASES = {
    "convolutions": (convolutions, [(2, 12, 12, 3)]),
    "residual": (residual, [(1, 8, 8, 4)]),
    "upsampling": (upsampling, [(1, 4, 5, 3)]),
    "mix": (Mix, [(3, 4), (3, 4)]),
    "attention": (attention, [(1, 6, 8)]),
}
QUANTISED = ("convolutions", "residual")


def write(folder, name, content, shapes):
    interpreter = tf.lite.Interpreter(
        model_content=content, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    kept = {}
    for i, (info, shape) in enumerate(zip(interpreter.get_input_details(), shapes)):
        value = f(*shape)
        if info["dtype"] is np.int8:
            scale, zero = info["quantization"]
            value = np.clip(np.round(value / scale) + zero, -128, 127).astype(np.int8)
        kept[f"x{i}"] = value
        interpreter.set_tensor(info["index"], value)
    interpreter.invoke()
    for i, info in enumerate(interpreter.get_output_details()):
        kept[f"y{i}"] = interpreter.get_tensor(info["index"])
    (folder / f"{name}.tflite").write_bytes(content)
    np.savez_compressed(folder / f"{name}.npz", **kept)
    print(name, len(content), [d["op_name"] for d in interpreter._get_ops_details()])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, shapes) in CASES.items():
        made = make()
        write(folder, name, converter_of(made).convert(), shapes)
        if name in QUANTISED:
            write(folder, f"{name}_int8", quantised(converter_of(made), shapes).convert(), shapes)
