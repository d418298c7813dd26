import Larder
import LarderCoding
import LarderHTTP
import LarderTime

/// `larder doctor`: whether everything is well, and why.
struct DoctorCommand {
    let kitchen: Kitchen
    var terminal: Terminal { kitchen.terminal }

    init(_ kitchen: Kitchen) { self.kitchen = kitchen }

    /// One thing that was looked at.
    struct Finding {
        var name: String
        var text: String
        var isWell: Bool
        var details: [(String, JSONValue?)] = []
    }

    func run(_ format: Arguments.TelemetryFormat?) async throws {
        let history = RunHistory(directory: kitchen.runsDirectory)
        switch format {
        case .json: return terminal.line(history.totals.json)
        // Its lines have ends already.
        case .prometheus: return terminal.write(history.totals.prometheus)
        case nil: break
        }
        var findings = [await server(), session()]
        findings += [try store("data", kitchen.cache.disk), try pictures(), outbox(), sync(), network(), memory()]
        findings.append(runs(history))
        if terminal.isJSON {
            let members = findings.map { finding -> (String, JSONValue?) in
                let base: [(String, JSONValue?)] = [
                    ("isWell", .bool(finding.isWell)), ("text", .string(finding.text)),
                ]
                return (finding.name, .members(base + finding.details))
            }
            let totals = try JSONParser.parse(Array(history.totals.json.utf8))
            return terminal.json(.members(members + [("telemetry", totals)]))
        }
        for finding in findings {
            let mark = finding.isWell ? terminal.paint("✓", .green) : terminal.paint("!", .yellow)
            terminal.line("\(mark) \(TextWidth.pad(finding.name, 9)) \(TextWidth.clean(finding.text))")
        }
        terminal.line(terminal.paint("  kept in   \(kitchen.state.path)", .dim))
        tellLastRun(history)
        tellTotals(history.totals)
    }

    private func server() async -> Finding {
        let url = kitchen.arguments.server
        guard !kitchen.isOffline else {
            return Finding(name: "server", text: "\(url): not asked (--offline)", isWell: true)
        }
        let start = kitchen.uptime.uptime
        do {
            let reply = try await kitchen.transport.send(TransportRequest(url: url + "/healthz"))
            let time = Ages.text(kitchen.uptime.uptime - start)
            let isWell = reply.status.code == 200
            return Finding(
                name: "server",
                text: "\(url) answers in \(time)" + (isWell ? "" : ", with \(reply.status.code)"),
                isWell: isWell,
                details: [("status", .integer(Int64(reply.status.code)))]
            )
        } catch {
            return Finding(name: "server", text: "\(url): \(error.description)", isWell: false)
        }
    }

    private func session() -> Finding {
        switch kitchen.client.session.state {
        case .signedIn(let id): Finding(name: "account", text: "\(kitchen.user) (\(id)), signed in", isWell: true)
        case .expired(let id):
            Finding(name: "account", text: "\(kitchen.user) (\(id)) has to sign in again: larder login", isWell: false)
        case .signedOut:
            Finding(name: "account", text: "\(kitchen.user), not signed in: larder login", isWell: false)
        }
    }

    // MARK: Stores

    private func pictures() throws -> Finding {
        var configuration = DiskStore.Configuration(directory: kitchen.picturesDirectory)
        let journal = kitchen.journal
        configuration.onEvent = { journal.note($0) }
        return try store("pictures", DiskStore(configuration))
    }

    /// Reads everything once: each payload has a checksum, and what is damaged is found by it.
    private func store(_ name: String, _ disk: DiskStore?) throws -> Finding {
        guard let disk else { return Finding(name: name, text: "in memory only", isWell: true) }
        _ = try Contents.json(disk, now: kitchen.now)
        let records = try disk.read { transaction in
            let keys = try transaction.recordKeys(startingWith: "")
            var count = 0
            for key in keys { if try transaction.record(key) != nil { count += 1 } }
            return count
        }
        let statistics = try disk.statistics()
        let damage = kitchen.journal.damage
        let isWell = damage.discards == 0 && damage.recoveries.isEmpty
        let health = isWell ? "all checksums are right" : "\(damage.discards) damaged and removed"
        let recoveries = damage.recoveries.map { "; \($0)" }.joined()
        return Finding(
            name: name,
            text: "\(statistics.items) items, \(Sizes.text(statistics.bytes)) of "
                + "\(Sizes.text(disk.configuration.bytesMaximum)), \(Sizes.text(statistics.databaseBytes)) in files; "
                + health + recoveries,
            isWell: isWell,
            details: [
                ("items", .integer(Int64(statistics.items))), ("bytes", .integer(statistics.bytes)),
                ("fileBytes", .integer(statistics.databaseBytes)), ("records", .integer(Int64(records))),
            ]
        )
    }

    private func outbox() -> Finding {
        let status = kitchen.cache.outbox.status
        var parts = ["\(status.pending + status.inFlight) to send"]
        if status.inDoubt > 0 { parts.append("\(status.inDoubt) in doubt") }
        if status.refused > 0 { parts.append("\(status.refused) refused (larder outbox)") }
        if status.heldLanes > 0 { parts.append("\(status.heldLanes) lanes wait behind them") }
        if let oldest = status.oldest { parts.append("the oldest from \(Ages.text(from: oldest, to: kitchen.now))") }
        return Finding(
            name: "outbox",
            text: parts.joined(separator: ", "),
            isWell: status.refused == 0 && status.inDoubt == 0,
            details: [
                ("pending", .integer(Int64(status.pending))), ("inDoubt", .integer(Int64(status.inDoubt))),
                ("refused", .integer(Int64(status.refused))),
            ]
        )
    }

    private func sync() -> Finding {
        guard let token = kitchen.client.sync.token else {
            return Finding(name: "changes", text: "not followed yet: larder sync", isWell: true)
        }
        return Finding(name: "changes", text: "stored up to \(TextWidth.fit(token, 24))", isWell: true)
    }

    // MARK: Surroundings

    private func network() -> Finding {
        let state = kitchen.monitor.current
        let why =
            switch state.cause {
            case .override: "set by hand"
            case .noInterface: "the system says that there is no network"
            case .metered: "the system says that traffic is to be spared"
            case .experience: "requests are slow, or fail"
            case .nothing: "nothing speaks against it"
            }
        var parts = ["\(state.level): \(why)"]
        if let latency = state.quality.latency { parts.append("replies in \(Ages.text(latency))") }
        let usable = state.status.interfaces.filter(\.isUsable).map(\.name)
        if !usable.isEmpty { parts.append("by \(usable.joined(separator: ", "))") }
        parts.append(kitchen.networkExplanation)
        return Finding(
            name: "network",
            text: parts.joined(separator: "; "),
            isWell: state.level == .good,
            details: [("level", .string("\(state.level)")), ("cause", .string(state.cause.rawValue))]
        )
    }

    private func memory() -> Finding {
        let source = SystemMemorySource.make()
        let memory = MemoryGuard(source: source)
        let state = memory.current
        return Finding(
            name: "memory",
            text: "\(state.told): \(state.cause); \(memory.explanation)",
            isWell: state.told == .normal,
            details: [("level", .string("\(state.told)")), ("cause", .string(state.cause))]
        )
    }
}
