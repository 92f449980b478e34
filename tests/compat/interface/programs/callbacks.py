# ruff: noqa: B023, F821
import os

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.train import model as M
from mindspore.train.callback import _CallbackManager, _InternalCallbackParam, _set_cur_net
from mindspore.train.callback._callback import InternalCallbackParam, _handle_loss
from mindspore.train.callback._checkpoint import CheckpointManager

facts = _InternalCallbackParam()
facts.a = 3
facts["b"] = 4
say("facts", lambda: (dict(facts), facts.a, facts.b, "a" in facts, facts["a"], isinstance(facts, dict)))
say("one class", lambda: InternalCallbackParam is _InternalCallbackParam)


class Told(ms.Callback):
    def on_train_begin(self, run_context):
        print("begin", type(run_context).__name__)

    def step_end(self, run_context):
        print("step_end", run_context.original_args().a)


with _CallbackManager([Told()]) as manager:
    context = ms.RunContext(facts)
    manager.on_train_begin(context)
    manager.on_train_step_end(context)
    manager.step_end(context)
say("none", lambda: _CallbackManager(None) is not None)
say("no callback", lambda: _CallbackManager("x"))
x = Tensor(2.0)
for loss in (Tensor(1.5), Tensor([1.0, 2.0]), 3.0, None, ("a",)):
    say("loss", lambda: _handle_loss(loss))
say("first of several", lambda: (_handle_loss((x, Tensor(1.0))) is x, _handle_loss([x]) is x))
say("network", lambda: _set_cur_net(nn.ReLU()))
say("tuples", lambda: [type(M._transfer_tensor_to_tuple(v)).__name__ for v in (x, (x, x), [x], 3)])
say("synchronized", lambda: M._StepSync().step_end(context))
say("a callback", lambda: isinstance(M._StepSync(), ms.Callback))
manager = CheckpointManager()
for step in range(3):
    name = f"net-1_{step}.ckpt"
    open(name, "w").close()
    os.utime(name, (1000 * step, 1000 * step))
open("other-1_1.ckpt", "w").close()
files = lambda: sorted(os.path.basename(path) for path in manager.ckpoint_filelist)
say("none yet", lambda: (manager.ckpoint_filelist, manager.ckpoint_num))
say("found", lambda: (manager.update_ckpoint_filelist(".", "net"), files(), manager.ckpoint_num))
say("oldest", lambda: (manager.remove_oldest_ckpoint_file(), files(), sorted(os.listdir("."))))
say("one", lambda: (manager.remove_ckpoint_file(os.path.realpath("net-1_1.ckpt")), sorted(os.listdir("."))))
say("gone already", lambda: manager.remove_ckpoint_file("nothing.ckpt"))
say("means", lambda: _handle_loss(Tensor(np.full((2, 2), 0.5, np.float32))))
