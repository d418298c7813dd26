import LarderEngine
import LarderHTTP
import LarderTLS
import LarderTime

/// What a fault does, as its action in `FaultAction` says. An exchange asks the effects of its faults, in the order in which these were
/// set, at each of its parts; an effect implements the parts that it changes.
protocol FaultEffect: Sendable, Hashable {
    /// Its entry in `FaultKind.all`, if it has one.
    static var kind: FaultKind { get }

    /// Its entry in `FaultKind.all`.
    var kind: FaultKind { get }

    /// Whether it does something to a request, besides what the fault's match says.
    func concerns(_ request: Request) -> Bool

    /// Whether it is a delay, which may also slow the reply.
    var delaysReply: Bool { get }

    /// Whether a client cannot use the reply that it has changed, although all of it arrives.
    var damagesContent: Bool { get }

    /// How long the exchange waits at the fault's stage.
    func delay(_ decision: FaultDecision, _ facts: ExchangeFacts, _ lines: BandwidthTable, now: MonotonicTime)
        -> Duration

    /// How the exchange ends instead of going on after the fault's stage; nil if it goes on.
    var ending: FaultEnding? { get }

    /// Changes how the request is processed.
    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision)

    /// Whether `change(_:_:_:)` changes what only a reply with a whole body has: the content of a channel is not known when it begins.
    var needsWholeBody: Bool { get }

    /// Changes the bytes of the reply, or how they are sent.
    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request)

    /// Changes a TLS handshake. The first fault that says how it ends decides, and so for its certificate.
    func change(_ handshake: inout Handshake, at byte: Int)
}

extension FaultEffect {
    var kind: FaultKind { Self.kind }
    func concerns(_ request: Request) -> Bool { true }
    var delaysReply: Bool { false }
    var damagesContent: Bool { false }
    func delay(_ decision: FaultDecision, _ facts: ExchangeFacts, _ lines: BandwidthTable, now: MonotonicTime)
        -> Duration
    {
        .zero
    }
    var ending: FaultEnding? { nil }
    var needsWholeBody: Bool { false }
    func change(_ processing: inout FaultProcessing, _ decision: FaultDecision) {}
    func change(_ reply: inout ReplyMutator, _ decision: FaultDecision, _ request: Request) {}
    func change(_ handshake: inout Handshake, at byte: Int) {}
}

/// How a fault ends an exchange.
enum FaultEnding {
    case respond(CannedReply)
    case cut(FaultAction.ExchangeCut)
    /// 401: the token has expired.
    case expireToken
    /// The connection is reset, and no other is accepted for a while.
    case refuseConnections(Duration)

    /// Whether the client receives a reply, which other faults may change.
    var hasReply: Bool {
        switch self {
        case .respond, .expireToken: true
        case .cut, .refuseConnections: false
        }
    }
}

/// How a request is processed.
struct FaultProcessing {
    var request: Request
    var deviations: WorldExchange.Deviations
    /// The fault of the frames of a live channel.
    var live: (fault: LiveFault, decision: FaultDecision)?
    /// How many further times the request is processed.
    var repeats = 0
}

/// What goes wrong with a TLS handshake.
struct Handshake {
    var fault = HandshakeFault()
    var certificate: CertificateFault?
}

/// How fast the bytes of a reply are sent.
struct ReplyPace {
    var bandwidth: Int?
    var drip: (bytes: Int, every: Duration)?
    var loss: (model: BurstLoss, generator: SeededGenerator)?
    /// The delay between the head and the body.
    var bodyDelay: Duration = .zero

    var isSlow: Bool { bandwidth != nil || drip != nil || loss != nil || bodyDelay > .zero }
}
