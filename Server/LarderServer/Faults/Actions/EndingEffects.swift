import LarderBackend
import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// Resets or closes the connection, or never answers: instead of processing the request, inside the reply, or in a TLS handshake.
struct Cut: FaultEffect {
    let how: FaultAction.ExchangeCut

    static let reset = FaultKind(Cut(how: .reset), at: stages, "the connection is reset (RST)")
    static let close = FaultKind(Cut(how: .close), at: stages, "the connection is closed (FIN)")
    static let never = FaultKind(Cut(how: .never), at: stages, "no reply at all")
    private static let stages: [Fault.Stage] = [.afterRead] + Fault.Stage.allCases.filter { $0 != .afterRead }

    var name: String { how.rawValue }

    var ending: FaultEnding? { .cut(how) }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        switch decision.fault.stage {
        case .head: reply.breakOff(at: min(decision.fault.at, reply.head.bytes.count), how)
        case .body: reply.breakOff(at: reply.offset(ofBody: decision.fault.at), how)
        case .end: reply.breakOff(at: reply.headCount + reply.body.count, how)
        case .handshake, .beforeRead, .requestBody, .afterRead, .afterCommit: break
        }
    }

    func change(_ handshake: inout Handshake, at byte: Int) {
        switch how {
        case .reset: handshake.end(.reset, after: byte)
        case .close: handshake.end(.close, after: byte)
        case .never: handshake.end(.stall, after: byte)
        }
    }
}

/// Closes the connection without a byte.
struct Empty: FaultEffect {
    static let kind = FaultKind(
        Empty(),
        at: [.afterCommit, .beforeRead, .afterRead],
        "the connection closes without a byte"
    )

    var name: String { "empty" }
    var ending: FaultEnding? { .cut(.close) }
}

/// Processes and commits the request, and loses the reply.
struct LoseReply: FaultEffect {
    var by = FaultAction.ExchangeCut.reset

    static let kind = FaultKind(
        LoseReply(),
        at: [.afterCommit],
        "the work is committed, and the reply is lost",
        [.choice("by", \.by, example: .close)]
    )

    var name: String { "loseReply" }
    var ending: FaultEnding? { .cut(by) }
}

/// Treats the token as expired.
struct ExpireToken: FaultEffect {
    static let kind = FaultKind(ExpireToken(), at: [.afterRead], "401, token-expired")

    var name: String { "expireToken" }
    var ending: FaultEnding? { .expireToken }
}

/// Closes the server's port for a while. It affects all worlds, so only `main` may use it.
struct CloseListener: FaultEffect {
    var duration = Duration.seconds(5)

    static let kind = FaultKind(
        CloseListener(),
        at: [.afterRead],
        "connections are refused",
        [.seconds("seconds", \.duration, maximum: 3_600, example: 0)]
    )

    var name: String { "closeListener" }
    var ending: FaultEnding? { .refuseConnections(duration) }
}

/// Resets connections that were opened before the fault's window, which is decided before everything else.
struct StaleConnections: FaultEffect {
    static let kind = FaultKind(
        StaleConnections(),
        at: [.afterRead],
        "connections from before the fault's window are dead"
    )

    var name: String { "staleConnections" }
}
