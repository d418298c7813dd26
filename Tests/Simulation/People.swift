import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderResources
import LarderStorage
import LarderTime

/// What a person does with the app.
extension Device {
    /// Does something in the background; it may take long, and it may fail.
    func act(_ act: Act, _ choice: UInt64) {
        // What is read without a session belongs to another account: see the architecture.
        guard let client, client.session.userID != nil else { return }
        simulation.coverage.count(act.rawValue)
        let generation = generation
        simulation.start("\(name) \(act.rawValue)") { [self] in
            do {
                try await perform(act, choice, client, generation)
                if generation == self.generation { simulation.note("\(name): \(act.rawValue) done") }
            } catch {
                let code = (error as? LarderError)?.code.rawValue ?? "\(type(of: error))"
                simulation.coverage.count("error \(code)")
                simulation.note("\(name): \(act.rawValue) \(code)")
            }
        }
    }

    private func perform(_ act: Act, _ choice: UInt64, _ client: LarderClient, _ generation: Int) async throws {
        switch act {
        case .openFeed: _ = try await client.feed.timeline.snapshot()
        case .scroll: _ = try await client.feed.timeline.loadOlder()
        case .pull:
            simulation.noteRefresh()
            try await client.feed.timeline.refresh()
        case .openProfile: _ = try await client.profiles.profile("user_\(choice % 8 + 1)")
        case .openConversation:
            _ = try await client.cache.snapshot(client.chat.conversations)
            if let id = conversation(choice) { _ = try await client.chat.timeline(id).snapshot() }
        case .openBank: _ = try await client.cache.snapshot(client.bank.accounts)
        case .openTasks: _ = try await client.cache.snapshot(client.tasks.list())
        case .like, .likeTwice: _ = try like(choice, client, twice: act == .likeTwice)
        case .writePost, .sendMessage, .sendPhoto, .addTask: _ = try await write(act, choice, client)
        case .editPost, .deletePost: try change(act, choice, client)
        case .editMessage, .deleteMessage: try changeMessage(act, choice, client)
        case .editTask, .deleteTask: try changeTask(act, choice, client)
        case .pay: try await pay(choice, client)
        case .editProfile: try await editProfile(choice, client)
        case .signOut: try await signOut(client)
        case .changeAccount: try await changeAccount(choice, client)
        case .background:
            client.pause()
            try await simulation.clock.sleep(until: simulation.clock.uptime + .seconds(Int(choice % 60)))
            if generation == self.generation { client.start() }
        case .trimMemory:
            client.cache.trimMemory(toBytes: 0)
            // What the disk does not take is gone then, and a replica that lags may answer with what was before (701055).
            if machine.hasDiskTrouble, !simulation.lags.isEmpty { watched.versions = [:] }
        default:
            if Act.withPictures.contains(act) { return try await performWithPictures(act, choice, client) }
            try await performSequence(act, choice, client, generation)
        }
    }

    private func conversation(_ choice: UInt64) -> String? {
        let all = simulation.ledger.conversations(of: handle)
        return all.isEmpty ? nil : all[Int(choice % UInt64(all.count))]
    }

    /// Taps on a post, and returns its ID.
    @discardableResult
    func like(_ choice: UInt64, _ client: LarderClient, twice: Bool, on wanted: String? = nil) throws -> String? {
        guard let posts = client.cache.stored(client.feed.newest)?.value?.items, !posts.isEmpty else { return nil }
        let shown = posts.filter { $0.version > 0 && (wanted == nil || $0.id == wanted) }
        guard !shown.isEmpty else { return nil }
        let post = shown[Int(choice % UInt64(min(shown.count, 6)))]
        for isLike in twice ? [!post.likedByMe, post.likedByMe] : [!post.likedByMe] {
            let tap = Ledger.Tap(handle: handle, post: post.id)
            do { try client.likes.set(isLike, post.id) } catch {
                // A dying process does not know whether it has stored the tap.
                simulation.ledger.uncertainTaps.insert(tap)
                throw error
            }
            lastTaps[post.id] = LastTap(isLike: isLike, at: simulation.clock.uptime)
            simulation.ledger.taps[tap, default: [:]][machine.index] = isLike
            simulation.note("\(name): \(isLike ? "likes" : "unlikes") \(post.id)")
            // Invariant 2, at once.
            let now = client.cache.stored(client.feed.newest)?.value?.items.first { $0.id == post.id }
            if let now, now.likedByMe != isLike {
                simulation.find(
                    .readYourWrites,
                    "\(name): \(post.id) is not shown as \(isLike ? "liked" : "not liked")"
                )
            }
        }
        return post.id
    }

    @discardableResult
    func write(_ act: Act, _ choice: UInt64, _ client: LarderClient) async throws -> Written? {
        let kind: Ledger.Kind = act == .writePost ? .post : [.addTask, .writeData].contains(act) ? .task : .message
        let place = kind == .message ? conversation(choice) ?? "" : ""
        if kind == .message, place.isEmpty { return nil }
        let key = simulation.ledger.newKey(kind)
        var writing = Ledger.Writing(kind: kind, machine: machine.index, author: handle, key: key, place: place)
        (writing.device, writing.generation, writing.at) = (index, generation, simulation.clock.uptime)
        writing.hasPhoto = act == .sendPhoto
        do {
            switch kind {
            case .post: _ = try client.feed.create("\(key) text")
            case .task where act == .writeData: try addTask("\(key) title", client)
            case .task: _ = try client.tasks.add("\(key) title")
            case .message where writing.hasPhoto:
                _ = try await client.send("\(key) text", photo: try PhotoFile.shared.get(), to: place)
            case .message: _ = try client.chat.send("\(key) text", to: place)
            }
        } catch {
            writing.mayBeLost = true
            simulation.ledger.writings.append(writing)
            throw error
        }
        simulation.note("\(name): writes \(key)")
        simulation.ledger.writings.append(writing)
        // Invariant 2, at once.
        let isShown: Bool? =
            switch kind {
            case .post: client.cache.stored(client.feed.newest)?.value?.items.contains { $0.text.hasPrefix(key) }
            case .message:
                client.cache.stored(client.chat.messages(place))?.value?.items.contains { $0.text.hasPrefix(key) }
            case .task: client.cache.stored(client.tasks.list())?.value?.items.contains { $0.title.hasPrefix(key) }
            }
        if isShown == false { simulation.find(.readYourWrites, "\(name): \(key) is not shown") }
        return Written(kind: kind, key: key, place: place)
    }

    private func change(_ act: Act, _ choice: UInt64, _ client: LarderClient) throws {
        let posts = client.cache.stored(client.feed.newest)?.value?.items ?? []
        let mine = posts.filter { $0.text.hasPrefix("post ") && $0.authorID == client.session.userID }
        guard !mine.isEmpty else { return }
        let post = mine[Int(choice % UInt64(mine.count))]
        let key = String(post.text.prefix { $0 != ":" }) + ":"
        // While the reply to a creation is lost, a post that the change feed has brought is shown twice: as two posts, each with its edits and
        // its deletion.
        guard mine.count(where: { $0.text.hasPrefix(key) }) == 1 else { return }
        if act == .editPost {
            let text = "\(key) edited \(choice % 100)"
            try changing(key, text) { _ = try client.feed.edit(post.id, to: text) }
        } else {
            try changing(key, nil) { _ = try client.feed.delete(post.id) }
        }
    }

    private func changeMessage(_ act: Act, _ choice: UInt64, _ client: LarderClient) throws {
        guard let place = conversation(choice) else { return }
        let lines = client.cache.stored(client.chat.messages(place))?.value?.items ?? []
        let mine = lines.filter { $0.text.hasPrefix("message ") && $0.authorID == client.session.userID }
        guard !mine.isEmpty else { return }
        let line = mine[Int(choice % UInt64(mine.count))]
        let key = String(line.text.prefix { $0 != ":" }) + ":"
        if act == .editMessage {
            let text = "\(key) edited \(choice % 100)"
            try changing(key, text) { _ = try client.chat.edit(line.id, in: place, to: text) }
        } else {
            try changing(key, nil) { _ = try client.chat.delete(line.id, in: place) }
        }
    }

    private func changeTask(_ act: Act, _ choice: UInt64, _ client: LarderClient) throws {
        let items = client.cache.stored(client.tasks.list())?.value?.items ?? []
        let ours = items.filter { $0.title.hasPrefix("task ") }
        guard !ours.isEmpty else { return }
        let item = ours[Int(choice % UInt64(ours.count))]
        let key = String(item.title.prefix { $0 != ":" }) + ":"
        if act == .editTask {
            let text = "\(key) edited \(choice % 100)"
            try changing(key, text) { _ = try client.tasks.edit(item.id) { ($0.title, $0.status) = (text, .started) } }
        } else {
            try changing(key, nil) { _ = try client.tasks.delete(item.id) }
        }
    }

    func pay(_ choice: UInt64, _ client: LarderClient) async throws {
        let balances = try await client.bank.validatedAccounts()
        guard let (from, to) = simulation.accounts(of: handle) else { return }
        let index = simulation.ledger.payments.count
        let note = "transfer \(index)"
        let amount = Money(minorUnits: Int64(choice % 90 + 10), currency: from.balance.currency)
        simulation.ledger.payments.append(
            Ledger.Payment(machine: machine.index, payer: handle, account: from.id, note: note)
        )
        defer { simulation.ledger.payments[index].isRunning = false }
        let order = Bank.TransferOrder(from: from.id, to: to.id, amount, note: note)
        do {
            _ = try await client.bank.transfer(order, given: balances)
            simulation.ledger.payments[index].outcome = .confirmed
            if self.client === client { machine.paidAt = simulation.clock.uptime }
        } catch {
            // A killed process tells nobody anything.
            if error.code != .inDoubt, error.code != .cancelled, !hasDied, isRunning {
                simulation.ledger.payments[index].outcome = .failed
            }
            simulation.note("\(name): \(note) \(error.code.rawValue)")
            throw error
        }
    }

    func editProfile(_ choice: UInt64, _ client: LarderClient) async throws {
        guard let id = client.session.userID else { return }
        let bio = "bio \(choice % 1_000)"
        do { try await client.profiles.edit(id) { $0.bio = bio } } catch {
            guard let conflict = error.cause as? Outbox.EditConflict<Profile> else { throw error }
            simulation.coverage.count("conflicts of profiles")
            let merged = try conflict.merged(preferringMine: true).value
            _ = try await client.profiles.save(base: conflict.theirs, mine: merged, ifMatch: conflict.validator)
        }
    }

    /// The files of the account on this machine that are not empty.
    var files: [String] {
        let directory = DiskStore.directory(forAccount: handle, in: machine.directory)
        let paths = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []
        return paths.sorted().filter { path in
            let facts = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(path)")
            return facts?[.type] as? FileAttributeType == .typeRegular && (facts?[.size] as? Int ?? 0) > 0
        }
    }

    /// Signs out, and later in again. Unsent changes are lost.
    ///
    /// - Parameter next: who has the machine afterwards; nil: the same person.
    func signOut(_ client: LarderClient, next: String? = nil) async throws {
        guard machine.processes == 1 else { return }
        let generation = generation
        // The client is closed, also if a failing disk has kept its files.
        defer { if generation == self.generation { close() } }
        if simulation.plan.pictureLimits != nil {
            act(.showPictures, simulation.random.next() >> 1)
            await simulation.wait(simulation.random.uniform(in: 0..<200))
        }
        // What is written until the end of the sign-out is lost too. The process may die before that: what is on the disk is erased before the
        // tokens are revoked at the server.
        simulation.ledger.forget(machine.index)
        defer { simulation.ledger.forget(machine.index) }
        try await client.signOut()
        // Another sign-out of the person may have ended at the same moment, after which the next client is open.
        guard generation == self.generation else { return }
        judgeEnded(client.images, erased: true)
        // Invariant 8: nothing of the account is left.
        let left = files
        simulation.expect(left.isEmpty, .privacy, "\(name) has signed out, and \(left.prefix(3)) are left")
        guard let next else { return }
        simulation.note("\(name): the next person is \(next)")
        lastTaps = [:]
        machine.change(to: next)
    }

    /// Decides about rejected operations: each is sent once more, and given up if it is rejected again.
    func decideRejected() {
        guard let outbox = client?.cache.outbox else { return }
        for entry in outbox.entries where entry.state == .rejected {
            do {
                if let number = conflict(of: entry) {
                    try decide(entry, number, outbox)
                } else if retriedKeys.insert(entry.idempotencyKey).inserted {
                    simulation.note("\(name): retries \(entry.operation) in \(entry.scope)")
                    if entry.operation == "larder.upload" { simulation.hasRetriedUpload = true }
                    try outbox.retry(entry.id)
                    noteSentAgain(entry, outbox)
                } else {
                    simulation.note("\(name): gives up \(entry.operation) in \(entry.scope)")
                    simulation.coverage.count("operations given up")
                    giveUp(entry)
                    try outbox.drop(entry.id)
                }
            } catch {
                // Another process of the account has decided meanwhile.
                simulation.note("\(name): cannot decide, \(error.code.rawValue)")
            }
        }
    }

    func tap(of entry: Outbox.Entry) -> Likes.Tap? {
        try? entry.input(as: Likes.Tap.self)
    }

    /// A person who sends a rejected operation again has decided again: a tap counts as the last one unless a later one waits behind it.
    private func noteSentAgain(_ entry: Outbox.Entry, _ outbox: Outbox) {
        if tap(of: entry) != nil { tappedAgainAt = simulation.clock.uptime }
        if let tap = tap(of: entry), simulation.hasCarriedOutTap(entry.idempotencyKey, as: handle) {
            // The reply was lost or unreadable. The server replays the result of that attempt, because the key is the same: a later tap stays.
            lastTaps[tap.postID] = nil
        } else if let tap = tap(of: entry) {
            let ledgerTap = Ledger.Tap(handle: handle, post: tap.postID)
            let later = outbox.entries.filter { $0.id > entry.id && self.tap(of: $0)?.postID == tap.postID }
            guard !later.contains(where: { $0.state == .sending }) else {
                // It comes before this tap if its attempt succeeds, and after it otherwise.
                simulation.ledger.uncertainTaps.insert(ledgerTap)
                lastTaps[tap.postID] = nil
                return
            }
            let last = later.last { $0.state != .rejected }.flatMap { self.tap(of: $0) } ?? tap
            simulation.ledger.taps[ledgerTap, default: [:]][machine.index] = last.isLike
            lastTaps[tap.postID] = LastTap(isLike: last.isLike, at: simulation.clock.uptime)
        }
        let text = String(decoding: entry.payload, as: UTF8.self)
        for index in simulation.ledger.writings.indices where text.contains(simulation.ledger.writings[index].key) {
            simulation.ledger.writings[index].at = simulation.clock.uptime
        }
    }

    private func giveUp(_ entry: Outbox.Entry) {
        let path = entry.request?.path
        for index in simulation.ledger.edits.indices where simulation.ledger.edits[index].path == path {
            simulation.ledger.edits[index].mayBeLost = true
        }
        simulation.ledger.unreliable.insert(machine.index)
        if let tap = tap(of: entry) {
            simulation.ledger.uncertainTaps.insert(Ledger.Tap(handle: handle, post: tap.postID))
        }
        let text = String(decoding: entry.payload, as: UTF8.self)
        for index in simulation.ledger.writings.indices where text.contains(simulation.ledger.writings[index].key) {
            simulation.ledger.writings[index].mayBeLost = true
        }
    }

    /// Signs in, with a new attempt after each failure.
    func signIn() async {
        guard !isSigningIn else { return }
        isSigningIn = true
        defer { isSigningIn = false }
        while let client, !isSignedIn {
            do {
                try await client.signIn(handle: handle, password: "larder")
                simulation.note("\(name): signed in")
                watch()
                return
            } catch {
                simulation.note("\(name): cannot sign in, \(error.code.rawValue)")
                // Cancelled at the end of the run: nobody signs in any more.
                do { try await simulation.clock.sleep(until: simulation.clock.uptime + .seconds(5)) } catch { return }
            }
        }
    }
}
