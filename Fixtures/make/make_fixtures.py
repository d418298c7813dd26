#!/usr/bin/env python3
"""Makes the fixtures: the same files, to the byte, every time. `--check` looks at what is there instead.

Needs Pillow and numpy (PyPI) to make them, and nothing to check them. People and payees are in words.py, what they post in
posts_english.py and posts_native.py, what they say to each other in chats.py, what they have to do in
tasks.py; the pictures are drawn by pictures.py. `--tasks` makes tasks.json alone, which needs no packages.
"""

import datetime
import itertools
import json
import pathlib
import random
import re
import sys

import chats
import coherence
import posts_english
import posts_native
import tasks
import words

HERE = pathlib.Path(__file__).resolve().parent.parent
SEED = 20260630
END = datetime.datetime(2026, 6, 30, 18, 0, tzinfo=datetime.timezone.utc)
BEGIN = datetime.datetime(2026, 4, 2, 0, 0, tzinfo=datetime.timezone.utc)
POSTS, MESSAGES, CONVERSATIONS = 1_000, 2_000, 30

# Which pictures go with what a post is about.
SHOWS = {
    "hike": ["ridges", "lake", "firs", "summit", "valley", "contours", "atlas", "dunes"],
    "sea": ["harbour", "lighthouse", "moonrise", "shallows", "storm", "islands"],
    "night": ["starfield", "aurora", "crescent", "tent", "moonrise"],
    "city": ["skyline", "rooftops", "towers", "bridge", "tiles", "arcs"],
    "cooking": ["fruit", "tea", "loaf", "tomatoes"],
    "garden": ["poppies", "lavender", "daisies", "sunflowers", "blossom", "tomatoes", "sprout", "fern"],
    "books": ["tea", "tree", "dusk", "fern", "rooftops"],
    "code": ["waveforms", "signals", "bars", "mosaic"],
    "cycling": ["valley", "lavender", "dunes", "poppies", "contours"],
    "music": ["signals", "ember", "arcs", "towers", "waveforms"],
    "pets": ["daisies", "sunflowers", "tea", "valley"],
    "trains": ["ridges", "bridge", "lavender", "islands", "firs"],
    "craft": ["weave", "tiles", "mosaic", "arcs", "fern", "sprout"],
    "photo": ["dusk", "lagoon", "dunes-dusk", "tree", "blossom", "ember", "firs", "rooftops"],
    "weather": ["storm", "firs", "dusk", "summit", "bars", "lagoon"],
    "market": ["fruit", "tomatoes", "loaf", "sunflowers"],
    "football": ["daisies", "bars", "dusk"],
    "any": ["dusk", "lagoon", "ember", "blossom", "valley", "crescent", "atlas", "dunes-dusk"],
}
EMOJI = {
    "hike": "🥾⛰️🏔️🎒", "sea": "🌊⛵️🐚🐟", "night": "🌌🔭✨🌙", "city": "🌆🚋🏙️🕊️", "cooking": "🍲🥘🍋🧄", "garden": "🌱🌻🐝🍅", "books": "📚📖🔖☕️",
    "code": "💻🐛🚀🦆", "cycling": "🚲🚴🏽‍♀️💨🔧", "music": "🎶🎻🪗🎷", "pets": "🐈🐕🐾🦔", "trains": "🚆🛤️🚉🌙", "craft": "🧶🪵🎨🧵", "photo": "📷🎞️🌫️👀",
    "weather": "🌧️☔️🌦️💨", "market": "🍑🧺🍒🥬", "football": "⚽️🏟️🧤😅", "any": "🙂✨🙃🌤️",
}
GRAPHEME = re.compile(r".[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*")


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def lines(block):
    return [line.strip().replace("\\n", "\n") for line in block.strip().splitlines()]


def moments(rng, count, begin=BEGIN, end=END):
    """Ascending, none twice, fewer at night."""
    span = int((end - begin).total_seconds() * 1000)
    chosen = set()
    while len(chosen) < count:
        moment = begin + datetime.timedelta(milliseconds=rng.randrange(span))
        if 0 <= moment.hour < 5 and rng.random() < 0.8:
            continue
        chosen.add(moment)
    return sorted(chosen)


def people(rng, avatars, pictures):
    rows = []
    for index, (handle, name, _, bio, location) in enumerate(words.PEOPLE):
        joined = datetime.datetime(2023, 1, 9, 8, 30, tzinfo=datetime.timezone.utc) + datetime.timedelta(
            days=index * 21 + rng.randrange(14), minutes=rng.randrange(600))
        rows.append({
            "id": index + 1, "handle": handle, "displayName": name, "bio": bio, "location": location, "avatar": avatars[index],
            "cover": pictures[rng.choice(sorted(pictures))] if rng.random() < 0.5 else None, "joinedAt": stamp(joined),
        })
    return rows


# ------------------------------------------------------------------------------------------------------------ posts


def dressed(rng, text, theme, tags, share):
    """A post sometimes has an emoji or tags at its end, like people's."""
    dice = rng.random()
    last_is_word = text[-1] in ".!?。！？…」”" or text[-1].isalnum()
    if dice < share and last_is_word:
        text += " " + rng.choice(GRAPHEME.findall(EMOJI[theme]))
    elif dice < share * 1.7:
        picked = rng.sample(tags.split(), rng.choice((1, 1, 2)))
        text += ("\n\n" if rng.random() < 0.25 else " ") + " ".join(picked)
    return text


def joined(first, second, language):
    return first + ("" if language in ("ja", "zh") and first[-1] in "。！？”" else "。" if language in ("ja", "zh") and first[-1].isalnum() else " ") + second


def combinations(rng, firsts, seconds, limit, seconds_limit):
    """Pairs in which no sentence is used more often than its limit, and no pair twice; now and then a first stands alone."""
    drafts, used = [], {s: 0 for s in seconds}
    for _ in range(limit):
        for first in rng.sample(firsts, len(firsts)):
            taken = {d[1] for d in drafts if d[0] == first}
            free = [s for s in seconds if used[s] < seconds_limit and s not in taken]
            alone = None not in taken and rng.random() < 0.5
            if alone or not free:
                if None not in taken:
                    drafts.append((first, None))
                continue
            second = min(rng.sample(free, min(4, len(free))), key=used.get)
            used[second] += 1
            drafts.append((first, second))
    return drafts


def english_drafts(rng):
    drafts = []
    for theme, (firsts, seconds, tags) in posts_english.THEMES.items():
        for first, second in combinations(rng, lines(firsts), lines(seconds), 2, 4):
            gap = "\n" if rng.random() < 0.06 else " "
            drafts.append((theme, dressed(rng, first + (gap + second if second else ""), theme, tags, 0.16), first))
    rng.shuffle(drafts)
    return drafts


def native_drafts(rng, language):
    firsts, codas, tags = posts_native.BANKS[language]
    themes = dict(reversed(line.split(": ", 1)) for line in lines(firsts))
    drafts = []
    for first, coda in combinations(rng, list(themes), lines(codas), 2, 4):
        theme = themes[first]
        text = first if coda is None else joined(first, coda, language)
        drafts.append((theme, dressed(rng, text, theme, tags, 0.14), first))
    rng.shuffle(drafts)
    return drafts


def talk_drafts(rng):
    """Talks across posts: [(minutes after the first, who, text)] per talk, the people drawn from those who write English."""
    writers = [i + 1 for i, p in enumerate(words.PEOPLE) if p[2] == "en"] + [1, 5, 8, 12, 36, 38]
    talks = []
    for chunk in posts_english.TALKS.strip().split("\n\n"):
        posts = [line.split(": ", 1) for line in chunk.splitlines()]
        who = rng.sample(writers, 1 + max(int(w) for w, _ in posts))
        handles = [words.PEOPLE[p - 1][0] for p in who]
        after, talk = 0, []
        for w, text in posts:
            talk.append((after, who[int(w)], text.format(*handles)))
            after += rng.randrange(3, 14) if rng.random() < 0.7 else rng.randrange(40, 400)
        talks.append(talk)
    return talks


def apart(entries):
    """Entries that open with the same words, about a month from each other: all first uses, then the second ones in the same order."""
    uses, rounds = {}, []
    for entry in entries:
        uses[entry[3]] = uses.get(entry[3], -1) + 1
        while len(rounds) <= uses[entry[3]]:
            rounds.append([])
        rounds[uses[entry[3]]].append(entry)
    place = {entry[3]: i for i, entry in enumerate(rounds[0])}
    return [entry for part in rounds for entry in sorted(part, key=lambda e: place[e[3]])]


def posts(rng, pictures):
    drafts = []
    for talk in talk_drafts(rng):
        begin = BEGIN + datetime.timedelta(days=rng.randrange(88), hours=rng.randrange(7, 20), seconds=rng.randrange(3600), milliseconds=rng.randrange(1000))
        for after, who, text in talk:
            drafts.append((begin + datetime.timedelta(minutes=after, seconds=rng.randrange(60)), who, "any", text, len(drafts)))
    alone = lines(posts_english.ALONE)
    english = english_drafts(rng)
    writers = [i + 1 for i, p in enumerate(words.PEOPLE) if p[2] == "en"]
    others = {}
    for index, person in enumerate(words.PEOPLE):
        others.setdefault(person[2], []).append(index + 1)
    entries = [(rng.choice(writers), "any", text, text) for text in alone]
    for language, authors in sorted(others.items()):
        if language != "en":
            for theme, text, key in native_drafts(rng, language)[:16 * len(authors) + 8]:
                entries.append((rng.choice(authors), theme, text, key))
    # Everybody writes English now and then; some write a lot.
    weights = [3.2 if p[2] == "en" else 0.8 for p in words.PEOPLE]
    weights = [w * (2.2 if i % 7 == 0 else 1) for i, w in enumerate(weights)]
    missing = POSTS - len(drafts) - len(entries)
    assert 0 < missing <= len(english), (missing, len(english))
    for theme, text, key in english[:missing]:
        entries.append((rng.choices(range(1, len(weights) + 1), weights)[0], theme, text, key))
    rng.shuffle(entries)
    entries = apart(entries)
    for moment, (author, theme, text, _) in zip(moments(rng, len(entries)), entries):
        drafts.append((moment, author, theme, text, len(drafts)))
    drafts.sort(key=lambda d: (d[0], d[4]))
    appeal = [rng.betavariate(1.2, 3) for _ in words.PEOPLE]
    rows = []
    for index, (moment, author, theme, text, _) in enumerate(drafts):
        age = (END - moment).total_seconds() / 3600
        wish = 42 * rng.random() ** 5 + 14 * appeal[author - 1] * rng.random()
        fans = min(40, int(wish * min(1, 0.15 + age / 30)))
        crowd = [p for p in range(1, len(words.PEOPLE) + 1) if p != author]
        edited = moment + datetime.timedelta(seconds=rng.randrange(40, 5400), milliseconds=rng.randrange(1000)) if rng.random() < 0.05 else None
        rows.append({
            "id": index + 1, "author": author, "text": text,
            "image": pictures[rng.choice(SHOWS[theme])] if rng.random() < (0.48 if theme != "any" else 0.12) and "\n1." not in text else None,
            "createdAt": stamp(moment), "editedAt": stamp(edited) if edited and edited < END else None, "likedBy": sorted(rng.sample(crowd, fans)),
        })
    return rows


# ------------------------------------------------------------------------------------------------------------- bank


def unit(currency, amount):
    """Minor units of an amount in euros; yen have no minor unit and are rounded as prices are."""
    return int(amount * 160) // 10 * 10 if currency == "JPY" else int(amount * 100)


def bank(rng):
    plan_accounts = []

    def account(key, owner, name, kind, currency, opened, status="open"):
        plan_accounts.append((opened, len(plan_accounts), key, {"owner": owner, "name": name, "kind": kind, "currency": currency, "status": status}))

    tick = itertools.count()
    early = lambda: BEGIN + datetime.timedelta(milliseconds=250 * next(tick))
    for currency in ("EUR", "USD", "JPY"):
        account(("opening", currency), None, "Opening balances", "system", currency, early())
        for role, names in words.PAYEES[currency].items():
            for place, name in enumerate(names):
                account((role, place, currency), None, name, "system", currency, early())
    home, late = {}, []
    for person, row in enumerate(words.PEOPLE, 1):
        # The first two can send each other money in every example.
        currency = "EUR" if person <= 2 else {"ja": "JPY", "ko": "JPY", "es": "EUR", "de": "EUR", "fr": "EUR", "pt": "EUR", "it": "EUR", "el": "EUR", "pl": "EUR",
                                              "zh": "USD", "hi": "USD", "he": "USD", "th": "USD", "ar": "USD"}.get(row[2]) or rng.choice(["EUR", "EUR", "USD", "JPY"])
        home[person] = currency
        account(("main", person), person, "Everyday", "checking", currency, early())
        if rng.random() < 0.55 or person == 1:
            when = early() if rng.random() < 0.6 else BEGIN + datetime.timedelta(days=rng.randrange(5, 50), hours=10, seconds=rng.randrange(9000))
            account(("savings", person), person, rng.choice(["Rainy days", "New roof", "Boat", "Summer", "Some day"]), "savings", currency, when)
            late.append((("savings", person), when))
        if rng.random() < 0.35 or person == 1:
            account(("card", person), person, "Card", "card", currency, early())
    account(("closed", 3), 3, "Old account", "checking", home[3], early(), "closed")
    accounts, ids = [], {}
    for opened, _, key, row in sorted(plan_accounts, key=lambda p: p[:2]):
        ids[key] = len(accounts) + 1
        accounts.append({"id": ids[key], **row, "openedAt": stamp(opened)})
    opened_at = {ids[key]: opened for opened, _, key, _ in plan_accounts}
    start = BEGIN + datetime.timedelta(minutes=1)
    plan = []

    def step(moment, source, target, amount, note):
        if moment < END and max(opened_at[source], opened_at[target]) < moment:
            plan.append((moment, len(plan), source, target, amount, note))

    for person in home:
        currency, main = home[person], ids["main", person]
        for index, kind in enumerate(("main", "savings", "card")):
            own = ids.get((kind, person))
            if own and opened_at[own] < start:
                step(start + datetime.timedelta(seconds=person * 4 + index), ids["opening", currency], own,
                     unit(currency, {"main": rng.randrange(700, 3600), "savings": rng.randrange(300, 9000), "card": rng.randrange(40, 200)}[kind]), "Opening balance")
        employer = ids["employer", rng.randrange(len(words.PAYEES[currency]["employer"])), currency]
        landlord = ids["landlord", rng.randrange(len(words.PAYEES[currency]["landlord"])), currency]
        salary, rent = unit(currency, rng.randrange(1750, 3900)), unit(currency, rng.randrange(420, 980))
        utilities = [(place, rng.randrange(3, 27), rng.uniform(18, 95)) for place in range(len(words.PAYEES[currency]["utility"]))]
        for month in (4, 5, 6):
            name = ("April", "May", "June")[month - 4]
            day = lambda d, h: datetime.datetime(2026, month, d, h, person, rng.randrange(60), rng.randrange(1000) * 1000, tzinfo=datetime.timezone.utc)
            step(day(26, 7), employer, main, salary, f"Salary {name}")
            step(day(3, 6), main, landlord, rent, f"Rent {name}")
            for place, on, amount in utilities:
                step(day(on, 5), main, ids["utility", place, currency], unit(currency, amount * rng.uniform(0.94, 1.06)), f"{words.UTILITIES[place]} {name}")
            if ("savings", person) in ids:
                step(day(27, 9), main, ids["savings", person], unit(currency, rng.randrange(2, 12) * 25), rng.choice(["Put aside", "Savings", "Every month a bit"]))
            if ("card", person) in ids:
                step(day(2 + 9 * (month % 3), 8), main, ids["card", person], unit(currency, rng.randrange(2, 6) * 25), "Top up card")
    closed = ids["closed", 3]
    step(start + datetime.timedelta(minutes=5), ids["opening", home[3]], closed, unit(home[3], 214), "Opening balance")
    step(BEGIN + datetime.timedelta(days=18, hours=11), closed, ids["main", 3], unit(home[3], 214), "Closing the old account")
    friends = {p: [q for q in home if q != p and home[q] == home[p]] for p in home}
    for moment in moments(rng, 2_060, start + datetime.timedelta(hours=5)):
        person = rng.randrange(1, len(home) + 1)
        currency = home[person]
        if rng.random() < 0.76:
            place, low, high, notes = rng.choice(words.SHOPPING)
            source = ids.get(("card", person), ids["main", person]) if rng.random() < 0.5 else ids["main", person]
            step(moment, source, ids["shop", place, currency], unit(currency, rng.triangular(low, high, low + (high - low) * 0.3)), rng.choice(notes))
        else:
            # People pay back the same few friends.
            circle = random.Random(person).sample(friends[person], min(5, len(friends[person])))
            note, low, high = rng.choice(words.BETWEEN_FRIENDS)
            step(moment, ids["main", person], ids["main", rng.choice(circle)], unit(currency, rng.uniform(low, high)), note)
    balance, transfers = {a["id"]: 0 for a in accounts}, []
    for moment, _, source, target, amount, note in sorted(plan, key=lambda p: p[:2]):
        if accounts[source - 1]["owner"] is not None and balance[source] < amount:
            continue
        balance[source] -= amount
        balance[target] += amount
        transfers.append({"id": len(transfers) + 1, "at": stamp(moment), "from": source, "to": target, "minorUnits": amount, "note": note})
    return accounts, transfers


# ------------------------------------------------------------------------------------------------------------- chat


def told(rng, talk, who):
    """A talk with its blanks filled in and one way of saying each line chosen."""
    slots = {name: rng.choice(values) for name, values in chats.SLOTS.items()}
    said = []
    for speaker, ways in talk:
        text = rng.choice(ways).format(**slots)
        said.append((who[speaker], text[0].upper() + text[1:]))
    return said


def conversations_of(rng):
    by_language = {}
    for index, person in enumerate(words.PEOPLE):
        by_language.setdefault(person[2], []).append(index + 1)
    rows = [([1, 2], None, "en"), ([1, 3], None, "en"), ([2, 5], None, "en"), ([1, 17, 21], "Sunday hike", "en")]
    for language in ("es", "ru", "ar", "ja", "ko", "zh", "he", "el", "hi", "de", "tr"):
        rows.append((sorted(rng.sample(by_language[language], 2)), None, language))
    titles = ["Bread club 🍞", "Flat 3b", "Choir, the low voices", "Athletic Sofa ⚽️", "Book circle", "Allotment, plots 20–30 🌱"]
    english = by_language["en"] + [1, 5, 8, 36]
    for place, title in enumerate(titles):
        rows.append((sorted({1 if place in (0, 4) else 2, *rng.sample(english, rng.randrange(3, 7))}), title, "en"))
    pairs = {tuple(members) for members, _, _ in rows}
    while len(rows) < CONVERSATIONS:
        pair = tuple(sorted(rng.sample(english, 2)))
        if pair not in pairs and pair[0] != pair[1]:
            pairs.add(pair)
            rows.append((list(pair), None, "en"))
    return rows


def chat(rng):
    drafts, conversations = [], []
    pairs, groups = chats.talks(chats.ENGLISH), chats.talks(chats.GROUPS)
    plans = conversations_of(rng)
    native = {language: chats.talks(block) for language, block in chats.OTHERS.items()}
    fixed = sum(len(talk) for _, _, language in plans if language != "en" for talk in native[language])
    english = [place for place, (_, _, language) in enumerate(plans) if language == "en"]
    wanted, told_talks, uses = MESSAGES - fixed, {place: [] for place in range(len(plans))}, {}
    for place, (members, _, language) in enumerate(plans):
        if language != "en":
            for talk in rng.sample(native[language], len(native[language])):
                who = dict(zip("ab", rng.sample(members, 2)))
                told_talks[place].append(told(rng, talk, who))
    # Every conversation in turn takes the talk that was told least and that it has not had.
    for turn in itertools.count():
        if wanted <= 0:
            break
        place = english[turn % len(english)] if rng.random() < 0.8 else rng.choice(english[:6])
        members = plans[place][0]
        pool = groups + pairs if len(members) > 2 else pairs
        had = told_talks[place]
        free = [k for k, talk in enumerate(pool) if all(talk is not t for t, _ in had)]
        if not free:
            continue
        rng.shuffle(free)
        talk = pool[min(free, key=lambda k: uses.get(id(pool[k]), 0) - (1 if len(members) > 2 and k < len(groups) else 0))]
        if len(talk) > wanted and wanted < 4:
            talk = talk[:wanted]
        uses[id(talk)] = uses.get(id(talk), 0) + 1
        said = told(rng, talk, dict(zip("abc", rng.sample(members, min(3, len(members))) )))[:wanted]
        had.append((talk, said))
        wanted -= len(said)
    for place, (members, title, language) in enumerate(plans):
        created = BEGIN + datetime.timedelta(minutes=7 * place, seconds=rng.randrange(300))
        conversations.append({"id": place + 1, "title": title, "members": members, "createdAt": stamp(created)})
        talks = [t if language != "en" else t[1] for t in told_talks[place]]
        # One talk has ended before the next begins.
        days = sorted(rng.sample(range(1, 89), len(talks))) if len(talks) <= 88 else None
        for day, talk in zip(days, talks):
            moment = BEGIN + datetime.timedelta(days=day, hours=rng.randrange(6, 20), seconds=rng.randrange(3600), milliseconds=rng.randrange(1000))
            for author, text in talk:
                drafts.append((moment, place + 1, author, text))
                pause = rng.randrange(5, 90) if rng.random() < 0.7 else rng.randrange(90, 900)
                moment += datetime.timedelta(seconds=pause, milliseconds=rng.randrange(1000))
    messages = []
    for index, (moment, conversation, author, text) in enumerate(sorted(drafts)):
        dice, edited, deleted = rng.random(), None, None
        if dice < 0.02:
            edited = stamp(moment + datetime.timedelta(seconds=rng.randrange(8, 240)))
        elif dice < 0.032:
            deleted = stamp(moment + datetime.timedelta(seconds=rng.randrange(5, 600)))
        messages.append({"id": index + 1, "conversation": conversation, "author": author, "text": "" if deleted else text,
                         "sentAt": stamp(moment), "editedAt": edited, "deletedAt": deleted})
    return conversations, messages


# ------------------------------------------------------------------------------------------------------------ files


def write(name, rows):
    text = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    (HERE / name).write_text("[\n" + text + "\n]\n", encoding="utf-8")


def make():
    import pictures

    catalogue, by_slug, avatars = pictures.make(HERE, SEED, [p[0] for p in words.PEOPLE])
    # A generator for each kind: what one of them draws does not move the others.
    of = lambda kind: random.Random(f"{SEED} {kind}")
    files = {"images": catalogue, "people": people(of("people"), avatars, by_slug), "posts": posts(of("posts"), by_slug)}
    files["accounts"], files["transfers"] = bank(of("bank"))
    files["conversations"], files["messages"] = chat(of("chat"))
    for name, rows in files.items():
        write(f"{name}.json", rows)
    make_tasks(files["people"])
    write_world({name: len(rows) for name, rows in files.items()})


def make_tasks(persons):
    joined = {person["id"]: datetime.datetime.fromisoformat(person["joinedAt"].replace("Z", "+00:00")) for person in persons}
    write("tasks.json", tasks.tasks(random.Random(f"{SEED} tasks"), sorted(joined), joined, BEGIN, END, stamp))


def write_world(counts):
    counts["tasks"] = tasks.TASKS
    world = {"name": "Fifty people", "instant": stamp(END), "seed": SEED, "counts": dict(sorted(counts.items()))}
    (HERE / "world.json").write_text(json.dumps(world) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"], ["--tasks"]):
        sys.exit("usage: make_fixtures.py [--check | --tasks]")
    if not sys.argv[1:]:
        make()
    if sys.argv[1:] == ["--tasks"]:
        make_tasks(json.loads((HERE / "people.json").read_text(encoding="utf-8")))
        write_world(json.loads((HERE / "world.json").read_text(encoding="utf-8"))["counts"])
    coherence.check(HERE, stamp(BEGIN), stamp(END))
