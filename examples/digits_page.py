"""A network in a web page: digits drawn by hand are read in the browser, by a module of WebAssembly
that holds the network and its weights.

A convolutional network learns the 1,797 digits that come with the package, each time moved and
squeezed a little, and becomes a module of some 60 kB (`mycel.deploy.web`). The page has all in one
file: it needs no server and no network, and works from the disk.

    python examples/digits_page.py    # compiled; --mode pynative runs operation by operation

Then open digits.html. Score: accuracy on the held-out digits, at least 0.98.
"""

import argparse
import base64
import sys

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel.dataset.digits import load_digits, stratified_split
from mycel.deploy import build, web

TARGET = 0.98

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Digits</title>
<style>
  body { font-family: sans-serif; max-width: 28em; margin: 2em auto; }
  canvas { border: 1px solid #888; touch-action: none; background: #000; }
  td { padding: 0 .5em; } td div { background: #48c; height: 1em; }
</style>
<h1>Draw a digit</h1>
<canvas id="drawn" width="256" height="256"></canvas>
<p><button id="clear">Clear</button> <span id="said"></span></p>
<table id="chances"></table>
<script type="module">
@SCRIPT@
const bytes = Uint8Array.from(atob("@WASM@"), (c) => c.charCodeAt(0));
const model = await load(bytes);
const canvas = document.getElementById("drawn"), pen = canvas.getContext("2d", { willReadFrequently: true });
const table = document.getElementById("chances"), said = document.getElementById("said");

// The digits learned from fill 32 x 32 points, of which each pixel counts 4 x 4.
function pixels() {
  const { data, width, height } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let left = width, right = -1, top = height, bottom = -1;
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (data[4 * (y * width + x)] > 127) {
    left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
  }
  const counts = new Float32Array(64), size = Math.max(right - left, bottom - top) + 1;
  if (right < 0) return null;
  const x0 = (left + right + 1 - size) / 2, y0 = (top + bottom + 1 - size) / 2;
  for (let v = 0; v < 32; v++) for (let u = 0; u < 32; u++) {
    const x = Math.floor(x0 + ((u + 0.5) * size) / 32), y = Math.floor(y0 + ((v + 0.5) * size) / 32);
    const inside = x >= 0 && y >= 0 && x < width && y < height;
    if (inside && data[4 * (y * width + x)] > 127) counts[(v >> 2) * 8 + (u >> 2)] += 1 / 16;
  }
  return counts;
}

function show() {
  const image = pixels();
  table.innerHTML = said.textContent = "";
  if (!image) return;
  const begun = performance.now(), chances = model.run(image), passed = performance.now() - begun;
  const best = chances.indexOf(Math.max(...chances));
  said.textContent = `This is a ${best} (${passed.toFixed(2)} ms)`;
  said.dataset.digit = best;
  chances.forEach((p, k) => {
    table.insertRow().innerHTML = `<td>${k}<td style="width:12em"><div style="width:${100 * p}%"></div>`;
  });
}

let last = null;
const at = (e) => [e.offsetX, e.offsetY];
canvas.onpointerdown = (e) => { last = at(e); canvas.setPointerCapture(e.pointerId); };
canvas.onpointermove = (e) => {
  if (!last) return;
  pen.strokeStyle = "#fff"; pen.lineWidth = 24; pen.lineCap = "round";
  pen.beginPath(); pen.moveTo(...last); pen.lineTo(...(last = at(e))); pen.stroke();
  show();
};
canvas.onpointerup = () => { last = null; };
document.getElementById("clear").onclick = () => { pen.clearRect(0, 0, canvas.width, canvas.height); show(); };
</script>
</html>
"""


class Reader(nn.Cell):
    """Images float32 [N, 1, 8, 8] within 0 .. 1 to logits float32 [N, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, pad_mode="same")
        self.conv2 = nn.Conv2d(16, 32, 3, pad_mode="same")
        self.pool = nn.MaxPool2d(2, 2)
        self.dense1 = nn.Dense(32 * 4, 64)
        self.dense2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x)))
        return self.dense2(ops.relu(self.dense1(x.flatten(start_dim=1))))


def moved(images, rng):
    """The images after a small affine map each: turned, squeezed and shifted."""
    count = len(images)
    theta = rng.normal(0, 0.1, (count, 2, 3)).astype(np.float32)
    theta[:, [0, 1], [0, 1]] += 1
    grid = ops.affine_grid(ms.Tensor(theta), (count, 1, 8, 8), align_corners=False)
    return ops.grid_sample(ms.Tensor(images), grid, align_corners=False).asnumpy()


def page(network):
    """The text of a page with a network in it."""
    chances = nn.SequentialCell(network, nn.Softmax())
    module = web(build(chances, ops.zeros((1, 1, 8, 8)), target="wasm32", name="digits"))
    print(f"the module: {len(module.wasm):,} bytes, {module.memory_bytes:,} bytes of memory")
    script = module.script.replace("export ", "")
    return PAGE.replace("@SCRIPT@", script).replace("@WASM@", base64.b64encode(module.wasm).decode())


def main(argv=None):
    """Train, evaluate and write the page; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="A network in a web page")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--samples", type=int, default=None, help="learn from the first so many images only")
    parser.add_argument("--page", default="digits.html", help="the file to write")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    images, labels = load_digits(size=8)
    images = images.transpose(0, 3, 1, 2).astype(np.float32) / 255
    train_rows, test_rows = stratified_split(labels)
    train_rows = train_rows[: args.samples]
    network, rng = Reader(), np.random.default_rng(args.seed)
    steps = len(train_rows) // 32
    rates = nn.cosine_decay_lr(1e-5, 3e-3, args.epochs * steps, steps, args.epochs)
    optimizer = nn.Adam(network.trainable_params(), rates)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer)

    losses = []
    for epoch in range(args.epochs):
        for rows in rng.permutation(train_rows)[: 32 * steps].reshape(-1, 32):
            losses.append(float(step(ms.Tensor(moved(images[rows], rng)), ms.Tensor(labels[rows]))))
        print(f"epoch {epoch + 1:2}/{args.epochs}  loss {np.mean(losses[-steps:]):.4f}", flush=True)

    with open(args.page, "w", encoding="utf-8") as file:
        file.write(page(network))
    print(f"wrote {args.page}")
    found = network(ms.Tensor(images[test_rows])).asnumpy().argmax(1)
    score = float((found == labels[test_rows]).mean())
    print(f"score: held-out accuracy {score:.4f} (at least {TARGET})")
    return losses, score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
