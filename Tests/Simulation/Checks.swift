import Larder
import LarderDemo
import LarderDevice
import LarderEngine
import LarderModels
import LarderServer
import LarderTesting
import LarderTime
import SimulationRuntime

/// The course of a run, and what must hold at its end.
extension Simulation {
    /// The time within which everything must be done after the last fault.
    static let healing = Duration.seconds(1_800)

    /// Runs the plan from the sign-in of all devices to the comparison with the server.
    func run(in directory: String) {
        arrive(directory)
        guard findings.isEmpty else { return }
        let origin = clock.uptime
        for step in plan.steps {
            let left = origin + .milliseconds(step.at) - clock.uptime
            if left > .zero { pass(left) }
            take(step)
            checkAlways()
            if findings.count >= 20 { return }
        }
        pass(max(.zero, origin + plan.duration - clock.uptime))
        heal()
        expectProgress()
        compare()
        if findings.isEmpty, plan.settings.restartsAtEnd || devices.contains(where: \.machine.hadDiskTrouble) {
            restart()
        }
        if findings.isEmpty { checkConduct() }
        end()
    }

    private func arrive(_ directory: String) {
        for handle in people.sorted() {
            let all: [Conversation] = list("/v1/conversations", handle)
            ledger.set(all.map(\.id), of: handle)
        }
        for (number, setting) in plan.machines.enumerated() {
            let machine = Machine(
                number,
                setting,
                handle: owners[number],
                directory: "\(directory)/\(number)",
                clock: clock
            )
            for _ in 0..<setting.processes { devices.append(Device(self, devices.count, machine)) }
        }
        for device in devices {
            // Two handshakes may stall, for 30 s each.
            let isDone = perform("\(device.name) arrives", within: .seconds(180)) {
                await device.open()
                await device.signIn()
            }
            expect(isDone && device.isSignedIn, .hang, "\(device.name) cannot sign in")
        }
        for device in devices {
            perform("\(device.name) looks", within: .seconds(60)) {
                guard let client = device.client else { return }
                _ = try? await client.feed.timeline.snapshot()
                _ = try? await client.cache.snapshot(client.chat.conversations)
                _ = try? await client.cache.snapshot(client.tasks.list())
            }
        }
        pass(.seconds(5))
        note("arrived")
    }

    /// What must hold after every step.
    private func checkAlways() {
        for line in (try? world.ledgerFaults()) ?? [] { find(.money, line) }
        for device in devices {
            // A killed process that is not buried yet can read nothing from its disk.
            guard let client = device.client, !device.hasDied else { continue }
            let status = client.cache.outbox.status
            expect(status.inFlight <= 256, .bounds, "\(device.name) has \(status.inFlight) operations in flight")
            let used = network.usedConnections(of: device.index)
            expect(used <= 8, .bounds, "\(device.name) uses \(used) connections")
            device.judgeFreshness()
            device.judgeTasks()
            device.judgeEdits()
            device.judgeLimits()
            device.judgeAccount()
            device.judgePictures()
            device.judgeIdlePictures()
        }
    }

    // MARK: Healing

    /// Ends all faults, and starts every app.
    private func heal() {
        note("heal")
        removeFaults()
        network.disturbsHandshakes = false
        world.drift = nil
        // A client leaves out changes of types that it does not know: after them it needs a new history.
        if coverage.counts[Act.schemaDrift.rawValue] != nil { expireTokens() }
        for device in devices {
            world.skewDates(of: device.name, by: .zero)
            network.set(.good, of: device.index)
            device.heal()
            device.sources.set(isConnected: true)
            reopen(device)
            // Nobody can know of a last frame that was lost: the next contact tells.
            guard !plan.settings.isCalm else { continue }
            device.client?.pause()
            device.client?.start()
        }
    }

    /// Waits until every app runs, has sent everything and is up to date.
    private func expectProgress() {
        let isDone = pass(atMost: Self.healing, every: .seconds(5)) {
            for device in devices where !device.isRunning { reopen(device) }
            for device in devices where device.needsSignIn {
                start("\(device.name) signs in") { await device.signIn() }
            }
            for device in devices { device.decideRejected() }
            return devices.allSatisfy { $0.isDrained && $0.isSignedIn }
                && unfinished(for: .zero).isEmpty
        }
        guard !isDone else {
            expectCurrent()
            return
        }
        for device in devices {
            expect(device.isRunning && device.isSignedIn, .hang, "\(device.name) does not run, or nobody is signed in")
            for entry in device.client?.cache.outbox.entries ?? [] {
                find(
                    .outbox,
                    "\(device.name): \(entry.operation) in \(entry.scope) is \(entry.state) after \(Self.healing)"
                )
            }
        }
        for what in unfinished(for: .seconds(600)) { find(.hang, "\(what) has not ended") }
    }

    /// Waits until nothing that a device holds is outdated, without any act of a person.
    private func expectCurrent() {
        let isCurrent = pass(atMost: .seconds(900), every: .seconds(5)) {
            // A session whose last tokens were lost may end with the first request after its access token has expired.
            for device in devices where device.needsSignIn {
                start("\(device.name) signs in") { await device.signIn() }
            }
            // What a failing disk has not taken is only in memory; `restart` judges what is left on such a disk.
            return devices.allSatisfy { $0.machine.hadDiskTrouble || outdated($0).isEmpty }
        }
        for device in devices { _ = judges(.convergence, unless: device.machine.hadDiskTrouble) }
        guard !isCurrent else { return }
        for device in devices {
            for line in outdated(device).prefix(5) { find(.convergence, "\(device.name) without an act: \(line)") }
        }
    }

    private func outdated(_ device: Device) -> [String] {
        guard let held = device.held else { return ["its store cannot be read"] }
        let differences = (try? world.differences(held: held, as: device.handle)) ?? []
        return differences.filter { $0.held != nil && !device.isUncovered($0.id) }.map(\.description)
    }

    /// Starts every app anew: what is on its disk, and the changes since the token there, must give the server's state.
    private func restart() {
        note("restart")
        coverage.count("restarts at the end")
        for device in devices { device.close() }
        for device in devices { reopen(device) }
        let isCurrent = pass(atMost: .seconds(300), every: .seconds(5)) {
            devices.allSatisfy { $0.isSignedIn && outdated($0).isEmpty }
        }
        guard !isCurrent else { return }
        for device in devices {
            for line in outdated(device).prefix(5) { find(.convergence, "\(device.name) after a restart: \(line)") }
        }
    }

    // MARK: Comparison

    /// Opens every screen, and compares it with the server.
    private func compare() {
        for device in devices {
            perform("\(device.name) opens everything", within: .seconds(300)) { await device.openEverything() }
            if device.needsSignIn {
                // The session has ended with the first request: a failing disk has not taken its last tokens.
                perform("\(device.name) signs in and opens everything", within: .seconds(300)) {
                    await device.signIn()
                    await device.openEverything()
                }
            }
            pass(.seconds(5))
            // The server may have asked the change feed to wait.
            let isSame = pass(atMost: .seconds(120), every: .seconds(5)) { device.screenDifferences.isEmpty }
            if !isSame {
                // An item of an event stays for a minute although pages do not have it. A read may have joined a request that began
                // before the faults had ended, and failed after the read.
                perform("\(device.name) opens everything again", within: .seconds(300)) {
                    await device.openEverything()
                }
                pass(.seconds(5))
            }
            if !device.machine.hadDiskTrouble {
                for line in outdated(device).prefix(5) { find(.convergence, "\(device.name): \(line)") }
            }
            for line in device.screenDifferences { find(.convergence, line) }
            perform("\(device.name) shows all pictures", within: .seconds(600)) { await device.showAllPictures() }
            device.judgePictures()
            device.judgeFiles()
            note("\(device.name): at most \(device.mostRequests) requests within a minute")
        }
        compareLedger()
        for line in (try? world.ledgerFaults()) ?? [] { find(.money, line) }
    }

    private func compareLedger() {
        let texts = everything()
        for writing in ledger.writings {
            let found = (texts["\(writing.kind.rawValue) \(writing.place)"] ?? []).filter { $0.hasPrefix(writing.key) }
            expect(found.count <= 1, .doubledWrite, "\(writing.key) exists \(found.count) times")
            guard !writing.mayBeDeleted, judges(.writings, unless: writing.mayBeLost) else { continue }
            expect(!found.isEmpty, .lostWrite, "\(writing.key) by \(writing.author) does not exist")
        }
        compareOrder(texts)
        compareChanges(texts)
        compareTaps()
        comparePayments()
        compareEdits()
        do { try comparePhotos() } catch { find(.crash, "there is no photo: \(error)") }
    }

    private func everything() -> [String: [String]] {
        var texts: [String: [String]] = [:]
        texts["post "] = feed(as: "ana").map(\.text)
        let items: [WorkItem] = list("/v1/tasks", "ana")
        texts["task "] = items.map(\.title)
        for handle in Set(owners).union(ledger.writings.map(\.author)).sorted() {
            for place in ledger.conversations(of: handle) {
                let lines: [Message] = list("/v1/conversations/\(place)/messages", handle)
                texts["message \(place)"] = lines.map(\.text)
            }
        }
        return texts
    }

    /// Messages of one machine in one conversation are in the order in which they were written; the newest is the first.
    private func compareOrder(_ texts: [String: [String]]) {
        let messages = ledger.writings.filter { $0.kind == .message }
        for (place, written) in Dictionary(grouping: messages, by: { "\($0.machine) \($0.place)" }).sorted(by: {
            $0.key < $1.key
        }) {
            guard let first = written.first else { continue }
            let shown = texts["message \(first.place)"] ?? []
            let order = shown.reversed().compactMap { text in written.firstIndex { text.hasPrefix($0.key) } }
            expect(order == order.sorted(), .reordered, "messages of machine and place \(place): \(order)")
        }
    }

    private func compareTaps() {
        for (tap, machines) in ledger.taps.sorted(by: { ($0.key.handle, $0.key.post) < ($1.key.handle, $1.key.post) }) {
            let isExcused =
                ledger.uncertainTaps.contains(tap) || Set(machines.values).count > 1
                || owners.count(where: { $0 == tap.handle }) > 1
            guard judges(.taps, unless: isExcused), let wanted = machines.values.first else { continue }
            guard let post = feed(as: tap.handle).first(where: { $0.id == tap.post }) else { continue }
            expect(post.isLiked == wanted, .lostWrite, "the last tap of \(tap.handle) on \(tap.post) was \(wanted)")
        }
    }

    private func comparePayments() {
        for payment in ledger.payments {
            let entries: [Transaction] = list("/v1/accounts/\(payment.account)/transactions", payment.payer)
            let count = entries.count { $0.note == payment.note }
            switch payment.outcome {
            case .confirmed: expect(count == 1, .money, "\(payment.note) was confirmed and exists \(count) times")
            case .unknown: expect(count <= 1, .money, "\(payment.note) exists \(count) times")
            case .failed: expect(count == 0, .money, "\(payment.note) has failed and exists \(count) times")
            }
        }
    }

    /// The server's view of the clients' manners.
    private func checkConduct() {
        let box = Box<(report: ConductReport, records: [JournalRecord])?>(nil)
        perform("conduct", within: .seconds(1)) { [world] in
            let report = await world.conduct
            box.value = (report, report.findings.isEmpty ? [] : await world.journal())
        }
        guard let (report, records) = box.value else { return find(.hang, "the conduct report does not end") }
        coverage.count("exchanges", report.exchanges)
        let judged = ConductReport.Rule.allCases.filter { judges(.conduct, unless: !$0.holds(in: self)) }
        let findings = report.findings.filter { judged.contains($0.rule) }
        let excuses = ConductExcuses(
            findings.isEmpty ? [] : records,
            writtenAt: writtenAt,
            refreshedAt: refreshedAt,
            isSecure: plan.settings.isSecure ?? false
        )
        for finding in findings {
            guard !excuses.excuses(finding) else {
                coverage.count("excused findings of the conduct report")
                continue
            }
            find(.conduct, "\(finding.rule.rawValue): \(finding.detail)")
        }
    }

    private func end() {
        for device in devices { device.close() }
        pass(.seconds(60))
        guard findings.isEmpty else { return }
        expectIdle()
        for what in unfinished(for: .zero) { find(.hang, "\(what) has not ended with its app") }
        for device in devices {
            let count = device.leftovers
            expect(
                count == 0,
                .bounds,
                "\(count) of \(device.starts) ended processes of \(device.name) are still in memory"
            )
        }
    }

    /// Invariant 9: without an app nothing waits for a time, in the clients and in the server, and no connection is open.
    private func expectIdle() {
        expect(clock.sleeperCount == 0, .idle, "\(clock.sleeperCount) tasks sleep after the end of all apps")
        expect(sim_next_job() == .max, .idle, "a job waits for the system's clock after the end of all apps")
        for device in devices {
            expect(device.timeLeft == nil, .idle, "\(device.name) has a deadline after its end")
            let connections = network.connections(of: device.index)
            expect(connections.isEmpty, .idle, "\(device.name) has connections after its end: \(connections)")
        }
        for loop in loops {
            guard let left = loop.untilNextStep else { continue }
            find(.idle, "the server has a timer after the end of all apps, due in \(left)")
        }
    }

    @discardableResult
    private func pass(atMost limit: Duration, every interval: Duration, until holds: () -> Bool) -> Bool {
        let end = clock.uptime + limit
        while !holds() {
            guard clock.uptime < end, findings.count < 20 else { return false }
            pass(interval)
        }
        return true
    }
}

/// A value that a script hands over. `@unchecked Sendable`: as `Simulation`.
final class Box<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) { self.value = value }
}

extension Device {
    var isSignedIn: Bool { if case .signedIn? = client?.session.state { true } else { false } }

    /// Whether the session has ended, so that only the person can go on.
    var needsSignIn: Bool { client != nil && !isSignedIn && !isSigningIn }

    /// Whether everything was sent or given up.
    var isDrained: Bool { client?.cache.outbox.entries.isEmpty ?? false }

    /// The entities that the device holds, for the server's oracle.
    var held: [String: Int]? {
        try? client?.cache.held(Post.self, Profile.self, Conversation.self, Message.self)
    }

    func openEverything() async {
        guard let client else { return }
        let timeline = client.feed.timeline
        _ = try? await timeline.snapshot()
        simulation.noteRefresh()
        let isRefreshed = (try? await timeline.refresh()) != nil
        for _ in 0..<10 { _ = try? await timeline.loadOlder() }
        await fillGaps(timeline)
        if isRefreshed { judgeGaps() }
        simulation.noteRefresh()
        let items = client.cache.stored(client.feed.newest)?.value?.items ?? []
        try? await timeline.refresh(around: items.map(\.id))
        for number in 1...8 { _ = try? await client.profiles.profile("user_\(number)") }
        _ = try? await client.cache.snapshot(client.chat.conversations)
        for id in simulation.ledger.conversations(of: handle) {
            _ = try? await client.chat.timeline(id).snapshot()
            // What a lagging replica has answered counts as fresh for as long as the change feed has caught up.
            simulation.noteRefresh()
            if simulation.coverage.counts[Act.lag.rawValue] != nil { try? await client.chat.timeline(id).refresh() }
            for _ in 0..<3 { _ = try? await client.chat.timeline(id).loadOlder() }
        }
        _ = try? await client.cache.refresh(client.tasks.list())
        _ = try? await client.cache.refresh(client.bank.accounts)
    }

    /// Loads what is missing.
    private func fillGaps(_ timeline: Timeline<Post>) async {
        guard let client else { return }
        for _ in 0..<10 {
            guard let gap = client.cache.stored(client.feed.newest)?.value?.gaps.first else { break }
            _ = try? await timeline.fill(gap, isUserInitiated: true)
        }
    }

    /// A list without gaps lacks nothing, although some of its pages may be stale.
    private func judgeGaps() {
        // What a lagging replica has not had, what an old client cannot read and what does not fit into the limits is missing.
        let coverage = simulation.coverage.counts
        let isExcused =
            !simulation.lags.isEmpty || simulation.plan.limits != nil || machine.hadDiskTrouble
            || [Act.journey, .schemaDrift].contains { coverage[$0.rawValue] != nil }
        guard let client, let list = client.cache.stored(client.feed.newest)?.value, list.gaps.isEmpty,
            list.hasReachedEnd, simulation.judges(.gaps, unless: isExcused)
        else { return }
        let shown = Set(list.items.map(\.id))
        let missing = simulation.feed(as: handle).filter { !shown.contains($0.id) }
        simulation.expect(
            missing.isEmpty,
            .convergence,
            "\(name): a list without gaps lacks \(missing.map(\.id).prefix(5)), \(missing.count) posts"
        )
    }

    /// What is shown and differs from the server's lists.
    var screenDifferences: [String] {
        guard let client else { return ["\(name) does not run"] }
        var differences: [String] = []
        func expectSame(_ what: String, _ shown: [String], _ truth: [String]) {
            guard shown != truth else { return }
            let (surplus, missing) = (shown.filter { !truth.contains($0) }, truth.filter { !shown.contains($0) })
            // What does not fit into the limits is removed while other screens are opened.
            if simulation.plan.limits != nil, shown == truth.filter(shown.contains) { return }
            differences.append(
                "\(name) \(what): \(shown.count) shown, \(truth.count) on the server; only shown \(surplus.prefix(3)), not shown \(missing.prefix(3))"
            )
        }
        let cache = client.cache
        let truth = simulation.feed(as: handle)
        let shown = cache.stored(client.feed.newest)?.value?.items ?? []
        expectSame(
            "posts",
            shown.map { "\($0.id) \($0.text) \($0.likedByMe)" },
            truth.map { "\($0.id) \($0.text) \($0.isLiked)" }
        )
        for id in simulation.ledger.conversations(of: handle) {
            let lines: [Message] = simulation.list("/v1/conversations/\(id)/messages", handle)
            let held = cache.stored(client.chat.messages(id))?.value?.items ?? []
            expectSame("messages", held.map { "\($0.id) \($0.text)" }, lines.map { "\($0.id) \($0.text)" })
        }
        let accounts: [Account] = simulation.list("/v1/accounts", handle)
        let balances = cache.stored(client.bank.accounts)?.value?.items ?? []
        expectSame(
            "balances",
            balances.map { "\($0.id) \($0.balance.minorUnits)" },
            accounts.map { "\($0.id) \($0.balance.minorUnits)" }
        )
        let items: [WorkItem] = simulation.list("/v1/tasks", handle)
        let tasks = cache.stored(client.tasks.list())?.value?.items ?? []
        expectSame(
            "tasks",
            tasks.map { "\($0.id) \($0.title) \($0.due ?? "")" }.sorted(),
            items.map { "\($0.id) \($0.title) \($0.due ?? "")" }.sorted()
        )
        return differences
    }
}
