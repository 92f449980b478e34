"""Cases of mindflow (neural operators, a physics-informed network, a solver of flows, diffusion)
and of mindquantum (circuits as layers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from third_party_cases import Arrays, case, fill, gradients, numbers, outputs
from third_party_steps import classify, descend, stepper

# mindflow.


def _operator(name: str) -> Any:
    from mindflow import cell
    from mindspore import Tensor, float32

    def transforms(axes: int) -> Any:
        known = cell.get_poly_transform(16, 6)
        return [[Tensor(known[name], float32) for name in ("analysis", "synthesis")]] * axes

    made: dict[str, Callable[[], Any]] = {
        "FNO1D": lambda: cell.FNO1D(1, 1, 6, 32, hidden_channels=8, n_layers=2, fno_compute_dtype=float32),
        "KNO1D": lambda: cell.KNO1D(2, 8, 6, 2, 32),
        "KNO2D": lambda: cell.KNO2D(2, 8, 4, 2, 16),
        "SNO1D": lambda: cell.SNO1D(2, 1, 8, 2, transforms=transforms(1)),
        "SNO2D": lambda: cell.SNO2D(2, 1, 8, 2, transforms=transforms(2)),
        "PDENet": lambda: cell.PDENet(16, 16, 1, 5, 3, dx=0.1, dy=0.1, dt=0.1),
        "PeRCNN": lambda: cell.PeRCNN(2, 2, 4, 5, 0.1, 0.01, numbers(7, 1, 1, 5, 5)),
        "UNet2D": lambda: cell.UNet2D(2, 1, 4, n_layers=2),
        "ViT": lambda: cell.ViT((16, 16), 2, 1, 4, 2, 16, 2, 1, 16, 2, compute_dtype=float32),
        "MultiScaleFCSequential": lambda: cell.MultiScaleFCSequential(2, 1, 3, 8, num_scales=2),
        "DiffusionTransformer": lambda: cell.DiffusionTransformer(4, 4, 16, 2, 2),
    }
    return fill(made[name]())


_INPUTS = {
    "FNO1D": (2, 32, 1),
    "KNO1D": (2, 32, 2),
    "KNO2D": (2, 16, 16, 2),
    "SNO1D": (2, 2, 16),
    "SNO2D": (2, 2, 16, 16),
    "PDENet": (2, 1, 16, 16),
    "PeRCNN": (1, 2, 16, 16),
    "UNet2D": (2, 16, 16, 2),
    "ViT": (2, 2, 16, 16),
    "MultiScaleFCSequential": (5, 2),
}


def _forward(name: str, shape: tuple[int, ...]) -> Callable[[], Arrays]:
    return lambda: outputs(_operator(name).set_train(False)(numbers(1, *shape)))


for _name, _shape in _INPUTS.items():
    case("mindflow", _name, "forward")(_forward(_name, _shape))


@case("mindflow", "DiffusionTransformer", "forward")
def _transformer() -> Arrays:
    return outputs(_operator("DiffusionTransformer")(numbers(1, 2, 5, 4), _whole(3, 7)))


def _whole(*values: Any) -> Any:
    import mindspore as ms

    return ms.Tensor(np.array(values, np.int32))


@case("mindflow", "KNO1D.gradients", "gradients")
def _operator_gradients() -> Arrays:
    from mindflow.core import RelativeRMSELoss

    network, criterion = _operator("KNO1D"), RelativeRMSELoss()
    return gradients(network, lambda x, y: criterion(network(x)[0], y), numbers(1, 2, 32, 2), numbers(2, 2, 32, 2))


@case("mindflow", "UNet2D.training", "training")
def _operator_training() -> Arrays:
    from mindflow.core import RelativeRMSELoss, get_warmup_cosine_annealing_lr
    from mindspore import nn

    network, criterion = _operator("UNet2D").set_train(), RelativeRMSELoss()
    rate = get_warmup_cosine_annealing_lr(1e-3, 10, 10)
    step = stepper(lambda x, y: criterion(network(x), y), nn.Adam(network.trainable_params(), rate))
    return descend(step, [(numbers(k, 4, 16, 16, 2), numbers(k + 50, 4, 16, 16, 1)) for k in range(6)])


@case("mindflow", "derivatives", "gradients")
def _derivatives() -> Arrays:
    from mindflow.cell import FCSequential
    from mindflow.core import batched_hessian, batched_jacobian

    network = fill(FCSequential(2, 2, 3, 8, act="tanh"))
    x = numbers(1, 5, 2)
    return outputs((batched_jacobian(network)(x), batched_hessian(network)(x)))


@case("mindflow", "burgers", "training")
def _burgers() -> Arrays:
    from mindflow.cell import FCSequential
    from mindflow.pde import Burgers
    from mindspore import nn, ops

    class Problem(Burgers):
        def get_loss(self, inside: Any, start: Any) -> Any:
            (residual,) = self.parse_node(self.pde_nodes, inputs=inside)
            error = self.model(start) + ops.sin(np.pi * start[:, :1])
            return self.loss_fn(residual, ops.zeros_like(residual)) + (error**2).mean()

    network = fill(FCSequential(2, 1, 3, 8, residual=False, act="tanh"))
    step = stepper(Problem(network).get_loss, nn.Adam(network.trainable_params(), 1e-2))
    return descend(step, [(numbers(k, 16, 2), numbers(k + 50, 16, 2)) for k in range(6)])


@case("mindflow", "AdaHessian", "training")
def _ada_hessian() -> Arrays:
    import mindspore as ms
    from mindflow.core import AdaHessian

    class Drawn(AdaHessian):
        """The optimizer with signs that are the same under both frameworks."""

        def gen_rand_vecs(self, grads: Any) -> Any:
            return [ms.ops.sign(numbers(k, *g.shape)) for k, g in enumerate(grads)]

    network = fill(ms.nn.SequentialCell(ms.nn.Dense(3, 4), ms.nn.Tanh(), ms.nn.Dense(4, 2)))
    optimizer = Drawn(network.trainable_params(), learning_rate=0.05)

    def loss(x: Any) -> Any:
        return (network(x) ** 2).mean()

    found = []
    for k in range(4):
        optimizer(ms.grad(loss, None, network.trainable_params()), numbers(k, 4, 3))
        found.append(float(loss(numbers(9, 4, 3)).asnumpy()))
    return {"losses": np.array(found)}


@case("mindflow", "diffusion", "training")
def _diffusion() -> Arrays:
    from mindflow.cell import DDPMScheduler, DiffusionTrainer
    from mindspore import nn

    network = _operator("DiffusionTransformer")
    trainer = DiffusionTrainer(network, DDPMScheduler(num_train_timesteps=100), loss_type="l2")
    step = stepper(trainer.get_loss, nn.Adam(network.trainable_params(), 1e-3))
    return descend(step, [(numbers(k, 2, 6, 4), numbers(k + 50, 2, 6, 4), _whole(3 + k, 50 - k)) for k in range(6)])


@case("mindflow", "sod", "simulation")
def _sod() -> Arrays:
    import mindspore as ms
    from mindflow import cfd

    ends = {"x_min": {"type": "Neumann"}, "x_max": {"type": "Neumann"}}
    flux = {"reconstructor": "WENO5", "riemann_computer": "Rusanov"}
    settings = {
        "mesh": {"dim": 1, "nx": 40, "gamma": 1.4, "x_range": [0, 1], "pad_size": 3},
        "material": {"type": "IdealGas", "heat_ratio": 1.4, "specific_heat_ratio": 1.4, "specific_gas_constant": 1.0},
        "runtime": {"CFL": 0.9, "current_time": 0.0, "end_time": 0.2},
        "integrator": {"type": "RungeKutta3"},
        "space_solver": {"is_convective_flux": True, "convective_flux": flux, "is_viscous_flux": False},
        "boundary_conditions": ends,
    }
    simulator = cfd.Simulator(settings)
    runtime = cfd.RunTime(settings["runtime"], simulator.mesh_info, simulator.material)
    left, none = np.arange(40) < 20, np.zeros(40)
    primitive = np.stack([np.where(left, 1, 0.125), none, none, none, np.where(left, 1, 0.1)])
    state = cfd.cal_con_var(ms.Tensor(primitive.reshape(5, 40, 1, 1), ms.float32), simulator.material)
    for _ in range(6):
        runtime.compute_timestep(cfd.cal_pri_var(state, simulator.material))
        state = simulator.integration_step(state, runtime.timestep)
        runtime.advance()
    return outputs(state)


# mindquantum: its operations are for PyNative mode alone, which they check.


@case("mindquantum", "vqe", "training", ("pynative",))
def _vqe() -> Arrays:
    from mindquantum.algorithm.nisq import HardwareEfficientAnsatz
    from mindquantum.core.gates import RX, RY, X
    from mindquantum.core.operators import Hamiltonian, QubitOperator
    from mindquantum.framework import MQAnsatzOnlyLayer
    from mindquantum.simulator import Simulator
    from mindspore import nn

    ansatz = HardwareEfficientAnsatz(4, [RX, RY], X, depth=2).circuit
    energy = Hamiltonian(QubitOperator("Z0 Z1", 0.7) + QubitOperator("X1 X2", 0.5) + QubitOperator("Y3", 0.2))
    expectation = Simulator("mqvector", 4).get_expectation_with_grad(energy, ansatz)
    network = MQAnsatzOnlyLayer(expectation, weight=numbers(3, len(ansatz.params_name)))
    step = nn.TrainOneStepCell(network, nn.Adam(network.trainable_params(), 0.1))
    return descend(step, [()] * 8)


@case("mindquantum", "classifier", "training", ("pynative",))
def _quantum_classifier() -> Arrays:
    from mindquantum.algorithm.nisq import HardwareEfficientAnsatz
    from mindquantum.core.circuit import Circuit
    from mindquantum.core.gates import RX, RY, X
    from mindquantum.core.operators import Hamiltonian, QubitOperator
    from mindquantum.framework import MQLayer
    from mindquantum.simulator import Simulator
    from mindspore import nn

    encoder = Circuit().ry("a", 0).ry("b", 1).as_encoder()
    ansatz = HardwareEfficientAnsatz(2, [RX, RY], X, depth=1).circuit.as_ansatz()
    seen = [Hamiltonian(QubitOperator(name)) for name in ("Z0", "Z1")]
    expectation = Simulator("mqvector", 2).get_expectation_with_grad(seen, encoder + ansatz)
    layer = MQLayer(expectation, weight=numbers(3, len(ansatz.params_name)))
    network = nn.SequentialCell(fill(nn.Dense(3, 2)), layer)
    step = classify(network, nn.Adam(network.trainable_params(), 0.1))
    return descend(step, [(numbers(k, 4, 3), _whole(0, 1, 1, 0)) for k in range(8)])


@case("mindquantum", "qaoa", "training", ("pynative",))
def _qaoa() -> Arrays:
    from mindquantum.algorithm.nisq import MaxCutAnsatz
    from mindquantum.core.operators import Hamiltonian
    from mindquantum.framework import MQAnsatzOnlyLayer
    from mindquantum.simulator import Simulator
    from mindspore import nn

    problem = MaxCutAnsatz([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], 2)
    expectation = Simulator("mqvector", 4).get_expectation_with_grad(Hamiltonian(-problem.hamiltonian), problem.circuit)
    network = MQAnsatzOnlyLayer(expectation, weight=numbers(5, len(problem.circuit.params_name)))
    step = nn.TrainOneStepCell(network, nn.Adam(network.trainable_params(), 0.05))
    return descend(step, [()] * 8)
