"""Draws the pictures of the fixtures: every one from a seed, none from anywhere else."""

import base64
import concurrent.futures
import functools
import hashlib
import io

import numpy as np
from PIL import Image

import portraits
import scenes

# Slug, what it shows, how it is drawn. The number of a picture is its place here.
PICTURES = [
    ("ridges", "Blue ridges behind one another, the sun just above them", scenes.mountains, {"sky": 0}),
    ("harbour", "The sun low over a quiet sea with one sail", scenes.sea, {"sky": 1, "sail": True}),
    ("starfield", "The Milky Way above a dark ridge with firs", scenes.night, {"firs": True}),
    ("skyline", "A city at dusk, windows lit, mirrored in the river", scenes.city, {"sky": 0, "river": True}),
    ("poppies", "A meadow full of poppies under a pale sky", scenes.meadow, {"bloom": 0}),
    ("fruit", "Oranges, plums and a pear on a wooden table", scenes.still_life, {"kind": "fruit", "wall": 0}),
    ("fern", "A fern, drawn in green ink", scenes.fern, {"paper": 0}),
    ("tiles", "Quarter-circle tiles in blue, cream and ochre", scenes.tiles, {"palette": 0}),
    ("contours", "A hiking map with contour lines and a river", scenes.map_sheet, {"palette": 0}),
    ("waveforms", "Lines of a chart stacked like hills", scenes.ridgeline, {"palette": 0}),
    ("lake", "Mountains mirrored in a lake at dawn", scenes.mountains, {"sky": 2, "lake": True}),
    ("lighthouse", "A lighthouse on a headland, its lamp already lit", scenes.sea, {"sky": 2, "lighthouse": True}),
    ("aurora", "Green northern lights over snow", scenes.night, {"aurora": True}),
    ("rooftops", "Rooftops after sunset in rose and violet", scenes.city, {"sky": 1}),
    ("lavender", "Rows of lavender running to the horizon", scenes.meadow, {"bloom": 1}),
    ("tea", "A cup of tea with steam and two lemons", scenes.still_life, {"kind": "cup", "wall": 1}),
    ("tree", "A bare tree with fine branches against a warm sky", scenes.tree, {"paper": 1, "leaves": False}),
    ("mosaic", "A mosaic of triangles, light to dark", scenes.triangles, {"palette": 1}),
    ("islands", "A chart of islands in a green sea", scenes.map_sheet, {"palette": 1}),
    ("dusk", "Soft bands of apricot, rose and blue", scenes.blend, {"palette": 0}),
    ("firs", "Dark firs in morning fog, mountains behind", scenes.mountains, {"sky": 3, "firs": True}),
    ("moonrise", "A full moon rising over the sea", scenes.sea, {"sky": 3, "moon": True}),
    ("crescent", "A crescent moon and thin clouds above hills", scenes.night, {"moon": True}),
    ("towers", "Towers in the blue hour with a yellow moon", scenes.city, {"sky": 2, "moon": True}),
    ("daisies", "White daisies on a green hill, one tree", scenes.meadow, {"bloom": 2, "tree": True}),
    ("loaf", "A round loaf on a linen cloth", scenes.still_life, {"kind": "loaf", "wall": 2}),
    ("blossom", "A tree in pink blossom", scenes.tree, {"paper": 2, "leaves": True}),
    ("weave", "A woven pattern in indigo and white", scenes.weave, {"palette": 2}),
    ("bars", "A bar chart in summer colours", scenes.bars, {"palette": 0}),
    ("dunes", "Dunes with sharp crests and long shadows", scenes.dunes, {"palette": 0}),
    ("summit", "Snowy summits in clear midday light", scenes.mountains, {"sky": 4, "snow": True}),
    ("shallows", "Turquoise shallows under a high sun", scenes.sea, {"sky": 4}),
    ("tent", "A lit tent under thousands of stars", scenes.night, {"tent": True}),
    ("bridge", "A bridge over the river, the city behind it", scenes.city, {"sky": 3, "river": True, "bridge": True}),
    ("sunflowers", "A field of sunflowers in the afternoon", scenes.meadow, {"bloom": 3}),
    ("tomatoes", "Tomatoes in a white bowl", scenes.still_life, {"kind": "bowl", "wall": 3}),
    ("sprout", "Two ferns side by side on cream paper", scenes.fern, {"paper": 3, "pair": True}),
    ("arcs", "Quarter-circle tiles in coral and teal", scenes.tiles, {"palette": 3}),
    ("atlas", "A relief map of a valley in browns", scenes.map_sheet, {"palette": 2}),
    ("lagoon", "Soft pools of green, teal and sand", scenes.blend, {"palette": 1}),
    ("valley", "A wide valley in golden evening light", scenes.mountains, {"sky": 5}),
    ("storm", "A grey sea with a bright line at the horizon", scenes.sea, {"sky": 5, "sail": True}),
    ("dunes-dusk", "Dunes after sunset, violet in the hollows", scenes.dunes, {"palette": 1}),
    ("signals", "Lines of a chart in night colours", scenes.ridgeline, {"palette": 1}),
    ("ember", "Soft pools of red, orange and plum", scenes.blend, {"palette": 2}),
]

# These keep all their grain in the widest rendition, and so their size: above 2 MB each.
HEAVY = {"ridges", "harbour", "poppies"}
WIDE = {"starfield", "skyline"}
GRAINED = {"dusk", "lagoon", "ember"}
JPEG = {"ridges", "harbour", "lake", "fruit", "rooftops", "lavender", "aurora", "loaf", "valley"}
ON_WIDTHS = (80, 320, 640, 1280, 2048, 2560)
PLACEHOLDER_BYTES_MAXIMUM = 220


def png(image, colours, dither=Image.Dither.NONE):
    buffer = io.BytesIO()
    # One round of k-means after the median cut keeps gradients even.
    image.quantize(colours, method=Image.Quantize.MEDIANCUT, kmeans=1, dither=dither).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def jpeg(image):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=84, optimize=True)
    return buffer.getvalue()


def placeholder(image):
    """Eight pixels wide, in as many colours as fit."""
    small = image.resize((8, 6 if image.width > image.height else 8), Image.BOX)
    for colours in range(24, 1, -1):
        text = "data:image/png;base64," + base64.b64encode(png(small, colours)).decode()
        if len(text) <= PLACEHOLDER_BYTES_MAXIMUM:
            return text
    raise ValueError("no placeholder is small enough")


def rendition(directory, name, image, data, media_type):
    path = f"images/{name}-{image.width}.{'png' if media_type == 'image/png' else 'jpg'}"
    (directory / path).write_bytes(data)
    return {
        "width": image.width, "height": image.height, "type": media_type, "file": path, "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def entry(slug, alt, original, renditions):
    widest = max((r for r in renditions if r["type"] == "image/png"), key=lambda r: r["width"])
    return {
        "id": f"img_{slug}_{widest['sha256'][:8]}", "alt": alt, "width": widest["width"], "height": widest["height"],
        "placeholder": placeholder(original), "renditions": renditions,
    }


def picture(directory, seed, index):
    slug, alt, drawer, options = PICTURES[index]
    original = drawer(np.random.default_rng([seed, 1, index]), **options)
    grain = np.random.default_rng([seed, 3, index])
    limit = 2560 if slug in HEAVY else 2048 if slug in WIDE else 1280
    renditions = []
    for width in ON_WIDTHS:
        if width > limit or (width == 2048 and limit == 2560):
            continue
        image = original if width == original.width else original.resize((width, width * 3 // 4), Image.LANCZOS)
        if width == 2560:
            noise = grain.normal(0, 7, (image.height, image.width, 1))
            full = Image.fromarray(np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8))
            data = png(full, 256)
        elif width >= 1280:
            data = png(image, 144)
        else:
            # Soft pools of colour show every step of a palette; grain hides them and is what such pictures have anyway.
            data = png(image, 256, Image.Dither.FLOYDSTEINBERG if slug in GRAINED else Image.Dither.NONE)
        renditions.append(rendition(directory, slug, image, data, "image/png"))
        if slug in JPEG and width in (640, 1280):
            renditions.append(rendition(directory, slug, image, jpeg(image), "image/jpeg"))
    return entry(slug, alt, original, renditions)


def avatar(directory, seed, index, handle):
    original, alt = portraits.portrait(np.random.default_rng([seed, 2, index]))
    renditions = []
    for width in (64, 256):
        image = original.resize((width, width), Image.LANCZOS)
        renditions.append(rendition(directory, f"avatar-{handle}", image, png(image, 64), "image/png"))
    return entry(f"avatar-{handle}", alt, original, renditions)


def make(directory, seed, handles):
    """Draws everything; returns the catalogue, the posts' pictures by slug and the avatars by person."""
    (directory / "images").mkdir(exist_ok=True)
    for old in (directory / "images").iterdir():
        old.unlink()
    # Each has a seed of its own, so that the order in which they are drawn does not matter.
    with concurrent.futures.ProcessPoolExecutor() as pool:
        pictures = list(pool.map(functools.partial(picture, directory, seed), range(len(PICTURES))))
    avatars = [avatar(directory, seed, index, handle) for index, handle in enumerate(handles)]
    by_slug = {slug: p["id"] for (slug, _, _, _), p in zip(PICTURES, pictures)}
    return pictures + avatars, by_slug, [a["id"] for a in avatars]
