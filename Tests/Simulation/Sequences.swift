import Foundation
import Larder
import LarderDemo
import LarderModels
import LarderServer
import LarderStorage
import LarderTime

/// Sequences of acts by a person: each brings about a situation that single acts seldom do.
extension Device {
    func performSequence(_ act: Act, _ choice: UInt64, _ client: LarderClient, _ generation: Int) async throws {
        var random = SeededGenerator(seed: choice)
        switch act {
        case .tapOften:
            for _ in 0..<random.uniform(in: 2..<6) {
                guard generation == self.generation else { return }
                try like(choice, client, twice: false)
                await simulation.wait(random.uniform(in: 0..<2_000))
            }
        case .sendMany:
            for _ in 0..<random.uniform(in: 2..<5) {
                guard generation == self.generation else { return }
                try await write(.sendMessage, choice, client)
                await simulation.wait(random.uniform(in: 0..<300))
            }
        case .writeAndChange:
            guard let written = try await write(Self.writings[Int(choice % 3)], choice, client) else { return }
            await simulation.wait(random.uniform(in: 0..<3_000))
            guard generation == self.generation else { return }
            try change(written, deletes: random.unit() < 0.4, client)
        case .changeAndDie: try await changeAndDie(choice, client, &random)
        case .payAndLosePower: try await payAndLosePower(choice, client, &random)
        case .dieWhileSending: try await dieWhileSending(choice, client, &random)
        case .changeWhileReading: await changeWhileReading(client, &random)
        case .payWhileReading: await payWhileReading(choice, client, &random)
        case .openMuch:
            simulation.noteRefresh()
            await withTaskGroup(of: Void.self) { group in
                for number in 1...8 {
                    group.addTask { _ = try? await client.cache.refresh(client.profiles.resource("user_\(number)")) }
                }
                group.addTask { _ = try? await client.cache.refresh(client.bank.accounts) }
                group.addTask { _ = try? await client.cache.refresh(client.tasks.list()) }
                group.addTask { _ = try? await client.cache.refresh(client.chat.conversations) }
                for id in simulation.ledger.conversations(of: handle) {
                    group.addTask { try? await client.chat.timeline(id).refresh() }
                }
            }
        case .openTwice:
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<3 {
                    group.addTask { _ = try? await client.profiles.profile("user_\(choice % 8 + 1)") }
                    group.addTask { _ = try? await client.cache.snapshot(client.bank.accounts) }
                }
            }
        case .writeData: try await writeData(choice, client, &random)
        case .interruptPhoto: try await interruptPhoto(choice, client, &random)
        case .editTogether where choice % 8 == 0: try await editProfileTogether(choice, client)
        case .editTogether: try await editTogether(&random)
        default: decideRejected()
        }
    }

    private static let writings: [Act] = [.sendMessage, .writePost, .addTask]

    /// Changes something, dies while it is being sent, and takes it back after the next start.
    private func changeAndDie(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async throws {
        let written = choice % 2 == 0 ? try await write(Self.writings[Int(choice / 2 % 3)], choice, client) : nil
        let tapped = written == nil ? try like(choice, client, twice: false) : nil
        await simulation.wait(random.uniform(in: 0..<400))
        kill()
        await simulation.wait(random.uniform(in: 100..<2_000))
        await open()
        guard let client = self.client, isSignedIn else { return }
        if let written { try change(written, deletes: random.unit() < 0.7, client) }
        if let tapped { try like(choice, client, twice: false, on: tapped) }
    }

    /// Changes something, and dies after it was sent; it arrives at the server after the next process has sent it again and changed it.
    private func dieWhileSending(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async throws
    {
        var link = Link.good
        link.delay = 3_000...8_000
        simulation.network.set(link, of: index)
        let written = choice % 3 == 0 ? try await write(Self.writings[Int(choice / 3 % 3)], choice, client) : nil
        let tapped = written == nil ? try like(choice, client, twice: false) : nil
        await simulation.wait(random.uniform(in: 50..<2_000))
        kill()
        await simulation.wait(random.uniform(in: 50..<500))
        simulation.network.set(.good, of: index)
        await open()
        guard let client = self.client, isSignedIn else { return }
        await simulation.wait(random.uniform(in: 0..<1_000))
        if let written { try change(written, deletes: random.unit() < 0.5, client) }
        if let tapped { try like(choice, client, twice: false, on: tapped) }
    }

    /// Others change lists while requests for them are in flight, whose replies arrive in any order.
    private func changeWhileReading(_ client: LarderClient, _ random: inout SeededGenerator) async {
        let (others, me) = (simulation.handles, handle)
        let other = others.first { $0 != me } ?? me
        let post = simulation.writeNews(as: other)
        if random.unit() < 0.5 { await simulation.wait(2_000) }
        makeUneven(&random)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                self.simulation.noteRefresh()
                try? await client.feed.timeline.refresh()
            }
            for _ in 0..<random.uniform(in: 1..<4) {
                group.addTask { _ = try? await client.cache.refresh(client.tasks.list()) }
                await simulation.wait(random.uniform(in: 0..<2_500))
                simulation.addErrand(as: other)
            }
            if let post { simulation.write("DELETE", "/v1/posts/\(post)", other, nil) }
        }
        simulation.network.set(.good, of: index)
    }

    /// Asks for the balances and the transfers while a transfer is in flight; the replies arrive in any order.
    private func payWhileReading(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async {
        let count = simulation.ledger.payments.count
        simulation.start("\(name) pays") { [self] in try? await pay(choice, client) }
        // The balance is confirmed first.
        for _ in 0..<300 where simulation.ledger.payments.count == count { await simulation.wait(10) }
        guard count < simulation.ledger.payments.count else { return }
        let (payment, generation) = (simulation.ledger.payments[count], generation)
        let transfers = client.bank.transactions(payment.account)
        let latest = Box<MonotonicTime?>(nil)
        makeUneven(&random)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = try? await client.cache.refresh(client.bank.accounts) }
            for _ in 0..<4 {
                await simulation.wait(random.uniform(in: 0..<3_000))
                let start = simulation.clock.uptime
                group.addTask {
                    guard (try? await client.cache.refresh(transfers)) != nil else { return }
                    latest.value = max(start, latest.value ?? start)
                }
            }
        }
        simulation.network.set(.good, of: index)
        // A process that has just died reads nothing from its disk.
        guard generation == self.generation, !hasDied, simulation.lags.isEmpty, !machine.hadDiskTrouble,
            let start = latest.value, let paidAt = machine.paidAt, start > paidAt,
            simulation.ledger.payments[count].outcome == .confirmed,
            let items = client.cache.stored(transfers)?.value?.items
        else { return }
        simulation.expect(
            items.contains { $0.note == payment.note },
            .monotonicReads,
            "\(name): \(payment.note) is not in a list of transfers that was read after it"
        )
    }

    private func makeUneven(_ random: inout SeededGenerator) {
        var link = Link.good
        link.delay = 100...random.uniform(in: 1_000..<4_000)
        simulation.network.set(link, of: index)
    }

    private func payAndLosePower(_ choice: UInt64, _ client: LarderClient, _ random: inout SeededGenerator) async throws
    {
        let generation = generation
        let wait = random.uniform(in: 0..<120)
        simulation.start("\(name) pays") { [self] in try? await pay(choice, client) }
        let count = simulation.ledger.payments.count
        // The balance is confirmed first.
        for _ in 0..<300 where simulation.ledger.payments.count == count { await simulation.wait(10) }
        await simulation.wait(wait)
        guard generation == self.generation else { return }
        simulation.losePower(machine)
        await simulation.wait(1_000)
        simulation.reopen(self)
    }

    /// What a person has just written.
    struct Written {
        let kind: Ledger.Kind
        let key: String
        let place: String
    }

    /// Edits or deletes something, which may not have been sent yet.
    private func change(_ written: Written, deletes: Bool, _ client: LarderClient) throws {
        let text = "\(written.key) changed"
        switch written.kind {
        case .post:
            let posts = client.cache.stored(client.feed.newest)?.value?.items ?? []
            guard let post = posts.first(where: { $0.text.hasPrefix(written.key) }) else { return }
            try changing(written.key, deletes ? nil : text) {
                if deletes { _ = try client.feed.delete(post.id) } else { _ = try client.feed.edit(post.id, to: text) }
            }
        case .message:
            let lines = client.cache.stored(client.chat.messages(written.place))?.value?.items ?? []
            guard let line = lines.first(where: { $0.text.hasPrefix(written.key) }) else { return }
            try changing(written.key, deletes ? nil : text) {
                if deletes {
                    _ = try client.chat.delete(line.id, in: written.place)
                } else {
                    _ = try client.chat.edit(line.id, in: written.place, to: text)
                }
            }
        case .task:
            let items = client.cache.stored(client.tasks.list())?.value?.items ?? []
            guard let item = items.first(where: { $0.title.hasPrefix(written.key) }) else { return }
            try changing(written.key, deletes ? nil : text) {
                if deletes {
                    _ = try client.tasks.delete(item.id)
                } else {
                    _ = try client.tasks.edit(item.id) { ($0.title, $0.status) = (text, .started) }
                }
            }
        }
    }
}

/// Sequences of what happens to devices, networks and the server.
extension Simulation {
    func wait(_ milliseconds: Int) async { try? await clock.sleep(until: clock.uptime + .milliseconds(milliseconds)) }

    func begin(_ act: Act, _ device: Device, _ choice: UInt64) {
        start("\(act.rawValue)") { [self] in
            var random = SeededGenerator(seed: choice)
            switch act {
            case .othersWriteMuch:
                // Long posts fill the memory of devices with small limits.
                let more = plan.limits == nil ? "" : String(repeating: " and more", count: random.uniform(in: 50..<210))
                for number in 0..<random.uniform(in: 10..<45) {
                    write("POST", "/v1/posts", handles[0], "{\"text\":\"news \(number)\(more)\"}")
                }
            case .postVanishes: await postVanishes(device, &random)
            case .expireAndDie: await expireAndDie(device, &random)
            case .clockBackBriefly: await clockBackBriefly(device, &random)
            case .clockBackSlightly: clockBackSlightly(device, &random)
            case .damageStore: await damageStore(device, &random)
            case .rejects: reject(&random)
            case .damagePictures: await damagePictures(device, &random)
            default: await outage(&random)
            }
        }
    }

    /// A post appears and is deleted while the device cannot hear of it, and its change token expires.
    private func postVanishes(_ device: Device, _ random: inout SeededGenerator) async {
        guard let post = writeNews(as: handles[0]) else { return }
        await wait(random.uniform(in: 500..<4_000))
        cutOff(device)
        write("DELETE", "/v1/posts/\(post)", handles[0], nil)
        expireTokens()
        await wait(random.uniform(in: 0..<5_000))
        network.set(.good, of: device.index)
    }

    /// Much changes while the device cannot hear of it, its change token expires, and it dies soon after it has heard that.
    private func expireAndDie(_ device: Device, _ random: inout SeededGenerator) async {
        cutOff(device)
        for post in feed(as: handles[0]).prefix(4) {
            ledger.uncertainTaps.insert(Ledger.Tap(handle: handles[0], post: post.id))
            write(post.isLiked ? "DELETE" : "PUT", "/v1/posts/\(post.id)/like", handles[0], nil)
        }
        expireTokens()
        await wait(random.uniform(in: 0..<2_000))
        network.set(.good, of: device.index)
        await wait(random.uniform(in: 20..<3_000))
        device.kill()
        await wait(1_000)
        reopen(device)
    }

    func cutOff(_ device: Device) {
        var link = Link.good
        link.isRefused = true
        network.set(link, of: device.index)
        network.abandon(of: device.index)
    }

    /// Lets all change tokens expire: the same state begins another history.
    func expireTokens() {
        do {
            try world.takeSnapshot("now")
            try world.restore("now")
        } catch { find(.crash, "a snapshot is not restored: \(error)") }
    }

    /// The clock is set back by less than most values are old, while the app runs or shortly before it is started again.
    private func clockBackBriefly(_ device: Device, _ random: inout SeededGenerator) async {
        var distance = random.uniform(in: 65_000..<400_000)
        let isFirst = random.unit() < 0.5
        // A clock that is set back by less than the app was idle and ended shows nothing unusual. Once a minute a reply is stored with
        // the time, unless the disk fails.
        guard !device.machine.hasDiskTrouble, let client = device.client,
            (try? await client.cache.refresh(client.bank.accounts)) != nil
        else { return }
        if isFirst {
            device.close()
            let pause = random.uniform(in: 100..<30_000)
            await wait(pause)
            distance += pause
        }
        device.machine.dateError.jump(.zero - .milliseconds(distance))
        for other in devices where other.machine === device.machine { other.clock.set(device.machine.dateError) }
        note("\(device.name): the clock is set back by \(distance) ms")
        if !isFirst {
            await wait(random.uniform(in: 0..<2_000))
            device.close()
            await wait(random.uniform(in: 100..<2_000))
        }
        reopen(device)
    }

    /// Writes a post as somebody, and returns its ID.
    func writeNews(as handle: String) -> String? {
        let body = write("POST", "/v1/posts", handle, "{\"text\":\"news for a while\"}")
        return (try? JSONDecoder().decode(Post.self, from: Data(body)))?.id
    }

    /// Adds a task as somebody.
    func addErrand(as handle: String) {
        guard let item = addTask("errand", as: handle) else { return }
        errands[item.id] = clock.uptime
    }

    func addTask(_ title: String, as handle: String) -> WorkItem? {
        let body = write("POST", "/v1/tasks", handle, "{\"title\":\"\(title)\"}")
        return try? JSONDecoder().decode(WorkItem.self, from: Data(body))
    }

    /// The clock is set back by less than most values are old, while the app runs.
    private func clockBackSlightly(_ device: Device, _ random: inout SeededGenerator) {
        // See `clockBackBriefly`.
        guard !device.machine.hasDiskTrouble,
            devices.allSatisfy({ $0.machine !== device.machine || $0.isRunning && !$0.hasDied })
        else { return }
        let distance = random.uniform(in: 5_000..<60_000)
        device.machine.dateError.jump(.zero - .milliseconds(distance))
        for other in devices where other.machine === device.machine { other.clock.set(device.machine.dateError) }
        note("\(device.name): the clock is set back by \(distance) ms")
        // A process that ends before it has read the clock does not notice it.
        for case let client? in devices.filter({ $0.machine === device.machine }).map(\.client) {
            _ = client.cache.stored(client.feed.newest)
        }
    }

    /// The store is damaged while no process has it open.
    private func damageStore(_ device: Device, _ random: inout SeededGenerator) async {
        let devices = devices.filter { $0.machine === device.machine }
        for device in devices where device.isRunning {
            device.kill()
            device.bury()
        }
        guard devices.allSatisfy({ !$0.isRunning }) else { return }
        let directory = DiskStore.directory(forAccount: device.handle, in: device.machine.directory)
        let names = ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
        for name in names where name.hasSuffix(".sqlite") {
            // The first page has what SQLite needs to read the rest, and no rows.
            guard let file = FileHandle(forUpdatingAtPath: "\(directory)/\(name)") else { continue }
            let start = random.uniform(in: 0..<60)
            do {
                try file.seek(toOffset: UInt64(start))
                try file.write(contentsOf: Data(repeating: UInt8(random.uniform(in: 0..<256)), count: 40))
                try file.close()
            } catch { find(.disk, "\(name) cannot be damaged: \(error)") }
            note("\(device.name): \(name) is damaged from byte \(start)")
            device.machine.damagedAt = clock.uptime
        }
        await wait(random.uniform(in: 10..<1_000))
        for device in devices { reopen(device) }
    }

    /// The server rejects some writes of one kind.
    private func reject(_ random: inout SeededGenerator) {
        let kinds = [
            ("POST", "/v1/conversations/**"), ("PATCH", "/v1/messages/**"), ("DELETE", "/v1/messages/**"),
            ("POST", "/v1/posts"), ("PATCH", "/v1/posts/**"), ("POST", "/v1/tasks"), ("POST", "/v1/likes"),
        ]
        let (method, path) = kinds[random.uniform(in: 0..<kinds.count)]
        var occurrence = Fault.Occurrence()
        occurrence.count = random.uniform(in: 1..<3)
        let fault = Fault(
            id: "rejects-\(random.uniform(in: 0..<1_000))",
            .respond(CannedReply(status: 422)),
            when: FaultMatch(method, path),
            occurrence: occurrence
        )
        do { try world.set(fault) } catch { find(.crash, "a rejection is rejected: \(error)") }
    }

    /// Nothing is answered for one to four minutes.
    private func outage(_ random: inout SeededGenerator) async {
        let id = "outage-\(random.uniform(in: 0..<1_000))"
        let fault = Fault(id: id, .respond(CannedReply(status: 503)), when: FaultMatch(nil, "/v1/**"))
        do { try world.set(fault) } catch { find(.crash, "an outage is rejected: \(error)") }
        await wait(random.uniform(in: 60_000..<240_000))
        world.removeFault(id)
    }
}
