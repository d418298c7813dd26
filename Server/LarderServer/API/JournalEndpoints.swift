import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal, verification and the conduct report over HTTP.
enum JournalEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let journal = call.world.control.journal
        if rest.count == 2, rest[1] != "curl" || Int(rest[0]) == nil {
            throw ProblemType.notFound("The journal has no '\(rest.joined(separator: "/").prefix(64))'.")
        }
        switch (method, rest.first) {
        case (.get, nil): return try list(call)
        case (.delete, nil):
            journal.clear()
            return ControlEndpoints.done
        case (.get, "live"?):
            let fields: Fields = [.cacheControl: "no-store"]
            return .eventStream(fields, JournalStream(call.world))
        case (.get, "har"?):
            let fields: Fields = ["Content-Disposition": "attachment; filename=\"\(call.world.id).har\""]
            return .json(.ok, HAR.document(journal.entries, base: base(call)), fields: fields)
        case (.get, let text?):
            guard let number = Int(text), let entry = journal.entry(number) else {
                throw ProblemType.notFound("The journal has no entry '\(text.prefix(32))'.")
            }
            if rest.count == 2 { return ControlEndpoints.text(entry.curl(base: base(call)) + "\n") }
            return ControlEndpoints.json(entry.json(handle: call.handle(of: entry.user)))
        default: throw ControlEndpoints.wrongMethod("GET, DELETE")
        }
    }

    private static func base(_ call: ControlCall) -> String {
        (call.request.fields[.host] ?? "127.0.0.1") + call.world.basePath
    }

    private static func list(_ call: ControlCall) throws(Problem) -> Reply {
        let parameters = call.parameters(numbers: ["afterNumber", "limit", "connection", "exchange"])
        let limit = parameters.integer("limit", in: 1...10_000) ?? 100
        let filter = JournalFilter.read(parameters)
        try call.check(parameters)
        let matcher = JournalMatcher(filter, in: call.world)
        let journal = call.world.control.journal
        // After a number the next ones, otherwise the newest ones.
        let matching = journal.entries(after: filter.after).filter { matcher.matches($0) }
        let page = parameters.has("afterNumber") ? matching.prefix(limit) : matching.suffix(limit)
        return ControlEndpoints.json([
            "items": .array(page.map { $0.json(handle: call.handle(of: $0.user)) }),
            "hasMore": .bool(matching.count > page.count),
            "last": .integer(Int64(page.last?.number ?? filter.after)),
            "written": .integer(Int64(journal.countEver)), "capacity": .integer(Int64(journal.capacity)),
        ])
    }

    static func verify(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        let reader = try call.settings()
        let (expectations, inOrder, noneOther) = Expectation.list(reader, isRequired: true)
        try reader.check()
        let journal = call.world.control.journal
        let verifier = Verifier(entries: journal.entries, dropped: journal.dropped, world: call.world)
        let report = verifier.verify(expectations, inOrder: inOrder, noneOther: noneOther)
        guard report.holds else {
            var problem = ProblemType.verificationFailed(report.description)
            problem.extensions["failures"] = report.json["failures"]
            throw problem
        }
        return ControlEndpoints.json(report.json)
    }

    static func conduct(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .get else { throw ControlEndpoints.wrongMethod("GET") }
        let parameters = call.parameters(numbers: ["findings"])
        let newest = parameters.integer("findings", in: 0...10_000)
        var filter = JournalFilter()
        filter.match.device = parameters.string("device", length: 1...128)
        try call.check(parameters)
        guard call.world.control.journal.isEnabled else {
            throw ProblemType.invalidParameter("The conduct report has \(Journal.isOff).")
        }
        let (matcher, isFiltered) = (JournalMatcher(filter, in: call.world), filter.match.device != nil)
        let journal = call.world.control.journal
        let entries = journal.entries
        let report = ConductReport(
            isFiltered ? entries.filter { matcher.matches($0) } : entries,
            dropped: journal.dropped?.count ?? 0
        )
        let wantsText = call.request.fields.combined(.accept).map { $0.hasPrefix("text/plain") } ?? false
        return wantsText
            ? ControlEndpoints.text(report.description + "\n") : ControlEndpoints.json(report.json(newest: newest))
    }
}

/// The journal in real time, as Server-Sent Events whose `id` is the entry's number.
final class JournalStream: ChannelHandler {
    private let world: World
    private let registrations = Mutex<[@Sendable () -> Void]>([])

    init(_ world: World) { self.world = world }

    func opened(_ handle: ChannelHandle) {
        handle.send(Array(": the journal of \(world.id)\n\n".utf8))
        let world = world
        let observer = world.control.journal.observers.add { entry in
            // Encoded on the loop: the thread that writes an entry may hold the store's lock.
            handle.loop.execute {
                let entry = world.control.journal.entry(entry.number) ?? entry
                let json = entry.json(handle: Authenticator.handle(of: entry.user, in: world)).encoded
                handle.send(LiveEvent.serverSentEvent(named: "entry", id: String(entry.number), data: json))
            }
        }
        let ending = world.control.whenEnded { handle.close() }
        registrations.withLock { $0 = [observer, ending] }
    }

    func closed(_ ending: WebSocketEnding) {
        for remove in registrations.withLock({ exchange(&$0, with: []) }) { remove() }
    }
}
