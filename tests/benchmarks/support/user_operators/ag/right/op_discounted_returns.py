import torch
from torch import Tensor


@torch.library.custom_op("rlops_v1::discounted_returns", mutates_args=())
def _returns(rewards: Tensor, not_done: Tensor, bootstrap: Tensor, gamma: float) -> Tensor:
    out = torch.empty_like(rewards)
    acc = bootstrap
    for t in range(rewards.shape[0] - 1, -1, -1):
        acc = rewards[t] + gamma * not_done[t] * acc
        out[t] = acc
    return out


@_returns.register_fake
def _(rewards, not_done, bootstrap, gamma):
    return torch.empty_like(rewards)


def _setup(ctx, inputs, output):
    _, not_done, _, gamma = inputs
    ctx.save_for_backward(not_done)
    ctx.gamma = gamma


def _backward(ctx, grad):
    (not_done,) = ctx.saved_tensors
    steps = []
    carry = torch.zeros_like(grad[0])
    for t in range(grad.shape[0]):
        carry = grad[t] + carry
        steps.append(carry)
        carry = ctx.gamma * not_done[t] * carry
    return torch.stack(steps), None, carry, None


_returns.register_autograd(_backward, setup_context=_setup)


def discounted_returns(rewards: Tensor, dones: Tensor, bootstrap: Tensor, gamma: float = 0.99) -> Tensor:
    """R_t = r_t + gamma (1 - done_t) R_{t+1}, R_T = bootstrap.

    rewards (T, B), dones (T, B) bool, bootstrap (B,)
    """
    if dones.dtype != torch.bool:
        raise TypeError("dones must be bool")
    return _returns(rewards, (~dones).to(rewards.dtype), bootstrap, gamma)
