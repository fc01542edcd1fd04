import torch


@torch.library.custom_op("hyperelastic::neo_hookean", mutates_args=())
def neo_hookean(F: torch.Tensor, mu: torch.Tensor, lam: torch.Tensor) -> torch.Tensor:
    # F (Q, 3, 3) deformation gradient, mu and lam (Q,)
    lnJ = torch.logdet(F)
    I1 = (F * F).sum((-2, -1))
    return mu / 2 * (I1 - 3) - mu * lnJ + lam / 2 * lnJ ** 2


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _pk1(ctx, g):
    F, mu, lam = ctx.saved_tensors
    lnJ = torch.logdet(F)
    FinvT = torch.linalg.inv(F).transpose(-1, -2)
    g_F = g_mu = g_lam = None
    if ctx.needs_input_grad[0]:
        P = mu[:, None, None] * (F - FinvT) + (lam * lnJ)[:, None, None] * FinvT
        g_F = g[:, None, None] * P
    if ctx.needs_input_grad[1]:
        I1 = (F * F).sum((-2, -1))
        g_mu = g * ((I1 - 3) / 2 - lnJ)
    if ctx.needs_input_grad[2]:
        g_lam = g * lnJ ** 2 / 2
    return g_F, g_mu, g_lam


neo_hookean.register_autograd(_pk1, setup_context=_save)
