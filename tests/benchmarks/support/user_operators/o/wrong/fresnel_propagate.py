import torch


class AngularSpectrum(torch.autograd.Function):
    """Free-space propagation of complex fields over a distance.

    field: (B, H, W) complex; kz: (H, W) real axial wave numbers in FFT order; distance: () real
    """

    @staticmethod
    def forward(field, kz, distance):
        if kz.shape != field.shape[1:] or distance.dim():
            raise ValueError("kz must be (H, W) and distance a scalar")
        if kz.is_complex() or distance.is_complex() or not field.is_complex():
            raise TypeError("field must be complex, kz and distance real")
        kernel = torch.exp(1j * kz * distance)
        return torch.fft.ifft2(torch.fft.fft2(field) * kernel)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        field, kz, distance = ctx.saved_tensors
        kernel = torch.exp(1j * kz * distance)
        spec = torch.fft.fft2(field, norm="ortho")
        g_spec = torch.fft.fft2(grad, norm="ortho")
        g_field = torch.fft.ifft2(g_spec * kernel, norm="ortho")
        turn = (g_spec.conj() * spec * kernel * 1j).real.sum(0)
        return g_field, turn * distance, (turn * kz).sum()
