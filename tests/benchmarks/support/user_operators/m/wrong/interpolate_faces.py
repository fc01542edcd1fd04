import torch


class InterpolateFaceAttributes(torch.autograd.Function):
    """Interpolate vertex attributes over rasterised pixels.

    Args:
        pix_to_face: (P,) long, face of each pixel, -1 for the background.
        bary: (P, 3) barycentric weights.
        face_attrs: (F, 3, D) attributes of the corners.

    Returns:
        (P, D); zero where the pixel shows the background.
    """

    @staticmethod
    def forward(ctx, pix_to_face, bary, face_attrs):
        hit = pix_to_face >= 0
        face = pix_to_face.clamp(min=0)
        ctx.save_for_backward(face, hit, bary, face_attrs)
        out = (bary.unsqueeze(-1) * face_attrs[face]).sum(1)
        return out * hit.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad_out):
        face, hit, bary, face_attrs = ctx.saved_tensors
        g = grad_out.unsqueeze(1)
        grad_bary = (g * face_attrs[face]).sum(-1)
        grad_attrs = torch.zeros_like(face_attrs).index_add(0, face, bary.unsqueeze(-1) * g)
        return None, grad_bary, grad_attrs
