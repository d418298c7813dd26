import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer
import LarderTime

extension Ledger {
    enum Decision: CaseIterable { case keepMine, takeTheirs, merge, edit, drop }

    /// An edit of a task, as a write that is data, while somebody else edits the task.
    struct Edit {
        /// A field of a task and what each of both writes into it.
        enum Field: String, CaseIterable {
            case title, due

            func value(_ who: String, _ task: String) -> String {
                self == .title
                    ? "\(task) \(who)" : "2027-01-0\(["mine", "theirs"].firstIndex(of: who).map { $0 + 1 } ?? 3)"
            }

            func get(_ item: WorkItem) -> String? { self == .title ? item.title : item.due }

            func set(_ value: String, _ item: inout WorkItem) {
                if self == .title { item.title = value } else { item.due = value }
            }
        }

        let machine: Int
        let base: WorkItem
        let mine: Field
        let theirs: Field
        var decision: Decision
        /// Whether a conflict was decided on. What is decided again, after a failure or another conflict, is decided the same way.
        var isDecided = false
        /// Whether the other one has edited the task, and whether this edit was carried out before.
        var hasTheirs = false
        var wasFirst = false
        /// Whether its store has lost power or was erased, or it was given up.
        var mayBeLost = false
        /// Whether its write has begun.
        var hasBegun = false

        var path: String { "/v1/tasks/\(base.id)" }
        var isApplied: Bool { !isDecided || decision != .takeTheirs && decision != .drop }
        /// What this edit makes of the field.
        var wanted: String { mine.value(isDecided && decision == .edit ? "edited" : "mine", base.title) }

        /// The task on the server in the end.
        var result: WorkItem {
            var item = base
            if isApplied { mine.set(wanted, &item) }
            if hasTheirs, mine != theirs || wasFirst || !isApplied {
                theirs.set(theirs.value("theirs", base.title), &item)
            }
            item.version += (hasTheirs ? 1 : 0) + (isApplied ? 1 : 0)
            return item
        }
    }
}

extension Device {
    /// Edits tasks that somebody else edits, decides about the conflicts, and may die before or after it.
    func editTogether(_ random: inout SeededGenerator) async throws {
        for _ in 0..<random.uniform(in: 2..<5) {
            guard let client, isSignedIn else { return }
            try await editOnce(client, &random)
        }
    }

    private func editOnce(_ client: LarderClient, _ random: inout SeededGenerator) async throws {
        let number = simulation.ledger.edits.count
        guard let base = simulation.addTask("matter \(number)", as: simulation.handles[0]) else { return }
        func draw<Item>(_ items: [Item]) -> Item { items[random.uniform(in: 0..<items.count)] }
        let edit = Ledger.Edit(
            machine: machine.index,
            base: base,
            mine: draw(Ledger.Edit.Field.allCases),
            theirs: draw(Ledger.Edit.Field.allCases),
            decision: draw(Ledger.Decision.allCases)
        )
        let (isLate, hasState) = (random.unit() < 0.3, random.unit() < 0.3)
        let generation = generation
        simulation.ledger.edits.append(edit)
        // Until it is written.
        simulation.ledger.edits[number].mayBeLost = true
        simulation.network.set(.good, of: index)
        let snapshot = try await client.cache.refresh(client.tasks.task(base.id))
        guard generation == self.generation, let validator = snapshot.validator else { return }
        if !isLate { simulation.editTheirs(number) }
        if hasState { simulation.rejectWithState(number) }
        var write = APIClient.Write(.patch, edit.path, [edit.mine.rawValue: edit.wanted])
        write.fields = [.ifMatch: validator]
        write.modify(WorkItem.self, base.id) { edit.mine.set(edit.wanted, &$0) }
        if random.unit() < 0.3 { simulation.cutOff(self) }
        simulation.ledger.edits[number].hasBegun = true
        try client.base.write(write)
        simulation.ledger.edits[number].mayBeLost = false
        judgeEdits()
        await simulation.wait(random.uniform(in: 0..<3_000))
        if isLate { simulation.editTheirs(number) }
        judgeEdits()
        let dies = random.uniform(in: 0..<3)
        if dies == 1 { await restart(&random) }
        simulation.network.set(.good, of: index)
        await simulation.wait(random.uniform(in: 0..<3_000))
        decideRejected()
        await simulation.wait(random.uniform(in: 0..<100))
        if dies == 2 { await restart(&random) }
    }

    /// Dies, and is started again.
    func restart(_ random: inout SeededGenerator) async {
        kill()
        await simulation.wait(random.uniform(in: 100..<2_000))
        await open()
    }

    /// Edits the profile that the same person edits elsewhere.
    func editProfileTogether(_ choice: UInt64, _ client: LarderClient) async throws {
        guard let id = client.session.userID else { return }
        _ = try await client.profiles.profile(id)
        simulation.places += 1
        let place = simulation.places
        simulation.write("PATCH", "/v1/me", handle, "{\"location\":\"place \(place)\"}")
        try await editProfile(choice, client)
        let location = simulation.profile(id)?.location.split(separator: " ").last.flatMap { Int($0) } ?? 0
        _ = simulation.judges(.decisions, unless: false)
        simulation.expect(location >= place, .lostWrite, "\(name): the place \(place) was overwritten by \(location)")
    }

    /// The edit of a rejected operation that is a conflict.
    func conflict(of entry: Outbox.Entry) -> Int? {
        guard let rejection = entry.rejection, rejection.code == .conflict || rejection.status == 409,
            let path = entry.request?.path
        else { return nil }
        return simulation.ledger.edits.firstIndex { $0.path == path }
    }

    /// Decides about a conflict.
    func decide(_ entry: Outbox.Entry, _ number: Int, _ outbox: Outbox) throws(LarderError) {
        let edit = simulation.ledger.edits[number]
        guard let conflict = try outbox.conflict(entry.id, of: WorkItem.self) else {
            // Its task has no room, or was lost.
            return simulation.start("\(name) reads a task") { [self] in
                guard let client else { return }
                _ = try? await client.cache.refresh(client.tasks.task(edit.base.id))
            }
        }
        simulation.coverage.count("conflicts \(edit.decision)")
        // A loss of power takes a decision back, and leaves the edit.
        simulation.expect(
            (edit.mayBeLost || edit.mine.get(conflict.mine) == edit.wanted)
                && (edit.isDecided || conflict.base.title == edit.base.title && conflict.base.due == edit.base.due),
            .lostWrite,
            "\(name): the conflict of \(edit.base.title) has the base \(conflict.base) and mine \(conflict.mine)"
        )
        simulation.ledger.edits[number].isDecided = true
        do {
            switch edit.decision {
            case .keepMine: try outbox.keepMine(entry.id)
            case .takeTheirs: try outbox.takeTheirs(entry.id)
            case .merge:
                do { try outbox.merge(entry.id) } catch  where error.code == .conflict { try outbox.keepMine(entry.id) }
            case .edit:
                var value = conflict.theirs
                edit.mine.set(simulation.ledger.edits[number].wanted, &value)
                try outbox.edit(entry.id, toValue: value)
            case .drop: try outbox.drop(entry.id)
            }
        } catch  where error.code == .outboxFull {
            simulation.ledger.edits[number].decision = .drop
            throw error
        }
    }

    /// What a waiting edit shows is what it says, offline and after a restart too.
    func judgeEdits() {
        guard let client else { return }
        for edit in simulation.ledger.edits where edit.machine == machine.index {
            let shown = client.cache.stored(client.tasks.task(edit.base.id))?.value
            let isWaiting = client.cache.outbox.entries.contains {
                $0.request?.path == edit.path && $0.state != .rejected
            }
            guard isWaiting, simulation.judges(.shownEdits, unless: edit.mayBeLost || shown == nil), let shown else {
                continue
            }
            simulation.expect(
                edit.mine.get(shown) == edit.wanted,
                .readYourWrites,
                "\(name): \(edit.base.title) waits with '\(edit.wanted)', and is shown as \(shown)"
            )
        }
    }

    /// Writes a task as data, perhaps dies, and changes it.
    func writeData(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async throws {
        guard let written = try await write(.writeData, choice, client) else { return }
        await simulation.wait(random.uniform(in: 0..<1_000))
        if random.unit() < 0.5 { await restart(&random) }
        guard let client = self.client, isSignedIn, let items = client.cache.stored(client.tasks.list())?.value?.items
        else { return }
        let item = items.first { $0.title.hasPrefix(written.key) }
        let isWaiting = client.cache.outbox.entries.contains {
            $0.state != .rejected && String(decoding: $0.payload, as: UTF8.self).contains(written.key)
        }
        if isWaiting, simulation.judges(.shownEdits, unless: false) {
            simulation.expect(item != nil, .readYourWrites, "\(name): \(written.key) waits and is not shown")
        }
        guard let item else { return }
        let text = random.unit() < 0.4 ? nil : "\(written.key) changed"
        var change = APIClient.Write(text == nil ? .delete : .patch, "/v1/tasks/\(item.id)", text.map { ["title": $0] })
        (change.scope, change.coalescingKey) = ("tasks", item.id)
        change.fields = [.ifMatch: "*"]
        if let text {
            change.modify(WorkItem.self, item.id) { $0.title = text }
        } else {
            change.remove(WorkItem.self, item.id)
        }
        try changing(written.key, text) { [change] in _ = try client.base.write(change) }
    }

    /// Creates a task as data.
    func addTask(_ title: String, _ client: LarderClient) throws {
        let now = client.cache.configuration.wallClock.now.rfc3339()
        let task = WorkItem(
            id: APIClient.localID(),
            creatorID: client.session.userID ?? "",
            clientID: nil,
            title: title,
            createdAt: now,
            version: 0,
            updatedAt: now
        )
        var write = APIClient.Write(.post, "/v1/tasks", ["title": title])
        (write.scope, write.coalescingKey) = ("tasks", task.id)
        write.create(task)
        try client.base.write(write)
    }

    /// Sends a photo, whose upload is interrupted: the app dies once or twice, the server forgets it, or the reply to a piece is lost.
    func interruptPhoto(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async throws {
        let how = random.uniform(in: 0..<4)
        if how == 0 { simulation.loseReply(toPiece: random.uniform(in: 0..<2), of: self) }
        var link = Link.good
        link.delay = 50...500
        simulation.network.set(link, of: index)
        guard try await write(.sendPhoto, choice, client) != nil else { return }
        for _ in 0..<how {
            await simulation.wait(random.uniform(in: 0..<3_000))
            if how == 1 { simulation.forgetUploads(of: handle) } else { await restart(&random) }
        }
        simulation.network.set(.good, of: index)
    }

    /// No copy of a file is left when everything was sent or given up.
    func judgeFiles() {
        guard isDrained, simulation.judges(.files, unless: machine.hadDiskTrouble) else { return }
        let left = files.filter { $0.contains("uploads/") }
        simulation.expect(left.isEmpty, .disk, "\(name): \(left.prefix(3)) are left of uploads")
    }
}

extension Simulation {
    func task(_ id: String) -> WorkItem? {
        let reply = world.perform(ScriptedAction("GET", "/v1/tasks/\(id)", as: "ana"))
        return try? JSONDecoder().decode(WorkItem.self, from: Data(reply.body))
    }

    /// Somebody else's edit.
    func editTheirs(_ number: Int) {
        let edit = ledger.edits[number]
        ledger.edits[number].wasFirst = task(edit.base.id)?.version != edit.base.version
        let value = edit.theirs.value("theirs", edit.base.title)
        write("PATCH", edit.path, handles[0], "{\"\(edit.theirs.rawValue)\":\"\(value)\"}")
        ledger.edits[number].hasTheirs = true
    }

    /// The next edit of the task is rejected with its state in the reply, and without an ETag.
    func rejectWithState(_ number: Int) {
        let edit = ledger.edits[number]
        let state = world.perform(ScriptedAction("GET", edit.path, as: "ana")).body
        var reply = CannedReply(status: [409, 412][number % 2])
        reply.contentType = "application/problem+json"
        reply.body = "{\"title\":\"Conflict\",\"current\":\(String(decoding: state, as: UTF8.self))}"
        setOnce("conflict-\(number)", .respond(reply), FaultMatch("PATCH", edit.path))
    }

    func loseReply(toPiece piece: Int, of device: Device) {
        var match = FaultMatch("PATCH", "/v1/uploads/**")
        match.device = device.name
        setOnce("piece-\(device.index)", .loseReply(.reset), match, after: piece)
    }

    private func setOnce(_ id: String, _ action: FaultAction, _ match: FaultMatch, after: Int = 0) {
        var occurrence = Fault.Occurrence()
        (occurrence.count, occurrence.after) = (1, after)
        do { try world.set(Fault(id: id, action, when: match, occurrence: occurrence)) } catch {
            find(.crash, "the fault \(id) is rejected: \(error)")
        }
    }

    private static let uploads = 1...60

    func forgetUploads(of handle: String) {
        for number in Self.uploads { write("DELETE", "/v1/uploads/\(number)", handle, nil) }
    }

    /// Each edit has the effect that was decided on, once.
    func compareEdits() {
        for edit in ledger.edits where edit.hasBegun {
            guard judges(.decisions, unless: edit.mayBeLost) else { continue }
            let (found, wanted) = (task(edit.base.id), edit.result)
            expect(
                found?.title == wanted.title && found?.due == wanted.due,
                .lostWrite,
                "\(edit.base.title) by machine \(edit.machine), \(edit), is \(String(describing: found)), not \(wanted)"
            )
            expect(
                found?.version == wanted.version,
                .doubledWrite,
                "\(edit.base.title) has the version \(found?.version ?? 0), not \(wanted.version)"
            )
        }
    }

    /// A message that was written with a photo has it, whole, and nothing was uploaded twice.
    func comparePhotos() throws {
        let photo = try Data(contentsOf: URL(fileURLWithPath: PhotoFile.shared.get()))
        let writings = ledger.writings.filter(\.hasPhoto)
        for writing in writings {
            let lines: [Message] = list("/v1/conversations/\(writing.place)/messages", writing.author)
            guard let message = lines.first(where: { $0.text.hasPrefix(writing.key) }) else { continue }
            _ = judges(.uploads, unless: false)
            let content = message.image.map { world.perform(ScriptedAction("GET", $0.url, as: writing.author)).body }
            expect(content.map { Data($0) } == photo, .lostWrite, "\(writing.key) has lost its photo, or a part of it")
        }
        guard !writings.isEmpty,
            judges(.uploads, unless: hasRetriedUpload || writings.contains { $0.mayBeLost })
        else { return }
        let count = Self.uploads.count { number in
            world.perform(ScriptedAction("GET", "/v1/images/img_upload_\(number)", as: "ana")).status == 200
        }
        expect(count == writings.count, .doubledWrite, "\(writings.count) photos were written, and \(count) uploaded")
    }
}
