import torch

M = [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
OFFSET = [0.0, 0.5, 0.5]


class RGBToYCbCr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rgb):
        m = rgb.new_tensor(M)
        off = rgb.new_tensor(OFFSET)
        return torch.einsum("ij,bjhw->bihw", m, rgb) + off.view(3, 1, 1)

    @staticmethod
    def backward(ctx, g):
        return torch.einsum("ij,bihw->bjhw", g.new_tensor(M), g)
