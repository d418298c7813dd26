"""Writes jpeg.txt: small JPEGs by Pillow, cjpeg and ImageMagick, each with the pixels that libjpeg-turbo decodes it to.

A line is: name, width, height, the file in Base64, its RGB in Base64, as shown after an Exif orientation. Needs Pillow, and the
commands cjpeg, jpegtran and convert; run by hand."""

import base64
import io
import math
import pathlib
import random
import subprocess
import tempfile

from PIL import Image, ImageOps

HERE = pathlib.Path(__file__).resolve().parent
W, H = 35, 19
lines = []
rng = random.Random(5)


def picture(width=W, height=H, grain=6):
    pixels = []
    for y in range(height):
        for x in range(width):
            edge = 60 if (x - 17) ** 2 + (y - 9) ** 2 < 40 else 0
            pixels.append(tuple(
                min(255, max(0, round(128 + 80 * math.sin(x / (5 + c) + y / 7 + c * 2)) + edge * (c - 1) + rng.randint(-grain, grain)))
                for c in range(3)))
    image = Image.new("RGB", (width, height))
    image.putdata(pixels)
    return image


BASE = picture()


def note(name, jpeg):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(jpeg))).convert("RGB")
    width, height = image.size
    lines.append(f"{name} {width} {height} {base64.b64encode(jpeg).decode()} {base64.b64encode(image.tobytes()).decode()}")


def by_pillow(name, image=BASE, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    note("pillow-" + name, file.getvalue())
    return file.getvalue()


def by_command(name, command, image=BASE):
    ppm = io.BytesIO()
    image.save(ppm, "PPM")
    note(name, subprocess.run(command, input=ppm.getvalue(), capture_output=True, check=True).stdout)


# By Pillow.

for subsampling, title in enumerate(("444", "422", "420")):
    by_pillow(title, quality=85, subsampling=subsampling)
    by_pillow(title + "-progressive", quality=85, subsampling=subsampling, progressive=True)
by_pillow("best", quality=100, subsampling=0, optimize=True)
by_pillow("worst", quality=2)
by_pillow("gray", BASE.convert("L"), quality=85)
by_pillow("gray-progressive", BASE.convert("L"), quality=85, progressive=True)
by_pillow("rgb", quality=85, keep_rgb=True)
by_pillow("restarts", quality=85, restart_marker_blocks=1)
by_pillow("restarts-progressive", quality=85, restart_marker_rows=1, progressive=True)
by_pillow("extreme", picture(grain=200), quality=100, subsampling=0)
for width, height in ((1, 1), (2, 2), (3, 1), (1, 9), (8, 8), (9, 7), (16, 17), (33, 3)):
    by_pillow(f"{width}x{height}", picture(width, height), quality=90, subsampling=2)
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    by_pillow(f"orientation-{orientation}", quality=90, exif=exif)

# By cjpeg of libjpeg-turbo: other samplings, and scans in other orders.

for factors in ("1x2", "4x1", "1x4", "4x2", "2x4", "3x1", "2x2,2x1,1x1", "1x1,2x2,2x2"):
    title = factors.replace(",", "-")
    by_command(f"cjpeg-{title}", ["cjpeg", "-quality", "85", "-sample", factors])
    by_command(f"cjpeg-{title}-progressive", ["cjpeg", "-quality", "85", "-sample", factors, "-progressive"])
by_command("cjpeg-16-bit-factors", ["cjpeg", "-quality", "1"])
by_command("cjpeg-gray-2x2", ["cjpeg", "-grayscale", "-sample", "2x2"])
SCANS = {
    "components": "0;1;2;",
    "components-reversed": "2;1;0;",
    "bits": "0,1,2: 0-0, 0, 2; 0: 1-5, 0, 3; 2: 1-63, 0, 1; 1: 1-63, 0, 1; 0: 6-63, 0, 3; 0: 1-63, 3, 2; 0,1,2: 0-0, 2, 1; "
            "0: 1-63, 2, 1; 0,1,2: 0-0, 1, 0; 2: 1-63, 1, 0; 1: 1-63, 1, 0; 0: 1-63, 1, 0;",
    "bands": "0: 0-0, 0, 0; 1: 0-0, 0, 0; 2: 0-0, 0, 0; 0: 1-2, 0, 0; 0: 3-10, 0, 0; 1: 1-63, 0, 0; 0: 11-63, 0, 0; 2: 1-63, 0, 0;",
}
with tempfile.TemporaryDirectory() as folder:
    for title, script in SCANS.items():
        path = pathlib.Path(folder) / "scans"
        path.write_text(script.replace(";", ";\n").replace("\n ", "\n"))
        by_command(f"cjpeg-scans-{title}", ["cjpeg", "-sample", "2x2", "-scans", str(path)])
        by_command(f"cjpeg-scans-{title}-restarts", ["cjpeg", "-restart", "1", "-scans", str(path)])

# By ImageMagick.

for factors in ("4:2:0", "4:4:0", "4:1:0"):
    by_command("magick-" + factors.replace(":", ""), ["convert", "-", "-sampling-factor", factors, "-quality", "85", "jpeg:-"])
by_command("magick-progressive", ["convert", "-", "-interlace", "JPEG", "-quality", "70", "jpeg:-"])

(HERE / "jpeg.txt").write_text("\n".join(lines) + "\n")
print(len(lines), "pictures,", (HERE / "jpeg.txt").stat().st_size, "bytes")
