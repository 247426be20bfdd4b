"""Operations on batches of images, each image with its own amount; the results equal Pillow's to the bit.

Shapes: R rows, H x W pixels, 1 or 3 channels: images are (R, H, W, channels) uint8 on any device, and the results, too.
Amounts are (R,) float64 on the CPU.
"""

import torch
from torch import Tensor

_FIXED = 16  # bits after the point of a coordinate, as in Pillow


def autocontrast(images: Tensor) -> Tensor:
    """Stretch the values of each channel to 0..255."""
    flat = images.flatten(1, 2)
    low, high = (values.to(torch.float64)[..., None] for values in (flat.amin(dim=1), flat.amax(dim=1)))
    values = torch.arange(256, device=images.device)
    scale = torch.full_like(low, 255) / (high - low).clamp(min=1)  # a number / a tensor would round twice
    stretched = (values * scale - low * scale).clamp(0, 255)
    return _looked_up(images, torch.where(high > low, stretched, values))


def equalize(images: Tensor) -> Tensor:
    """Give all values of each channel about the same number of pixels."""
    num_rows, height, width, channels = images.shape
    slot = torch.arange(num_rows * channels, device=images.device).view(num_rows, 1, 1, channels) * 256
    counts = torch.bincount((slot + images).flatten(), minlength=num_rows * channels * 256).view(-1, 256)
    last = counts.gather(1, images.flatten(1, 2).amax(dim=1).view(-1, 1).to(torch.int64))
    step = (height * width - last) // 255
    before = counts.cumsum(dim=1) - counts
    spread = ((step // 2 + before) // step.clamp(min=1)).clamp(max=255)
    table = torch.where(step > 0, spread, torch.arange(256, device=images.device))
    return _looked_up(images, table.view(num_rows, channels, 256))


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest bits of each value."""
    mask = 256 - 2 ** (8 - bits.to(torch.int64))
    return images & _per_image(mask, images).to(torch.uint8)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert the values from a threshold on."""
    return torch.where(images < _per_image(threshold, images), images, 255 - images)


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with black: 0 is black, 1 is the image, more is brighter."""
    return _blended(torch.zeros((), device=images.device), images, factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean grey value."""
    mean = _grey(images).mean(dim=(1, 2, 3), keepdim=True, dtype=torch.float64)
    return _blended((mean + 0.5).floor().to(torch.float32), images, factor)


def saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with the grey image; a grey image stays as it is."""
    return images.clone() if images.shape[3] == 1 else _blended(_grey(images).to(torch.float32), images, factor)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Blend with a smoothed image; pixels at the edge, which have no eight neighbours, stay as they are."""
    if min(images.shape[1:3]) < 3:
        return images.clone()
    values = images.to(torch.float32)
    rows = values[:, :-2] + values[:, 1:-1] + values[:, 2:]
    sums = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:] + 4 * values[:, 1:-1, 1:-1]
    sharp = images.clone()
    inner = (slice(None), slice(1, -1), slice(1, -1))
    sharp[inner] = _blended((sums / 13 + 0.5).floor(), images[inner], factor)
    return sharp


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Rotate around the centre, counter-clockwise."""
    height, width = images.shape[1:3]
    radians = -degrees.deg2rad()
    cos, sin = radians.cos(), radians.sin()
    x, y = width / 2, height / 2
    return _moved(images, (cos, sin, cos * -x + sin * -y + x), (-sin, cos, -sin * -x + cos * -y + y))


def shear_x(images: Tensor, share: Tensor) -> Tensor:
    """Move each line to the left by a share of its distance from the top."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _moved(images, (one, share, zero), (zero, one, zero))


def shear_y(images: Tensor, share: Tensor) -> Tensor:
    """Move each column up by a share of its distance from the left."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _moved(images, (one, zero, zero), (share, one, zero))


def translate_x(images: Tensor, share: Tensor) -> Tensor:
    """Move to the left by a share of the width."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _moved(images, (one, zero, share * images.shape[2]), (zero, one, zero))


def translate_y(images: Tensor, share: Tensor) -> Tensor:
    """Move up by a share of the height."""
    one, zero = torch.ones_like(share), torch.zeros_like(share)
    return _moved(images, (one, zero, zero), (zero, one, share * images.shape[1]))


def _per_image(amounts: Tensor, images: Tensor) -> Tensor:
    """Amounts (R,) as (R, 1, 1, 1) on the device of the images."""
    return amounts.to(images.device)[:, None, None, None]


def _looked_up(images: Tensor, table: Tensor) -> Tensor:
    """The images with each value replaced by that of a table (R, channels, 256)."""
    num_rows, _, _, channels = images.shape
    slot = torch.arange(num_rows * channels, device=images.device).view(num_rows, 1, 1, channels) * 256
    return table.to(torch.uint8).flatten()[slot + images]


def _grey(images: Tensor) -> Tensor:
    """The brightness (R, H, W, 1) of each pixel, as integers in float32: 0.299 red, 0.587 green, 0.114 blue."""
    if images.shape[3] == 1:
        return images.to(torch.float32)
    red, green, blue = images.to(torch.int32).split(1, dim=3)
    grey: Tensor = (19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16
    return grey.to(torch.float32)


def _blended(start: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """The integer part of start + factor (image - start), in 0..255; `start` has integers in float32."""
    difference = _per_image(factor.to(torch.float32), images) * (images - start)
    return (start + difference).clamp(0, 255).to(torch.uint8)


def _moved(images: Tensor, x_from: tuple[Tensor, ...], y_from: tuple[Tensor, ...]) -> Tensor:
    """The images with pixel (x, y) taken from the nearest to (a x + b y + c, d x + e y + f); black outside.

    `x_from` is a, b, c and `y_from` is d, e, f, each (R,). Coordinates have 16 bits after the point, as in Pillow.
    """
    num_rows, height, width, channels = images.shape
    x = torch.arange(width, device=images.device)
    y = torch.arange(height, device=images.device)[:, None]
    source = []
    for a, b, c in (x_from, y_from):
        fixed = [(part * 2**_FIXED + 0.5).floor().to(torch.int64) for part in (a, b, c + a / 2 + b / 2)]
        a, b, c = (part.to(images.device)[:, None, None] for part in fixed)
        source.append((a * x + c + b * y) >> _FIXED)  # (R, H, W)
    column, line = source
    inside = (column >= 0) & (column < width) & (line >= 0) & (line < height)
    row = torch.arange(num_rows, device=images.device)[:, None, None]
    pixel = torch.where(inside, (row * height + line) * width + column, num_rows * height * width)
    pixels = torch.cat([images.reshape(-1, channels), images.new_zeros(1, channels)])  # the last one is black
    return pixels.index_select(0, pixel.flatten()).view(images.shape)
