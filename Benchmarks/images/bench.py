"""Measures decoding in turn with Pillow: a 12-megapixel PNG into 200 x 200 beside libpng reading it whole, and 12-megapixel JPEGs
whole and into 400 x 300 beside libjpeg-turbo decoding all of it (and resizing it with a box filter).

Needs Pillow and numpy; run after `swift build -c release` in this directory."""

import io
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent.parent / "Fixtures" / "images"


def picture(path, name, grain):
    image = Image.open(FIXTURES / name).convert("RGB").resize((4000, 3000), Image.BICUBIC)
    pixels = numpy.asarray(image).astype(numpy.int16)
    noise = numpy.rint(numpy.random.default_rng(1).normal(0, grain, pixels.shape)).astype(numpy.int16) if grain else 0
    Image.fromarray((pixels + noise).clip(0, 255).astype(numpy.uint8)).save(path)


def jpegs(folder):
    path = pathlib.Path(folder) / "picture.png"
    picture(path, "atlas-1280.png", 2)
    whole = Image.open(path)
    for title, options in (("baseline 4:2:0", {"subsampling": 2}), ("baseline 4:4:4", {"subsampling": 0}),
                           ("progressive 4:2:0", {"subsampling": 2, "progressive": True})):
        path = pathlib.Path(folder) / "picture.jpg"
        whole.save(path, quality=85, **options)
        data = path.read_bytes()
        for size in ((0, 0), (400, 300)):
            ours, theirs, peak = [], [], ""
            for _ in range(7):
                start = time.perf_counter()
                image = Image.open(io.BytesIO(data))
                image.load()
                if size[0]:
                    image.resize(size, Image.BOX)
                theirs.append((time.perf_counter() - start) * 1000)
                milliseconds, peak = measured(path, *size)
                ours.append(milliseconds)
            report(f"{title} into {size[0] or 4000} x {size[1] or 3000}", data, ours, theirs, peak)


def measured(path, width, height):
    out = subprocess.run([HERE / ".build/release/images", "decode", path, str(width), str(height), "1"],
                         check=True, capture_output=True, text=True).stdout
    return float(re.search(r": ([\d.]+)", out).group(1)), re.search(r"(\d+) kB more", out).group(1)


def report(title, data, ours, theirs, peak):
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    print(f"{title}, {len(data) >> 10} kB: {statistics.median(ours):.0f} ms beside Pillow's {statistics.median(theirs):.0f} ms, "
          f"ratio {ratios[3]:.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f}), {peak} kB beside the file")


def main():
    with tempfile.TemporaryDirectory() as folder:
        for title, name, grain in (("drawn", "arcs-1280.png", 0), ("with grain", "atlas-1280.png", 2)):
            path = pathlib.Path(folder) / "picture.png"
            picture(path, name, grain)
            data = path.read_bytes()
            ours, theirs, peak = [], [], ""
            for _ in range(7):
                start = time.perf_counter()
                Image.open(io.BytesIO(data)).load()
                theirs.append((time.perf_counter() - start) * 1000)
                milliseconds, peak = measured(path, 200, 200)
                ours.append(milliseconds)
            report(title, data, ours, theirs, peak)
        jpegs(folder)


main()
