"""The operators as programs for MindSpore's interface, which Mycel and MindSpore run alike."""

from mindspore import ops

__all__ = ["OPERATORS"]


def add(x, y):
    return x + y


def chain(x, y, z):
    return ops.tanh(x * y + z) * ops.sigmoid(x) - ops.exp(-ops.abs(y))


def gelu(x):
    return ops.gelu(x, approximate="none")


def bias_relu(x, b):
    return ops.relu(x + b)


def select(x, y):
    return ops.where(x > 0, x, y / 10)


def power(u):
    return ops.sqrt(u) + u**3 - ops.log(u + 1)


def sum_all(x):
    return x.sum()


def sum_rows(x):
    return x.sum(1)


def sum_columns(x):
    return x.sum(0)


def max_rows(x):
    return ops.amax(x, 1)


def variance(x):
    return x.var(1)


def softmax(x):
    return ops.softmax(x, -1)


def cross_entropy(x, label):
    return ops.cross_entropy(x, label)


def layer_norm(x, w, b):
    return ops.layer_norm(x, w.shape, w, b)


def batch_norm(x, w, b):
    return ops.batch_norm(x, ops.zeros_like(w), ops.ones_like(w), w, b, True)


def conv_same(x, w):
    return ops.conv2d(x, w, pad_mode="pad", padding=1)


def conv1x1(x, w):
    return ops.conv2d(x, w)


def conv7x7(x, w):
    return ops.conv2d(x, w, stride=2, pad_mode="pad", padding=3)


def depthwise(x, w):
    return ops.conv2d(x, w, pad_mode="pad", padding=1, groups=128)


def transposed(x, w):
    return ops.conv_transpose2d(x, w, stride=2, padding=1)


def max_pool(x):
    return ops.max_pool2d(x, 3, 2)


def average_pool(x):
    return ops.avg_pool2d(x, 2, 2)


def global_pool(x):
    return x.mean((2, 3))


def matmul(x, y):
    return ops.matmul(x, y)


def dense(x, w, b):
    return ops.dense(x, w, b)


def attention(q, k, v):
    scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / 8.0
    return ops.matmul(ops.softmax(scores, -1), v)


def embedding(index, table):
    return ops.gather(table, index, 0)


def gather(x, index):
    return ops.gather_elements(x, 1, index)


def scatter_add(x, index, rows):
    return ops.tensor_scatter_add(x, index.reshape(-1, 1), rows)


def sort(x):
    return ops.sort(x, 1)[0]


def top_k(x):
    return ops.topk(x, 16, 1)[0]


def cumsum(x):
    return ops.cumsum(x, 1)


def concat(x, y):
    return ops.concat((x, y), 1)


def split(x):
    a, b = ops.chunk(x, 2, 1)
    return a * b


def transpose(x):
    return x.transpose(0, 2, 1, 3)


def transpose_matrix(x):
    return x.transpose(1, 0)


def dropout(x):
    return ops.dropout(x, 0.1, True)


OPERATORS = {
    "add": add,
    "chain": chain,
    "gelu": gelu,
    "bias_relu": bias_relu,
    "select": select,
    "power": power,
    "sum_all": sum_all,
    "sum_rows": sum_rows,
    "sum_columns": sum_columns,
    "max_rows": max_rows,
    "variance": variance,
    "softmax": softmax,
    "cross_entropy": cross_entropy,
    "layer_norm": layer_norm,
    "layer_norm_wide": layer_norm,
    "batch_norm": batch_norm,
    "conv3x3": conv_same,
    "conv3x3_deep": conv_same,
    "conv1x1": conv1x1,
    "conv7x7": conv7x7,
    "depthwise": depthwise,
    "transposed": transposed,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_pool": global_pool,
    "matmul": matmul,
    "matmul_small": matmul,
    "matmul_tall": matmul,
    "matmul_batched": matmul,
    "matmul_vector": matmul,
    "dense": dense,
    "attention": attention,
    "embedding": embedding,
    "gather": gather,
    "scatter_add": scatter_add,
    "sort": sort,
    "top_k": top_k,
    "cumsum": cumsum,
    "concat": concat,
    "split": split,
    "transpose": transpose,
    "transpose_matrix": transpose_matrix,
    "dropout": dropout,
}
