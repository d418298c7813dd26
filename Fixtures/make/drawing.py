"""What the drawers share: noise, gradients, colour, soft shapes."""

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 2560, 1920


def colour(text):
    return np.array([int(text[i:i + 2], 16) for i in (0, 2, 4)], dtype=np.float64)


def mix(a, b, share):
    return a * (1 - share) + b * share


def rgb(values):
    return tuple(int(v) for v in np.clip(values, 0, 255))


def gradient(stops, height=HEIGHT, width=WIDTH):
    """From top to bottom through «position, colour» stops."""
    places = [p for p, _ in stops]
    ramp = np.linspace(0, 1, height)
    column = np.stack([np.interp(ramp, places, [c[i] for _, c in stops]) for i in range(3)], axis=1)
    return np.broadcast_to(column[:, None, :], (height, width, 3)).copy()


def noise(random, cells, height=HEIGHT, width=WIDTH, octaves=5, stretch=1.0):
    """Value noise summed over octaves, from 0 to 1."""
    total = np.zeros((height, width), dtype=np.float32)
    weight = 1.0
    for octave in range(octaves):
        across = max(2, int(cells * 2 ** octave))
        down = max(2, int(across * height / width * stretch))
        grid = Image.fromarray(random.random((down + 1, across + 1)).astype(np.float32))
        total += np.asarray(grid.resize((width, height), Image.BICUBIC)) * weight
        weight *= 0.5
    total -= total.min()
    return total / total.max()


def line_noise(random, width, cells, octaves=7, decay=0.5):
    """A skyline around 0, about ±1."""
    x = np.linspace(0, 1, width)
    total, weight = np.zeros(width), 1.0
    for octave in range(octaves):
        knots = int(cells * 2 ** octave) + 2
        total += np.interp(x * (knots - 1), np.arange(knots), random.uniform(-1, 1, knots)) * weight
        weight *= decay
    return total


def grid():
    return np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)


def canvas(pixels):
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def array(image):
    return np.asarray(image).astype(np.float64)


def glow(pixels, x, y, radius, tint, strength):
    yy, xx = grid()
    shape = np.exp(-((xx - x) ** 2 + (yy - y) ** 2) / (2 * radius ** 2))[:, :, None] * strength
    pixels += (tint - pixels) * np.clip(shape, 0, 1)


def disc(pixels, x, y, radius, tint):
    yy, xx = grid()
    cover = np.clip(radius - np.hypot(xx - x, yy - y) + 0.5, 0, 1)[:, :, None]
    pixels += (tint - pixels) * cover


def shadow(image, box, darkness, blur):
    """A soft ellipse of shade under a thing."""
    veil = Image.new("L", image.size, 0)
    ImageDraw.Draw(veil).ellipse(box, fill=int(255 * darkness))
    veil = veil.resize((image.width // 8, image.height // 8)).filter(ImageFilter.GaussianBlur(blur / 8)).resize(image.size)
    image.paste((30, 22, 30), (0, 0), veil)


def ball(image, x, y, radius, tint, light=(-0.4, -0.5), rim=0.45):
    """A shaded sphere with a soft highlight."""
    size = int(radius * 2) + 4
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float64)
    nx, ny = (xx - size / 2) / radius, (yy - size / 2) / radius
    inside = np.clip((1 - np.hypot(nx, ny)) * radius, 0, 1)
    nz = np.sqrt(np.clip(1 - nx ** 2 - ny ** 2, 0, 1))
    shade = np.clip(nx * light[0] + ny * light[1] + nz * 0.77, 0, 1)
    pixels = tint[None, None, :] * (rim + (1.15 - rim) * shade[:, :, None])
    pixels = pixels + 150 * np.clip(shade - 0.9, 0, 1)[:, :, None] * 3
    image.paste(canvas(pixels), (int(x - size / 2), int(y - size / 2)), Image.fromarray((inside * 255).astype(np.uint8)))


def blur(values, radius, passes=3):
    """Repeated box means, close to a Gaussian; for fields of floats, which Pillow does not blur."""
    size = 2 * radius + 1
    for _ in range(passes):
        for axis in (0, 1):
            pad = [(radius + 1, radius) if a == axis else (0, 0) for a in (0, 1)]
            total = np.cumsum(np.pad(values.astype(np.float64), pad, mode="edge"), axis=axis)
            values = (np.take(total, range(size, total.shape[axis]), axis) - np.take(total, range(total.shape[axis] - size), axis)) / size
    return values
