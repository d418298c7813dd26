#!/usr/bin/env python3
"""Makes the fixtures: the same files, to the byte, every time. `--check` looks at what is there instead.

Needs Pillow and numpy (PyPI). Texts are in words.py, drawings in pictures.py.
"""

import datetime
import hashlib
import json
import pathlib
import random
import sys

import words

HERE = pathlib.Path(__file__).resolve().parent.parent
SEED = 20260630
END = datetime.datetime(2026, 6, 30, 18, 0, tzinfo=datetime.timezone.utc)
BEGIN = datetime.datetime(2026, 4, 2, 0, 0, tzinfo=datetime.timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


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
            "id": index + 1, "handle": handle, "displayName": name, "bio": bio, "location": location,
            "avatar": avatars[index], "cover": rng.choice(pictures) if rng.random() < 0.4 else None, "joinedAt": stamp(joined),
        })
    return rows


def text_for(rng, language, used):
    for _ in range(200):
        dice = rng.random()
        if dice < 0.02:
            text = rng.choice(words.LONG)
        elif dice < 0.26 or (language != "en" and dice < 0.55):
            text = rng.choice(words.NATIVE[language])
            if rng.random() < 0.5:
                text += " " + rng.choice(["🙂", "✨", "…", "#today", "😅", "💛", "🫠", "@ana", "@quinn", "(3/3)", "🙌🏽"])
        else:
            opening, middle, ending = words.THEMES[rng.choice(sorted(words.THEMES))]
            text = f"{rng.choice(opening)} {rng.choice(middle)}."
            last = rng.choice(ending)
            if last:
                text += ("\n\n" if rng.random() < 0.12 else " ") + last
            if rng.random() < 0.05:
                text += " https://example.org/notes/" + str(rng.randrange(1000))
        if text not in used:
            used.add(text)
            return text
    text = f"Day {len(used)}. Still here."
    used.add(text)
    return text


def posts(rng, pictures):
    used, rows = set(), []
    for index, moment in enumerate(moments(rng, 1000)):
        author = min(int(rng.paretovariate(1.1) * 3), 50) if rng.random() < 0.5 else rng.randrange(1, 51)
        language = words.PEOPLE[author - 1][2]
        likes = min(40, int(rng.paretovariate(1.05)) - 1) if rng.random() < 0.9 else rng.randrange(8, 32)
        fans = rng.sample([p for p in range(1, 51) if p != author], likes)
        edited = stamp(min(END, moment + datetime.timedelta(minutes=rng.randrange(1, 90)))) if rng.random() < 0.05 else None
        rows.append({
            "id": index + 1, "author": author, "text": text_for(rng, language, used),
            "image": rng.choice(pictures) if rng.random() < 0.4 else None,
            "createdAt": stamp(moment), "editedAt": edited, "likedBy": sorted(fans),
        })
    return rows


def bank(rng):
    accounts, transfers = [], []
    opened = stamp(BEGIN)

    def account(owner, name, kind, currency, status="open"):
        accounts.append({"id": len(accounts) + 1, "owner": owner, "name": name, "kind": kind, "currency": currency,
                         "status": status, "openedAt": opened})
        return len(accounts)

    system = {}
    for currency in ("EUR", "USD", "JPY"):
        for role, name in (("opening", "Opening balances"), ("employer", "Northwind Payroll"), ("landlord", "Casa Verde Homes"),
                           ("shop", "Corner Market"), ("utility", "City Utilities")):
            system[currency, role] = account(None, name, "system", currency)
    own, main = {}, {}
    for person in range(1, 51):
        currency = "EUR" if person <= 2 or rng.random() < 0.5 else rng.choice(["USD", "JPY"])
        main[person] = account(person, "Everyday", "checking", currency)
        own[person] = [main[person]]
        if rng.random() < 0.6:
            own[person].append(account(person, "Rainy days", "savings", currency))
        if rng.random() < 0.15:
            own[person].append(account(person, "Travel card", "card", rng.choice(["EUR", "USD", "JPY"])))
    closed = account(3, "Old account", "checking", accounts[main[3] - 1]["currency"], "closed")
    balance = {a["id"]: 0 for a in accounts}
    currency_of = {a["id"]: a["currency"] for a in accounts}

    def unit(currency, euros):
        return int(euros * (150 if currency == "JPY" else 100))

    def move(moment, source, target, amount, note):
        owner = accounts[source - 1]["owner"]
        if source == target or amount <= 0 or (owner is not None and balance[source] < amount):
            return
        balance[source] -= amount
        balance[target] += amount
        transfers.append({"id": len(transfers) + 1, "at": stamp(moment), "from": source, "to": target,
                          "minorUnits": amount, "note": note})

    plan = []
    for person in range(1, 51):
        for index, target in enumerate(own[person]):
            currency = currency_of[target]
            plan.append((BEGIN + datetime.timedelta(seconds=person * 3 + index), system[currency, "opening"], target,
                         unit(currency, rng.randrange(600, 4000)), "Opening balance"))
        currency = currency_of[main[person]]
        for month in (4, 5, 6):
            payday = datetime.datetime(2026, month, 25 if month < 6 else 26, 7, person, tzinfo=datetime.timezone.utc)
            rent = datetime.datetime(2026, month, 3, 6, person, tzinfo=datetime.timezone.utc)
            plan.append((payday, system[currency, "employer"], main[person], unit(currency, rng.randrange(1900, 4200)), "Salary"))
            plan.append((rent, main[person], system[currency, "landlord"], unit(currency, rng.randrange(450, 1100)), "Rent"))
            plan.append((rent + datetime.timedelta(days=5), main[person], system[currency, "utility"],
                         unit(currency, rng.randrange(30, 120)), rng.choice(words.NOTES["utility"])))
    for moment in moments(rng, 2700, BEGIN + datetime.timedelta(hours=1)):
        person = rng.randrange(1, 51)
        source = main[person]
        currency = currency_of[source]
        if rng.random() < 0.72:
            plan.append((moment, source, system[currency, "shop"], unit(currency, rng.randrange(2, 90)), rng.choice(words.NOTES["shop"])))
        else:
            friends = [p for p in range(1, 51) if p != person and currency_of[main[p]] == currency]
            plan.append((moment, source, main[rng.choice(friends)], unit(currency, rng.randrange(3, 60)), rng.choice(words.NOTES["friend"])))
    for step in sorted(plan, key=lambda p: (p[0], p[1], p[2])):
        move(*step)
    assert balance[closed] == 0
    return accounts, transfers


def chats(rng):
    conversations = []
    for index in range(30):
        if index % 5 == 4:
            members = sorted(rng.sample(range(1, 51), rng.randrange(3, 7)))
            title = ["Sunday hike", "Bread club 🍞", "Flat 3b", "Choir basses", "Kubb rematch", "Book circle"][index // 5]
        else:
            # Everybody's first acquaintances talk: ana has somebody to write to.
            members = sorted({1 + index % 3, 2 + index + index % 7}) if index < 12 else sorted(rng.sample(range(1, 51), 2))
            if len(members) < 2:
                members = sorted({members[0], members[0] % 50 + 1})
            title = None
        created = BEGIN + datetime.timedelta(minutes=index)
        conversations.append({"id": index + 1, "title": title, "members": members, "createdAt": stamp(created)})
    drafts, seen = [], set()
    while len(drafts) < 2000:
        conversation = rng.choice(conversations)
        moment = BEGIN + datetime.timedelta(seconds=rng.randrange(3600, int((END - BEGIN).total_seconds()) - 7200))
        speakers = rng.sample(conversation["members"], 2)
        for line, text in enumerate(rng.choice(words.CHATS)):
            moment += datetime.timedelta(seconds=rng.randrange(4, 300), milliseconds=rng.randrange(1000))
            if len(drafts) < 2000 and moment not in seen:
                seen.add(moment)
                drafts.append((moment, conversation["id"], speakers[line % 2], text))
    messages = []
    for index, (moment, conversation, author, text) in enumerate(sorted(drafts)):
        edited = stamp(moment + datetime.timedelta(minutes=2)) if rng.random() < 0.03 else None
        deleted = stamp(moment + datetime.timedelta(minutes=5)) if rng.random() < 0.01 else None
        messages.append({"id": index + 1, "conversation": conversation, "author": author, "text": "" if deleted else text,
                         "sentAt": stamp(moment), "editedAt": edited, "deletedAt": deleted})
    return conversations, messages


def write(name, rows):
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    (HERE / name).write_text("[\n" + lines + "\n]\n", encoding="utf-8")


def make():
    import pictures

    catalogue, post_pictures, avatars = pictures.make(HERE, SEED, len(words.PEOPLE))
    write("images.json", catalogue)
    rng = random.Random(SEED)
    write("people.json", people(rng, avatars, post_pictures))
    write("posts.json", posts(rng, post_pictures))
    accounts, transfers = bank(rng)
    write("accounts.json", accounts)
    write("transfers.json", transfers)
    conversations, messages = chats(rng)
    write("conversations.json", conversations)
    write("messages.json", messages)
    (HERE / "world.json").write_text(json.dumps({"name": "Fifty people", "instant": stamp(END)}) + "\n", encoding="utf-8")


def check():
    load = lambda name: json.loads((HERE / name).read_text(encoding="utf-8"))
    people, posts, images = load("people.json"), load("posts.json"), load("images.json")
    accounts, transfers = load("accounts.json"), load("transfers.json")
    conversations, messages = load("conversations.json"), load("messages.json")
    for rows, time in ((people, "joinedAt"), (posts, "createdAt"), (transfers, "at"), (messages, "sentAt")):
        assert [r["id"] for r in rows] == list(range(1, len(rows) + 1))
        assert all(a[time] <= b[time] for a, b in zip(rows, rows[1:])), time
    known = {i["id"] for i in images}
    assert len(known) == len(images)
    ids = {p["id"] for p in people}
    assert len({p["handle"] for p in people}) == len(people)
    assert all(p["author"] in ids and (p["image"] is None or p["image"] in known) for p in posts)
    assert len({p["text"] for p in posts}) == len(posts) and all(set(p["likedBy"]) <= ids for p in posts)
    for image in images:
        assert len(image["placeholder"]) <= 320, len(image["placeholder"])
        for r in image["renditions"]:
            data = (HERE / r["file"]).read_bytes()
            assert len(data) == r["bytes"] and hashlib.sha256(data).hexdigest() == r["sha256"], r["file"]
    balance = {a["id"]: 0 for a in accounts}
    by_id = {a["id"]: a for a in accounts}
    for t in transfers:
        assert by_id[t["from"]]["currency"] == by_id[t["to"]]["currency"] and t["minorUnits"] > 0
        balance[t["from"]] -= t["minorUnits"]
        balance[t["to"]] += t["minorUnits"]
        assert by_id[t["from"]]["owner"] is None or balance[t["from"]] >= 0
    members = {c["id"]: c["members"] for c in conversations}
    assert all(m["author"] in members[m["conversation"]] for m in messages)
    total = sum(f.stat().st_size for f in HERE.rglob("*") if f.is_file())
    assert total < 25 << 20, total
    large = [r for i in images for r in i["renditions"] if r["bytes"] > 2 << 20 or r["bytes"] > 2_000_000]
    print(f"{len(people)} people, {len(posts)} posts, {len(images)} images ({len(large)} above 2 MB), {len(accounts)} accounts, "
          f"{len(transfers)} transfers, {len(conversations)} conversations, {len(messages)} messages, {total / 1e6:.1f} MB: coherent")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make_fixtures.py [--check]")
    if not sys.argv[1:]:
        make()
    check()
