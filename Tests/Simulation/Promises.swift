import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderTime

/// Oracles of the runs from seed 3000 on: what a person has done stays visible and done.
extension Device {
    /// Does a change of a writing, and notes it.
    func changing(_ key: String, _ text: String?, _ body: () throws -> Void) throws {
        let index = simulation.ledger.writings.firstIndex { $0.key == key }
        if text == nil, let index { simulation.ledger.writings[index].mayBeDeleted = true }
        do { try body() } catch {
            // A dying process does not know whether it has stored the change.
            simulation.ledger.unreliable.insert(machine.index)
            throw error
        }
        simulation.note("\(name): changes \(key) to \(text ?? "nothing")")
        if let index {
            simulation.ledger.writings[index].changes.append(Ledger.Change(machine: machine.index, text: text))
        }
    }

    func note(_ event: CacheEvent) {
        guard case .rejected(let name, _, let error) = event else { return }
        if error.code == .conflict { simulation.coverage.count("conflicts") }
        simulation.note("\(self.name): \(name) is rejected")
        simulation.ledger.unreliable.insert(machine.index)
        rejections += 1
    }

    /// What this process has written is in every snapshot until it was sent, and then in every fresh one that shows its place.
    func judge<Item: CacheEntity & Codable & Hashable>(
        _ kind: Ledger.Kind,
        _ place: String,
        _ list: Timeline<Item>.List,
        isFresh: Bool,
        text: (Item) -> String
    ) {
        guard let client else { return }
        let coverage = simulation.coverage.counts
        let mayLag = coverage[Act.lag.rawValue] != nil || coverage[Act.journey.rawValue] != nil
        let now = simulation.clock.uptime
        let texts = list.items.map(text)
        for writing in simulation.ledger.writings {
            guard writing.kind == kind, writing.place == place, writing.device == index,
                writing.generation == generation, now - writing.at > .seconds(1),
                simulation.judges(
                    .shownWritings,
                    unless: writing.mayBeLost || writing.mayBeDeleted
                )
            else { continue }
            guard !texts.contains(where: { $0.hasPrefix(writing.key) }) else { continue }
            let entries = client.cache.outbox.entries.filter {
                String(decoding: $0.payload, as: UTF8.self).contains(writing.key)
            }
            // What was rejected is shown by the app as such, outside of the list.
            guard entries.allSatisfy({ $0.state != .rejected }) else { continue }
            // An edit that waits changes what is stored: of an item that was sent, which small limits may have removed, it shows nothing.
            if entries.contains(where: { (try? $0.input(as: TextChange.self))?.kind == .create }) {
                simulation.find(.readYourWrites, "\(name): \(writing.key) waits and is not shown")
            } else if isFresh, !mayLag {
                let path = kind == .post ? "/v1/feed" : "/v1/conversations/\(place)/messages"
                let all: [Item] = simulation.list(path, handle)
                let older = all.drop { !text($0).hasPrefix(writing.key) }.dropFirst().map(\.id)
                // A list is as fresh as its newest page, and the item may belong to one that is not loaded.
                guard list.isWhole(above: Set(older)) else { continue }
                simulation.find(.readYourWrites, "\(name): \(writing.key) was sent and is not in a fresh list")
            }
        }
    }

    /// The last tap of a person with one machine stays visible.
    func judgeTaps(_ posts: [Post]) {
        let isExcused =
            rejections > 0 || machine.processes > 1
            || simulation.ledger.unreliable.contains(machine.index)
            || simulation.owners.count(where: { $0 == handle }) > 1
        let now = simulation.clock.uptime
        for (post, tap) in lastTaps where now - tap.at > .seconds(1) {
            let isUncertain = simulation.ledger.uncertainTaps.contains(Ledger.Tap(handle: handle, post: post))
            guard simulation.judges(.shownTaps, unless: isExcused || isUncertain),
                let shown = posts.first(where: { $0.id == post }), shown.likedByMe != tap.isLike,
                !mayBeMissing(tap, on: post)
            else { continue }
            simulation.find(.readYourWrites, "\(name): \(post) is not shown as it was tapped: \(tap.isLike)")
        }
    }

    /// A transfer that the server has carried out is known to the app after a loss of power.
    func judgeTransfers() {
        guard let client else { return }
        let entries = client.cache.outbox.entries.map { String(decoding: $0.payload, as: UTF8.self) }
        for index in simulation.ledger.payments.indices where simulation.ledger.payments[index].lostItsApp {
            let payment = simulation.ledger.payments[index]
            guard payment.machine == machine.index else { continue }
            simulation.ledger.payments[index].lostItsApp = false
            simulation.coverage.count("transfers interrupted by a loss of power")
            let all: [Transaction] = simulation.list("/v1/accounts/\(payment.account)/transactions", payment.payer)
            guard all.contains(where: { $0.note == payment.note }) else { continue }
            simulation.expect(
                entries.contains { $0.contains("\"\(payment.note)\"") },
                .money,
                "\(name): \(payment.note) was carried out, and the app does not know of it after a loss of power"
            )
        }
    }

    /// The processes of an account do not exchange a refresh token again that one of them has exchanged.
    func noteRenewal(_ token: [UInt8], _ sentAt: MonotonicTime) {
        // New tokens are lost with their reply, their process or on a failing disk.
        let cutting: [Act] = [.malformed, .truncates, .journey]
        let isExcused =
            machine.hadDiskTrouble
            || cutting.contains { simulation.coverage.counts[$0.rawValue] != nil }
        guard simulation.judges(.renewals, unless: isExcused) else { return }
        let ends = simulation.devices.lazy.filter { $0.machine === self.machine }.reduce(0) { $0 + $1.generation }
        if let last = machine.renewals[token], last.ends == ends, sentAt - last.at > .seconds(1) {
            simulation.find(.conduct, "\(name) exchanges a refresh token again that was exchanged at \(last.at)")
        }
        machine.renewals[token] = (simulation.clock.uptime, ends)
    }

    /// The number of requests in a minute has a bound, also while all fail.
    func noteRequest(at time: MonotonicTime) {
        requests.append(time)
        while let first = requests.first, time - first > .seconds(60) { requests.removeFirst() }
        mostRequests = max(mostRequests, requests.count)
        if requests.count > 300 {
            simulation.find(.bounds, "\(name) has sent \(requests.count) requests within a minute")
            requests = []
        }
    }
}

extension Timeline.List {
    /// Whether no items are or may be missing directly above the first of some items; without one of them, at the end of the list.
    fileprivate func isWhole(above older: Set<Item.ID>) -> Bool {
        var isBehindGap = false
        for segment in segments {
            guard case .items(let items) = segment else {
                isBehindGap = true
                continue
            }
            if let first = items.firstIndex(where: { older.contains($0.id) }) { return first > 0 || !isBehindGap }
            isBehindGap = false
        }
        return hasReachedEnd && !isBehindGap
    }
}

extension Simulation {
    /// Edits and deletions that were accepted have happened.
    func compareChanges(_ texts: [String: [String]]) {
        for writing in ledger.writings {
            guard let last = writing.changes.last else { continue }
            let isExcused =
                writing.mayBeLost || Set(writing.changes.map(\.machine)).count > 1
                || ledger.unreliable.contains(last.machine) || ledger.unreliable.contains(writing.machine)
            guard judges(.changes, unless: isExcused) else { continue }
            let found = (texts["\(writing.kind.rawValue) \(writing.place)"] ?? []).first { $0.hasPrefix(writing.key) }
            if writing.changes.contains(where: { $0.text == nil }) {
                expect(found == nil, .lostWrite, "\(writing.key) was deleted and exists")
            } else {
                expect(
                    found == last.text,
                    .lostWrite,
                    "\(writing.key) was changed to '\(last.text ?? "")' and is '\(found ?? "")'"
                )
            }
        }
    }
}
