import math
import torch


class BModeCompress(torch.autograd.Function):
    """Log compression of an ultrasound envelope.

    env (B, H, W) >= 0, normalised by the maximum of every frame; dr dynamic range in dB.
    Returns values in [0, 1]. Samples with zero envelope map to 0.
    """

    @staticmethod
    def forward(ctx, env, dr=60.0):
        flat = env.reshape(env.shape[0], -1)
        top, arg = flat.max(1)
        ctx.save_for_backward(env, arg)
        ctx.dr = dr
        ratio = (flat / top[:, None]).clamp(min=10 ** (-dr / 20))
        return (20 / dr * torch.log10(ratio) + 1).view(env.shape)

    @staticmethod
    def backward(ctx, g):
        env, arg = ctx.saved_tensors
        flat = env.reshape(env.shape[0], -1)
        top = flat.gather(1, arg[:, None])
        k = 20 / (math.log(10) * ctx.dr)
        on = flat > top * 10 ** (-ctx.dr / 20)
        gd = torch.where(on, g.reshape(flat.shape), torch.zeros_like(flat)) * k
        gf = gd / torch.where(on, flat, torch.ones_like(flat))
        gf = gf.scatter_add(1, arg[:, None], -gd.sum(1, keepdim=True) / top)
        return gf.as_strided(env.shape, env.stride()), None
