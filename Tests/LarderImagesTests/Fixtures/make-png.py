"""Writes png.txt: small PNGs by Pillow, by pypng and by hand, each with the pixels that it must decode to.

A line is: name, width, height, the file in Base64, its RGBA in Base64. Needs Pillow and pypng; run by hand."""

import base64
import io
import pathlib
import random
import struct
import zlib

import png as pypng
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
W, H = 13, 11
lines = []


def note(name, png, rgba, width=W, height=H):
    assert len(rgba) == width * height * 4, name
    lines.append(f"{name} {width} {height} {base64.b64encode(png).decode()} {base64.b64encode(bytes(rgba)).decode()}")


# By hand: every colour type, depth and interlacing, with every filter, the stream in several IDATs.

def chunk(kind, content):
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def pack(samples, depth):
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    if depth == 8:
        return bytes(samples)
    out = bytearray((len(samples) * depth + 7) // 8)
    for i, s in enumerate(samples):
        out[i * depth // 8] |= s << (8 - depth - i * depth % 8)
    return bytes(out)


def filtered(rows, step, rng):
    out, previous = b"", None
    for row in rows:
        kind = rng.randrange(5)
        above = previous or bytes(len(row))
        line = bytearray()
        for i, value in enumerate(row):
            a = row[i - step] if i >= step else 0
            b = above[i]
            c = above[i - step] if i >= step else 0
            p = a + b - c
            pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
            paeth = a if pa <= pb and pa <= pc else b if pb <= pc else c
            line.append((value - [0, a, b, (a + b) // 2, paeth][kind]) & 255)
        out += bytes([kind]) + bytes(line)
        previous = row
    return out


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def by_hand(name, color, depth, interlaced, trns=False, width=W, height=H, level=9):
    rng = random.Random(name)
    count = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    top = (1 << depth) - 1
    entries = min(top + 1, 200) if color == 3 else 0
    limit = entries - 1 if color == 3 else top
    # Gradients with noise: filters have something to do, and so have matches.
    grid = [
        [[min(limit, max(0, (x * 17 + y * 9 + c * 40) * limit // 400 + (rng.randrange(-2, 3) if depth >= 8 else rng.randrange(2))))
          for c in range(count)] for x in range(width)]
        for y in range(height)
    ]
    step = max(1, depth * count // 8)
    areas = PASSES if interlaced else [(0, 0, 1, 1)]
    raw = b""
    for x0, y0, dx, dy in areas:
        if x0 >= width or y0 >= height:
            continue
        rows = [pack([s for x in range(x0, width, dx) for s in grid[y][x]], depth) for y in range(y0, height, dy)]
        raw += filtered(rows, step, rng)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced)))
    palette = [tuple(rng.randrange(256) for _ in range(3)) for _ in range(entries)]
    alphas, key = [], None
    if color == 3:
        png += chunk(b"PLTE", b"".join(bytes(p) for p in palette))
        if trns:
            alphas = [rng.randrange(256) for _ in range(max(1, entries // 2))]
            png += chunk(b"tRNS", bytes(alphas))
    elif trns:
        key = grid[3][5]
        png += chunk(b"tRNS", b"".join(struct.pack(">H", s) for s in key))
    stream = zlib.compress(raw, level)
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(3))
    for a, b in zip([0] + cuts, cuts + [len(stream)]):
        png += chunk(b"IDAT", stream[a:b])
    png += chunk(b"tEXt", b"Comment\0by hand") + chunk(b"IEND", b"")
    to8 = lambda s: (s * 255 * 2 + top) // (2 * top)
    rgba = bytearray()
    for y in range(height):
        for x in range(width):
            s = grid[y][x]
            if color == 3:
                rgba += bytes(palette[s[0]]) + bytes([alphas[s[0]] if s[0] < len(alphas) else 255])
            else:
                colors = [to8(s[0])] * 3 if color in (0, 4) else [to8(v) for v in s[:3]]
                alpha = to8(s[-1]) if color in (4, 6) else 0 if key is not None and s == key else 255
                rgba += bytes(colors + [alpha])
    note(name, png, rgba, width, height)


DEPTHS = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}
NAMES = {0: "gray", 2: "rgb", 3: "palette", 4: "gray-alpha", 6: "rgba"}
for color, depths in DEPTHS.items():
    for depth in depths:
        for interlaced in (False, True):
            kind = "interlaced" if interlaced else "plain"
            by_hand(f"hand-{NAMES[color]}-{depth}-{kind}", color, depth, interlaced)
            if color in (0, 2, 3):
                by_hand(f"hand-{NAMES[color]}-{depth}-{kind}-transparent", color, depth, interlaced, trns=True)
for width, height in ((1, 1), (1, 9), (9, 1), (2, 5), (4, 4), (5, 3), (3, 2)):
    by_hand(f"hand-interlaced-{width}x{height}", 2, 8, True, width=width, height=height)
by_hand("hand-stored", 2, 8, False, level=0)
by_hand("hand-fixed-codes", 0, 8, False, width=3, height=2)

# By Pillow.

rng = random.Random(7)
base = Image.new("RGBA", (W, H))
base.putdata([(x * 19 & 255, y * 23 & 255, (x * y * 3 + rng.randrange(9)) & 255, (x * 11 + y * 13) & 255) for y in range(H) for x in range(W)])


def by_pillow(name, image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    again = Image.open(io.BytesIO(file.getvalue())).convert("RGBA")
    note("pillow-" + name, file.getvalue(), again.tobytes())


by_pillow("rgba", base)
by_pillow("rgba-optimized", base, optimize=True)
by_pillow("rgb", base.convert("RGB"))
by_pillow("rgb-uncompressed", base.convert("RGB"), compress_level=0)
by_pillow("gray", base.convert("L"))
by_pillow("gray-alpha", base.convert("LA"))
by_pillow("bilevel", base.convert("1"))
for bits in (1, 2, 4, 8):
    by_pillow(f"palette-{bits}", base.convert("RGB").quantize(1 << bits), bits=bits)
by_pillow("palette-transparent", base.convert("RGB").quantize(16), transparency=3)

# By pypng: depths and interlacing that Pillow does not write.

for color, depths in DEPTHS.items():
    for depth in depths:
        for interlaced in (False, True):
            rng, top = random.Random(depth), (1 << depth) - 1
            count = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
            grid = [[rng.randrange(top + 1) for _ in range(W * count)] for _ in range(H)]
            options = {"greyscale": color in (0, 4), "alpha": color in (4, 6), "bitdepth": depth}
            palette = [(i * 7 & 255, i * 13 & 255, 255 - i, i * 29 & 255) for i in range(top + 1)]
            if color == 3:
                options = {"palette": palette, "bitdepth": depth}
            file = io.BytesIO()
            pypng.Writer(W, H, interlace=interlaced, **options).write(file, grid)
            header = file.getvalue()[24:29]
            assert (header[0], header[1], header[4]) == (depth, color, int(interlaced)), (depth, color, header)
            rgba = bytearray()
            for row in grid:
                for x in range(W):
                    s = row[x * count:(x + 1) * count]
                    eight = [(v * 255 * 2 + top) // (2 * top) for v in s]
                    if color == 3:
                        rgba += bytes(palette[s[0]])
                    else:
                        rgba += bytes([eight[0]] * 3 if count < 3 else eight[:3]) + bytes([eight[-1] if count in (2, 4) else 255])
            kind = "interlaced" if interlaced else "plain"
            note(f"pypng-{NAMES[color]}-{depth}-{kind}", file.getvalue(), rgba)

(HERE / "png.txt").write_text("\n".join(lines) + "\n")
print(len(lines), "pictures,", (HERE / "png.txt").stat().st_size, "bytes")
