import torch


class StainUnmix(torch.autograd.Function):
    """Colour deconvolution of histology.

    Args:
        img: (B, 3, H, W) intensities, >= 0
        stains: (3, 3), one stain colour in optical density per row
        i0: white level
    Returns:
        concentrations (B, 3, H, W)
    """

    @staticmethod
    def forward(ctx, img, stains, i0=255.0):
        ctx.save_for_backward(img, stains)
        ctx.i0 = i0
        minv = torch.linalg.inv(stains)
        od = -torch.log((img + 1) / i0)
        StainUnmix.minv = minv
        return torch.einsum("bchw,cs->bshw", od, minv)

    @staticmethod
    def backward(ctx, g):
        img, stains = ctx.saved_tensors
        minv = StainUnmix.minv
        od = -torch.log((img + 1) / ctx.i0)
        god = torch.einsum("bshw,cs->bchw", g, minv)
        conc = torch.einsum("bchw,cs->bshw", od, minv)
        gstains = -torch.einsum("bshw,bchw->sc", conc, god)
        return -god / (img + 1), gstains, None
