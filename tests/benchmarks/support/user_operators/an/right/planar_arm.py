import torch


class _Joints(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, link):
        phi = q.cumsum(-1)
        ctx.save_for_backward(q, link)
        return torch.stack([link * phi.cos(), link * phi.sin()], -1).cumsum(-2)

    @staticmethod
    def backward(ctx, g):
        q, link = ctx.saved_tensors
        phi = q.cumsum(-1)
        # force on a joint is carried by every link before it
        G = g.flip(-2).cumsum(-2).flip(-2)
        gx, gy = G.unbind(-1)
        g_phi = link * (gy * phi.cos() - gx * phi.sin())
        g_link = gx * phi.cos() + gy * phi.sin()
        return g_phi.flip(-1).cumsum(-1).flip(-1), g_link.sum_to_size(link.shape)


def planar_arm(q, link):
    """relative joint angles q (B, J), link lengths (J,) or (B, J) -> joint positions (B, J, 2)"""
    return _Joints.apply(q, link)
