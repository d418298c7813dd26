"""Measures decoding a 12-megapixel PNG into 200 x 200 in turn with Pillow (libpng and zlib) reading the same file whole.

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
                out = subprocess.run([HERE / ".build/release/images", "decode", path, "200", "200", "1"],
                                     check=True, capture_output=True, text=True).stdout
                ours.append(float(re.search(r": ([\d.]+)", out).group(1)))
                peak = re.search(r"(\d+) kB more", out).group(1)
            ratios = sorted(a / b for a, b in zip(ours, theirs))
            print(f"{title}, {len(data) >> 10} kB: {statistics.median(ours):.0f} ms beside Pillow's {statistics.median(theirs):.0f} ms, "
                  f"ratio {ratios[3]:.2f} ({ratios[0]:.2f} - {ratios[-1]:.2f}), {peak} kB beside the file")


main()
