#!/usr/bin/env python3
"""Removes one mechanism of the SDK at a time, and counts the seeds that the simulation needs to notice.

    python3 Scripts/mutants.py [--work DIR] [--first N] [--seeds N] [--themed] [--again] [--no-build] [--no-run] [--check] [NAME ...]

Works on a copy of the tree in DIR and builds it once, with all mutants: a variable of the environment switches one mechanism off. The tree
itself stays as it is. A seed that fails without any mutant does not count: when a seed fails, it is run once more without the mutant, and
the run goes on with the next one if that fails too. Results and such seeds are kept in DIR after each mutant, so that a run can be
interrupted and repeated: what has a result for these seeds is not run again without --again. Several processes may share DIR with
--no-build. Prints a row of a table for each mutant: its name, the first seed, the number of seeds until one fails, the number of these
runs that have reached the mutated place, and the rule that is broken. --check only looks whether the code of each mutant still exists.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
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
WRITES = "ClientSDK/Larder/Writes/"
KEY = "[.idempotencyKey: attempt.idempotencyKey"
SHORT_KEY = "[.idempotencyKey: key"
OTHER = ' + (MUTANT ? String(UInt32.random(in: 0 ... .max)) : "")'
OTHER_KEY, OTHER_SHORT_KEY = KEY + OTHER, SHORT_KEY + OTHER
# Each mutant has a name, and edits: a file, code that occurs in it once, and what replaces it. MUTANT becomes a condition. Code is compared
# by its tokens: how it is indented and where its lines end does not matter.
MUTANTS = {
    "version guard of entities": [
        (RESOURCES + "Core/Commit.swift", "            if new < old { return }", "            if new < old, !MUTANT { return }"),
        (
            "ClientSDK/LarderStorage/DiskConnection+Writing.swift",
            "        return try first(\n            .upsert,",
            "        if MUTANT { try run(.remove, kind, space, key) }\n        return try first(\n            .upsert,",
        ),
    ],
    "tombstones": [
        (
            RESOURCES + "Core/Commit+Entities.swift",
            "guard try rows.bury(key, version: version, isOffDisk: isOffDisk) else { return }",
            "if MUTANT { try rows.removeValue(key) } else { guard try rows.bury(key, version: version, isOffDisk: isOffDisk) else { return } }",
        )
    ],
    "overlay of entities": [
        (
            RESOURCES + "Entities/Overlays.swift",
            "let list = pending(.entity(key))",
            "let list = MUTANT ? [] : pending(.entity(key))",
        )
    ],
    "overlay of lists": [
        (
            RESOURCES + "Entities/Overlays.swift",
            "pending(.query(key)).reduce(into: ids)",
            "(MUTANT ? [] : pending(.query(key))).reduce(into: ids)",
        )
    ],
    "token stored after what it covers": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "            var rest = changes[...]\n",
            "if MUTANT { try cache.updateBlocking { update in update.setToken(token, for: feed.name) } }\n"
            "        var rest = MUTANT ? [] : changes[...]\n",
        )
    ],
    "rows that lack a change are hidden": [
        (
            RESOURCES + "Core/HiddenRows.swift",
            "hidden.withLock { $0.contains(key) }",
            "!MUTANT && hidden.withLock { $0.contains(key) }",
        )
    ],
    "rows that lack a change are removed before the disk is used again": [
        (
            RESOURCES + "Core/CacheCore+Committing.swift",
            "if isCatchingUp { for key in try rows.catchUp()",
            "if isCatchingUp, !MUTANT { for key in try rows.catchUp()",
        )
    ],
    "one key for all attempts of a transfer": [(DEMO + "Bank.swift", KEY, OTHER_KEY)],
    "one key for all attempts of a post": [(DEMO + "Feed+Writing.swift", SHORT_KEY, OTHER_SHORT_KEY)],
    "one key and one client's ID for all attempts of a message": [
        (DEMO + "Chat+Writing.swift", SHORT_KEY, OTHER_SHORT_KEY),
        (
            DEMO + "Chat+Writing.swift",
            "clientID: change.clientID, image:",
            'clientID: change.clientID + (MUTANT ? String(UInt32.random(in: 0 ... .max)) : ""), image:',
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
            RESOURCES + "Core/ClockGuard.swift",
            "&- offset) > Moment.tolerance\n",
            "&- offset) > Moment.tolerance && !MUTANT\n",
        )
    ],
    "clock guard across starts": [
        (
            RESOURCES + "Core/CacheCore.swift",
            "if try wasSetBack(disk) {\n",
            "if try wasSetBack(disk), !MUTANT {\n",
        )
    ],
    "age by both clocks": [
        (
            RESOURCES + "Freshness/Freshness+Times.swift",
            "guard validatedAt != Self.never, asked >= now.clock, validatedAt - now.wall <= Moment.tolerance\n"
            "            else { return nil }\n"
            "            let wall = max(.zero, now.wall - validatedAt)\n",
            "if MUTANT { return validatedAt == Self.never ? nil : max(.zero, now.wall - validatedAt) }\n"
            "            guard validatedAt != Self.never, asked >= now.clock, validatedAt - now.wall <= Moment.tolerance\n"
            "            else { return nil }\n"
            "            let wall = max(.zero, now.wall - validatedAt)\n",
        )
    ],
    "lifetimes": [
        (
            RESOURCES + "Freshness/Freshness+Judging.swift",
            "return (duration - age, .expired)",
            "return MUTANT ? nil : (duration - age, .expired)",
        )
    ],
    "send lock": [
        (
            RESOURCES + "Outbox/SendLock.swift",
            "if state.users == 0, let lock, try !lock.take() {",
            "if !MUTANT, state.users == 0, let lock, try !lock.take() {",
        )
    ],
    "mark before the first byte is sent": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "            replace(taken, by: marked[index], operation, in: &update)\n",
            "            if !MUTANT { replace(taken, by: marked[index], operation, in: &update) }\n",
        )
    ],
    "operations of the other process before sending": [
        (
            RESOURCES + "Outbox/Outbox+Sending.swift",
            "try refreshRows()\n",
            "if !MUTANT { try refreshRows() }\n",
        )
    ],
    "decisions of the other process about rejected operations": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "if let known, known.hasSameRow(as: stored) { return }",
            "if let known, MUTANT || known.hasSameRow(as: stored) { return }",
        )
    ],
    "order of the replies": [
        (
            RESOURCES + "Core/Commit.swift",
            "-> Bool { place.overtakes(stamp, version: version) }",
            "-> Bool { !MUTANT && place.overtakes(stamp, version: version) }",
        )
    ],
    "changes of a list while it is fetched": [
        (
            RESOURCES + "Entities/ListChange.swift",
            "let keys = query.edits.applied(to: answer.ids, askedAt: context.stamp, in: query.ids)",
            "let keys = (MUTANT ? answer.ids : query.edits.applied(to: answer.ids, askedAt: context.stamp, in: query.ids))",
        )
    ],
    "invalidation while a value is fetched": [
        (
            RESOURCES + "Core/Commit.swift",
            "max(known ?? .never, core.rowless[key]?.invalid ?? .never)",
            "MUTANT ? .never : max(known ?? .never, core.rowless[key]?.invalid ?? .never)",
        )
    ],
    "number of the boot": [
        (
            RESOURCES + "Core/StampClock.swift",
            "content.read { try $0.latestStamp() }?.boot ?? 0) + 1",
            "content.read { try $0.latestStamp() }?.boot ?? 0) + (MUTANT ? 0 : 1)",
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
            "old.state == .pending, old.attempts == 0\n",
            "old.state == .pending && old.attempts == 0 || old.state != .rejected && MUTANT\n",
        ),
        (
            RESOURCES + "Outbox/Outbox+Enqueuing.swift",
            "require(old, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 }",
            "require(old, in: &update) { $0.state == Outbox.Entry.State.pending.rawValue && $0.attempts == 0 || MUTANT }",
        ),
    ],
    "order within a scope": [
        (
            DEMO + "Chat+Writing.swift",
            "scope: { scope($0.conversationID ?? \"\") },",
            "scope: { scope(MUTANT ? $0.id : $0.conversationID ?? \"\") },",
        )
    ],
    "later operations wait behind a rejected one": [
        (
            RESOURCES + "Outbox/OutboxQueue.swift",
            "entry.state != .rejected || operationsByName[entry.operation]?.rejectionBlocksScope == true",
            "entry.state != .rejected || !MUTANT && operationsByName[entry.operation]?.rejectionBlocksScope == true",
        )
    ],
    "server IDs in waiting operations": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "for (old, operation) in waiting {",
            "for (old, operation) in MUTANT ? [] : waiting {",
        ),
    ],
    "unknown outcomes are sent again": [
        (
            RESOURCES + "Outbox/Outbox+Verdict.swift",
            "            default: self = .unknown\n            }\n        }\n\n        /// Classifies a reply",
            "            default: self = MUTANT ? .rejected : .unknown\n            }\n        }\n\n        /// Classifies a reply",
        )
    ],
    "a dead process's operations in flight are in doubt": [
        (
            RESOURCES + "Outbox/Outbox+Entry.swift",
            "self = state == .sending ? .inDoubt : state",
            "self = state == .sending ? (MUTANT ? .rejected : .inDoubt) : state",
        )
    ],
    "the acknowledgement is stored with the removal": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "            acknowledge(&update)\n            if update.steps.count == known",
            "            if !MUTANT { acknowledge(&update) }\n            if update.steps.count == known",
        )
    ],
    "fsync of awaited writes": [
        (
            RESOURCES + "Outbox/Outbox+Sharing.swift",
            "operation.isThrough ? .powerLoss : .processDeath",
            "operation.isThrough && !MUTANT ? .powerLoss : .processDeath",
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
            RESOURCES + "Core/BackOff.swift",
            "if core.readRetryBudget.withLock({ $0.withdraw(at: now.uptime) }) {",
            "if core.readRetryBudget.withLock({ $0.withdraw(at: now.uptime) }) || MUTANT {",
        )
    ],
    "back-off of reads": [
        (
            RESOURCES + "Core/BackOff.swift",
            "guard !error.isLocal else {",
            "guard !error.isLocal, !MUTANT else {",
        )
    ],
    "back-off of operations": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "let wait = least + longest * jitter\n",
            "let wait = least + longest * (MUTANT ? 0.5 : jitter)\n",
        )
    ],
    "Retry-After": [
        (
            "ClientSDK/LarderTransport/Retry/HostGate.swift",
            "guard !request.isUserInitiated, let wait = wait(for: request) else {",
            "guard !request.isUserInitiated, !MUTANT, let wait = wait(for: request) else {",
        ),
        (
            RESOURCES + "Core/BackOff.swift",
            "[heldUntil, error.retryAfter.map { now + $0 }]",
            "[heldUntil, MUTANT ? nil : error.retryAfter.map { now + $0 }]",
        ),
        (
            RESOURCES + "Outbox/OutboxOperation.swift",
            "case .unsent(let error), .retry(let error): max(error.retryAfter ?? .zero, .zero)",
            "case .unsent(let error), .retry(let error): MUTANT ? .zero : max(error.retryAfter ?? .zero, .zero)",
        ),
    ],
    "single flight of reads": [
        (
            RESOURCES + "Core/Node+Fetching.swift",
            "if let flight = state[place].flight, joins(flight)",
            "if !MUTANT || place != nil, let flight = state[place].flight, joins(flight)",
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
            RESOURCES + "Lists/RunList+Merging.swift",
            "case .same where start.gap == nil:",
            "case .same where start.gap == nil, .open where start.gap == nil && MUTANT:",
        )
    ],
    "no validator while an item of the newest page is unconfirmed": [
        (
            RESOURCES + "Timeline/Timeline+List.swift",
            "query.entityTag = isConfirmed &&",
            "query.entityTag = (isConfirmed || MUTANT) &&",
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
            "guard token == stored else {",
            "guard token == stored || MUTANT else {",
        )
    ],
    "invalidation after an expired token": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "let first = isAgain ? feed.invalidateAll : nil",
            "let first = isAgain && !MUTANT ? feed.invalidateAll : nil",
        )
    ],
    "a new token after an expired one": [
        (
            RESOURCES + "Sync/ChangeSync.swift",
            "guard error.isTokenGone else { throw error }\n                let batch = try await begin",
            "guard error.isTokenGone, !MUTANT else { throw error }\n                let batch = try await begin",
        )
    ],
    "invalidations on disk": [
        (
            RESOURCES + "Core/CacheCore+Clock.swift",
            "        try transaction.setMetadata(invalidations.encoded, for: key)\n",
            "        if !MUTANT { try transaction.setMetadata(invalidations.encoded, for: key) }\n",
        )
    ],
    "cross-process check": [
        (
            RESOURCES + "Core/CacheCore+ForeignCommits.swift",
            "reporting { try disk.checkForeignCommits() }",
            "if !MUTANT { reporting { try disk.checkForeignCommits() } }",
        )
    ],
    "memory dropped after a commit of the other process": [
        (
            RESOURCES + "Core/CacheCore+ForeignCommits.swift",
            "guard foreign.droppedCount.load(ordering: .acquiring) < seen else { return }",
            "guard !MUTANT, foreign.droppedCount.load(ordering: .acquiring) < seen else { return }",
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
            "ClientSDK/Larder/Client/APIClient+SignOut.swift",
            "stores.all + [cache.disk]",
            "stores.all + [MUTANT ? nil : cache.disk]",
        )
    ],
    "connections per host": [
        (
            "ClientSDK/LarderTransport/HTTP1/SocketTransport.swift",
            "public var connectionsPerHost = 6",
            "public var connectionsPerHost = MUTANT ? 64 : 6",
        )
    ],
    "eviction from memory": [
        (
            "ClientSDK/LarderMemory/MemoryEntries.swift",
            "        while slots.count > target.count",
            "        while !MUTANT, slots.count > target.count",
        )
    ],
    "a limit of memory that is lowered evicts at once": [
        (
            "ClientSDK/LarderImages/Pipeline/ImagePipeline.swift",
            "        memory.setLimitsUnderPressure(.init(cost: Self.scaled(configuration.memoryBytesMaximum, by: share)))\n",
            "        if !MUTANT { memory.setLimitsUnderPressure(.init(cost: Self.scaled(configuration.memoryBytesMaximum, by: share))) }\n",
        )
    ],
    "damaged pictures are fetched again": [
        (
            "ClientSDK/LarderImages/Pipeline/ImagePipeline+Work.swift",
            "            if isDamaged, !job.isRepeated, !key",
            "            if isDamaged, !MUTANT, !job.isRepeated, !key",
        )
    ],
    "eviction of pictures from the disk": [
        (
            "ClientSDK/Larder/Client/APIClient+Stores.swift",
            "        store.bytesMaximum = bytesMaximum ?? values.bytesMaximum\n",
            "        store.bytesMaximum = MUTANT ? 1 << 30 : bytesMaximum ?? values.bytesMaximum\n",
        )
    ],
    "pixels of each size are kept apart": [
        (
            "ClientSDK/LarderImages/Pipeline/ImageKeys.swift",
            "        self.target = target\n",
            "        self.target = MUTANT ? nil : target\n",
        )
    ],
    "pictures are erased at sign-out": [
        (
            "ClientSDK/Larder/Client/APIClient+Stores.swift",
            "{ [images, http] + earlier }",
            "{ [MUTANT ? nil : images, http] + earlier }",
        )
    ],
    "downloads end with the last request for them": [
        (
            "ClientSDK/LarderImages/Pipeline/ImagePipeline+Jobs.swift",
            "            if let rest = state.loads[load], rest.dependents.isEmpty {\n",
            "            if let rest = state.loads[load], rest.dependents.isEmpty, !MUTANT {\n",
        )
    ],
    "the base of an edit is kept for a conflict": [
        (
            "ClientSDK/Larder/Client/APIClient+Write.swift",
            "StoredChange(.modify, type, old.id, patch, base: base)",
            "StoredChange(.modify, type, old.id, patch, base: MUTANT ? nil : base)",
        )
    ],
    "a decision is stored": [
        (
            RESOURCES + "Outbox/Outbox+Deciding.swift",
            "store(row, in: &update)\n        showAgain(",
            "if !MUTANT { store(row, in: &update) }\n        showAgain(",
        )
    ],
    "a new key after a decision": [(RESOURCES + "Outbox/Outbox+Deciding.swift", "if newKey {", "if newKey, !MUTANT {")],
    "the server's ETag after a decision": [
        (WRITES + "StoredWrite+Conflict.swift", '["If-Match", validator ?? "*"]', 'MUTANT ? write.fields[index] : ["If-Match", validator ?? "*"]')
    ],
    "the state of a conflict is read": [
        (WRITES + "StoredWrite+Conflict.swift", "if state == nil, [", "if state == nil, !MUTANT, [")
    ],
    "the state of a conflict is stored": [
        (
            RESOURCES + "Outbox/Outbox+Results.swift",
            "if let current = error.cause as? Outbox.CurrentState {",
            "if !MUTANT, let current = error.cause as? Outbox.CurrentState {",
        )
    ],
    "fields that others have changed are kept": [
        (RESOURCES + "Outbox/Inbox/EditConflict.swift", "var merged = theirs\n", "var merged = MUTANT ? base : theirs\n")
    ],
    "an upload goes on where the server has it": [
        (
            WRITES + "UploadSender.swift",
            "if isComplete { offset = file.length }",
            "if isComplete { offset = file.length }\nif MUTANT { offset = 0 }",
        )
    ],
    "the place of an upload is stored": [
        (
            WRITES + "UploadFiles.swift",
            "guard let stored = try read(Self.placeName, of: name) else",
            "guard !MUTANT, let stored = try read(Self.placeName, of: name) else",
        )
    ],
    "another key for an upload that was forgotten": [
        (WRITES + "UploadSender.swift", "place.losses > 0 ?", "place.losses > 0 && !MUTANT ?")
    ],
    "the files of settled uploads are removed": [
        (WRITES + "Uploading.swift", "guard let files, !isQueued else", "guard let files, !isQueued, !MUTANT else")
    ],
    "the type of a write as data is found by its name": [
        (WRITES + "StoredChange.swift", "guard let name = typeName, let found", "guard !MUTANT, let name = typeName, let found")
    ],
    "server IDs in writes as data": [
        (WRITES + "WriteOperations.swift", "{ $0.replacingIDs($1) }", "{ MUTANT ? $0 : $0.replacingIDs($1) }")
    ],
}
# The themes of the simulation (`Theme.swift`) whose runs use a mechanism most: with --themed only their seeds are run.
THEMES = {
    "tombstones": "unevenNetwork,history",
    "clock guard": "clocks",
    "clock guard across starts": "clocks",
    "send lock": "twoProcesses",
    "mark before the first byte is sent": "taps,rejections",
    "decisions of the other process about rejected operations": "twoProcesses",
    "order of the replies": "unevenNetwork",
    "changes of a list while it is fetched": "unevenNetwork,twoProcesses",
    "invalidation while a value is fetched": "unevenNetwork,history",
    "salvage of a damaged store": "damage",
    "coalescing only of what was never sent": "taps",
    "one key for all attempts of a tap": "unevenNetwork,everything,taps",
    "order within a scope": "twoProcesses,rejections",
    "later operations wait behind a rejected one": "rejections,twoProcesses",
    "server IDs in waiting operations": "rejections,damage",
    "the acknowledgement is stored with the removal": "rejections,twoProcesses",
    "fsync of awaited writes": "power",
    "content lost with the power is stale": "power",
    "retry budget of reads": "manners",
    "back-off of reads": "manners",
    "back-off of operations": "manners",
    "single flight of reads": "manners",
    "gaps in timelines": "history",
    "no validator while an item of the newest page is unconfirmed": "history",
    "no validator for a list whose items have changed": "history,unevenNetwork",
    "a confirmed value that was evicted is fetched whole": "disk",
    "invalidations on disk": "history",
    "cross-process check": "twoProcesses",
    "second attempt of a lost renewal": "sessions",
    "connections per host": "sessions",
    "a dead process's operations in flight are in doubt": "taps,rejections",
    "gap detection in the live channel": "everything",
    "tokens renewed by the other process": "twoProcesses,everything",
    "the base of an edit is kept for a conflict": "conflicts",
    "a decision is stored": "conflicts",
    "a new key after a decision": "conflicts",
    "the server's ETag after a decision": "conflicts",
    "the state of a conflict is read": "conflicts",
    "the state of a conflict is stored": "conflicts",
    "fields that others have changed are kept": "conflicts",
    "the type of a write as data is found by its name": "conflicts",
    "server IDs in writes as data": "conflicts",
    "an upload goes on where the server has it": "uploads",
    "the place of an upload is stored": "uploads",
    "another key for an upload that was forgotten": "uploads",
    "the files of settled uploads are removed": "uploads",
}
# Why a mutant is not noticed: what else does its work, or the unit test that holds it.
UNNOTICED = {
    "a new key after a decision": "nobody: the backend of the simulation keeps no rejection under a key; "
    "unit test: an operation that another process has edited is sent under its new key",
    "server IDs in writes as data": "nobody: a person gives up the rejected change, which excuses it; "
    "unit test: a created entity is shown after a restart, and later writes get the ID of the server",
    "rows that lack a change are hidden": "unit test: a commit that fails leaves hidden what the disk has missed",
    "no validator while an item of the newest page is unconfirmed": "unit test: a list with an item inserted behind the others is not "
    "confirmed by a validator",
    "server IDs in waiting operations": "unit test: a server ID replaces the temporary one where it occurs, and other operations are not "
    "decoded",
    "send lock": "unit test: one process sends and the other waits: no operation is doubled or lost",
    "number of the boot": "unit test: a store counts the boots in which it is used, and writes once for each",
    "clock guard": "nobody: the age by the monotonic clock, and times in the future count as unknown",
    "content lost with the power is stale": "nobody: the change token is lost with the content, and brings the changes again; "
    "unit test: an answer that a power loss has taken from the values makes them stale",
    "second attempt of a lost renewal": "nobody: the next request renews again, and the server accepts the replaced token for a while; "
    "unit test: a renewal with a lost reply is repeated with the same token",
    "tokens renewed by the other process": "unit test: a process waits for the renewal of another and uses its tokens",
    "order of the replies": "unit test: the answer of a request in flight does not restore a removed list",
    "changes of a list while it is fetched": "unit test: a list has the server's order with later changes, and nothing deleted or doubled",
    "tombstones": "unit test: a removed entity leaves every list, and no older reply restores it",
    "retry budget of reads": "unit test: reads after failures share a budget",
    "back-off of reads": "unit test: the time limit of a read covers its attempts and the waits between them",
    "one key for all attempts of a tap": "unit test: an attempt of a tap that is carried out after the opposite tap changes nothing",
    "invalidation while a value is fetched": "unit test: a request that began before an invalidation does not clear it",
    "a confirmed value that was evicted is fetched whole": "unit test: a value that was evicted before its confirmation is fetched completely",
    "no validator for a list whose items have changed": "unit test: a list is not confirmed for an item that has changed since and was invalidated",
    "gap detection in the live channel": "unit test: a change of a live channel is applied if it follows the stored token, and otherwise the "
    "feed is read",
    "damaged pictures are fetched again": "unit test: bytes that fail to decode are removed and fetched once more",
    "downloads end with the last request for them": "unit test: a cancelled or released one stops loading",
    "salvage of a damaged store": "unit test: a database with a damaged schema is read by the known root pages",
    "back-off of operations": "unit test: after process death at any step, acknowledged operations have one effect and others none",
    "gaps in timelines": "unit test: items that a refresh does not overlap stay behind a gap that is filled page by page",
}
SWITCH = """#if canImport(Glibc)
    import Glibc
#endif

private let number = getenv("LARDER_MUTANT").map { Int32(atoi($0)) } ?? -1
nonisolated(unsafe) private var isReached = false

/// Each run is a process of its own: the first call in a module of a run adds its number to the file that counts the runs.
@usableFromInline @inline(never) func isMutant(_ wanted: Int32) -> Bool {
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


def pattern(code):
    """A regular expression for code with any space between its tokens."""
    text = r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", code))
    return re.compile((r"\b" if code.strip()[0].isidentifier() else "") + text)


def texts():
    """The mutated files, and what no longer matches."""
    files, faults = {}, []
    for number, (name, edits) in enumerate(MUTANTS.items()):
        for path, old, new in edits:
            if path not in files and (ROOT / path).exists():
                files[path] = (ROOT / path).read_text(encoding="utf-8")
            places = list(pattern(old).finditer(files.get(path, "")))
            if len(places) != 1:
                faults.append((name, f"the code occurs {len(places)} times in {path}: {old.strip()[:60]}"))
                continue
            start, end = places[0].span()
            files[path] = files[path][:start] + new.strip().replace("MUTANT", f"isMutant({number})") + files[path][end:]
    faults += [(name, "there is no such mutant") for name in {**THEMES, **UNNOTICED} if name not in MUTANTS]
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


@contextlib.contextmanager
def kept(file):
    """The content of a JSON file that several processes change; it is written in the end."""
    with open(str(file) + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        yield content
        new = file.with_suffix(".new")
        new.write_text(json.dumps(content, indent=1), encoding="utf-8")
        new.replace(file)


class Campaign:
    """Runs mutants over the same seeds, and keeps the results."""

    def __init__(self, simulator, work, arguments):
        self.simulator = simulator
        self.results = work / "results.json"
        # Seeds that were run without any mutant, and whether they failed. Another build may judge otherwise.
        self.plain = work / f"plain-{int(simulator.stat().st_mtime)}.json"
        self.first = arguments.first
        self.seeds = arguments.seeds
        self.seconds = arguments.seconds
        self.is_themed = arguments.themed

    def has(self, name):
        with kept(self.results) as results:
            row = results.get(name, {}).get(str(self.first))
        return row is not None and ("needed" in row or row.get("survived", 0) >= self.seeds)

    def simulate(self, first, count, options, environment, seconds):
        command = ["timeout", str(seconds), self.simulator, "--first", str(first), "--seeds", str(count), "--until-failure", *options]
        with tempfile.TemporaryDirectory() as directory:
            result = subprocess.run(command, env=dict(os.environ, **environment), cwd=directory, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 1, 124):
            raise SystemExit(f"the simulator ended with {result.returncode}\n{result.stderr}")
        found = re.search(r"^seed (\d+) fails, status (\d+).*\n((?:    \w+:.*\n)*)", result.stdout, re.MULTILINE)
        return result.returncode == 124 and not found, found

    def fails_anyway(self, seed):
        with kept(self.plain) as plain:
            known = plain.get(str(seed))
        if known is None:
            _, found = self.simulate(seed, 1, [], {}, 300)
            known = found is not None
            with kept(self.plain) as plain:
                plain[str(seed)] = known
        return known

    def run(self, number, name):
        """The seeds that a mutant needs: how many ran, in how many of them the place was reached, and the rules that the last one breaks."""
        options = ["--themes", THEMES[name]] if self.is_themed and name in THEMES else []
        next_seed, end = self.first, self.first + self.seeds
        excluded, row = 0, {"isThemed": self.is_themed}
        with tempfile.TemporaryDirectory() as directory:
            reached = pathlib.Path(directory, "reached")
            environment = {"LARDER_MUTANT": str(number), "LARDER_MUTANT_REACHED": str(reached)}
            while next_seed < end:
                is_late, found = self.simulate(next_seed, end - next_seed, options, environment, self.seconds)
                if is_late:
                    row["seconds"] = self.seconds
                    break
                if not found:
                    row["survived"] = self.seeds
                    break
                seed = int(found.group(1))
                if self.fails_anyway(seed):
                    excluded += 1
                    next_seed = seed + 1
                    continue
                rules = sorted(set(re.findall(r"^    (\w+(?:: \w+(?=:))?)", found.group(3), re.MULTILINE)))
                row.update(needed=seed - self.first + 1, noticed=", ".join(rules) or f"status {found.group(2)}")
                break
            else:
                row["survived"] = self.seeds
            row["reached"] = len(set(reached.read_text(encoding="utf-8").split())) if reached.exists() else 0
        row["excluded"] = excluded
        with kept(self.results) as results:
            results.setdefault(name, {})[str(self.first)] = row
        return name, row


def table(results):
    """The table of the document, of everything that the file of results has: the first seeds that have noticed a mutant, or all together."""
    lines = ["| removed mechanism | first seed | seeds needed | runs that reached it | noticed by |", "| --- | --- | --- | --- | --- |"]
    noticed, survivors = [], []
    for name in MUTANTS:
        rows = sorted(results.get(name, {}).items(), key=lambda item: int(item[0]))
        found = [(first, row) for first, row in rows if "needed" in row]
        if found:
            first, row = found[0]
            needed = f"at most {row['needed']}" if row["isThemed"] else str(row["needed"])
            noticed.append(f"| {name} | {first} | {needed} | {row['reached']} | {row['noticed']} |")
        elif rows:
            count, reached = sum(row.get("survived", 0) for _, row in rows), sum(row["reached"] for _, row in rows)
            needed = f"survives {count}" if reached else f"never reached in {count}"
            survivors.append(f"| {name} | {', '.join(first for first, _ in rows)} | {needed} | {reached} | {UNNOTICED.get(name, '')} |")
    return "\n".join([f"{len(noticed)} of {len(noticed) + len(survivors)} mutants are noticed.", "", *lines, *noticed, *survivors])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "larder-mutants"))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=3600, help="the limit for one mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--themed", action="store_true", help="run only the seeds whose theme uses the mechanism most")
    parser.add_argument("--again", action="store_true", help="run also what has a result for these seeds")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MUTANTS]
    if unknown:
        parser.error(f"there is no mutant '{unknown[0]}'")
    files, faults = texts()
    for name, fault in faults:
        print(f"{name}: {fault}", file=sys.stderr)
    if arguments.check or (faults and not arguments.no_build):
        return 1 if faults else 0
    work = pathlib.Path(arguments.work)
    simulator = work / "tree/.build/release/simulate"
    if not arguments.no_build:
        simulator = build(work, files)
    if not arguments.no_run:
        campaign = Campaign(simulator, work, arguments)
        names = arguments.names or list(MUTANTS)
        names = [name for name in names if arguments.again or not campaign.has(name)]
        numbers = list(MUTANTS)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            tasks = [pool.submit(campaign.run, numbers.index(name), name) for name in names]
            for task in concurrent.futures.as_completed(tasks):
                print(task.result(), file=sys.stderr, flush=True)
    with kept(work / "results.json") as results:
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
