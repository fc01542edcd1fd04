import torch


class EulerZYX(torch.autograd.Function):
    """R = Rz(yaw) Ry(pitch) Rx(roll), angles (..., 3) ordered (roll, pitch, yaw)."""

    @staticmethod
    def mats(ang):
        c, s = ang.cos(), ang.sin()
        o, l = torch.zeros_like(c[..., 0]), torch.ones_like(c[..., 0])

        def m(*e):
            return torch.stack(e, -1).reshape(*o.shape, 3, 3)

        rx = m(l, o, o, o, c[..., 0], -s[..., 0], o, s[..., 0], c[..., 0])
        ry = m(c[..., 1], o, s[..., 1], o, l, o, -s[..., 1], o, c[..., 1])
        rz = m(c[..., 2], -s[..., 2], o, s[..., 2], c[..., 2], o, o, o, l)
        return rx, ry, rz

    @staticmethod
    def forward(ctx, ang):
        assert not ang.is_complex()
        ctx.save_for_backward(ang)
        rx, ry, rz = EulerZYX.mats(ang)
        return rz @ ry @ rx

    @staticmethod
    def backward(ctx, g):
        ang, = ctx.saved_tensors
        rx, ry, rz = EulerZYX.mats(ang)
        # angular velocity of the world frame: w = (g R^T) antisymmetrised
        a = g @ (rz @ ry @ rx).mT
        w = torch.stack([a[..., 2, 1] - a[..., 1, 2], a[..., 0, 2] - a[..., 2, 0], a[..., 1, 0] - a[..., 0, 1]], -1)
        roll_axis = (rz @ ry)[..., :, 0]
        pitch_axis = rz[..., :, 1]
        yaw = w[..., 2]
        return torch.stack([(w * roll_axis).sum(-1), (w * pitch_axis).sum(-1), yaw], -1)
