import torch


class SoftArgmax2d(torch.autograd.Function):
    """
    Expected pixel position under a softmax over each heat map.

    Args:
        heat: (B, K, H, W) logits.
        temperature: scalar tensor > 0, may be learnt.

    Returns:
        (B, K, 2) with x and y in [-1, 1].
    """

    @staticmethod
    def grid(heat):
        h, w = heat.shape[-2:]
        ys = torch.linspace(-1, 1, h, dtype=heat.dtype, device=heat.device)
        xs = torch.linspace(-1, 1, w, dtype=heat.dtype, device=heat.device)
        yy, xx = torch.meshgrid(ys, xs, indexing="ij")
        return torch.stack([xx.reshape(-1), yy.reshape(-1)], -1)

    @staticmethod
    def forward(ctx, heat, temperature):
        if heat.is_complex():
            raise TypeError("heat maps are real")
        if temperature.numel() != 1:
            raise ValueError("one temperature for all maps")
        ctx.save_for_backward(heat, temperature)
        p = (heat.flatten(2) / temperature).softmax(-1)
        return p @ SoftArgmax2d.grid(heat)

    @staticmethod
    def backward(ctx, grad):
        heat, temperature = ctx.saved_tensors
        flat = heat.flatten(2)
        p = (flat / temperature).softmax(-1)
        grid = SoftArgmax2d.grid(heat)
        along = grad @ grid.T
        scaled = p * (along - (p * along).sum(-1, keepdim=True))
        g_heat = scaled / temperature
        g_temp = -(g_heat * flat).sum()
        return g_heat.view_as(heat), g_temp.reshape(temperature.shape)
