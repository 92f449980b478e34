"""Deep Q-learning that balances a pole on a cart, with the simulator in this file.

The cart is pushed left or right 50 times a second; a try ends when the pole leans by more than 12
degrees, when the cart leaves its track, or, well done, after 200 pushes; to learn, tries go on for
longer. The equations are those of Barto, Sutton and Anderson, "Neuronlike adaptive elements that
can solve difficult learning control problems" (1983), without friction. Q(s, a), a network, learns
what is yet to come from remembered transitions (Mnih et al., "Human-level control through deep
reinforcement learning", 2015):

    Q(s, a)  ->  1 + 0.99 * Q'(s', argmax Q(s', .)),    or 1 where the try ended at s',

where Q' follows Q slowly, and the choice and the value at s' come from different networks (van
Hasselt et al., "Deep reinforcement learning with double Q-learning", 2016). Several carts run at
once, so that one call of the network decides for all of them.

    python examples/dqn.py    # compiled; --mode pynative runs operation by operation

Score: the mean number of pushes of 20 tries without exploration, at least 195 of 200.
"""

import argparse
import sys
import time

import numpy as np

import mycel as ms
from mycel import nn, ops

TARGET = 195.0
LIMIT, LONGEST, DISCOUNT, FOLLOW = 200, 1000, 0.99, 0.01
CARTS, CAPACITY, FIRST = 8, 20_000, 1_000


class CartPoles:
    """Carts with a pole each; a state is float64 [carts, 4]: place and speed of the cart, angle and
    angular speed of the pole.
    """

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count, rng):
        self.rng = rng
        self.state, self.pushes = np.zeros((count, 4)), np.zeros(count, np.int64)
        self.restart(np.full(count, True))

    def restart(self, which):
        """Put the carts `which` bool [carts] near the middle, with the pole nearly upright."""
        self.state[which] = self.rng.uniform(-0.05, 0.05, (np.count_nonzero(which), 4))
        self.pushes[which] = 0

    def push(self, right):
        """A push of each cart, bool or 0 and 1 [carts]; gives which fell, bool [carts]."""
        place, speed, angle, turning = self.state.T
        total, moment = self.CART + self.POLE, self.POLE * self.HALF_LENGTH
        pull = (np.where(right, self.FORCE, -self.FORCE) + moment * turning**2 * np.sin(angle)) / total
        torque = self.GRAVITY * np.sin(angle) - np.cos(angle) * pull
        spin = torque / (self.HALF_LENGTH * (4 / 3 - self.POLE * np.cos(angle) ** 2 / total))
        acceleration = pull - moment * spin * np.cos(angle) / total
        self.state = self.state + self.SECONDS * np.stack([speed, acceleration, turning, spin], 1)
        self.pushes += 1
        return (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > np.radians(12))


class Replay:
    """The latest `CAPACITY` transitions.

    Each is (state float32 [4], action int32, next state float32 [4], fell float32).
    """

    def __init__(self):
        kinds = [((4,), np.float32), ((), np.int32), ((4,), np.float32), ((), np.float32)]
        self.columns = [np.zeros((CAPACITY, *shape), dtype) for shape, dtype in kinds]
        self.added = 0

    def add(self, *values):
        rows = np.arange(self.added, self.added + len(values[0])) % CAPACITY
        for column, value in zip(self.columns, values):
            column[rows] = value
        self.added += len(rows)

    def sample(self, count, rng):
        rows = rng.integers(0, min(self.added, CAPACITY), count)
        return [ms.Tensor(column[rows]) for column in self.columns]


class QNetwork(nn.Cell):
    """States float32 [N, 4] to the values of both pushes, float32 [N, 2]."""

    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Dense(4, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU(), nn.Dense(width, 2)
        )
        self.usual = ms.Tensor([1.0, 1.0, 0.1, 1.0])

    def construct(self, state):
        return self.layers(state / self.usual)


def greedy(net, state):
    return net(ms.Tensor(state, ms.float32)).argmax(1).asnumpy()


def evaluate(net, tries, rng):
    """The mean number of pushes without exploration; all tries at once."""
    carts = CartPoles(tries, rng)
    stands, pushes = np.full(tries, True), np.zeros(tries)
    for _ in range(LIMIT):
        pushes += stands
        stands &= ~carts.push(greedy(net, carts.state))
    return float(pushes.mean())


def main(argv=None):
    """Train and try; gives the losses of the steps and the score."""
    parser = argparse.ArgumentParser(description="Deep Q-learning on a cart with a pole")
    parser.add_argument(
        "--mode", choices=["graph", "pynative"], default="graph", help="compiled, or operation by operation"
    )
    parser.add_argument("--steps", type=int, default=5000, help=f"pushes of each of the {CARTS} carts")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    ms.set_context(mode=ms.GRAPH_MODE if args.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_seed(args.seed)

    net, slow = QNetwork(), QNetwork()
    ms.load_param_into_net(slow, net.parameters_dict())
    optimizer = nn.Adam(net.trainable_params(), nn.PolynomialDecayLR(1e-3, 1e-4, args.steps, 1.0))
    pairs = list(zip(slow.get_parameters(), net.get_parameters()))
    print(f"deep Q-learning, {args.steps} steps of {CARTS} carts, batches of {args.batch_size}, {args.mode} mode")

    def forward(state, action, following, fell):
        chosen = net(following).argmax(1, keepdims=True)
        future = slow(following).gather_elements(1, chosen).squeeze(1)
        wanted = ops.stop_gradient(1 + DISCOUNT * (1 - fell) * future)
        return ops.huber_loss(net(state).gather_elements(1, action.expand_dims(1)).squeeze(1), wanted)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train_step(*transitions):
        loss, gradients = gradient(*transitions)
        optimizer(ops.clip_by_global_norm(gradients, 10.0))
        for behind, ahead in pairs:
            ops.assign(behind, behind + FOLLOW * (ahead - behind))
        return loss

    if args.mode == "graph":
        train_step = ms.jit(train_step)
    rng = np.random.default_rng(args.seed)
    carts, replay = CartPoles(CARTS, rng), Replay()
    best, weights, losses, begun = -1.0, {}, [], time.perf_counter()
    for step in range(1, args.steps + 1):
        exploring = rng.random(CARTS) < max(0.02, 1 - 4 * step / args.steps)
        before, action = carts.state, np.where(exploring, rng.integers(0, 2, CARTS), greedy(net, carts.state))
        fell = carts.push(action)
        replay.add(before, action, carts.state, fell)
        carts.restart(
            fell | (carts.pushes >= LONGEST)
        )  # a try ended by its length would have gone on: no end to learn from
        if replay.added >= FIRST:
            losses.append(train_step(*replay.sample(args.batch_size, rng)))
        if step % 500 == 0 or step == args.steps:
            pushes = evaluate(net, 20, np.random.default_rng(step))
            if pushes >= best:
                best, weights = pushes, {name: p.asnumpy().copy() for name, p in net.parameters_dict().items()}
            recent = float(ops.stack(losses[-500:]).mean())
            seconds = time.perf_counter() - begun
            print(f"step {step:5}/{args.steps}  loss {recent:.4f}  {pushes:5.1f} pushes  {seconds:.1f} s", flush=True)

    # The values go up and down to the end, so the best of the networks tried on the way is tried
    # again, from new starts.
    ms.load_param_into_net(net, {name: ms.Parameter(value) for name, value in weights.items()})
    score = evaluate(net, 20, np.random.default_rng([args.seed, 1]))
    print(f"score: mean pushes of 20 tries {score:.1f} (at least {TARGET:.0f} of {LIMIT})")
    return [float(loss) for loss in losses], score


if __name__ == "__main__":
    sys.exit(0 if main()[1] >= TARGET else 1)
