import torch


def loc(x, kn):
    j = torch.searchsorted(kn.contiguous(), x.detach().contiguous()).clamp(1, len(kn) - 1) - 1
    t = (x - kn[j]) / (kn[j + 1] - kn[j])
    return j, t.clamp(0, 1), (x >= kn[0]) & (x <= kn[-1])


@torch.library.custom_op("calib::pwl", mutates_args=())
def pwl(x: torch.Tensor, kn: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    j, t, _ = loc(x, kn)
    return v[j] + t * (v[j + 1] - v[j])


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def bwd(ctx, g):
    x, kn, v = ctx.saved_tensors
    j, t, on = loc(x, kn)
    gx = g * on * (v[j + 1] - v[j]) / (kn[j + 1] - kn[j])
    gv = torch.zeros(len(v), dtype=v.dtype, device=v.device)
    gv = gv.index_put((j,), g * (1 - t), accumulate=True)
    gv = gv.index_put((j + 1,), g * t, accumulate=True)
    return gx, None, gv


pwl.register_autograd(bwd, setup_context=keep)
