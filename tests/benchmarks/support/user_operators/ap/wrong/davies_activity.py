import torch


@torch.library.custom_op("aqchem::davies", mutates_args=())
def _davies_activity(conc: torch.Tensor, charge: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    z2 = charge ** 2
    I = 0.5 * (conc * z2).sum(-1, keepdim=True)
    return -A * z2 * (I.sqrt() / (1 + I.sqrt()) - 0.3 * I)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, g):
    conc, charge, A = ctx.saved_tensors
    z2 = charge ** 2
    I = 0.5 * (conc * z2).sum(-1, keepdim=True)
    root = I.sqrt()
    gz = (g * z2).sum(-1, keepdim=True)
    dI = 0.5 / (root * (1 + root) ** 2) - 0.3
    g_conc = -A * gz * dI * z2
    g_A = -(gz * (root / (1 + root) - 0.3 * I)).sum()
    return g_conc, None, g_A


_davies_activity.register_autograd(backward, setup_context=setup_context)


def davies_activity(conc: torch.Tensor, charge: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    """log10 activity coefficients after Davies.  conc (B, S) mol/l, charge (S,), A scalar (0.509 at 25 C)"""
    return torch.ops.aqchem.davies(conc, charge, A)
