import torch
from torch import Tensor


class _InterpFaceAttrs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pix_to_face, barycentric_coords, face_attrs):
        P = pix_to_face.numel()
        D = face_attrs.shape[-1]
        pix = pix_to_face.reshape(P)
        bary = barycentric_coords.reshape(P, 3)
        empty = pix < 0
        attrs = face_attrs[pix.clamp(min=0)]
        vals = (attrs * bary.unsqueeze(-1)).sum(1).masked_fill(empty.unsqueeze(-1), 0.0)
        ctx.save_for_backward(pix_to_face, barycentric_coords, face_attrs)
        return vals.view(*pix_to_face.shape, D)

    @staticmethod
    def backward(ctx, grad_pix_attrs):
        pix_to_face, barycentric_coords, face_attrs = ctx.saved_tensors
        empty = (pix_to_face < 0).unsqueeze(-1)
        grad = grad_pix_attrs.masked_fill_(empty, 0.0)
        face = pix_to_face.clamp(min=0)
        grad_bary = (face_attrs[face] * grad.unsqueeze(-2)).sum(-1)
        per_pixel = barycentric_coords.unsqueeze(-1) * grad.unsqueeze(-2)
        grad_attrs = torch.zeros_like(face_attrs).index_add(
            0, face.reshape(-1), per_pixel.reshape(-1, *face_attrs.shape[1:])
        )
        return None, grad_bary, grad_attrs


def interpolate_face_attributes(pix_to_face: Tensor, barycentric_coords: Tensor, face_attributes: Tensor) -> Tensor:
    """
    Interpolate arbitrary face attributes using the barycentric coordinates for each pixel.

    Args:
        pix_to_face: LongTensor of shape (N, H, W, K), negative for background.
        barycentric_coords: FloatTensor of shape (N, H, W, K, 3).
        face_attributes: FloatTensor of shape (F, 3, D).

    Returns:
        pixel_vals: (N, H, W, K, D), 0 for background.
    """
    F, FV, D = face_attributes.shape
    if FV != 3:
        raise ValueError("Faces can only have three vertices; got %r" % FV)
    N, H, W, K, _ = barycentric_coords.shape
    if pix_to_face.shape != (N, H, W, K):
        msg = "pix_to_face must have shape (batch_size, H, W, K); got %r"
        raise ValueError(msg % (pix_to_face.shape,))
    return _InterpFaceAttrs.apply(pix_to_face, barycentric_coords, face_attributes)
