import torch
from torch import Tensor

R = 8.314462618e-3  # kJ/mol/K


@torch.library.custom_op("chemkin_lite_b::rates", mutates_args=())
def rates(log_a: Tensor, n: Tensor, ea: Tensor, temp: Tensor, t_ref: float = 300.0) -> Tensor:
    """k = A (T / Tref)^n exp(-Ea / R T); reactions (S,), temperatures (B,) -> (B, S)"""
    T = temp[:, None]
    return torch.exp(log_a + n * torch.log(T / t_ref) - ea / (R * T))


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4], output)
    ctx.t_ref = inputs[4]


def _grad(ctx, g):
    log_a, n, ea, temp, k = ctx.saved_tensors
    T = temp[:, None]
    gk = g * k
    return (gk.sum(0),
            (gk * torch.log(T / ctx.t_ref)).sum(0),
            -(gk / (R * T)).sum(0),
            (gk * ea / (R * T ** 2)).sum(1),
            None)


rates.register_autograd(_grad, setup_context=_save)
