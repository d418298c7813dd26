import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTLS
import LarderTime

/// Resets or closes the connection, or never answers: instead of processing the request, inside the reply, or in a TLS handshake.
struct Cut: FaultEffect {
    let how: FaultAction.ExchangeCut

    static let kind = FaultKind("reset", Cut(how: .reset), at: stages, "the connection is reset (RST)")
    static let close = FaultKind("close", Cut(how: .close), at: stages, "the connection is closed (FIN)")
    static let never = FaultKind("never", Cut(how: .never), at: stages, "no reply at all")
    private static let stages: [Fault.Stage] = [.afterRead] + Fault.Stage.allCases.filter { $0 != .afterRead }

    var kind: FaultKind {
        switch how {
        case .reset: Self.kind
        case .close: Self.close
        case .never: Self.never
        }
    }

    var ending: FaultEnding? { .cut(how) }

    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {
        switch decision.fault.stage {
        case .head: reply.breakOff(at: min(decision.fault.at, reply.head.bytes.count), how)
        case .body: reply.breakOff(at: reply.offset(ofBody: decision.fault.at, inside: true), how)
        case .end: reply.breakOff(at: reply.headCount + reply.body.count, how)
        case .handshake, .beforeRead, .requestBody, .afterRead, .afterCommit: break
        }
    }

    func change(_ handshake: inout Handshake, at byte: Int) {
        if handshake.fault.ending == nil { (handshake.fault.ending, handshake.fault.byteCount) = (how.ending, byte) }
    }
}

extension FaultAction.ExchangeCut {
    /// What the engine does.
    var ending: ExchangeEnding {
        switch self {
        case .reset: .reset
        case .close: .close
        case .never: .silence
        }
    }

    /// The outcome in the journal of an exchange without a reply, and of one that was cut within it.
    var words: (whole: String, part: String) {
        switch self {
        case .reset: ("reset", "reset")
        case .close: ("closed", "truncated")
        case .never: ("silent", "stalled")
        }
    }
}

/// Processes and commits the request, and loses the reply.
struct LoseReply: FaultEffect {
    var by = FaultAction.ExchangeCut.reset

    static let kind = FaultKind(
        "loseReply",
        LoseReply(),
        at: [.afterCommit],
        "the work is committed, and the reply is lost",
        [.init("by", \.by, .choice, example: .close)]
    )

    var ending: FaultEnding? { .cut(by) }
}

struct ExpireToken: FaultEffect {
    static let kind = FaultKind("expireToken", ExpireToken(), at: [.afterRead], "401, token-expired")

    var ending: FaultEnding? { .expireToken }
}

struct CloseListener: FaultEffect {
    var duration = Duration.seconds(5)

    static let kind = FaultKind(
        "closeListener",
        CloseListener(),
        at: [.afterRead],
        "connections are refused",
        [.init("seconds", \.duration, .seconds(maximum: 3_600), example: .seconds(0))]
    )

    var ending: FaultEnding? { .refuseConnections(duration) }
}

/// Resets connections that were opened before the fault's window, before everything else.
struct StaleConnections: FaultEffect {
    static let kind = FaultKind(
        "staleConnections",
        StaleConnections(),
        at: [.afterRead],
        "connections from before the fault's window are dead"
    )

    var ending: FaultEnding? { .cut(.reset) }
}

struct Certificate: FaultEffect {
    var fault: FaultAction.WrongCertificate?

    static let kind = FaultKind(
        "certificate",
        Certificate(),
        at: [.handshake],
        "a wrong certificate",
        [.init("fault", \.fault, .choice, example: .expired)],
        need: .all(["fault"])
    )

    func change(_ handshake: inout Handshake, at byte: Int) {
        if handshake.certificate == nil {
            handshake.certificate = fault.flatMap { CertificateFault(rawValue: $0.rawValue) }
        }
    }
}

struct NoCloseNotify: FaultEffect {
    static let kind = FaultKind(
        "noCloseNotify",
        NoCloseNotify(),
        at: [.handshake],
        "the connection is later closed without close_notify"
    )

    func change(_ handshake: inout Handshake, at byte: Int) { handshake.fault.omitsCloseNotify = true }
}
