import torch
from torch.autograd import Function

A = 0.055
LIN = 0.0031308   # linear light
ENC = 0.04045     # encoded


class SRGBTransfer(Function):
    """sRGB opto-electronic transfer function, x of any shape with values in [0, 1].

    inverse=False: linear light -> encoded
    inverse=True:  encoded -> linear light
    """

    @staticmethod
    def forward(ctx, x, inverse=False):
        ctx.inverse = inverse
        ctx.save_for_backward(x)
        if inverse:
            return torch.where(x <= ENC, x / 12.92, ((x.clamp(min=ENC) + A) / (1 + A)) ** 2.4)
        return torch.where(x <= LIN, 12.92 * x, (1 + A) * x.clamp(min=LIN) ** (1 / 2.4) - A)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        if ctx.inverse:
            low = x <= ENC
            z = torch.where(low, torch.full_like(x, ENC), x)
            d = torch.where(low, torch.full_like(x, 1 / 12.92), 2.4 / (1 + A) * ((z + A) / (1 + A)) ** 1.4)
        else:
            low = x <= LIN
            z = torch.where(low, torch.full_like(x, LIN), x)
            d = torch.where(low, torch.full_like(x, 12.92), (1 + A) / 2.4 * z ** (1 / 2.4 - 1))
        return g * d, None


def encode(x):
    return SRGBTransfer.apply(x, False)


def decode(x):
    return SRGBTransfer.apply(x, True)


if __name__ == "__main__":
    t = torch.linspace(0, 1, 11)
    print((decode(encode(t)) - t).abs().max())
