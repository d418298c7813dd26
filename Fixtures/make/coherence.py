"""What has to be true of the fixtures; stops at the first thing that is not."""

import base64
import collections
import hashlib
import json
import re
import struct

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def require(holds, what):
    if not holds:
        raise SystemExit(f"not coherent: {what}")


def ascending(rows, time, kind):
    require([r["id"] for r in rows] == list(range(1, len(rows) + 1)), f"{kind}: ids are not 1, 2, 3 …")
    for a, b in zip(rows, rows[1:]):
        require(a[time] <= b[time], f"{kind} {b['id']} is older than the one before")


def within(value, begin, end, what):
    require(TIME.fullmatch(value) and begin <= value <= end, f"{what}: time {value}")


def image_size(data):
    """Width and height from the bytes of a PNG or a JPEG."""
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        return struct.unpack(">II", data[16:24])
    place = 2
    while data[place] == 0xFF:
        marker, length = data[place + 1], struct.unpack(">H", data[place + 2:place + 4])[0]
        if marker in (0xC0, 0xC1, 0xC2):
            height, width = struct.unpack(">HH", data[place + 5:place + 9])
            return width, height
        place += 2 + length
    raise ValueError("neither PNG nor JPEG")


def check_images(here, images):
    require(len({i["id"] for i in images}) == len(images), "two images have one id")
    known_files = set()
    for image in images:
        prefix, _, data = image["placeholder"].partition(",")
        require(prefix == "data:image/png;base64" and len(image["placeholder"]) <= 220, f"{image['id']}: placeholder")
        require(image_size(base64.b64decode(data, validate=True))[0] == 8, f"{image['id']}: placeholder is not 8 px wide")
        widths = [r["width"] for r in image["renditions"]]
        require(widths == sorted(widths), f"{image['id']}: renditions do not ascend")
        for r in image["renditions"]:
            content = (here / r["file"]).read_bytes()
            known_files.add(r["file"])
            require(len(content) == r["bytes"] and hashlib.sha256(content).hexdigest() == r["sha256"], f"{r['file']}: digest or size")
            require(tuple(image_size(content)) == (r["width"], r["height"]), f"{r['file']}: width or height")
            require((content[:4] == b"\x89PNG") == (r["type"] == "image/png"), f"{r['file']}: type")
        widest = max((r for r in image["renditions"] if r["type"] == "image/png"), key=lambda r: r["width"])
        require(image["id"].endswith("_" + widest["sha256"][:8]) and image["width"] == widest["width"], f"{image['id']}: not named after its original")
    on_disk = {f"images/{f.name}" for f in (here / "images").iterdir()}
    require(on_disk == known_files, f"files that no image names: {sorted(on_disk - known_files)[:3]}")


def check_bank(accounts, transfers, people, begin, end):
    ascending(accounts, "openedAt", "account")
    ascending(transfers, "at", "transfer")
    by_id, balance = {a["id"]: a for a in accounts}, collections.Counter()
    count = collections.Counter(a["owner"] for a in accounts if a["owner"] is not None)
    require(set(count) == people and max(count.values()) <= 3, "somebody has no account, or more than three")
    require({a["currency"] for a in accounts} == {"EUR", "USD", "JPY"}, "currencies")
    require(all((a["kind"] == "system") == (a["owner"] is None) for a in accounts), "system accounts have no owner, others have one")
    for t in transfers:
        source, target = by_id[t["from"]], by_id[t["to"]]
        within(t["at"], begin, end, f"transfer {t['id']}")
        require(source is not target and source["currency"] == target["currency"] and t["minorUnits"] > 0, f"transfer {t['id']}")
        require(max(source["openedAt"], target["openedAt"]) <= t["at"], f"transfer {t['id']} is older than its account")
        balance[t["from"]] -= t["minorUnits"]
        balance[t["to"]] += t["minorUnits"]
        require(source["owner"] is None or balance[t["from"]] >= 0, f"transfer {t['id']} overdraws account {t['from']}")
    closed = [a["id"] for a in accounts if a["status"] == "closed"]
    require(closed and all(balance[a] == 0 for a in closed), "closed accounts are empty, and there is one")
    require(sum(balance.values()) == 0, "the ledger does not sum to zero")


def check_chat(conversations, messages, people, begin, end):
    ascending(conversations, "createdAt", "conversation")
    ascending(messages, "sentAt", "message")
    by_id = {c["id"]: c for c in conversations}
    for c in conversations:
        require(len(set(c["members"])) == len(c["members"]) >= 2 and set(c["members"]) <= people, f"conversation {c['id']}: members")
        require((c["title"] is None) == (len(c["members"]) == 2), f"conversation {c['id']}: groups have titles, pairs have none")
    for m in messages:
        within(m["sentAt"], begin, end, f"message {m['id']}")
        talk = by_id[m["conversation"]]
        require(m["author"] in talk["members"] and m["sentAt"] >= talk["createdAt"], f"message {m['id']}: author or time")
        require((m["text"] == "") == (m["deletedAt"] is not None), f"message {m['id']}: text")
        for later in (m["editedAt"], m["deletedAt"]):
            require(later is None or m["sentAt"] < later <= end, f"message {m['id']}: edited or deleted before it was sent")


def check_tasks(tasks, people, joined, begin, end):
    ascending(tasks, "createdAt", "task")
    for t in tasks:
        within(t["createdAt"], begin, end, f"task {t['id']}")
        require(1 <= len(t["title"]) <= 200 and t["status"] in ("open", "started", "done"), f"task {t['id']}: title or status")
        require(t["createdAt"] <= t["updatedAt"] <= end and joined[t["creator"]] <= t["createdAt"], f"task {t['id']}: times")
        require(t["assignee"] in people if t["assignee"] is not None else t["status"] == "open", f"task {t['id']}: assignee")
        require(t["due"] is None or (re.fullmatch(r"\d{4}-\d\d-\d\d", t["due"]) and t["due"] > t["createdAt"][:10]), f"task {t['id']}: due")
    require({t["status"] for t in tasks if t["assignee"] == 1} == {"open", "started", "done"}, "the first person has a task of each status")


def check(here, begin, end):
    load = lambda name: json.loads((here / f"{name}.json").read_text(encoding="utf-8"))
    names = ("accounts", "conversations", "images", "messages", "people", "posts", "tasks", "transfers")
    world, data = load("world"), {name: load(name) for name in names}
    require(world["counts"] == {name: len(data[name]) for name in names}, "world.json counts otherwise")
    people, known = {p["id"] for p in data["people"]}, {i["id"] for i in data["images"]}
    check_images(here, data["images"])
    ascending(data["people"], "joinedAt", "person")
    handles = [p["handle"] for p in data["people"]]
    require(len(set(handles)) == len(handles) and all(re.fullmatch("[a-z][a-z0-9]*", h) for h in handles), "handles")
    require(all(p["avatar"] in known and (p["cover"] is None or p["cover"] in known) for p in data["people"]), "a person's pictures")
    ascending(data["posts"], "createdAt", "post")
    joined = {p["id"]: p["joinedAt"] for p in data["people"]}
    for p in data["posts"]:
        within(p["createdAt"], begin, end, f"post {p['id']}")
        require(joined[p["author"]] <= p["createdAt"] and (p["editedAt"] is None or p["createdAt"] < p["editedAt"] <= end), f"post {p['id']}: times")
        require(p["image"] is None or p["image"] in known, f"post {p['id']}: image")
        require(len(set(p["likedBy"])) == len(p["likedBy"]) <= 40 and set(p["likedBy"]) <= people, f"post {p['id']}: likes")
        require(all(joined[fan] <= p["createdAt"] for fan in p["likedBy"]), f"post {p['id']}: liked by somebody who was not there")
        for handle in re.findall(r"@([a-z]+)", re.sub(r"https?://\S+", "", p["text"])):
            require(handle in handles, f"post {p['id']}: @{handle} does not exist")
    require(len({p["text"] for p in data["posts"]}) == len(data["posts"]), "two posts have one text")
    check_bank(data["accounts"], data["transfers"], people, begin, end)
    check_chat(data["conversations"], data["messages"], people, begin, end)
    check_tasks(data["tasks"], people, joined, begin, end)
    total = sum(f.stat().st_size for f in here.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    require(total < 25_000_000, f"{total} bytes are too many")
    large = sum(r["bytes"] > 2 << 20 for i in data["images"] for r in i["renditions"])
    require(large >= 3, "fewer than three renditions above 2 MiB")
    print(", ".join(f"{len(data[name]):,} {name}" for name in names) + f", {large} renditions above 2 MiB, {total / 1e6:.1f} MB: coherent")
