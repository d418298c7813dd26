import Larder
import LarderCoding
import LarderDemo

/// `larder doctor`: checks the server, the stores, the outbox, the network, memory and earlier runs.
struct DoctorCommand {
    let context: CommandContext
    var terminal: Terminal { context.terminal }

    /// The result of one check.
    struct Finding {
        var name: String
        var text: String
        var isHealthy: Bool
        var details: [(String, JSONValue?)] = []
    }

    func run() async throws {
        let history = RunHistory(directory: context.runsDirectory)
        let report = RunReport(history: history, terminal: terminal, now: context.now)
        var findings = [await server(), session()]
        findings += [try store("data", context.cache.disk), try store("images", imageStore())]
        findings += [outbox(), sync(), network(), memory()]
        findings.append(report.finding)
        if terminal.isJSON {
            let members = findings.map { finding -> (String, JSONValue?) in
                let base: [(String, JSONValue?)] = [
                    ("isHealthy", .bool(finding.isHealthy)), ("text", .string(finding.text)),
                ]
                return (finding.name, .members(base + finding.details))
            }
            return terminal.json(.members(members + (try report.measurements)))
        }
        for finding in findings {
            let mark = finding.isHealthy ? terminal.paint("✓", .green) : terminal.paint("!", .yellow)
            terminal.line("\(mark) \(TextWidth.pad(finding.name, 9)) \(finding.text)")
        }
        terminal.line(terminal.paint("  directory \(context.state.path)", .dim))
        report.printRuns()
    }

    private func server() async -> Finding {
        let url = context.arguments.server
        guard !context.isOffline else {
            return Finding(name: "server", text: "\(url): not checked (--offline)", isHealthy: true)
        }
        let start = context.uptime.uptime
        do {
            let reply = try await context.transport.send(TransportRequest(url: url + "/healthz"))
            let time = TimeText.text(context.uptime.uptime - start)
            let isHealthy = reply.status.code == 200
            return Finding(
                name: "server",
                text: "\(url) answers in \(time)" + (isHealthy ? "" : ", with \(reply.status.code)"),
                isHealthy: isHealthy,
                details: [("status", .integer(Int64(reply.status.code)))]
            )
        } catch {
            return Finding(name: "server", text: "\(url): \(error.description)", isHealthy: false)
        }
    }

    private func session() -> Finding {
        switch context.client.session.state {
        case .signedIn(let id): Finding(name: "account", text: "\(context.user) (\(id)), signed in", isHealthy: true)
        case .expired(let id):
            Finding(
                name: "account",
                text: "\(context.user) (\(id)) the session has expired: larder login",
                isHealthy: false
            )
        case .signedOut:
            Finding(name: "account", text: "\(context.user), not signed in: larder login", isHealthy: false)
        }
    }

    // MARK: Stores

    private func imageStore() -> DiskStore? {
        // What was found in the store of data is not reported again.
        context.events.forgetDamage()
        return context.client.images.configuration.disk
    }

    /// Reads everything once, which verifies all checksums.
    private func store(_ name: String, _ disk: DiskStore?) throws -> Finding {
        guard let disk else { return Finding(name: name, text: "in memory only", isHealthy: true) }
        let (entities, lists) = try Self.readAll(disk)
        let damage = context.events.damage
        // Damaged rows leave the store with its next change.
        if damage.discards > 0 { while try !disk.maintain() {} }
        let statistics = try disk.statistics()
        let isHealthy = damage.discards == 0 && damage.recoveries.isEmpty
        let health =
            isHealthy
            ? "the checksums of \(entities) entities and \(lists) lists match"
            : "\(damage.discards) damaged items removed"
        let recoveries = damage.recoveries.map { "; \($0)" }.joined()
        return Finding(
            name: name,
            text: "\(statistics.items) items, \(SizeText.text(statistics.bytes)) of "
                + "\(SizeText.text(disk.configuration.bytesMaximum)), \(SizeText.text(statistics.databaseBytes)) in files; "
                + health + recoveries,
            isHealthy: isHealthy,
            details: [
                ("items", .integer(Int64(statistics.items))), ("bytes", .integer(statistics.bytes)),
                ("fileBytes", .integer(statistics.databaseBytes)), ("entities", .integer(Int64(entities))),
                ("lists", .integer(Int64(lists))), ("damaged", .integer(Int64(damage.discards))),
            ]
        )
    }

    /// Reads all entities and lists, and counts those that are not damaged.
    private static func readAll(_ disk: DiskStore) throws -> (entities: Int, lists: Int) {
        let (entities, lists) = try disk.read { transaction in
            let entities = try transaction.entityTypes().flatMap { type in
                try transaction.entityIDs(ofType: type).map { EntityKey(type: type, id: $0) }
            }
            return (entities, try transaction.queryNames().flatMap { try transaction.queryKeys(named: $0) })
        }
        return (try entities.count { try disk.entity($0) != nil }, try lists.count { try disk.query($0) != nil })
    }

    private func outbox() -> Finding {
        let status = context.cache.outbox.status
        var parts = ["\(status.pending + status.inFlight) to send"]
        if status.inDoubt > 0 { parts.append("\(status.inDoubt) in doubt") }
        if status.rejected > 0 { parts.append("\(status.rejected) rejected (larder outbox)") }
        if status.blockedScopes > 0 { parts.append("\(status.blockedScopes) lanes blocked") }
        if let oldest = status.oldest { parts.append("the oldest \(TimeText.text(from: oldest, to: context.now))") }
        return Finding(
            name: "outbox",
            text: parts.joined(separator: ", "),
            isHealthy: status.rejected == 0 && status.inDoubt == 0,
            details: [
                ("pending", .integer(Int64(status.pending))), ("inDoubt", .integer(Int64(status.inDoubt))),
                ("rejected", .integer(Int64(status.rejected))),
            ]
        )
    }

    private func sync() -> Finding {
        guard let token = context.client.sync.token else {
            return Finding(name: "changes", text: "no change token yet: larder sync", isHealthy: true)
        }
        return Finding(name: "changes", text: "applied up to token \(TextWidth.fit(token, 24))", isHealthy: true)
    }

    // MARK: System

    private func network() -> Finding {
        let state = context.monitor.current
        let reason =
            switch state.cause {
            case .override: "set manually"
            case .noInterface: "no usable network interface"
            case .metered: "the network is metered"
            case .experience: "requests are slow or fail"
            case .nothing: "no restriction"
            }
        var parts = ["\(state.level): \(reason)"]
        if let latency = state.quality.latency { parts.append("latency \(TimeText.text(latency))") }
        let usable = state.status.interfaces.filter(\.isUsable).map(\.name)
        if !usable.isEmpty { parts.append("interfaces \(usable.joined(separator: ", "))") }
        parts.append(context.networkExplanation)
        return Finding(
            name: "network",
            text: parts.joined(separator: "; "),
            isHealthy: state.level == .good,
            details: [("level", .string("\(state.level)")), ("cause", .string(state.cause.rawValue))]
        )
    }

    private func memory() -> Finding {
        let (signal, explanation) = MemoryGuard.systemPressure()
        let level = signal.map { "\($0.level)" } ?? "unknown"
        let cause = signal?.cause ?? "no figure can be read"
        return Finding(
            name: "memory",
            text: "\(level): \(cause); \(explanation)",
            isHealthy: signal?.level ?? .normal == .normal,
            details: [("level", .string(level)), ("cause", .string(cause))]
        )
    }
}
