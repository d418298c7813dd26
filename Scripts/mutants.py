#!/usr/bin/env python3
"""Removes one mechanism of the SDK at a time, and counts the seeds that the simulation needs to notice.

    python3 Scripts/mutants.py [--work DIR] [--first N] [--seeds N] [--themed] [--results FILE] [--no-build] [--no-run] [--check] [NAME ...]

Works on a copy of the tree in DIR and builds it once: each mechanism is switched off there by a variable of the environment. The tree
itself stays as it is. Prints a row of a table for each mutant: its name, the number of seeds until one fails, the number of these runs
that have reached the mutated place, and the rule that is broken. Results are kept in a file, so that parts can be measured again.
--check only looks whether each text is still in its file.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESOURCES = "ClientSDK/LarderResources/"
DEMO = "ClientSDK/LarderDemo/Features/"
KEY = "[.idempotencyKey: attempt.idempotencyKey"
OTHER_KEY = KEY + ' + (MUTANT ? String(UInt32.random(in: 0 ... .max)) : "")'
# Each mutant has a name, and edits: a file, a text that occurs in it once, and what replaces it. MUTANT becomes a condition.
MUTANTS = {
    "version guard of entities": [
        (RESOURCES + "Core/Commit.swift", "            if new < old { return }", "            if new < old, !MUTANT { return }"),
        (
            "ClientSDK/LarderStorage/DiskConnection+Writing.swift",
            "        let statement = try prepared(.upsert)\n",
            "        if MUTANT { try run(.remove, item.kind, item.space, item.key) }\n        let statement = try prepared(.upsert)\n",
        ),
    ],
    "tombstones": [
        (
            RESOURCES + "Core/Commit.swift",
            "            if let version {\n                isGone",
            "            if let version, !MUTANT {\n                isGone",
        )
    ],
    "overlay of entities": [
        (
            RESOURCES + "Entities/EntityTable.swift",
            "guard overlayCount.load(ordering: .relaxed) > 0 else { return (value, 0) }",
            "guard overlayCount.load(ordering: .relaxed) > 0, !MUTANT else { return (value, 0) }",
        )
    ],
    "overlay of lists": [
        (
            RESOURCES + "Entities/EntityTable.swift",
            "queryOverlays.withLock { $0.isEmpty ? [] : $0[key] ?? [] }",
            "queryOverlays.withLock { $0.isEmpty || MUTANT ? [] : $0[key] ?? [] }",
        )
    ],
    "overlay until the acknowledged version": [
        (
            RESOURCES + "Entities/EntityTable.swift",
            "overlay.endsAtVersion.map { $0 <= version } ?? false",
            "overlay.endsAtVersion.map { MUTANT || $0 <= version } ?? false",
        )
    ],
    "token stored after what it covers": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "            var rest = changes[...]\n",
            "            if MUTANT {\n                let feed = self.feed.name\n"
            "                try self.cache.updateBlocking { update in update.setToken(token, for: feed) }\n"
            "            }\n            var rest = MUTANT ? [] : changes[...]\n",
        )
    ],
    "a value that only memory has is written with the token": [
        (
            RESOURCES + "Core/Commit.swift",
            "            guard disk.isThere, known.isUnwritten else {",
            "            guard disk.isThere, known.isUnwritten, !MUTANT else {",
        )
    ],
    "rows that lack a change which only memory has are not read": [
        (
            RESOURCES + "Core/UnwrittenKeys.swift",
            "            guard !keys.lacks.isEmpty || keys.isEverything || keys.hasMarks else { return }",
            "            guard !keys.lacks.isEmpty || keys.isEverything || keys.hasMarks, !MUTANT else { return }",
        )
    ],
    "one key for all attempts of a transfer": [(DEMO + "Bank.swift", KEY, OTHER_KEY)],
    "one key for all attempts of a post": [(DEMO + "Feed+Writing.swift", KEY, OTHER_KEY)],
    "one key and one client's ID for all attempts of a message": [
        (DEMO + "Chat+Writing.swift", KEY, OTHER_KEY),
        (
            DEMO + "Chat+Writing.swift",
            "clientID: change.clientID)\n            return",
            'clientID: change.clientID + (MUTANT ? String(UInt32.random(in: 0 ... .max)) : ""))\n            return',
        ),
    ],
    "one key for all attempts of a tap": [
        (
            DEMO + "Likes.swift",
            "idempotencyKey: $0.idempotencyKey)",
            'idempotencyKey: $0.idempotencyKey + (MUTANT ? String(UInt32.random(in: 0 ... .max)) : ""))',
        )
    ],
    "clock guard": [
        (
            RESOURCES + "Freshness/ClockGuard.swift",
            "&- offset) > Moment.tolerance {",
            "&- offset) > Moment.tolerance, !MUTANT {",
        )
    ],
    "clock guard across starts": [
        (
            RESOURCES + "Core/CacheCore.swift",
            "if configuration.wallClock.now < latest - Moment.tolerance { markTimesUncertain() }",
            "if configuration.wallClock.now < latest - Moment.tolerance, !MUTANT { markTimesUncertain() }",
        )
    ],
    "age by both clocks": [
        (
            RESOURCES + "Freshness/Freshness+Times.swift",
            "guard validatedAt != Self.never, !isUncertain, epoch == now.epoch,\n"
            "                validatedAt - now.wall <= Moment.tolerance\n            else { return nil }\n"
            "            let wall = max(.zero, now.wall - validatedAt)\n",
            "if MUTANT { return validatedAt == Self.never ? nil : max(.zero, now.wall - validatedAt) }\n"
            "            guard validatedAt != Self.never, !isUncertain, epoch == now.epoch,\n"
            "                validatedAt - now.wall <= Moment.tolerance\n            else { return nil }\n"
            "            let wall = max(.zero, now.wall - validatedAt)\n",
        )
    ],
    "lifetimes": [
        (
            RESOURCES + "Freshness/Freshness+Judging.swift",
            "            return age >= duration ? .expired : nil\n",
            "            return age >= duration && !MUTANT ? .expired : nil\n",
        )
    ],
    "send lock": [
        (
            RESOURCES + "Outbox/SendLock.swift",
            "if state.users == 0, let lock, try !lock.take() { return false }",
            "if !MUTANT, state.users == 0, let lock, try !lock.take() { return false }",
        )
    ],
    "mark before the first byte is sent": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "                row.state = Outbox.Entry.State.sending.rawValue\n"
            "                row.attempts = max(row.attempts + 1, Int64(entry.attempts))\n"
            "                try transaction.update(row)\n",
            "                row.state = Outbox.Entry.State.sending.rawValue\n"
            "                row.attempts = max(row.attempts + 1, Int64(entry.attempts))\n"
            "                if !MUTANT { try transaction.update(row) }\n",
        )
    ],
    "operations of the other process before sending": [
        (RESOURCES + "Outbox/Outbox+Sending.swift", "try adoptNew()\n", "if !MUTANT { try adoptNew() }\n")
    ],
    "decisions of the other process about rejected operations": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "guard let disk = core.outboxDisk, state.withLock({ !$0.queue.rejected.isEmpty }) else { return }",
            "guard let disk = core.outboxDisk, state.withLock({ !$0.queue.rejected.isEmpty }), !MUTANT else { return }",
        )
    ],
    "order of the replies": [
        (
            RESOURCES + "Core/RequestOrder.swift",
            "state.withLock { ($0.applied[key] ?? 0) > order }",
            "state.withLock { ($0.applied[key] ?? 0) > order && !MUTANT }",
        )
    ],
    "changes of a list while it is fetched": [
        (RESOURCES + "Core/Commit+Order.swift", "guard !edits.isEmpty else", "guard !edits.isEmpty, !MUTANT else")
    ],
    "invalidation while a value is fetched": [
        (
            RESOURCES + "Core/RequestOrder.swift",
            "state.withLock { ($0.invalidated[key] ?? 0) > order }",
            "state.withLock { ($0.invalidated[key] ?? 0) > order && !MUTANT }",
        )
    ],
    "salvage of a damaged store": [
        (
            "ClientSDK/LarderStorage/DiskReplacement.swift",
            "if let damaged { try salvage.save(",
            "if let damaged, !MUTANT { try salvage.save(",
        )
    ],
    "coalescing only of what was never sent": [
        (
            RESOURCES + "Outbox/Outbox+Enqueuing.swift",
            "                entry.state == .pending, entry.attempts == 0\n            else",
            "                entry.state == .pending && entry.attempts == 0 || entry.state != .rejected && MUTANT\n            else",
        ),
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "require(entry, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 }",
            "require(entry, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 || MUTANT }",
        ),
    ],
    "opposite taps cancel out only over a known value": [
        (
            RESOURCES + "Outbox/Outbox+Enqueuing.swift",
            "        let isAlone = state.withLock { state in",
            "        if MUTANT { return [:] }\n        let isAlone = state.withLock { state in",
        )
    ],
    "order within a scope": [
        (
            DEMO + "Chat+Writing.swift",
            'scope: { "conversation/" + $0.conversationID },',
            'scope: { "conversation/" + (MUTANT ? $0.messageID : $0.conversationID) },',
        )
    ],
    "later operations wait behind a rejected one": [
        (
            RESOURCES + "Outbox/OutboxQueue.swift",
            "entry.state != .rejected || operationsByName[entry.operation]?.onRejection == .block",
            "entry.state != .rejected || !MUTANT && operationsByName[entry.operation]?.onRejection == .block",
        )
    ],
    "server IDs in waiting operations": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "for (old, operation) in waiting {",
            "for (old, operation) in MUTANT ? [] : waiting {",
        ),
        (
            DEMO + "LocalID.swift",
            "        update.put(Link(id: local, serverID: server))",
            "        if !MUTANT { update.put(Link(id: local, serverID: server)) }",
        ),
    ],
    "unknown outcomes are sent again": [
        (
            RESOURCES + "Outbox/Outbox+Verdict.swift",
            "            default: self = .unknown\n            }\n        }\n\n        private init",
            "            default: self = MUTANT ? .rejected : .unknown\n            }\n        }\n\n        private init",
        )
    ],
    "a dead process's operations in flight are in doubt": [
        (
            RESOURCES + "Outbox/Outbox+Entry.swift",
            "self.state = state == .sending ? .inDoubt : state",
            "self.state = state == .sending ? (MUTANT ? .rejected : .inDoubt) : state",
        )
    ],
    "the acknowledgement is stored with the removal": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "            acknowledge(&update)\n            removal(of: entry, visibleAt: visibleAt, in: &update)\n        case .rejected",
            "            if !MUTANT { acknowledge(&update) }\n            removal(of: entry, visibleAt: visibleAt, in: &update)\n        case .rejected",
        )
    ],
    "fsync of awaited writes": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "if operation.isThrough { update.durability = .powerLoss }",
            "if operation.isThrough, !MUTANT { update.durability = .powerLoss }",
        )
    ],
    "content lost with the power is stale": [
        (
            RESOURCES + "Core/CacheCore+OutboxRows.swift",
            "        guard let disk, let outboxDisk, let ended",
            "        guard !MUTANT, let disk, let outboxDisk, let ended",
        )
    ],
    "retry budget of reads": [
        (
            RESOURCES + "Core/Node+BackOff.swift",
            "if isDue, core.readRetryBudget.withLock({ $0.withdraw() }) {",
            "if isDue, core.readRetryBudget.withLock({ $0.withdraw() }) || MUTANT {",
        )
    ],
    "back-off of reads": [
        (
            RESOURCES + "Core/Node+BackOff.swift",
            "        guard let error, !error.isLocal else { return (nil, nil) }",
            "        guard let error, !error.isLocal, !MUTANT else { return (nil, nil) }",
        )
    ],
    "back-off of operations": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "let wait = least + longest * core.configuration.random()",
            "let wait = least + longest * (MUTANT ? 0.5 : core.configuration.random())",
        )
    ],
    "Retry-After": [
        (
            "ClientSDK/LarderTransport/Retry/HostGate.swift",
            "guard !isUserInitiated, let wait = wait(for: url) else { return now }",
            "guard !isUserInitiated, !MUTANT, let wait = wait(for: url) else { return now }",
        ),
        (
            RESOURCES + "Core/Node+BackOff.swift",
            "let held = error.retryAfter.map { now + $0 }",
            "let held = MUTANT ? nil : error.retryAfter.map { now + $0 }",
        ),
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "let least = max(asked ?? .zero, error.retryAfter ?? .zero)",
            "let least = MUTANT ? .zero : max(asked ?? .zero, error.retryAfter ?? .zero)",
        ),
    ],
    "single flight of reads": [
        (
            RESOURCES + "Core/Node+Fetching.swift",
            "if let flight = state.flight, since.map",
            "if !MUTANT, let flight = state.flight, since.map",
        )
    ],
    "validators": [
        (
            RESOURCES + "Core/Node+Fetching.swift",
            "validator: content.validator(options),",
            "validator: MUTANT ? nil : content.validator(options),",
        )
    ],
    "gaps in timelines": [
        (
            RESOURCES + "Lists/TimelineLayout+Merging.swift",
            "                    elements.append(newGap(cursor))\n                    elements += rest",
            "                    if !MUTANT { elements.append(newGap(cursor)) }\n                    elements += rest",
        )
    ],
    "no validator while an item of the newest page is unconfirmed": [
        (
            RESOURCES + "Timeline/Timeline+List.swift",
            "query.entityTag = layout.beginsLoose ? nil",
            "query.entityTag = layout.beginsLoose && !MUTANT ? nil",
        )
    ],
    "no validator for a list whose items have changed": [
        (
            RESOURCES + "Core/Node.swift",
            "facts.isPartial || !isConfirmable ? nil",
            "facts.isPartial || !isConfirmable && !MUTANT ? nil",
        )
    ],
    "a confirmed value that was evicted is fetched whole": [
        (
            RESOURCES + "Core/Node+Fetching.swift",
            "                await !core.reading({ self.isThere(validator, flight) })",
            "                await !core.reading({ self.isThere(validator, flight) }), !MUTANT",
        )
    ],
    "gap detection in the live channel": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "if live.previousToken == stored {",
            "if live.previousToken == stored || MUTANT {",
        )
    ],
    "invalidation after an expired token": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "                invalidateAll(&update)\n",
            "                if !MUTANT { invalidateAll(&update) }\n",
        )
    ],
    "a new token after an expired one": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "guard error.isTokenGone else { throw error }\n                try await resync()",
            "guard error.isTokenGone, !MUTANT else { throw error }\n                try await resync()",
        )
    ],
    "invalidations on disk": [
        (
            RESOURCES + "Core/CacheCore+Committing.swift",
            "                    try transaction.setMetadata(invalidations.encoded,",
            "                    if !MUTANT { try transaction.setMetadata(invalidations.encoded,",
        ),
        (
            RESOURCES + "Core/CacheCore+Committing.swift",
            "for: InvalidationTable.metadataKey)\n                }\n                if isTimeToSave",
            "for: InvalidationTable.metadataKey) }\n                }\n                if isTimeToSave",
        ),
    ],
    "cross-process check": [
        (
            RESOURCES + "Core/CacheCore+ForeignCommits.swift",
            "        do { try disk.checkForeignCommits() } catch {",
            "        if MUTANT { return }\n        do { try disk.checkForeignCommits() } catch {",
        )
    ],
    "memory dropped after a commit of the other process": [
        (
            RESOURCES + "Entities/EntityTable.swift",
            "return stored.seenCommits >= (others?.count ?? 0) ? stored : nil",
            "return stored.seenCommits >= (others?.count ?? 0) || MUTANT ? stored : nil",
        ),
        (
            RESOURCES + "Core/CacheCore+Reading.swift",
            "return stored.seenCommits >= seenCommits ? stored : nil",
            "return stored.seenCommits >= seenCommits || MUTANT ? stored : nil",
        ),
    ],
    "second attempt of a lost renewal": [
        (
            "ClientSDK/Larder/Session/BearerSession+Renewing.swift",
            "guard isLost, mayUseNetwork() else { throw error }",
            "guard isLost, !MUTANT, mayUseNetwork() else { throw error }",
        )
    ],
    "tokens renewed by the other process": [
        (
            "ClientSDK/Larder/Session/BearerSession+Renewing.swift",
            "            // The process that held the lock before may have renewed the tokens.\n            if try await",
            "            // The process that held the lock before may have renewed the tokens.\n            if !MUTANT, try await",
        )
    ],
    "erasing at sign-out": [
        (
            "ClientSDK/Larder/Client/APIClient.swift",
            "do throws(LarderError) { try cache.erase() }",
            "do throws(LarderError) { if MUTANT { cache.close() } else { try cache.erase() } }",
        )
    ],
    "connections per host": [
        (
            "ClientSDK/LarderTransport/HTTP1/SocketTransport.swift",
            "public var connectionsPerHost = 6",
            "public var connectionsPerHost = MUTANT ? 64 : 6",
        )
    ],
}
# The themes of the simulation (`Theme.swift`) whose runs use a mechanism most, by number: with --themed only their seeds are run.
THEMES = {
    "tombstones": (1, 9),
    "overlay until the acknowledged version": (7, 1),
    "a value that only memory has is written with the token": (8,),
    "rows that lack a change which only memory has are not read": (8,),
    "clock guard": (6,),
    "clock guard across starts": (6,),
    "send lock": (3,),
    "mark before the first byte is sent": (7, 4),
    "decisions of the other process about rejected operations": (3,),
    "order of the replies": (1,),
    "changes of a list while it is fetched": (1, 3),
    "invalidation while a value is fetched": (1, 9),
    "salvage of a damaged store": (2,),
    "coalescing only of what was never sent": (7,),
    "opposite taps cancel out only over a known value": (7,),
    "one key for all attempts of a tap": (1, 0, 7),
    "order within a scope": (3, 4),
    "later operations wait behind a rejected one": (4, 3),
    "server IDs in waiting operations": (4, 2),
    "the acknowledgement is stored with the removal": (4, 3),
    "fsync of awaited writes": (5,),
    "content lost with the power is stale": (5,),
    "retry budget of reads": (10,),
    "back-off of reads": (10,),
    "back-off of operations": (10,),
    "single flight of reads": (10,),
    "gaps in timelines": (9,),
    "no validator while an item of the newest page is unconfirmed": (9,),
    "no validator for a list whose items have changed": (9, 1),
    "a confirmed value that was evicted is fetched whole": (8,),
    "invalidations on disk": (9,),
    "cross-process check": (3,),
    "second attempt of a lost renewal": (11,),
    "connections per host": (11,),
    "a dead process's operations in flight are in doubt": (7, 4),
    "gap detection in the live channel": (0,),
    "tokens renewed by the other process": (3, 0),
}
THEME_COUNT = 12
# Why nobody can notice a mutant: what else does its work.
DOUBLED = {
    "overlay until the acknowledged version": "the acknowledgements of the demo store the server's value with the removal",
    "a value that only memory has is written with the token": "the next commit that the disk takes writes everything that only memory has",
    "clock guard": "the age by the monotonic clock, and times in the future count as unknown",
    "content lost with the power is stale": "the change token is lost with the content, and brings the changes again",
    "second attempt of a lost renewal": "the next request renews again, and the server accepts the replaced token for a while",
}
SWITCH = """#if canImport(Glibc)
    import Glibc
#endif

private let number = getenv("LARDER_MUTANT").map { Int32(atoi($0)) } ?? -1
nonisolated(unsafe) private var isReached = false

/// Each run is a process of its own: the first call in a module of a run adds its number to the file that counts the runs.
@inline(never) func isMutant(_ wanted: Int32) -> Bool {
    guard number == wanted else { return false }
    if !isReached, let path = getenv("LARDER_MUTANT_REACHED") {
        isReached = true
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
        let line = "\\(getpid())\\n"
        _ = write(file, line, line.utf8.count)
        close(file)
    }
    return true
}
"""


def texts():
    """The mutated files, and what no longer matches."""
    files, faults = {}, []
    for number, (name, edits) in enumerate(MUTANTS.items()):
        for path, old, new in edits:
            text = files.get(path) or (ROOT / path).read_text(encoding="utf-8")
            if text.count(old) != 1:
                faults.append((name, f"the text occurs {text.count(old)} times in {path}: {old.strip()[:60]}"))
                continue
            files[path] = text.replace(old, new.replace("MUTANT", f"isMutant({number})"))
    return files, faults


def build(work, files):
    """Builds the copy with all mutants; returns the path of the simulator."""
    copy = work / "tree"
    for name in ["Shared", "Server", "ClientSDK", "Tests"]:
        synchronize(ROOT / name, copy / name, {copy / path: text for path, text in files.items()})
    for module in {pathlib.Path(path).parts[:2] for path in files}:
        write(copy / pathlib.Path(*module) / "MutantSwitch.swift", SWITCH)
    package = (ROOT / "Package.swift").read_text(encoding="utf-8")
    package = package.replace("    .strictMemorySafety(),\n", "").replace("    .treatAllWarnings(as: .error),\n", "")
    write(copy / "Package.swift", package)
    command = ["swift", "build", "-c", "release", "--product", "simulate"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit("The mutants do not build:\n" + "\n".join(re.findall(r"^/.*error:.*$", result.stdout, re.MULTILINE)[:20]))
    return copy / ".build/release/simulate"


def write(path, text):
    """Writes a file unless it is the same: a build compiles what is newer than its objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def synchronize(source, target, changed):
    wanted = set()
    for file in sorted(source.rglob("*")):
        place = target / file.relative_to(source)
        wanted.add(place)
        if place in changed:
            write(place, changed[place])
        elif file.is_file() and (not place.exists() or place.read_bytes() != file.read_bytes()):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
    if target.exists():
        for file in target.rglob("*"):
            if file.is_file() and file not in wanted and file.name != "MutantSwitch.swift":
                file.unlink()


def run(simulator, number, name, first, seeds, seconds, is_themed):
    """The seeds that a mutant needs: how many ran, in how many of them the place was reached, and the rules that the last one breaks."""
    wanted = range(first, first + seeds)
    if is_themed:
        themes = THEMES.get(name, range(THEME_COUNT))
        wanted = [seed for seed in wanted if seed % THEME_COUNT in themes]
    with tempfile.TemporaryDirectory() as directory:
        reached = pathlib.Path(directory, "reached")
        file = pathlib.Path(directory, "seeds.txt")
        file.write_text("\n".join(map(str, wanted)), encoding="utf-8")
        environment = dict(os.environ, LARDER_MUTANT=str(number), LARDER_MUTANT_REACHED=str(reached))
        command = ["timeout", str(seconds), simulator, "--seeds-file", str(file), "--until-failure"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        count = len(set(reached.read_text(encoding="utf-8").split())) if reached.exists() else 0
    found = re.search(r"^seed (\d+) fails, status (\d+).*\n((?:    \w+:.*\n)*)", result.stdout, re.MULTILINE)
    if found:
        rules = sorted(set(re.findall(r"^    (\w+(?:: \w+(?=:))?)", found.group(3), re.MULTILINE)))
        noticed = ", ".join(rules) or f"status {found.group(2)}"
        needed = int(found.group(1)) - first + 1
        return {"name": name, "needed": needed, "isMost": is_themed, "reached": count, "noticed": noticed}
    if result.returncode == 124:
        return {"name": name, "reached": count, "seconds": seconds}
    if result.returncode != 0:
        raise SystemExit(f"mutant '{name}': the simulator ended with {result.returncode}\n{result.stderr}")
    return {"name": name, "survived": len(wanted), "reached": count}


def table(results, first):
    """The table of the document, of everything that the file of results has."""
    lines = [f"| removed mechanism | seeds needed (from {first} on) | runs that reached it | noticed by |", "| --- | --- | --- | --- |"]
    known = [results[name] for name in MUTANTS if name in results]
    for row in sorted(known, key=lambda row: "needed" not in row):
        if "needed" in row:
            needed = f"at most {row['needed']}" if row.get("isMost") else str(row["needed"])
        elif "survived" in row:
            needed = f"survives {row['survived']}" if row["reached"] else f"never reached in {row['survived']}"
        else:
            needed = f"survives {row['seconds']} s"
        other = row.get("noticed") or (f"nobody: {DOUBLED[row['name']]}" if row["name"] in DOUBLED else "")
        lines.append(f"| {row['name']} | {needed} | {row['reached']} | {other} |")
    found = sum("needed" in row for row in known)
    return "\n".join([f"{found} of {len(known)} mutants are noticed.", "", *lines])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "larder-mutants"))
    parser.add_argument("--first", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=3600, help="the limit for one mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--themed", action="store_true", help="run only the seeds whose theme uses the mechanism most")
    parser.add_argument("--results", help="a file of results, to which these are added")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    files, faults = texts()
    for name, fault in faults:
        print(f"{name}: {fault}", file=sys.stderr)
    if arguments.check or faults:
        return 1 if faults else 0
    work = pathlib.Path(arguments.work)
    simulator = work / "tree/.build/release/simulate"
    if not arguments.no_build:
        simulator = build(work, files)
    file = pathlib.Path(arguments.results or work / "results.json")
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    wanted = [(number, name) for number, name in enumerate(MUTANTS) if not arguments.names or name in arguments.names]
    if not arguments.no_run:
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            limits = (arguments.first, arguments.seeds, arguments.seconds, arguments.themed)
            tasks = [pool.submit(run, simulator, number, name, *limits) for number, name in wanted]
            for task in concurrent.futures.as_completed(tasks):
                row = task.result()
                results[row["name"]] = row
                file.write_text(json.dumps(results, indent=1), encoding="utf-8")
                print(row, file=sys.stderr, flush=True)
    print(table(results, arguments.first))
    return 0


if __name__ == "__main__":
    sys.exit(main())
