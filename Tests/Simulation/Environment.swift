import LarderDevice
import LarderSQLite
import LarderServer
import LarderTime

/// What happens to devices, networks and the server.
extension Simulation {
    /// Takes a step of the plan.
    func take(_ step: Plan.Step) {
        guard devices.indices.contains(step.device) else { return }
        let device = devices[step.device]
        note("step \(step.description)")
        if step.act.isByPerson { return device.act(step.act, step.choice) }
        coverage.count(step.act.rawValue)
        switch step.act {
        case .otherWrites, .otherLikes, .otherEdits, .otherDeletes: othersAct(step.act, step.choice)
        case .othersWriteMuch, .postVanishes, .expireAndDie, .clockBackBriefly, .clockBackSlightly, .damageStore,
            .rejects, .outage, .damagePictures:
            begin(step.act, device, step.choice)
        case .kill, .killSoon, .tearWrite, .closeApp, .losePower, .openApp, .diskFails, .diskFull, .diskHeals,
            .clockForward, .clockBack, .clockDrift:
            harm(device, step.act, step.choice)
        case .linkGood, .linkSlow, .linkLossy, .linkCut, .linkHalfOpen, .linkRefused, .linkBlackHole, .linkChanged,
            .sourceOffline, .linkUneven:
            relink(device, step.act)
        default: setFault(step.act, step.choice, step.device)
        }
    }

    // MARK: Devices

    private func harm(_ device: Device, _ act: Act, _ choice: UInt64) {
        switch act {
        case .kill: device.kill()
        case .killSoon: device.killSoon(Int(choice % 40) + 1, tears: false)
        case .tearWrite: device.killSoon(Int(choice % 40) + 1, tears: true)
        case .closeApp: device.close()
        case .openApp: reopen(device)
        case .losePower: losePower(device.machine)
        case .diskFails: device.fail(.inputOutput, atStep: Int(choice % 20) + 1)
        case .diskFull: device.fail(.full, atStep: Int(choice % 20) + 1)
        case .diskHeals: device.heal()
        case .clockForward: device.machine.dateError.jump(.seconds(Int(choice % 100_000)))
        case .clockDrift:
            device.machine.dateError.set(drift: [0.01, -0.01, 0.000_1, -0.000_1][Int(choice % 4)], at: clock.uptime)
        default: device.machine.dateError.jump(.zero - .seconds(Int(choice % 100_000)))
        }
        for other in devices where other.machine === device.machine {
            other.clock.set(device.machine.dateError)
        }
    }

    func losePower(_ machine: Machine) {
        guard machine.recordsSyncs else { return }
        for index in ledger.payments.indices
        where ledger.payments[index].machine == machine.index && ledger.payments[index].isRunning {
            ledger.payments[index].lostItsApp = true
        }
        for device in devices where device.machine === machine && device.isRunning {
            device.kill()
            device.bury()
        }
        ledger.forget(machine.index)
        machine.boot()
        do { try machine.losePower(&random) } catch {
            // A fault that was planned for the machine's files has met the loss of power.
            note("power loss: \(error)")
        }
    }

    /// Starts the app if it does not run, and signs in if nobody is.
    func reopen(_ device: Device) {
        guard !device.isRunning else { return }
        start("\(device.name) open") {
            await device.open()
            await device.signIn()
        }
    }

    // MARK: Networks

    private func relink(_ device: Device, _ act: Act) {
        var link = network.links[device.index]
        switch act {
        case .linkGood: link = .good
        case .linkSlow: link.delay = 300...1_200
        case .linkUneven: link.delay = 5...4_000
        case .linkLossy: link.loss = 0.15
        case .linkCut: link.cut = 0.15
        case .linkHalfOpen: link.halfOpen = 0.4
        case .linkRefused: link.isRefused = true
        case .linkBlackHole: link.isBlackHole = true
        case .linkChanged: network.abandon(of: device.index)
        default: device.sources.set(isConnected: !device.sources.status.isConnected)
        }
        network.set(link, of: device.index)
    }

    // MARK: The server

    private func setFault(_ act: Act, _ choice: UInt64, _ index: Int) {
        var often = Fault.Occurrence()
        often.probability = [0.1, 0.3, 0.6][Int(choice % 3)]
        var api = FaultMatch(nil, "/v1/**")
        if choice % 4 == 0 { api.device = devices[index].name }
        var writes = api
        writes.method = "POST"
        let id = "\(act.rawValue)-\(seed % 1_000_000)-\(choice % 1_000)"
        func set(_ action: FaultAction, _ match: FaultMatch) {
            do { try world.set(Fault(id: id, action, when: match, occurrence: often)) } catch {
                find(.crash, "the fault \(id) is rejected: \(error)")
            }
        }
        switch act {
        case .loseReplies:
            set(.loseReply([.reset, .close, .never][Int(choice / 8 % 3)]), choice % 2 == 0 ? writes : api)
        case .busy:
            var reply = CannedReply(status: [503, 429, 500][Int(choice / 8 % 3)])
            reply.retryAfter = choice % 2 == 0 ? .seconds(Int(choice / 64 % 20) + 1) : nil
            set(.respond(reply), api)
        case .duplicates: set(.duplicate, writes)
        case .expireToken: set(.expireToken, api)
        case .resets: set(.reset, api)
        case .silence: set(.never, api)
        case .truncates: set(.truncate(.byte(Int(choice % 300))), api)
        case .malformed: set(.malformedJSON, api)
        case .lag:
            beginLag()
            set(.lag(.init(commits: Int(choice % 5) + 1)), FaultMatch("GET", "/v1/**"))
        case .slow: set(.latency(connect: nil, firstByte: .uniform(.zero, .seconds(6)), body: nil), api)
        case .journey:
            let all = Journey.allCases
            do { try world.set(all[Int(choice % UInt64(all.count))]) } catch {
                find(.crash, "a journey is rejected: \(error)")
            }
        case .noFaults: removeFaults()
        case .liveFrames:
            var fault = LiveFault()
            fault.lose = 0.2
            fault.reorder = 0.2
            fault.duplicate = 0.2
            set(.live(fault), FaultMatch("GET", choice % 2 == 0 ? "/v1/live" : "/v1/live/**"))
        case .feedFault:
            (often.probability, often.count) = (1, 1)
            often.after = Int(choice / 8 % 2)
            let all = ChangePageFault.allCases
            set(.changes(all[Int(choice % UInt64(all.count))]), FaultMatch())
        case .dialect:
            let (keys, syncs) = (Dialect.Idempotency.allCases, Dialect.Resync.allCases)
            world.dialect.idempotency = keys[Int(choice % UInt64(keys.count))]
            world.dialect.resync = syncs[Int(choice / 16 % UInt64(syncs.count))]
        case .limited:
            var reply = CannedReply(status: 429)
            reply.retryAfter = .seconds(Int(choice / 64 % 50) + 10)
            often.probability = 1
            often.count = Int(choice / 8 % 20) + 1
            set(.respond(reply), api)
        case .schemaDrift:
            var drift = SchemaDrift(seed: choice)
            // Versions that go back when it ends are no promise of a server.
            drift.changes.remove(.largeVersions)
            world.drift = drift
        case .dateSkew: world.skewDates(of: devices[index].name, by: .seconds(Int(choice % 20_000) - 10_000))
        case .wrongValidators: set(.validators(choice % 2 == 0 ? .missing : .weak), FaultMatch("GET", "/v1/**"))
        default: break
        }
    }

    // MARK: Other people

    private func othersAct(_ act: Act, _ choice: UInt64) {
        let other = handles[Int(choice % UInt64(handles.count))]
        let posts = feed(as: other)
        switch act {
        case .otherWrites where choice % 2 == 0:
            write("POST", "/v1/posts", other, "{\"text\":\"news \(choice % 100)\"}")
        case .otherWrites:
            guard let place = ledger.conversations(of: other).first else { return }
            let body = "{\"text\":\"answer \(choice % 100)\",\"clientId\":\"other-\(choice)\"}"
            write("POST", "/v1/conversations/\(place)/messages", other, body)
        case .otherLikes:
            guard let post = posts.dropFirst(Int(choice % 5)).first else { return }
            // It may be a later tap of somebody who has a device here.
            ledger.uncertainTaps.insert(Ledger.Tap(handle: other, post: post.id))
            write("PUT", "/v1/posts/\(post.id)/like", other, nil)
        case .otherEdits:
            guard let mine = posts.first(where: { $0.text.hasPrefix("news") && $0.author == other }) else { return }
            write("PATCH", "/v1/posts/\(mine.id)", other, "{\"text\":\"news edited \(choice % 100)\"}")
        default:
            guard let mine = posts.first(where: { $0.text.hasPrefix("news") && $0.author == other }) else { return }
            write("DELETE", "/v1/posts/\(mine.id)", other, nil)
        }
    }

    func noteRefresh() { refreshedAt.append(clock.now) }

    @discardableResult
    func write(_ method: String, _ path: String, _ handle: String, _ body: String?) -> [UInt8] {
        writtenAt.append(clock.now)
        let reply = world.perform(ScriptedAction(method, path, as: handle, body: body))
        if !(200..<300).contains(reply.status) { note("\(method) \(path) as \(handle): \(reply.status)") }
        return reply.body
    }
}
