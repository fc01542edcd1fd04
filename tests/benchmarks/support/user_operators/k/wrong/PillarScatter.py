import torch
from torch.autograd import Function


class PillarScatter(Function):
    """Puts pillar features on a bird's eye view canvas (PointPillars).

    Args:
        feats: (P, C)
        coords: (P, 3) int64 rows (batch, y, x), no two alike
        batch, height, width: size of the canvas

    Returns:
        (batch, C, height, width), zero where there is no pillar
    """

    @staticmethod
    def forward(ctx, feats, coords, batch, height, width):
        c = feats.size(1)
        canvas = feats.new_zeros(batch, c, height * width)
        cell = coords[:, 1] * width + coords[:, 2]
        canvas[coords[:, 0], :, cell] = feats
        ctx.save_for_backward(coords)
        ctx.size = (height, width)
        return canvas.view(batch, c, height, width)

    @staticmethod
    def backward(ctx, grad):
        coords, = ctx.saved_tensors
        height, width = ctx.size
        flat = grad.flatten(2)
        cell = coords[:, 1] * height + coords[:, 2]
        return flat[coords[:, 0], :, cell], None, None, None, None


if __name__ == "__main__":
    f = torch.randn(3, 4)
    xyz = torch.tensor([[0, 0, 0], [0, 1, 2], [1, 1, 1]])
    print(PillarScatter.apply(f, xyz, 2, 4, 4).shape)
