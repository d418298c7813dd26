import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal, verification and the conduct report over HTTP.
enum JournalEndpoints {
    static func answer(_ call: ControlCall, _ method: Method, _ rest: [String]) throws(Problem) -> Reply {
        let journal = call.world.control.journal
        switch (method, rest.first) {
        case (.get, nil): return try list(call)
        case (.delete, nil):
            journal.clear()
            return ControlEndpoints.done
        case (.get, "live"?):
            let fields: Fields = [.cacheControl: "no-store"]
            return .eventStream(fields, JournalStream(call.world))
        case (.get, "har"?):
            let document = HAR.document(journal.entries, base: base(call), version: serverVersion)
            var fields: Fields = [.contentType: "application/json", .cacheControl: "no-store"]
            fields.set("Content-Disposition", "attachment; filename=\"\(call.world.id).har\"")
            return Reply(status: .ok, fields: fields, body: .bytes(document.encoded))
        case (.get, let text?):
            guard let number = Int(text), let entry = journal.entry(number) else {
                throw ProblemType.notFound("The journal has no entry '\(text.prefix(32))'.")
            }
            if rest.count == 2, rest[1] == "curl" { return ControlEndpoints.text(entry.curl(base: base(call)) + "\n") }
            return ControlEndpoints.json(entry.json(handle: call.handle(of: entry.user)))
        default: throw ControlEndpoints.wrongMethod("GET, DELETE")
        }
    }

    private static func base(_ call: ControlCall) -> String {
        (call.request.fields[.host] ?? "127.0.0.1") + call.world.basePath
    }

    private static let listParameters = [
        "afterNumber", "limit", "method", "path", "user", "device", "status", "outcome", "fault", "kind",
    ]

    private static func list(_ call: ControlCall) throws(Problem) -> Reply {
        try call.check(parameters: listParameters)
        let limit = try call.integer("limit", in: 1...10_000) ?? 100
        var filter = JournalFilter()
        let start = try call.integer("afterNumber", in: 0...Int(Int32.max))
        filter.after = start ?? 0
        filter.match.method = call.query.first("method")
        filter.match.path = call.query.first("path")
        filter.match.user = call.query.first("user")
        filter.match.device = call.query.first("device")
        filter.status = call.query.first("status")
        filter.outcome = call.query.first("outcome")
        filter.fault = call.query.first("fault")
        filter.kind = call.query.first("kind").flatMap { JournalFilter.Kind(rawValue: $0) }
        if let status = filter.status, !JournalFilter.isStatus(status) {
            throw call.invalid("status", "must be a status or a class such as 4xx")
        }
        if filter.kind == nil, call.query.first("kind") != nil {
            throw call.invalid("kind", "must be exchange or frame")
        }
        if let path = filter.match.path, PathPattern(path) == nil {
            throw call.invalid("path", PathPattern.rule)
        }
        let matcher = JournalMatcher(filter) { call.handle(of: $0) }
        let journal = call.world.control.journal
        // After a number the next ones, otherwise the newest ones.
        let matching = journal.entries(after: filter.after).filter { matcher.matches($0) }
        let page = start == nil ? matching.suffix(limit) : matching.prefix(limit)
        return ControlEndpoints.json(
            .members([
                "items": .array(page.map { $0.json(handle: call.handle(of: $0.user)) }),
                "hasMore": .bool(matching.count > page.count),
                "last": .integer(Int64(page.last?.number ?? filter.after)),
                "written": .integer(Int64(journal.countEver)), "capacity": .integer(Int64(journal.capacity)),
            ])
        )
    }

    static func verify(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .post else { throw ControlEndpoints.wrongMethod("POST") }
        var reader = try call.settings()
        let (expectations, inOrder, noneOther) = Expectation.list(&reader, isRequired: true)
        try reader.check()
        let report = call.plane.verifier(call.world).verify(expectations, inOrder: inOrder, noneOther: noneOther)
        guard report.holds else {
            var problem = ProblemType.verificationFailed(report.description)
            problem.extensions["failures"] = report.json["failures"]
            throw problem
        }
        return ControlEndpoints.json(report.json)
    }

    static func conduct(_ call: ControlCall, _ method: Method) throws(Problem) -> Reply {
        guard method == .get else { throw ControlEndpoints.wrongMethod("GET") }
        let newest = try call.integer("findings", in: 0...10_000)
        let report = ConductReport(call.world.control.journal.entries)
        let wantsText = call.request.fields.combined(.accept).map { $0.hasPrefix("text/plain") } ?? false
        return wantsText
            ? ControlEndpoints.text(report.description + "\n") : ControlEndpoints.json(report.json(newest: newest))
    }
}

extension ControlPlane {
    func verifier(_ world: World) -> Verifier {
        Verifier(entries: world.control.journal.entries) { Authenticator.handle(of: $0, in: world) }
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
