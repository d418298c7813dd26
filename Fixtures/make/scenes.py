"""The drawers of pictures: each takes a generator of random numbers and gives an image of 2560 × 1920."""

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from drawing import HEIGHT, WIDTH, array, ball, blur, canvas, colour, disc, glow, gradient, grid, line_noise, mix, noise, rgb, shadow

# Mountains: sky stops, far colour, near colour, sun (x, y, colour, radius) or None.
MOUNTAIN_SKIES = [
    (["2c4a7c", "8fb0cf", "f6d7b0"], "b9c4cf", "16283a", (0.64, 0.40, "fff1cf", 70)),
    (["3b2c5a", "c96f6a", "fbd08a"], "d89a83", "2a1a33", (0.3, 0.42, "fff0c2", 90)),
    (["5b7ea8", "b9cfdc", "fbe3cc"], "a8b8c8", "24364a", (0.42, 0.36, "fff6e2", 60)),
    (["aebfc6", "cfd9d8", "e9ebe2"], "bfcaca", "1f332f", None),
    (["2f74b8", "7db4de", "d6eaf4"], "9db8cf", "2b3f45", None),
    (["d98b3f", "f3bd6a", "fde7b0"], "e3b077", "4a2f1f", (0.75, 0.38, "fffbe0", 80)),
]


def mountains(random, sky, lake=False, firs=False, snow=False):
    stops, far, near, sun = MOUNTAIN_SKIES[sky]
    pixels = gradient(list(zip((0, 0.32, 0.62), map(colour, stops))) + [(1, colour(stops[-1]))])
    clouds = noise(random, 3, octaves=6, stretch=3.5)
    veil = np.clip((clouds - 0.55) * 2.4, 0, 0.5) * np.linspace(1, 0.1, HEIGHT)[:, None]
    pixels += (np.array([255, 250, 245]) - pixels) * veil[:, :, None]
    if sun:
        x, y, tint, radius = sun
        glow(pixels, x * WIDTH, y * HEIGHT, radius * 6, colour(tint), 0.65)
        disc(pixels, x * WIDTH, y * HEIGHT, radius, colour(tint))
    yy, _ = grid()
    layers = 6 if not lake else 4
    floor = 0.98 if not lake else 0.66
    for layer in range(layers):
        depth = layer / (layers - 1)
        base = HEIGHT * mix(0.47, floor - 0.06, depth)
        height = HEIGHT * mix(0.13 if snow else 0.075, 0.06, depth)
        line = base - height * line_noise(random, WIDTH, 2.5 + 2 * depth, decay=0.48 if snow else 0.43)
        body = mix(colour(far), colour(near), depth ** 1.15)
        below = np.clip((yy - line[None, :]) / (HEIGHT * 0.28), 0, 1)
        haze = mix(0.0, 0.55, (1 - depth)) * below + 0.25 * below * (1 - depth)
        painted = body[None, None, :] + (colour(stops[-1]) - body)[None, None, :] * haze[:, :, None]
        if snow and layer < 4:
            rock = noise(random, 9, octaves=6)
            fall = np.clip(1.1 - (yy - line[None, :]) / (HEIGHT * (0.2 - 0.03 * layer)), 0, 1)
            white = np.clip((rock + fall - 1.05) * 7, 0, 1) * (1 - 0.12 * layer)
            relief = noise(random, 7, octaves=5)
            side = np.clip((relief - np.roll(relief, 26, axis=1)) * 6 + 0.75, 0.3, 1)
            lit = colour("a9bedb") + (colour("fbfcff") - colour("a9bedb")) * side[:, :, None]
            painted = painted + (lit - painted) * white[:, :, None]
        cover = np.clip(yy - line[None, :] + 0.5, 0, 1)[:, :, None]
        pixels += (painted - pixels) * cover
    if lake:
        shore = int(HEIGHT * floor)
        mirrored = pixels[shore - (HEIGHT - shore):shore][::-1].copy()
        ripple = (np.sin(np.arange(HEIGHT - shore) ** 0.75 * 1.9) * np.linspace(1, 16, HEIGHT - shore)).astype(int)
        for row in range(HEIGHT - shore):
            mirrored[row] = np.roll(mirrored[row], ripple[row], axis=0)
        pixels[shore:] = mix(mirrored, colour("35566e"), 0.28)
        pixels[shore:shore + 5] = mix(pixels[shore:shore + 5], colour("ffffff"), 0.35)
    if firs:
        image = canvas(pixels)
        for row in range(3):
            tint = mix(colour("8fa29f"), colour("12211d"), (row + 1) / 3)
            base = HEIGHT * (0.80 + 0.1 * row)
            for x in np.arange(-60, WIDTH + 60, 120 - 14 * row):
                size = HEIGHT * random.uniform(0.10, 0.2) * (0.8 + 0.3 * row)
                _fir(ImageDraw.Draw(image), x + random.uniform(-40, 40), base + random.uniform(0, 60), size, rgb(tint), random)
            ImageDraw.Draw(image).rectangle([0, min(base + 30, HEIGHT - 1), WIDTH, HEIGHT], fill=rgb(tint))
            if row < 2:
                fog = Image.fromarray((np.clip(noise(random, 4, octaves=4, stretch=4) - 0.25, 0, 1) * 130 * (yy > base - 260)).astype(np.uint8))
                image.paste((216, 224, 222), (0, 0), fog.filter(ImageFilter.GaussianBlur(40)))
        return image
    return canvas(pixels)


def _fir(draw, x, base, size, tint, random):
    draw.polygon([(x - size * 0.02, base), (x + size * 0.02, base), (x, base - size)], fill=tint)
    tiers = 8
    for tier in range(tiers):
        top = base - size + size * 0.88 * tier / tiers
        reach = size * (0.05 + 0.19 * (tier + 1) / tiers) * random.uniform(0.85, 1.1)
        drop = size * 0.19
        draw.polygon([(x, top), (x - reach, top + drop), (x - reach * 0.4, top + drop * 0.86), (x, top + drop * 0.95),
                      (x + reach * 0.4, top + drop * 0.86), (x + reach, top + drop)], fill=tint)


# Sea: sky stops, water far and near, light (x, y, radius, colour) or None.
SEA_SKIES = [
    (["f2b880", "f7d9ae", "fdf0d5"], "d9b48f", "2f5d73", (0.5, 0.4, 60, "fffbe8")),
    (["2d3f6e", "b5718a", "fbc68c"], "e2a07f", "1b2c4d", (0.58, 0.46, 105, "fff0c4")),
    (["24335f", "6a6f9f", "e9b7a0"], "8f86a6", "17223f", None),
    (["070d24", "16224a", "3a4a7c"], "33436f", "060b1c", (0.4, 0.3, 90, "f7f3df")),
    (["3f9fd8", "9bd4ee", "e4f6f6"], "7fd6d2", "1487a6", None),
    (["4b5563", "7c8794", "e6e4d6"], "a9b0b0", "2b3843", None),
]


def sea(random, sky, sail=False, lighthouse=False, moon=False):
    stops, far, near, light = SEA_SKIES[sky]
    horizon = int(HEIGHT * 0.56)
    pixels = gradient(list(zip((0, 0.3, 0.56), map(colour, stops))) + [(1, colour(stops[-1]))])
    clouds = noise(random, 2.5, octaves=6, stretch=4)
    strength = 0.85 if sky == 5 else 0.45
    veil = np.clip((clouds - 0.5) * 2.2, 0, strength) * np.linspace(1, 0.25, HEIGHT)[:, None]
    tint = colour("39424d") if sky == 5 else mix(colour(stops[-1]), colour("ffffff"), 0.25 if not moon else 0)
    pixels += (tint - pixels) * veil[:, :, None]
    if light:
        x, y, radius, tint = light
        glow(pixels, x * WIDTH, y * HEIGHT, radius * 5, colour(tint), 0.6 if not moon else 0.35)
        disc(pixels, x * WIDTH, y * HEIGHT, radius, colour(tint))
        if moon:
            craters = noise(random, 24, octaves=3)
            yy, xx = grid()
            inside = np.hypot(xx - x * WIDTH, yy - y * HEIGHT) < radius
            pixels[inside] *= (1 - 0.16 * craters[inside])[:, None]
    rows = HEIGHT - horizon
    depth = np.linspace(0, 1, rows)
    water = gradient([(0, colour(far)), (0.35, mix(colour(far), colour(near), 0.55)), (1, colour(near))], rows)
    # Waves: noise that is wide far away and grows towards the eye.
    wide = np.zeros((rows, WIDTH))
    for band, cells in enumerate((10, 22, 48, 100)):
        sheet = noise(random, cells, rows * 2, WIDTH, octaves=3, stretch=7)
        rows_of = np.clip((depth ** 0.45 * rows * 1.98), 0, rows * 2 - 1).astype(int)
        share = np.exp(-((depth - (0.95 - band * 0.3)) / 0.3) ** 2)[:, None]
        wide += (sheet[rows_of] - 0.5) * share
    crest = np.clip(wide * 2.6, -1, 1)
    water += crest[:, :, None] * (12 + 26 * depth)[:, None, None] * np.array([1.0, 1.05, 1.05])
    if light:
        x = light[0] * WIDTH
        xs = np.arange(WIDTH)[None, :]
        path = np.exp(-((xs - x) / (WIDTH * (0.025 + 0.10 * depth[:, None]))) ** 2)
        spark = np.clip(path * (crest + 0.35 + 0.3 * path) * 1.5, 0, 1)
        water += (colour(light[3]) - water) * spark[:, :, None] * 0.85
    if sky == 4:
        shoal = np.clip(noise(random, 3, rows, WIDTH, octaves=5, stretch=1.5) - 0.4, 0, 1) * depth[:, None]
        water += (colour("c9efd9") - water) * np.clip(shoal * 1.5, 0, 0.75)[:, :, None]
    pixels[horizon:] = water
    pixels[horizon - 2:horizon + 3] = mix(pixels[horizon - 2:horizon + 3], colour(stops[-1]), 0.5)
    image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    if sail:
        x, y, h = WIDTH * (0.3 if sky == 1 else 0.68), horizon + 46, 210
        hull = (38, 28, 38)
        draw.polygon([(x - 78, y - 22), (x + 84, y - 22), (x + 56, y + 8), (x - 58, y + 8)], fill=hull)
        draw.line([x, y - 20, x, y - h], fill=hull, width=6)
        draw.polygon([(x + 6, y - h), (x + 82, y - 36), (x + 6, y - 36)], fill=(248, 236, 220))
        draw.polygon([(x - 6, y - h + 24), (x - 62, y - 36), (x - 6, y - 36)], fill=(232, 214, 200))
    if lighthouse:
        land = [(0, HEIGHT * 0.5)]
        line = line_noise(random, 60, 4)
        for i in range(60):
            t = i / 59
            land.append((i * 22, HEIGHT * 0.5 + (horizon + 30 - HEIGHT * 0.5) * t ** 2.4 + line[i] * 16 * (1 - t)))
        draw.polygon(land + [(900, horizon + 110), (0, horizon + 170)], fill=(24, 26, 42))
        x, base, top = 520, HEIGHT * 0.5, HEIGHT * 0.23
        for band in range(6):
            y0, y1 = top + (base - top) * band / 6, top + (base - top) * (band + 1) / 6
            w0, w1 = 34 + 20 * band / 6, 34 + 20 * (band + 1) / 6
            draw.polygon([(x - w0, y0), (x + w0, y0), (x + w1, y1), (x - w1, y1)], fill=(214, 206, 206) if band % 2 else (158, 58, 58))
        draw.rectangle([x - 44, top - 12, x + 44, top], fill=(30, 30, 44))
        draw.rectangle([x - 26, top - 66, x + 26, top - 12], fill=(255, 236, 170))
        draw.pieslice([x - 36, top - 106, x + 36, top - 34], 180, 360, fill=(30, 30, 44))
        lit = array(image)
        glow(lit, x, top - 40, 120, colour("ffeaa8"), 0.6)
        yy, xx = grid()
        beam = np.clip(1 - np.abs((yy - (top - 40)) + (xx - x) * 0.07) / (12 + np.abs(xx - x) * 0.06), 0, 1) * (xx > x) * np.exp(-(xx - x) / 900)
        lit += (colour("fff0c0") - lit) * (beam * 0.5)[:, :, None]
        return canvas(lit)
    return image


def night(random, firs=False, aurora=False, moon=False, tent=False):
    low = "2b3a66" if not tent else "3b3560"
    pixels = gradient([(0, colour("050818")), (0.55, colour("111a3c")), (0.86, colour(low)), (1, colour(low))])
    yy, xx = grid()
    if not moon and not aurora:
        slope = 0.55 if firs else -0.5
        along = (yy - HEIGHT * 0.42) - (xx - WIDTH / 2) * slope
        wisps = noise(random, 3, octaves=7)
        dust = noise(random, 5, octaves=7)
        band = np.exp(-(along / (HEIGHT * 0.17)) ** 2) * (0.35 + 0.9 * wisps)
        core = np.exp(-(along / (HEIGHT * 0.06)) ** 2) * np.clip(dust - 0.42, 0, 1) * 2.0
        pixels += band[:, :, None] * np.array([74, 70, 104]) + (band * wisps)[:, :, None] * np.array([52, 34, 40])
        pixels *= (1 - 0.55 * np.clip(core, 0, 1))[:, :, None]
    if aurora:
        for curtain in range(3):
            base = HEIGHT * (0.36 + 0.12 * curtain) + HEIGHT * 0.12 * line_noise(random, WIDTH, 2, octaves=3, decay=0.45)
            rays = 0.4 + 0.6 * np.clip(line_noise(random, WIDTH, 26, octaves=4, decay=0.6) * 0.5 + 0.5, 0, 1)
            up = np.clip((base[None, :] - yy) / (HEIGHT * 0.36), 0, 1)
            body = np.where(yy < base[None, :], np.exp(-up * 3.2) * (1 - up), np.exp(-((yy - base[None, :]) / 75) ** 2)) * rays[None, :] * (0.75 - 0.13 * curtain)
            tint = mix(colour("46f0a0"), colour("8a5ae0"), 0.0) * (1 - up[:, :, None]) + colour("7a58d8") * up[:, :, None]
            pixels += tint * body[:, :, None] * 0.7
    count = 5200
    xs, ys = random.integers(2, WIDTH - 2, count), random.integers(2, int(HEIGHT * 0.88), count)
    power = random.pareto(2.4, count) * 46 + 26
    tints = np.stack([random.uniform(0.85, 1, count), random.uniform(0.88, 0.98, count), random.uniform(0.85, 1.1, count)], axis=1)
    for x, y, p, t in zip(xs, ys, power, tints):
        # One picture element of a star is four here, so that it survives being made smaller.
        pixels[y:y + 2, x:x + 2] += min(p * 1.6, 235) * t
        if p > 150:
            pixels[y - 1:y + 3, x - 1:x + 3] += 70 * t
    if moon:
        x, y, radius = WIDTH * 0.68, HEIGHT * 0.3, 130
        glow(pixels, x, y, 420, colour("6f78b0"), 0.5)
        lit = (np.hypot(xx - x, yy - y) < radius) & (np.hypot(xx - x + 62, yy - y + 26) > radius * 1.02)
        pixels[lit] = colour("fbf3d6")
        streaks = np.clip(noise(random, 3, octaves=6, stretch=6) - 0.52, 0, 1) * 1.9 * (yy < HEIGHT * 0.8)
        pixels += (colour("59608c") - pixels) * np.clip(streaks, 0, 0.6)[:, :, None]
    for layer in range(3):
        line = HEIGHT * (0.78 + 0.07 * layer) - HEIGHT * 0.045 * line_noise(random, WIDTH, 3 + layer)
        ground = mix(colour("b8c8dc"), colour("7c8fb0"), layer / 2) * 0.55 if aurora else mix(colour("1b2347"), colour("04060e"), layer / 2)
        cover = np.clip(yy - line[None, :] + 0.5, 0, 1)[:, :, None]
        pixels += (ground - pixels) * cover
    image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    if firs or aurora or tent:
        for x in np.concatenate([np.arange(0, WIDTH * 0.34, 74), np.arange(WIDTH * 0.72, WIDTH + 60, 84)]):
            _fir(draw, x + random.uniform(-24, 24), HEIGHT * 0.99, HEIGHT * random.uniform(0.13, 0.32), (4, 7, 12), random)
        draw.rectangle([0, HEIGHT * 0.965, WIDTH, HEIGHT], fill=(4, 7, 12) if not aurora else (48, 58, 78))
    if tent:
        x, y = WIDTH * 0.52, HEIGHT * 0.965
        warm = array(image)
        glow(warm, x, y - 90, 300, colour("ffb45a"), 0.5)
        image = canvas(warm)
        draw = ImageDraw.Draw(image)
        draw.polygon([(x - 230, y), (x - 20, y - 230), (x + 60, y)], fill=(255, 186, 92))
        draw.polygon([(x + 60, y), (x - 20, y - 230), (x + 210, y - 14)], fill=(214, 128, 58))
        draw.polygon([(x - 100, y), (x - 30, y - 150), (x - 40, y)], fill=(255, 226, 160))
        draw.rectangle([0, y, WIDTH, HEIGHT], fill=(6, 8, 14))
    return image


CITY_SKIES = [
    (["1b2350", "7a4f86", "f4a26b", "fdd9a0"], "5a4675", "0f1024"),
    (["6b5a94", "d98aa0", "f9c6a8", "fde6cf"], "b98aa6", "3a2444"),
    (["0c1838", "22407a", "5f86b8", "b8cbd8"], "4f6d9c", "0a1124"),
    (["2a2040", "8e4a5e", "ee8f5e", "ffd08a"], "8a5566", "1a1224"),
]


def city(random, sky, river=False, moon=False, bridge=False):
    stops, far, near = CITY_SKIES[sky]
    ground = 0.74 if river else 1.0
    pixels = gradient(list(zip((0, 0.35 * ground, 0.7 * ground, 0.92 * ground), map(colour, stops))) + [(1, colour(stops[-1]))])
    clouds = np.clip(noise(random, 2.5, octaves=6, stretch=5) - 0.5, 0, 0.4)
    pixels += (colour(stops[2]) - pixels) * clouds[:, :, None] * 1.2
    if moon:
        glow(pixels, WIDTH * 0.26, HEIGHT * 0.24, 300, colour("ffe9a8"), 0.35)
        disc(pixels, WIDTH * 0.26, HEIGHT * 0.24, 78, colour("ffefb8"))
    image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    floor = HEIGHT * ground
    layers = 5
    for layer in range(layers):
        depth = layer / (layers - 1)
        tint = mix(colour(far), colour(near), depth ** 0.8)
        body = mix(mix(colour(far), colour(stops[2]), 0.45), tint, depth * 0.7 + 0.3)
        x = -random.uniform(0, 120)
        while x < WIDTH:
            w = random.uniform(80, 190) * (0.7 + 0.5 * depth)
            h = floor * random.beta(2, 3.2) * mix(0.62, 0.42, depth) + floor * mix(0.2, 0.06, depth)
            top = floor - h
            draw.rectangle([x, top, x + w, floor], fill=rgb(body))
            roof = random.random()
            if sky == 1 or roof < 0.18:
                draw.polygon([(x - 8, top), (x + w / 2, top - w * 0.38), (x + w + 8, top)], fill=rgb(body * 0.9))
            elif roof < 0.34:
                draw.line([x + w / 2, top, x + w / 2, top - random.uniform(40, 130)], fill=rgb(body), width=6)
            elif roof < 0.5:
                draw.rectangle([x + w * 0.2, top - 34, x + w * 0.7, top], fill=rgb(body))
            if layer >= 1:
                step_x, step_y = 24 + 4 * layer, 34 + 5 * layer
                share = random.uniform(0.1, 0.5)
                for wy in np.arange(top + 26, floor - 24, step_y):
                    for wx in np.arange(x + 16, x + w - 22, step_x):
                        dice = random.random()
                        if dice < share:
                            warm = [colour("ffd88a"), colour("ffc46b"), colour("fff0c8"), colour("ffab5e")][int(dice * 997) % 4]
                            draw.rectangle([wx, wy, wx + 9 + 2 * layer, wy + 14 + 3 * layer], fill=rgb(mix(body, warm, 0.4 + 0.5 * depth)))
            x += w + random.uniform(-20, 26)
    if river:
        pixels = array(image)
        shore = int(floor)
        rows = HEIGHT - shore
        mirrored = pixels[shore - rows:shore][::-1].copy()
        mirrored = array(canvas(mirrored).filter(ImageFilter.GaussianBlur(5)))
        wave = noise(random, 30, rows, WIDTH, octaves=3, stretch=9) - 0.5
        columns = np.clip(np.arange(WIDTH)[None, :] + (wave * np.linspace(10, 90, rows)[:, None]).astype(int), 0, WIDTH - 1)
        mirrored = np.take_along_axis(mirrored, columns[:, :, None], axis=1)
        pixels[shore:] = mix(mirrored, colour(near), 0.32) + wave[:, :, None] * 22
        pixels[shore:shore + 7] = colour(near)
        image = canvas(pixels)
    if bridge:
        draw = ImageDraw.Draw(image)
        dark, deck = rgb(mix(colour(near), colour(stops[2]), 0.5)), floor + 24
        for x in (WIDTH * 0.22, WIDTH * 0.78):
            draw.rectangle([x - 26, deck - 520, x + 26, deck + 130], fill=dark)
            draw.rectangle([x - 40, deck - 540, x + 40, deck - 505], fill=dark)
        for x0, x1 in ((-WIDTH * 0.3, WIDTH * 0.22), (WIDTH * 0.22, WIDTH * 0.78), (WIDTH * 0.78, WIDTH * 1.3)):
            points = []
            for i in range(61):
                t = i / 60
                points.append((x0 + (x1 - x0) * t, deck - 500 + 440 * 4 * t * (1 - t)))
            draw.line(points, fill=dark, width=10)
            for px, py in points[::2]:
                draw.line([px, py, px, deck], fill=dark, width=4)
        draw.rectangle([0, deck, WIDTH, deck + 34], fill=dark)
        for x in range(40, WIDTH, 130):
            draw.ellipse([x - 9, deck - 40, x + 9, deck - 22], fill=(255, 226, 160))
            draw.line([x, deck - 24, x, deck], fill=dark, width=4)
    return image


MEADOWS = [
    (["9cc9e8", "e9f1ea"], "a9b86a", "4d7a35", ["d8362e", "e8503c", "c42a2a", "f07a58"]),
    (["f1b48a", "fbe8c8"], "a899b8", "5d7a48", ["7a5ab0", "9474c8", "6a4aa0", "b294dc"]),
    (["6fb0e0", "e4f2f4"], "9cc06a", "3f7f35", ["ffffff", "f6f4ea", "ffe07a", "fdfbf2"]),
    (["7fb9e6", "f6ecc8"], "c9b85a", "4f7a2c", ["f8c025", "f0a818", "ffd84a", "e89a10"]),
]


def meadow(random, bloom, tree=False):
    sky, far, near, blooms = MEADOWS[bloom]
    horizon = HEIGHT * 0.44
    pixels = gradient([(0, colour(sky[0])), (0.44, colour(sky[1])), (1, colour(sky[1]))])
    clouds = np.clip(noise(random, 2.6, octaves=6, stretch=2.4) - 0.5, 0, 0.45) * 1.9
    pixels += (colour("ffffff") - pixels) * clouds[:, :, None]
    yy, xx = grid()
    for layer in range(2):
        line = horizon + layer * 36 - 60 * (line_noise(random, WIDTH, 2 + layer, octaves=4, decay=0.35) + 0.4)
        cover = np.clip(yy - line[None, :], 0, 1)[:, :, None]
        pixels += (mix(mix(colour(far), colour("a8c0c8"), 0.6 - 0.4 * layer), colour(near), 0.15) - pixels) * cover
    field = np.clip((yy - horizon - 36) / (HEIGHT - horizon), 0, 1)
    texture = noise(random, 14, octaves=6, stretch=2)
    body = colour(far) + (colour(near) - colour(far)) * (field[:, :, None] ** 0.7) + (texture[:, :, None] - 0.5) * 40
    pixels += (body - pixels) * np.clip(yy - horizon - 36, 0, 1)[:, :, None]
    if bloom == 1:
        # Rows that meet in one point of the horizon.
        angle = (xx - WIDTH * 0.56) / np.clip(yy - horizon + 8, 8, None)
        rows = (np.sin(angle * 15) * 0.5 + 0.5) ** 0.7
        tuft = noise(random, 90, octaves=3)
        rows = np.clip(rows * 1.25 - 0.2 + (tuft - 0.5) * 0.5, 0, 1) * (yy > horizon + 36)
        tint = colour("8666bc") + (tuft[:, :, None] - 0.45) * 120
        pixels += (tint - pixels) * rows[:, :, None]
        return canvas(pixels)
    image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    if tree:
        x, y = WIDTH * 0.74, horizon + 40
        draw.polygon([(x - 16, y), (x + 16, y), (x + 7, y - 190), (x - 7, y - 190)], fill=(74, 54, 40))
        for _ in range(240):
            a, r = random.uniform(0, 6.283), random.random() ** 0.5
            px, py = x + np.cos(a) * 165 * r, y - 260 + np.sin(a) * 125 * r
            s = random.uniform(16, 40)
            shade = mix(colour("2f5f2c"), colour("86b552"), np.clip(0.5 - (py - y + 260) / 300 + random.uniform(-0.2, 0.2), 0, 1))
            draw.ellipse([px - s, py - s, px + s, py + s], fill=rgb(shade))
    depths = np.sort(random.random(5200 if bloom != 3 else 2200) ** 0.75)
    for depth in depths:
        y = horizon + 44 + (HEIGHT - horizon + 30) * depth
        r = (2.2 + 26 * depth ** 1.6) * random.uniform(0.7, 1.2) * (1.35 if bloom == 3 else 1)
        x = random.uniform(-20, WIDTH + 20)
        if depth > 0.16:
            sway = random.normal(0, r * 0.5)
            draw.line([x, y, x + sway, y + r * 4.2], fill=rgb(mix(colour(near), colour("1f3d18"), random.uniform(0.1, 0.6))), width=max(1, int(r / 5)))
            for _ in range(2):
                gx = x + random.normal(0, r * 1.6)
                draw.line([gx, y + r * 4, gx + random.normal(0, r), y + r * random.uniform(0.2, 2)], fill=rgb(mix(colour(near), colour("b6cf6a"), random.uniform(0, 0.5))), width=max(1, int(r / 7)))
        tint = colour(blooms[int(random.integers(4))]) * random.uniform(0.85, 1.05)
        if depth < 0.22:
            draw.ellipse([x - r, y - r * 0.7, x + r, y + r * 0.7], fill=rgb(mix(tint, colour(far), 0.25)))
        elif bloom == 0:
            for dx, dy, f in ((-0.5, 0.1, 0.82), (0.5, 0.1, 0.9), (0, -0.35, 1.0), (0, 0.3, 1.08)):
                draw.ellipse([x + (dx - 0.72) * r, y + (dy - 0.55) * r, x + (dx + 0.72) * r, y + (dy + 0.55) * r], fill=rgb(tint * f))
            draw.ellipse([x - r * 0.22, y - r * 0.2, x + r * 0.22, y + r * 0.2], fill=(40, 22, 28))
        else:
            petals = 12 if bloom == 3 else 9
            turn = random.uniform(0, 1)
            for petal in range(petals):
                a = (petal + turn) / petals * 6.283
                px, py = x + np.cos(a) * r * 0.72, y + np.sin(a) * r * 0.6
                q = r * 0.34
                draw.ellipse([px - q, py - q, px + q, py + q], fill=rgb(tint * (0.92 + 0.08 * (petal % 2))))
            c = r * (0.52 if bloom == 3 else 0.36)
            draw.ellipse([x - c, y - c * 0.85, x + c, y + c * 0.85], fill=(92, 54, 26) if bloom == 3 else (244, 190, 48))
    return image


WALLS = [("6f8a8c", "4f666c", "8a5a36"), ("e8d6c0", "cdb49c", "b98a60"), ("b7bfae", "8f9888", "d8cdb8"), ("c9a08a", "a67a68", "6c4636")]


def _table(random, wall):
    top, bottom, table = map(colour, WALLS[wall])
    edge = int(HEIGHT * 0.6)
    pixels = gradient([(0, top), (0.6, bottom), (1, bottom)])
    yy, xx = grid()
    glow(pixels, WIDTH * 0.2, HEIGHT * 0.1, 900, top * 1.25, 0.7)
    grains = noise(random, 3, octaves=6, stretch=22)
    wood = table + (grains[:, :, None] - 0.5) * (60 if wall != 2 else 18)
    wood = wood * (0.82 + 0.3 * (yy - edge)[:, :, None] / (HEIGHT - edge))
    pixels += (wood - pixels) * np.clip(yy - edge, 0, 1)[:, :, None]
    fade = np.exp(-np.clip(yy - edge, 0, None) / 60) * (yy > edge)
    pixels *= (1 - 0.22 * fade)[:, :, None]
    return canvas(pixels)


def still_life(random, kind, wall):
    image = _table(random, wall)
    draw = ImageDraw.Draw(image)
    if kind == "fruit":
        shadow(image, [600, 1330, 2050, 1560], 0.5, 60)
        for x, y, r, tint in ((930, 1220, 200, "e2892b"), (1620, 1230, 190, "d97a24"), (1280, 1190, 230, "e8962f"), (1930, 1340, 118, "5b2f5e"),
                              (700, 1370, 112, "64315c"), (1110, 1400, 122, "4c2750"), (1500, 1420, 112, "6d3a64")):
            ball(image, x, y, r, colour(tint))
            if r > 150:
                dots = ImageDraw.Draw(image)
                for _ in range(170):
                    a, d = random.uniform(0, 6.283), random.random() ** 0.5 * r * 0.9
                    px, py = x + np.cos(a) * d, y + np.sin(a) * d
                    base = np.array(image.getpixel((int(px), int(py))))
                    dots.ellipse([px - 2.5, py - 2.5, px + 2.5, py + 2.5], fill=rgb(base * 0.9))
                dots.polygon([(x - 16, y - r * 0.82), (x + 14, y - r * 0.84), (x + 60, y - r * 1.06), (x + 6, y - r * 0.98)], fill=(72, 104, 52))
            else:
                ImageDraw.Draw(image).line([x, y - r * 0.9, x + 14, y - r * 1.25], fill=(70, 50, 36), width=9)
        yy, xx = grid()
        t = np.clip((yy - 770) / 560, 0, 1)
        half = np.sqrt(np.clip(t * (1 - t), 0, 1)) * (128 + 240 * t ** 1.5) * 1.12
        side = (xx - 2010) / np.clip(half, 1, None)
        round_ = np.sqrt(np.clip(1 - side ** 2, 0, 1))
        light = np.clip(0.55 * round_ - 0.42 * side + 0.25 * (1 - t), 0, 1)
        skin = colour("6d7428") + (colour("d9d45c") - colour("6d7428")) * light[:, :, None]
        skin += (noise(random, 70, octaves=3)[:, :, None] - 0.5) * 22
        pixels = array(image)
        pixels += (skin - pixels) * (np.clip((1 - np.abs(side)) * half, 0, 1) * (yy > 770) * (yy < 1330))[:, :, None]
        image = canvas(pixels)
        ball(image, 1930, 1340, 118, colour("5b2f5e"))
        ImageDraw.Draw(image).line([2010, 770, 2034, 690], fill=(82, 60, 40), width=14)
    elif kind == "cup":
        shadow(image, [820, 1440, 1760, 1600], 0.45, 50)
        draw.ellipse([850, 1400, 1720, 1570], fill=(238, 232, 222))
        draw.ellipse([900, 1412, 1670, 1545], fill=(222, 214, 204))
        draw.ellipse([1480, 1060, 1760, 1370], outline=(226, 220, 212), width=46)
        yy, xx = grid()
        pixels = array(image)
        t = np.clip((yy - 980) / 480, 0, 1)
        half = 310 - 150 * t ** 2.6
        inside = (np.abs(xx - 1285) < half) & (yy > 980) & (yy < 1470)
        side = (xx - 1285) / np.clip(half, 1, None)
        tone = 0.99 - 0.26 * np.clip(side + 0.15, 0, 1) ** 1.5 - 0.10 * np.clip(-side - 0.5, 0, 1)
        pixels[inside] = (np.array([246, 242, 234])[None, :] * tone[inside][:, None])
        image = canvas(pixels)
        draw = ImageDraw.Draw(image)
        draw.ellipse([975, 905, 1595, 1055], fill=(250, 247, 240))
        draw.ellipse([1005, 925, 1565, 1040], fill=(148, 78, 32))
        draw.ellipse([1060, 935, 1420, 1000], fill=(176, 100, 46))
        steam = Image.new("L", image.size, 0)
        for plume in range(3):
            points = [(1160 + plume * 120 + 50 * np.sin(i / 7 + plume * 2) * (i / 50), 930 - i * 13) for i in range(50)]
            for i, (px, py) in enumerate(points):
                r = 16 + i * 0.9
                ImageDraw.Draw(steam).ellipse([px - r, py - r, px + r, py + r], fill=int(70 * (1 - i / 50)))
        image.paste((255, 255, 255), (0, 0), steam.filter(ImageFilter.GaussianBlur(26)))
        for x, y, r in ((520, 1420, 150), (760, 1500, 138), (1990, 1460, 150)):
            shadow(image, [x - r, y + r * 0.6, x + r * 1.3, y + r * 1.15], 0.4, 40)
            ball(image, x, y, r, colour("f2cf3a"), rim=0.6)
            ball(image, x + r * 0.86, y + r * 0.05, r * 0.22, colour("e4bd30"), rim=0.7)
    elif kind == "loaf":
        draw.polygon([(300, 1330), (2200, 1260), (2480, 1700), (160, 1780)], fill=(236, 232, 222))
        for i in range(10):
            draw.line([(300 + i * 205, 1325 - i * 7), (175 + i * 250, 1780 - i * 8)], fill=(196, 204, 214), width=8)
        shadow(image, [640, 1330, 2080, 1600], 0.5, 60)
        yy, xx = grid()
        nx, ny = (xx - 1330) / 690, (yy - 1210) / 330
        inside = np.clip((1 - np.hypot(nx, ny)) * 330, 0, 1)
        nz = np.sqrt(np.clip(1 - nx ** 2 - ny ** 2, 0, 1))
        crust = noise(random, 12, octaves=6)
        light = np.clip(-0.35 * nx - 0.6 * ny + 0.75 * nz, 0, 1)
        tint = colour("7a3f1a") + (colour("d99a52") - colour("7a3f1a")) * np.clip(light * 0.85 + (crust - 0.5) * 0.55, 0, 1)[:, :, None]
        for offset in (-0.46, -0.16, 0.14, 0.44):
            cut = np.abs(nx - offset - 0.22 * ny) / (0.05 * (1.05 - ny ** 2))
            opened = np.clip(1.4 - cut, 0, 1) * (np.abs(ny + 0.1) < 0.74)
            tint = tint + (colour("f0d5a4") + (crust[:, :, None] - 0.5) * 70 - tint) * opened[:, :, None]
        flour = np.clip(noise(random, 40, octaves=4) - 0.55, 0, 1) * np.clip(light, 0, 1)
        tint = tint + (colour("fbf3e2") - tint) * np.clip(flour * 2.4, 0, 0.6)[:, :, None]
        pixels = array(image)
        pixels += (tint - pixels) * inside[:, :, None]
        image = canvas(pixels)
    else:
        shadow(image, [700, 1480, 1900, 1660], 0.5, 60)
        for row, (y, count, r) in enumerate(((900, 3, 150), (1010, 5, 165))):
            for i in range(count):
                x = 1290 + (i - (count - 1) / 2) * 215 + random.uniform(-14, 14)
                red = mix(colour("d8342a"), colour("e86a2c"), random.uniform(0, 0.5))
                ball(image, x, y + random.uniform(-16, 16), r, red)
                star = ImageDraw.Draw(image)
                for leaf in range(5):
                    a = -1.57 + (leaf - 2) * 0.62
                    star.polygon([(x - 9, y - r * 0.72), (x + 9, y - r * 0.72), (x + np.cos(a) * 74, y - r * 0.78 + np.sin(a) * 46)], fill=(66, 112, 48))
        yy, xx = grid()
        pixels = array(image)
        t = np.clip((yy - 1060) / 500, 0, 1)
        half = 720 * np.sqrt(np.clip(1 - t ** 2.2, 0.0, 1)) * 0.72 + 720 * 0.28 * (1 - t)
        half = np.maximum(half, 230)
        inside = (np.abs(xx - 1290) < half) & (yy > 1060 + 50 * np.sqrt(np.clip(1 - ((xx - 1290) / 720) ** 2, 0, 1))) & (yy < 1580)
        side = (xx - 1290) / np.clip(half, 1, None)
        tone = 1.0 - 0.3 * np.clip(side + 0.1, 0, 1) ** 1.6 - 0.12 * np.clip(-side - 0.55, 0, 1) - 0.1 * t
        pixels[inside] = np.array([244, 240, 232])[None, :] * tone[inside][:, None]
        image = canvas(pixels)
        ImageDraw.Draw(image).arc([570, 1012, 2010, 1112], 0, 180, fill=(252, 250, 244), width=12)
        ball(image, 2150, 1500, 140, colour("dd4a2c"))
        ball(image, 430, 1540, 120, colour("e0702c"))
    return image


PAPERS = [("f3efe2", "e2dcc6", "2f6b46"), ("f6c48a", "f2e2c4", "2c2026"), ("cfe2ec", "f6f1ec", "4a3532"), ("f5ead2", "ead9b6", "3c6e58")]


def _paper(random, index):
    top, bottom, _ = PAPERS[index]
    pixels = gradient([(0, colour(top)), (1, colour(bottom))])
    pixels += (noise(random, 60, octaves=4)[:, :, None] - 0.5) * 7
    return canvas(pixels)


def fern(random, paper, pair=False):
    """Barnsley's fern, many points, darker where they meet."""
    image = array(_paper(random, paper))
    for which in range(2 if pair else 1):
        count = 60_000
        x, y = np.zeros(count), np.zeros(count)
        ink = np.zeros((HEIGHT, WIDTH))
        lean = (0.03 if which == 0 else -0.05) * (1 if pair else 1.2)
        for step in range(46):
            dice = random.random(count)
            x1 = np.select([dice < 0.01, dice < 0.86, dice < 0.93], [0 * x, 0.85 * x + (0.04 + lean) * y, 0.2 * x - 0.26 * y], -0.15 * x + 0.28 * y)
            y1 = np.select([dice < 0.01, dice < 0.86, dice < 0.93], [0.16 * y, -(0.04 + lean) * x + 0.85 * y + 1.6, 0.23 * x + 0.22 * y + 1.6], 0.26 * x + 0.24 * y + 0.44)
            x, y = x1, y1
            if step > 12:
                scale = 172 if not pair else 150
                centre = WIDTH * (0.44 if not pair else 0.27 + 0.42 * which)
                px = (centre + x * scale).astype(int)
                py = (HEIGHT * 0.95 - y * scale * 0.98).astype(int)
                fits = (px >= 0) & (px < WIDTH) & (py >= 0) & (py < HEIGHT)
                np.add.at(ink, (py[fits], px[fits]), 1)
        cover = 1 - np.exp(-blur(ink, 1, passes=1) * 0.9)
        tint = mix(colour(PAPERS[paper][2]), colour("8aa84a"), 0.5 * which)
        image += (tint - image) * cover[:, :, None]
    return canvas(image)


def tree(random, paper, leaves):
    image = _paper(random, paper)
    if paper == 1:
        pixels = array(image)
        glow(pixels, WIDTH * 0.5, HEIGHT * 0.62, 560, colour("fff4d8"), 0.8)
        image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    ink = rgb(colour(PAPERS[paper][2]))
    tips = []

    def branch(x, y, angle, length, width, level):
        bend = random.normal(0, 0.09)
        x1, y1 = x + np.cos(angle) * length, y + np.sin(angle) * length
        draw.line([x, y, x1, y1], fill=ink, width=max(2, int(width)))
        draw.ellipse([x1 - width / 2, y1 - width / 2, x1 + width / 2, y1 + width / 2], fill=ink)
        if level == 0 or length < 9:
            tips.append((x1, y1))
            return
        spread = random.uniform(0.26, 0.5)
        branch(x1, y1, angle - spread + bend, length * random.uniform(0.70, 0.86), width * 0.68, level - 1)
        branch(x1, y1, angle + spread + bend, length * random.uniform(0.70, 0.86), width * 0.68, level - 1)
        if random.random() < 0.35:
            branch(x1, y1, angle + bend, length * random.uniform(0.6, 0.8), width * 0.6, level - 1)

    line = HEIGHT * 0.9 - 26 * line_noise(random, 80, 3, octaves=4)
    draw.polygon([(i * WIDTH / 79, line[i]) for i in range(80)] + [(WIDTH, HEIGHT), (0, HEIGHT)], fill=ink if paper == 1 else (122, 150, 96))
    branch(WIDTH * 0.5, HEIGHT * 0.92, -1.57, HEIGHT * 0.17, 62, 9 if not leaves else 8)
    if leaves:
        petals = [colour("f4a7b9"), colour("f8c6d0"), colour("ec8aa4"), colour("fde4e8")]
        for _ in range(5):
            for x, y in tips:
                px, py = x + random.normal(0, 22), y + random.normal(0, 20)
                r = random.uniform(7, 17)
                draw.ellipse([px - r, py - r, px + r, py + r], fill=rgb(petals[int(random.integers(4))] * random.uniform(0.94, 1.03)))
        for _ in range(260):
            px, py = random.normal(WIDTH * 0.5, WIDTH * 0.19), random.uniform(HEIGHT * 0.86, HEIGHT * 0.98)
            draw.ellipse([px - 10, py - 5, px + 10, py + 5], fill=rgb(petals[int(random.integers(4))]))
    return image


PALETTES = [
    ["1f3b63", "f2e6cc", "d9973b", "5a86ad", "b6523a"],
    ["f4e3c3", "e9b872", "c65f4b", "6d3a5d", "25274d"],
    ["1d2f6f", "f4f1e6", "35509c", "c9d4ea", "101a40"],
    ["f08a6b", "1f7a7a", "f7e1c6", "0f4c5c", "f4b860"],
]


def tiles(random, palette):
    tints = [rgb(colour(c)) for c in PALETTES[palette]]
    image = Image.new("RGB", (WIDTH, HEIGHT), tints[1])
    size = 320
    for row in range(6):
        for column in range(8):
            tile = Image.new("RGB", (size, size), tints[(row * 3 + column) % 2 + 1 if palette == 0 else (row + column) % 2 * 2])
            draw = ImageDraw.Draw(tile)
            inks = [t for t in tints if t != tile.getpixel((0, 0))]
            shape = random.integers(4)
            first, second = (inks[int(i)] for i in random.permutation(len(inks))[:2])
            if shape == 0:
                draw.pieslice([-size, -size, size, size], 0, 90, fill=first)
                draw.pieslice([-size // 2, -size // 2, size // 2, size // 2], 0, 90, fill=second)
            elif shape == 1:
                draw.pieslice([-size // 2, 0, size // 2, size], 270, 90, fill=first)
                draw.pieslice([size // 2, 0, size * 3 // 2, size], 90, 270, fill=second)
            elif shape == 2:
                draw.ellipse([size * 0.1, size * 0.1, size * 0.9, size * 0.9], fill=first)
                draw.pieslice([size * 0.1, size * 0.1, size * 0.9, size * 0.9], 45, 225, fill=second)
            else:
                draw.polygon([(0, 0), (size, 0), (0, size)], fill=first)
                draw.pieslice([size // 2 - 90, size // 2 - 90, size // 2 + 90, size // 2 + 90], 135, 315, fill=second)
            image.paste(tile.rotate(90 * int(random.integers(4))), (column * size, row * size))
    return canvas(array(image) + (noise(random, 80, octaves=3)[:, :, None] - 0.5) * 6)


def triangles(random, palette):
    tints = [colour(c) for c in PALETTES[palette]]
    image = Image.new("RGB", (WIDTH, HEIGHT))
    draw = ImageDraw.Draw(image)
    across, down = 16, 14
    xs = np.linspace(-0.05, 1.05, across + 1)[None, :] * WIDTH + random.uniform(-52, 52, (down + 1, across + 1))
    ys = np.linspace(-0.05, 1.05, down + 1)[:, None] * HEIGHT + random.uniform(-46, 46, (down + 1, across + 1))
    for row in range(down):
        for column in range(across):
            corners = [(xs[row + a, column + b], ys[row + a, column + b]) for a, b in ((0, 0), (0, 1), (1, 1), (1, 0))]
            halves = ((0, 1, 2), (0, 2, 3)) if (row + column) % 2 else ((0, 1, 3), (1, 2, 3))
            for half in halves:
                points = [corners[i] for i in half]
                t = np.clip(np.mean([p[1] / HEIGHT * 0.75 + p[0] / WIDTH * 0.25 for p in points]) + random.normal(0, 0.06), 0, 0.999) * 4
                draw.polygon(points, fill=rgb(mix(tints[int(t)], tints[int(t) + 1], t % 1)))
    return image


def weave(random, palette):
    tints = [colour(c) for c in PALETTES[palette]]
    image = Image.new("RGB", (WIDTH, HEIGHT), rgb(tints[1]))
    draw = ImageDraw.Draw(image)
    cell = 40
    warp = random.random((HEIGHT // cell // 2 + 1, WIDTH // cell // 4 + 1)) < 0.5
    for row in range(HEIGHT // cell):
        for column in range(WIDTH // cell):
            r, c = row % 16, column % 16
            r, c = min(r, 15 - r), min(c, 15 - c)
            over = (r + c) % 4 < 2 or bool(warp[r % warp.shape[0], c % warp.shape[1]]) and (r * c) % 3 == 0
            tint = tints[0] if over else tints[1]
            if r + c == 7:
                tint = tints[2]
            shade = random.uniform(0.94, 1.06)
            x, y = column * cell, row * cell
            draw.rounded_rectangle([x + 2, y + 5, x + cell - 2, y + cell - 5] if over else [x + 5, y + 2, x + cell - 5, y + cell - 2], 12, fill=rgb(tint * shade))
    return image


MAPS = [
    (["dfe8c8", "c6d8a4", "e8dcb0", "d8bf92", "f4efe6"], "8a6a48", "6fa8cc"),
    (["3f8f96", "6fb8b0", "f0e4bc", "b8cc88", "7fa468"], "2f5f66", None),
    (["e9dcc0", "d8bd92", "bf9668", "9c6f4a", "f3ece0"], "6b4a32", "7fa0a8"),
]


def map_sheet(random, palette):
    bands, ink, water = MAPS[palette]
    tints = [colour(c) for c in bands]
    land = noise(random, 2.6, octaves=5)
    levels = land * 26
    which = np.clip(land * 5.2 - 0.1, 0, 3.999)
    low = which.astype(int)
    pixels = np.array(tints)[low]
    # Light from the north-west makes the relief.
    dy, dx = np.gradient(blur(land, 3) * 2600)
    relief = np.clip(1 - (dx + dy) * 0.055, 0.72, 1.22)
    if palette == 1:
        relief = np.where(which < 2, 1 + (relief - 1) * 0.25, relief)
    pixels = pixels * relief[:, :, None]
    steep = np.hypot(*np.gradient(levels)) + 1e-6
    for step, strength, width in ((1, 0.42, 1.1), (5, 0.75, 2.0)):
        distance = np.abs((levels / step + 0.5) % 1 - 0.5) * step / steep
        pixels += (colour(ink) - pixels) * (np.clip(width + 0.5 - distance, 0, 1) * strength)[:, :, None]
    image = canvas(pixels)
    draw = ImageDraw.Draw(image)
    if water:
        x, y, points = WIDTH * random.uniform(0.3, 0.6), 0.0, []
        field = blur(land, 20)
        gy, gx = np.gradient(field)
        vx = 0.0
        while y < HEIGHT:
            points.append((x, y))
            i, j = min(int(y), HEIGHT - 1), int(np.clip(x, 0, WIDTH - 1))
            vx = vx * 0.9 - gx[i, j] * 5200
            x, y = float(np.clip(x + np.clip(vx, -16, 16), 40, WIDTH - 40)), y + 9
        draw.line(points, fill=rgb(colour(water) * 0.8), width=26, joint="curve")
        draw.line(points, fill=rgb(colour(water)), width=18, joint="curve")
    trail = [(WIDTH * (0.06 + 0.88 * t), HEIGHT * (0.62 + 0.16 * np.sin(t * 7) + 0.07 * np.sin(t * 19 + 1))) for t in np.linspace(0, 1, 120)]
    for a, b in zip(trail[::2], trail[1::2]):
        draw.line([a, b], fill=(196, 52, 44) if palette != 1 else (250, 246, 230), width=10)
    for t in (4, 52, 112):
        x, y = trail[t]
        draw.ellipse([x - 26, y - 26, x + 26, y + 26], fill=(255, 255, 250), outline=(60, 40, 40), width=8)
    for k in range(1, 8):
        draw.line([k * WIDTH / 8, 0, k * WIDTH / 8, HEIGHT], fill=rgb(mix(colour(ink), colour("ffffff"), 0.45)), width=2)
        if k < 6:
            draw.line([0, k * HEIGHT / 6, WIDTH, k * HEIGHT / 6], fill=rgb(mix(colour(ink), colour("ffffff"), 0.45)), width=2)
    return image


def ridgeline(random, palette):
    back, ink = (("f6efe2", ["204a6b", "2f7f86", "e08a4a", "c24f43"]), ("0e1430", ["57d0c8", "8a7af0", "f078a8", "f7c56b"]))[palette]
    image = Image.new("RGB", (WIDTH, HEIGHT), rgb(colour(back)))
    draw = ImageDraw.Draw(image)
    xs = np.arange(160, WIDTH - 160, 8)
    stops = [colour(c) for c in ink]
    count = 30
    for row in range(count):
        base = HEIGHT * 0.2 + row * HEIGHT * 0.7 / count
        height = np.zeros(len(xs))
        for _ in range(5):
            centre, width = random.normal(WIDTH * 0.5, WIDTH * 0.16), random.uniform(50, 150)
            height += random.uniform(20, 150) * np.exp(-((xs - centre) / width) ** 2)
        height += np.abs(line_noise(random, len(xs), 30, octaves=3)) * 5
        points = list(zip(xs.tolist(), (base - height).tolist()))
        draw.polygon([(xs[0], base + 40)] + points + [(xs[-1], base + 40)], fill=rgb(colour(back)))
        t = row / (count - 1) * 2.999
        draw.line(points, fill=rgb(mix(stops[int(t)], stops[int(t) + 1], t % 1)), width=7, joint="curve")
    return image


def bars(random, palette):
    image = Image.new("RGB", (WIDTH, HEIGHT), (250, 245, 234))
    draw = ImageDraw.Draw(image)
    tints = [colour(c) for c in ("2f7f86", "5aa89a", "f0b85a", "e8804a", "c9503f")]
    for k in range(6):
        y = HEIGHT * (0.15 + 0.14 * k)
        draw.line([220, y, WIDTH - 160, y], fill=(224, 214, 196), width=4)
    line = []
    for k in range(18):
        t = k / 17
        height = HEIGHT * (0.16 + 0.44 * np.exp(-((t - 0.6) / 0.27) ** 2) + random.uniform(-0.05, 0.05))
        x = 260 + k * 120
        s = np.clip(height / (HEIGHT * 0.62), 0, 0.999) * 4
        draw.rounded_rectangle([x, HEIGHT * 0.85 - height, x + 84, HEIGHT * 0.85], 18, fill=rgb(mix(tints[int(s)], tints[min(4, int(s) + 1)], s % 1)))
        draw.rectangle([x, HEIGHT * 0.85 - 24, x + 84, HEIGHT * 0.85], fill=rgb(mix(tints[int(s)], tints[min(4, int(s) + 1)], s % 1)))
        line.append((x + 42, HEIGHT * 0.85 - height * 0.8 - 160 + 40 * np.sin(k)))
    draw.line(line, fill=(48, 52, 76), width=10, joint="curve")
    for x, y in line:
        draw.ellipse([x - 18, y - 18, x + 18, y + 18], fill=(250, 245, 234), outline=(48, 52, 76), width=9)
    draw.line([220, HEIGHT * 0.85, WIDTH - 160, HEIGHT * 0.85], fill=(48, 52, 76), width=8)
    return image


BLENDS = [["2f4a86", "f4a987", "f7d7a8", "d9708a", "6a5aa0"], ["e9d8ac", "2f8f83", "8fd0b4", "1f5f73", "f3ecd4"], ["7a1f3a", "f2703a", "fbb45a", "3a1540", "d8344a"]]


def blend(random, palette):
    tints = [colour(c) for c in BLENDS[palette]]
    yy, xx = grid()
    warp = noise(random, 2, octaves=3)
    x, y = xx / WIDTH + (warp - 0.5) * 0.35, yy / HEIGHT + (noise(random, 2, octaves=3) - 0.5) * 0.35
    total, weight = np.zeros((HEIGHT, WIDTH, 3)), np.zeros((HEIGHT, WIDTH))
    for k in range(9):
        cx, cy = random.random(), random.random()
        share = np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.06) + 1e-4
        total += tints[k % 5] * share[:, :, None]
        weight += share
    return canvas(total / weight[:, :, None])


DUNES = [(["5fa3d8", "cfe4ee"], "f0c88a", "b06a36"), (["3a2f66", "f0a08a"], "c88a8a", "3a2450")]


def dunes(random, palette):
    sky, light, dark = DUNES[palette]
    pixels = gradient([(0, colour(sky[0])), (0.45, colour(sky[1])), (1, colour(sky[1]))])
    if palette == 1:
        disc(pixels, WIDTH * 0.3, HEIGHT * 0.3, 70, colour("fbe6c8"))
    yy, xx = grid()
    for layer in range(5):
        depth = layer / 4
        crest = HEIGHT * mix(0.42, 0.86, depth) - HEIGHT * 0.11 * line_noise(random, WIDTH, 1.4 + 0.5 * (4 - layer) / 4, octaves=3, decay=0.28)
        crest = np.convolve(np.pad(crest, 60, mode="edge"), np.ones(121) / 121, mode="valid")
        tone = np.clip((yy - crest[None, :]) / (HEIGHT * 0.35), 0, 1)
        body = colour(light) + (mix(colour(light), colour(dark), 0.45) - colour(light)) * tone[:, :, None]
        slope = np.convolve(np.pad(np.gradient(crest), 150, mode="edge"), np.ones(301) / 301, mode="valid")
        lee = np.clip(slope * 6, 0, 1) * (0.3 + 0.2 * np.sin(np.linspace(0, 9, WIDTH)))
        shade = np.clip((crest[None, :] + HEIGHT * lee[None, :] * 0.75 - yy) / 40, 0, 1) * (lee > 0.01)[None, :]
        body = body + (colour(dark) - body) * (np.clip(array(Image.fromarray((shade * 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(9))) / 255, 0, 1) * 0.75)[:, :, None]
        ripple = np.sin((yy - crest[None, :]) / (5 + 9 * depth) + np.sin(xx / 160) * 2) * 4 * depth
        body = body + ripple[:, :, None]
        body = mix(body, colour(sky[1]), 0.35 * (1 - depth))
        pixels += (body - pixels) * np.clip(yy - crest[None, :] + 0.5, 0, 1)[:, :, None]
    return canvas(pixels)
