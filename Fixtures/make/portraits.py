"""Portraits of people who do not exist: flat shapes, four times as large as needed and then made small."""

import numpy as np
from PIL import Image, ImageDraw

BACKDROPS = ["f4d9a8", "b8d8d0", "c9c4e6", "f2b8a8", "a9cbe8", "d8e2a4", "e9c9d8", "9fc7b0", "f0c27a", "c2d3e0"]
SKINS = ["f5d3b8", "e9bd98", "d29a70", "ab7248", "83502f", "5d3822"]
HAIRS = ["1f1a1c", "3a2418", "6d4326", "b98544", "8f8d92", "a5492a", "dcd6cc"]
SHIRTS = ["2f4b7c", "b5473c", "3d7a5c", "d9902f", "5b4a86", "20303f", "c76f8c", "e8e2d4", "3b8ea5"]
STYLES = ["short", "long", "curly", "bun", "bald", "scarf", "parting", "cap"]


def rgb(text):
    return tuple(int(text[i:i + 2], 16) for i in (0, 2, 4))


def shade(tint, factor):
    return tuple(int(max(0, min(255, v * factor))) for v in tint)


def portrait(random):
    """A picture of 1024 px and what it shows."""
    pick = lambda items: items[int(random.integers(len(items)))]
    backdrop, skin, shirt = rgb(pick(BACKDROPS)), rgb(pick(SKINS)), rgb(pick(SHIRTS))
    hair = rgb(pick(HAIRS))
    # Hair that can be told from the skin.
    while sum(abs(a - b) for a, b in zip(hair, skin)) < 110:
        hair = rgb(pick(HAIRS))
    style = STYLES[int(random.integers(len(STYLES)))]
    glasses, beard = random.random() < 0.3, random.random() < 0.25 and style != "scarf"
    tilt = random.uniform(-4, 4)
    image = Image.new("RGB", (1024, 1024), backdrop)
    draw = ImageDraw.Draw(image)
    s = 10.24

    def oval(x0, y0, x1, y1, fill):
        draw.ellipse([x0 * s, y0 * s, x1 * s, y1 * s], fill=fill)

    oval(8, 6, 92, 90, shade(backdrop, 1.08))
    if style == "long":
        draw.rounded_rectangle([25 * s, 20 * s, 75 * s, 82 * s], 24 * s, fill=hair)
    if style == "curly":
        for angle in np.linspace(np.pi * 0.9, np.pi * 2.1, 11):
            x, y = 50 + 21 * np.cos(angle), 38 + 20 * np.sin(angle)
            oval(x - 9, y - 9, x + 9, y + 9, hair)
    if style == "bun":
        oval(39, 5, 61, 26, hair)
    if style == "scarf":
        draw.rounded_rectangle([24 * s, 16 * s, 76 * s, 88 * s], 26 * s, fill=shade(shirt, 1.2))
    oval(12, 76, 88, 140, shirt)
    draw.polygon([(42 * s, 77 * s), (58 * s, 77 * s), (50 * s, 88 * s)], fill=shade(skin, 0.85))
    draw.rounded_rectangle([42.5 * s, 58 * s, 57.5 * s, 80 * s], 5 * s, fill=shade(skin, 0.85))
    for x in (29.5, 70.5):
        if style not in ("scarf", "long"):
            oval(x - 4, 42, x + 4, 54, shade(skin, 0.93))
    oval(30, 20, 70, 72, skin)
    if beard:
        draw.chord([30.5 * s, 24 * s, 69.5 * s, 73 * s], 12, 168, fill=hair)
        oval(39, 50, 61, 62, skin)
    if style in ("short", "bun", "long"):
        draw.chord([29 * s, 16 * s, 71 * s, 60 * s], 186 + tilt, 354 + tilt, fill=hair)
    elif style == "parting":
        draw.chord([28 * s, 15 * s, 72 * s, 58 * s], 165, 318, fill=hair)
        draw.chord([36 * s, 16 * s, 72 * s, 52 * s], 245, 372, fill=hair)
    elif style == "curly":
        for x in np.linspace(34, 66, 6):
            oval(x - 6.5, 16, x + 6.5, 30, hair)
    elif style == "scarf":
        draw.chord([28 * s, 14 * s, 72 * s, 60 * s], 190, 350, fill=shade(shirt, 1.2))
    elif style == "cap":
        draw.chord([29 * s, 14 * s, 71 * s, 58 * s], 182, 358, fill=shade(shirt, 0.8))
        draw.rounded_rectangle([30 * s, 32 * s, 82 * s, 37 * s], 2.4 * s, fill=shade(shirt, 0.65))
    dark = shade(skin, 0.42)
    for x in (41.5, 58.5):
        oval(x - 2.3, 44, x + 2.3, 49.4, (38, 28, 30))
        oval(x - 0.2, 44.8, x + 1.1, 46.2, (250, 248, 245))
        draw.arc([(x - 5) * s, 37.5 * s, (x + 5) * s, 45 * s], 205, 335, fill=shade(hair, 0.8) if style != "bald" else dark, width=int(1.2 * s))
        if glasses:
            draw.ellipse([(x - 7.2) * s, 39.5 * s, (x + 7.2) * s, 53.5 * s], outline=(45, 42, 50), width=int(1.3 * s))
    if glasses:
        draw.line([48.6 * s, 46 * s, 51.4 * s, 46 * s], fill=(45, 42, 50), width=int(1.3 * s))
    draw.arc([46.5 * s, 48 * s, 53 * s, 56 * s], 20, 120, fill=shade(skin, 0.72), width=int(1.2 * s))
    if random.random() < 0.6:
        draw.chord([43 * s, 52 * s, 57 * s, 64 * s], 15, 165, fill=(150, 58, 62))
        draw.chord([44.6 * s, 53 * s, 55.4 * s, 61.2 * s], 22, 158, fill=(250, 244, 238))
    else:
        draw.arc([42.5 * s, 50 * s, 57.5 * s, 63 * s], 25, 155, fill=(140, 62, 62), width=int(1.6 * s))
    for x in (35.5, 64.5):
        oval(x - 3.2, 52, x + 3.2, 57, tuple(int(a * 0.86 + b * 0.14) for a, b in zip(skin, (230, 80, 80))))
    what = {"short": "short hair", "long": "long hair", "curly": "curly hair", "bun": "hair in a bun", "bald": "no hair",
            "scarf": "a headscarf", "parting": "a side parting", "cap": "a cap"}[style]
    alt = f"Drawn portrait of a person with {what}" + (", glasses" if glasses else "") + (", a beard" if beard else "")
    return image, alt
