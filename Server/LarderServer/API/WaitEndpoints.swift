import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Waiting over HTTP: the reply is sent when the condition holds or the time limit ends.
enum WaitEndpoints {
    static func wait(_ call: ControlCall) throws(Problem) -> Reply? {
        let reader = try call.settings()
        let condition = read(reader, isJournalEnabled: call.world.control.journal.isEnabled)
        let limit = reader.seconds("timeoutSeconds", maximum: 600) ?? .seconds(10)
        let clock = reader.choice("clock", Waiter.LimitClock.self) ?? .real
        try reader.check()
        guard let condition else { return nil }
        let exchange = call.exchange
        let waiter = Waiter(condition, call.plane, call.world, exchange.loop) { holds, seen in
            if call.world.control.hasEnded {
                exchange.complete(call.plane.worlds.unknown(call.world.id).reply)
            } else if holds {
                exchange.complete(.control(["holds": .bool(true), "seen": .int(seen)]))
            } else {
                var problem = ProblemType.waitEnded("The condition did not hold within \(limit).")
                problem.extensions["seen"] = .int(seen)
                exchange.complete(problem.reply)
            }
        }
        waiter.start(limit: limit, by: clock)
        exchange.whenAbandoned { waiter.end(false) }
        return nil
    }

    private static func read(_ reader: BodyReader, isJournalEnabled: Bool) -> WaitCondition? {
        if let child = reader.child("entries") {
            if !isJournalEnabled { reader.fail("entries", "would see \(Journal.isOff)") }
            let count = child.integer("count", in: 1...1_000_000) ?? 1
            return .entries(JournalFilter.read(child), count: count)
        }
        if let count = reader.integer("held", in: 1...1_000_000) { return .held(count) }
        if let duration = reader.seconds("quietSeconds", maximum: 86_400) {
            if !isJournalEnabled { reader.fail("quietSeconds", "would see \(Journal.isOff)") }
            return .quiet(duration)
        }
        if let count = reader.integer("commits", in: 1...Int(Int32.max)) { return .commits(count) }
        if let child = reader.child("state") { return state(child) }
        reader.fail("entries", "or `held`, `quietSeconds`, `commits` or `state` must be given")
        return nil
    }

    /// The condition that a member of a reply has a value.
    static func state(_ reader: BodyReader) -> WaitCondition? {
        let (path, pointer) = (reader.string("path"), reader.string("pointer", length: 0...1_024))
        let person = reader.string("as", length: 1...64)
        let wanted = reader.value("equals")
        if let pointer, !pointer.isEmpty, !pointer.hasPrefix("/") {
            reader.fail("pointer", "must be a JSON pointer such as /done, not '\(pointer.prefix(64))'")
        }
        guard let path, path.hasPrefix("/"), let wanted else {
            reader.fail("path", "must be a path such as /v1/me, and `equals` must be given")
            return nil
        }
        return .state(path: path, person: person, pointer: pointer ?? "", equals: StateValue(wanted))
    }
}
