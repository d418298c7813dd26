"""Draws the pictures of the fixtures: every one from a seed, none from anywhere else."""

import base64
import hashlib
import io

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

DUSK = [((24, 26, 62), (94, 63, 107)), ((242, 160, 112), (253, 222, 160))]
SKIES = [
    ((28, 60, 120), (240, 200, 170)), ((12, 18, 48), (80, 70, 130)), ((90, 160, 210), (235, 245, 250)),
    ((60, 30, 80), (250, 150, 100)), ((20, 80, 100), (220, 240, 210)), ((120, 60, 90), (255, 210, 160)),
]


def gradient(width, height, top, bottom):
    ramp = np.linspace(0, 1, height)[:, None, None]
    colours = np.array(top) * (1 - ramp) + np.array(bottom) * ramp
    return np.broadcast_to(colours, (height, width, 3)).copy()


def ridge(random, width, base, roughness, octaves=7):
    """A skyline: midpoint noise, rough near and smooth far."""
    x = np.linspace(0, 1, width)
    line = np.zeros(width)
    for octave in range(octaves):
        frequency = 2 ** octave
        knots = random.normal(size=frequency + 2)
        line += np.interp(x * frequency, np.arange(frequency + 2), knots) * roughness / (1.7 ** octave)
    return base + line


def finish(pixels, random, grain):
    noise = random.normal(0, grain, pixels.shape[:2])[:, :, None] if grain else 0
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))


def mountains(random, width, height, grain):
    top, bottom = SKIES[random.integers(len(SKIES))]
    pixels = gradient(width, height, top, bottom)
    yy, xx = np.mgrid[0:height, 0:width]
    cx, cy = random.uniform(0.2, 0.8) * width, random.uniform(0.2, 0.45) * height
    glow = np.exp(-(((xx - cx) ** 2 + (yy - cy) ** 2) / (2 * (0.16 * width) ** 2)))
    pixels += glow[:, :, None] * np.array([90, 70, 40])
    disc = ((xx - cx) ** 2 + (yy - cy) ** 2) < (0.035 * width) ** 2
    pixels[disc] = (255, 246, 220)
    layers = 6
    near = np.array([random.integers(8, 30), random.integers(25, 50), random.integers(30, 60)])
    for layer in range(layers):
        depth = layer / (layers - 1)
        line = ridge(random, width, height * (0.45 + 0.11 * layer), height * (0.05 + 0.02 * layer))
        colour = np.array(bottom) * (1 - depth) * 0.75 + near * (0.25 + depth * 0.75)
        mask = yy > line[None, :]
        shade = 1 - 0.25 * np.clip((yy - line[None, :]) / height, 0, 1)
        pixels[mask] = (colour[None, None, :] * shade[:, :, None])[mask]
    return finish(pixels, random, grain)


def sea(random, width, height, grain):
    top, bottom = SKIES[random.integers(len(SKIES))]
    horizon = int(height * random.uniform(0.45, 0.6))
    pixels = gradient(width, height, top, bottom)
    yy, xx = np.mgrid[0:height, 0:width]
    cx = random.uniform(0.3, 0.7) * width
    sun = ((xx - cx) ** 2 + (yy - horizon * 0.8) ** 2) < (0.06 * width) ** 2
    pixels[sun & (yy < horizon)] = (255, 236, 190)
    water = gradient(width, height - horizon, np.array(bottom) * 0.8, np.array(top) * 0.5)
    depth = np.linspace(0.02, 1, height - horizon)[:, None]
    waves = np.sin(xx[horizon:] / (6 + 40 * depth) + np.sin(yy[horizon:] / (2 + 9 * depth)) * 4) * 9 * depth
    path = np.exp(-((xx[horizon:] - cx) / (width * (0.03 + 0.12 * depth))) ** 2)
    sparkle = path * (np.sin(yy[horizon:] * 1.1 + np.sin(xx[horizon:] / 9) * 3) > 0.1) * 120
    pixels[horizon:] = water + waves[:, :, None] + sparkle[:, :, None] * np.array([1, 0.85, 0.6])
    return finish(pixels, random, grain)


def night(random, width, height, grain):
    pixels = gradient(width, height, (6, 8, 28), (40, 44, 92))
    yy, xx = np.mgrid[0:height, 0:width]
    band = np.exp(-((yy - height * 0.4 - (xx - width / 2) * 0.35) / (height * 0.13)) ** 2)
    cloud = sum(
        np.sin(xx / (width / f) * 3 + random.uniform(0, 6)) * np.cos(yy / (height / f) * 2 + random.uniform(0, 6)) / f
        for f in (2, 3, 5, 9, 14)
    )
    pixels += (band * (0.6 + 0.4 * cloud))[:, :, None] * np.array([70, 60, 90])
    for _ in range(width // 2):
        x, y = random.integers(width), random.integers(int(height * 0.85))
        pixels[y, x] += random.uniform(60, 220)
    line = ridge(random, width, height * 0.86, height * 0.03)
    pixels[yy > line[None, :]] = (5, 8, 14)
    return finish(pixels, random, grain)


def city(random, width, height, grain):
    top, bottom = DUSK
    image = Image.fromarray(gradient(width, height, top[0], bottom[0]).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for layer in range(4):
        shade = 0.85 - 0.22 * layer
        colour = tuple(int(c * shade) for c in (92, 74, 112))
        x = -random.integers(40)
        while x < width:
            w = int(random.uniform(0.03, 0.09) * width)
            h = int(random.uniform(0.15, 0.5) * height * (0.6 + 0.18 * layer))
            draw.rectangle([x, height - h, x + w, height], fill=colour)
            step = max(4, width // 110)
            for wy in range(height - h + step, height - step, step * 2):
                for wx in range(int(x) + step, int(x) + w - step, step * 2):
                    if random.random() < 0.28:
                        draw.rectangle([wx, wy, wx + step // 2, wy + step], fill=(255, 214, 140))
            x += w + random.integers(1, max(2, width // 160))
    return finish(np.asarray(image).astype(float), random, grain)


def pattern(random, width, height, grain):
    hues = [tuple(int(v) for v in random.integers(60, 240, 3)) for _ in range(5)]
    image = Image.new("RGB", (width, height), hues[0])
    draw = ImageDraw.Draw(image)
    size = width / random.integers(6, 11)
    for row in range(int(height / size) + 2):
        for column in range(int(width / size) + 2):
            x, y = column * size, row * size
            start = int(random.integers(4)) * 90
            draw.pieslice([x - size, y - size, x + size, y + size], start, start + 90, fill=hues[(row + column) % 5])
            draw.ellipse([x + size * .35, y + size * .35, x + size * .65, y + size * .65], fill=hues[(row * 2 + column) % 5])
    return finish(np.asarray(image).astype(float), random, grain)


def field(random, width, height, grain):
    """Rows of a meadow in flower, far ones thin and near ones broad."""
    pixels = gradient(width, height, (130, 190, 230), (230, 240, 235))
    image = finish(pixels, random, 0)
    draw = ImageDraw.Draw(image)
    horizon = height * 0.42
    draw.rectangle([0, horizon, width, height], fill=(78, 128, 62))
    blooms = [(214, 72, 92), (240, 200, 80), (150, 110, 200), (245, 245, 240)]
    for index in range(2600):
        depth = random.random() ** 0.6
        y = horizon + (height - horizon) * depth
        r = 1 + depth * width / 130
        x = random.uniform(0, width)
        draw.line([x, y, x + random.normal(0, r), y + r * 4], fill=(52, 96, 48), width=max(1, int(r / 3)))
        draw.ellipse([x - r, y - r, x + r, y + r], fill=blooms[(index * 7 + int(x)) % 4])
    return finish(np.asarray(image).astype(float), random, grain)


def bowl(random, width, height, grain):
    """A still life: fruit in a bowl on a table."""
    wall = tuple(int(v) for v in random.integers(150, 225, 3))
    image = finish(gradient(width, height, wall, tuple(int(v * .8) for v in wall)), random, 0)
    draw = ImageDraw.Draw(image)
    draw.rectangle([0, height * .72, width, height], fill=tuple(int(v * .55) for v in wall))
    fruits = [(214, 60, 50), (238, 150, 40), (120, 170, 60), (240, 210, 90), (120, 40, 80)]
    for index in range(9):
        r = width * random.uniform(.055, .085)
        x = width * (0.32 + 0.36 * random.random())
        y = height * (.55 - .14 * random.random())
        for ring in range(14):
            k = 1 - ring / 14
            colour = tuple(int(min(255, c * (.75 + .4 * (1 - k)))) for c in fruits[index % 5])
            draw.ellipse([x - r * k - r * .15 * (1 - k), y - r * k - r * .2 * (1 - k), x + r * k, y + r * k], fill=colour)
    draw.pieslice([width * .26, height * .32, width * .74, height * .86], 0, 180, fill=(235, 232, 224))
    draw.ellipse([width * .40, height * .83, width * .60, height * .88], fill=(205, 200, 190))
    return finish(np.asarray(image.filter(ImageFilter.SMOOTH)).astype(float), random, grain)


def avatar(random, size):
    backdrop = tuple(int(v) for v in random.integers(120, 235, 3))
    skin = [(241, 205, 177), (224, 172, 135), (188, 128, 90), (141, 85, 54), (96, 60, 40)][random.integers(5)]
    hair = [(40, 28, 24), (92, 58, 34), (190, 140, 70), (60, 60, 66), (150, 60, 40)][random.integers(5)]
    shirt = tuple(int(v) for v in random.integers(40, 210, 3))
    scale = size * 4
    image = Image.new("RGB", (scale, scale), backdrop)
    draw = ImageDraw.Draw(image)
    s = scale / 100
    box = lambda x0, y0, x1, y1: [x0 * s, y0 * s, x1 * s, y1 * s]
    if random.random() < .5:
        draw.ellipse(box(24, 16, 76, 84), fill=hair)
    draw.ellipse(box(14, 74, 86, 130), fill=shirt)
    draw.rectangle(box(43, 60, 57, 80), fill=tuple(int(c * .9) for c in skin))
    draw.ellipse(box(29, 22, 71, 72), fill=skin)
    draw.pieslice(box(27, 15, 73, 62), 180, 360, fill=hair)
    if random.random() < .4:
        draw.pieslice(box(27, 15, 73, 56), 200, 300, fill=hair)
    has_glasses = random.random() < .3
    for x in (41, 59):
        draw.ellipse(box(x - 2.6, 44, x + 2.6, 50), fill=(35, 30, 30))
        if has_glasses:
            draw.ellipse(box(x - 7, 40, x + 7, 54), outline=(40, 40, 45), width=int(1.4 * s))
    draw.arc(box(42, 50, 58, 64), 20, 160, fill=(150, 70, 60), width=int(1.6 * s))
    return image.resize((size, size), Image.LANCZOS)


def png(image, colours=None):
    buffer = io.BytesIO()
    if colours:
        image = image.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def jpeg(image):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=82)
    return buffer.getvalue()


def placeholder(image):
    small = image.resize((8, 6 if image.width > image.height else 8), Image.BOX)
    data = png(small, 8)
    return "data:image/png;base64," + base64.b64encode(data).decode()


DRAWERS = [
    (mountains, "mountains", "Layers of mountains under a low sun"), (sea, "sea", "The sun over a quiet sea"),
    (night, "night", "Stars over a dark ridge"), (city, "city", "A city at dusk, windows lit"),
    (field, "meadow", "A meadow in flower"), (bowl, "fruit", "Fruit in a white bowl"),
    (pattern, "tiles", "Tiles in five colours"),
]


def rendition(directory, name, suffix, image, data, media_type):
    path = f"images/{name}-{suffix}"
    (directory / path).write_bytes(data)
    return {
        "width": image.width, "height": image.height, "type": media_type, "file": path, "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def make(directory, seed, people):
    """Draws everything; returns the catalogue, the posts' pictures and the avatars by person."""
    (directory / "images").mkdir(exist_ok=True)
    for old in (directory / "images").iterdir():
        old.unlink()
    catalogue, pictures, avatars = [], [], []
    for index in range(42):
        random = np.random.default_rng([seed, 1, index])
        drawer, slug, alt = DRAWERS[index % len(DRAWERS)]
        is_large = index in (0, 1, 5)
        width = 2560 if is_large else 2048 if index == 2 else 1280
        original = drawer(random, width, width * 3 // 4, 5 if is_large else 0)
        name = f"{slug}-{index + 1}"
        renditions = []
        for target in (80, 320, 640, 1280, 2048, 2560):
            if target > width or (target == 2048 and width == 2560):
                continue
            image = original if target == width else original.resize((target, target * 3 // 4), Image.LANCZOS)
            # The three large ones keep their grain, and so their size; the rest are quantised.
            full = is_large and target == width
            colours = None if full else 24 if target >= 1280 else 48 if target >= 640 else 64
            data = png(image.quantize(128, dither=Image.Dither.NONE) if full else image, None if full else colours)
            renditions.append(rendition(directory, name, f"{target}.png", image, data, "image/png"))
            if index % 5 == 0 and target == 640:
                renditions.append(rendition(directory, name, f"{target}.jpg", image, jpeg(image), "image/jpeg"))
        widest = max((r for r in renditions if r["type"] == "image/png"), key=lambda r: r["width"])
        identifier = f"img_{slug}_{widest['sha256'][:8]}"
        catalogue.append({
            "id": identifier, "alt": alt, "width": original.width, "height": original.height,
            "placeholder": placeholder(original), "renditions": renditions,
        })
        pictures.append(identifier)
    for index in range(people):
        image = avatar(np.random.default_rng([seed, 2, index]), 256)
        renditions = []
        for target in (64, 256):
            small = image.resize((target, target), Image.LANCZOS)
            renditions.append(rendition(directory, f"avatar-{index + 1}", f"{target}.png", small, png(small, 48), "image/png"))
        identifier = f"img_avatar_{renditions[-1]['sha256'][:8]}"
        catalogue.append({
            "id": identifier, "alt": "A portrait, drawn", "width": 256, "height": 256,
            "placeholder": placeholder(image), "renditions": renditions,
        })
        avatars.append(identifier)
    return catalogue, pictures, avatars
