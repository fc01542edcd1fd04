import torch

_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]], dtype=torch.float64)
_RGB = torch.linalg.inv(_YIQ)


def _matrix(angle, shift=False):
    c, s = angle.cos(), angle.sin()
    o, e = torch.zeros_like(c), torch.ones_like(c)
    if shift:
        c, s, e = -s, c, o
    rot = torch.stack([e, o, o, o, c, -s, o, s, c], -1).reshape(*angle.shape, 3, 3)
    return _RGB.to(rot) @ rot @ _YIQ.to(rot)


class HueRotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, angle):
        ctx.save_for_backward(img, angle)
        return torch.einsum("bij,bjhw->bihw", _matrix(angle), img)

    @staticmethod
    def backward(ctx, grad):
        img, angle = ctx.saved_tensors
        b, ch, h, w = img.shape
        flat = grad.view(b, ch, h * w)
        m = _matrix(angle)
        g_img = (m.transpose(1, 2) @ flat).reshape(img.shape)
        turned = _matrix(angle, shift=True) @ img.reshape(b, ch, h * w)
        return g_img, (flat * turned).sum((1, 2))
