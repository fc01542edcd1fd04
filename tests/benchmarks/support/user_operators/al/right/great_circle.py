import torch

EARTH = 6371.0088


class GreatCircle(torch.autograd.Function):
    """Haversine distance between (lat1, lon1) and (lat2, lon2), all in radians and broadcast."""

    @staticmethod
    def forward(ctx, lat1, lon1, lat2, lon2, radius=EARTH):
        ctx.save_for_backward(lat1, lon1, lat2, lon2)
        ctx.radius = radius
        h = torch.sin((lat2 - lat1) / 2) ** 2
        h = h + lat1.cos() * lat2.cos() * torch.sin((lon2 - lon1) / 2) ** 2
        return 2 * radius * torch.asin(h.clamp(0, 1).sqrt())

    @staticmethod
    def backward(ctx, grad):
        if not any(ctx.needs_input_grad[:4]):
            return None, None, None, None, None
        lat1, lon1, lat2, lon2 = ctx.saved_tensors
        dlat, dlon = lat2 - lat1, lon2 - lon1
        s = torch.sin(dlon / 2) ** 2
        h = torch.sin(dlat / 2) ** 2 + lat1.cos() * lat2.cos() * s
        g = grad * ctx.radius / (h * (1 - h)).clamp_min(1e-14).sqrt()
        g_lat1 = g * (-0.5 * dlat.sin() - lat1.sin() * lat2.cos() * s)
        g_lat2 = g * (0.5 * dlat.sin() - lat1.cos() * lat2.sin() * s)
        g_lon = g * 0.5 * lat1.cos() * lat2.cos() * dlon.sin()
        parts = zip((g_lat1, -g_lon, g_lat2, g_lon), (lat1, lon1, lat2, lon2))
        return (*(p.sum_to_size(x.shape) for p, x in parts), None)
