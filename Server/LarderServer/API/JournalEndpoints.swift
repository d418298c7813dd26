import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// The journal, verification and the conduct report over HTTP.
enum JournalEndpoints {
    static let routes = [
        ControlRoute.later(.get, "/journal", list),
        .later(.delete, "/journal") { call in
            call.world.control.journal.clear()
            return .noContent
        },
        .later(.get, "/journal/live") { .eventStream([.cacheControl: "no-store"], JournalStream($0.world)) },
        .later(.get, "/journal/har") { call in
            let fields: Fields = ["Content-Disposition": "attachment; filename=\"\(call.world.id).har\""]
            return .json(.ok, HAR.document(call.world.control.journal.entries, base: base(call)), fields: fields)
        },
        .later(.get, "/journal/{number}") { call throws(Problem) in
            let found = try entry(call)
            return .control(found.json(handle: call.handle(of: found.user)))
        },
        .later(.get, "/journal/{number}/curl") { call throws(Problem) in
            .control(text: try entry(call).curl(base: base(call)) + "\n")
        },
        .later(.post, "/verify", verify), .later(.get, "/conduct", conduct),
    ]

    private static func entry(_ call: ControlCall) throws(Problem) -> JournalEntry {
        let text = call.parameters[0]
        guard let number = Int(text), let entry = call.world.control.journal.entry(number) else {
            throw ProblemType.notFound("The journal has no entry '\(text.prefix(32))'.")
        }
        return entry
    }

    private static func base(_ call: ControlCall) -> String {
        (call.request.fields[.host] ?? "127.0.0.1") + call.world.basePath
    }

    private static func list(_ call: ControlCall) throws(Problem) -> Reply? {
        let parameters = call.settings(numbers: ["afterNumber", "limit", "connection", "exchange"])
        let limit = parameters.integer("limit", in: 1...10_000) ?? 100
        let filter = JournalFilter.read(parameters)
        try call.check(parameters)
        let matcher = JournalMatcher(filter, in: call.world)
        let journal = call.world.control.journal
        // After a number the next ones, otherwise the newest ones.
        let matching = journal.entries(after: filter.after).filter { matcher.matches($0) }
        let page = parameters.has("afterNumber") ? matching.prefix(limit) : matching.suffix(limit)
        return .control([
            "items": .array(page.map { $0.json(handle: call.handle(of: $0.user)) }),
            "hasMore": .bool(matching.count > page.count),
            "last": .int(page.last?.number ?? filter.after), "written": .int(journal.countEver),
            "capacity": .int(journal.capacity),
        ])
    }

    private static func verify(_ call: ControlCall) throws(Problem) -> Reply? {
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
        return .control(report.json)
    }

    private static func conduct(_ call: ControlCall) throws(Problem) -> Reply? {
        let parameters = call.settings(numbers: ["findings"])
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
        return wantsText ? .control(text: report.description + "\n") : .control(report.json(newest: newest))
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
