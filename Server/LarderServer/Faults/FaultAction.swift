import LarderCoding
import LarderHTTP

/// What a fault does to an exchange. `FaultKind.all` is the table of all actions.
public struct FaultAction: Sendable, Hashable {
    let effect: any FaultEffect

    init(_ effect: any FaultEffect) { self.effect = effect }

    public static func == (left: FaultAction, right: FaultAction) -> Bool {
        AnyHashable(left.effect) == AnyHashable(right.effect)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(AnyHashable(effect)) }

    var kind: FaultKind { effect.kind }

    var name: String { kind.name }

    /// Adds latency: to a new connection, the first byte, or the body.
    public static func latency(connect: Distribution?, firstByte: Distribution?, body: Distribution?) -> FaultAction {
        FaultAction(Latency(connect: connect, firstByte: firstByte, body: body))
    }
    /// Limits the bandwidth in bytes per second and direction, shared by all connections of a device.
    public static func bandwidth(down: Int?, up: Int?) -> FaultAction { FaultAction(Bandwidth(down: down, up: up)) }
    /// Sends another reply.
    public static func respond(_ reply: CannedReply) -> FaultAction { FaultAction(reply) }
    /// Resets the connection (RST).
    public static let reset = FaultAction(Cut(how: .reset))
    /// Closes the connection (FIN).
    public static let close = FaultAction(Cut(how: .close))
    /// Never answers.
    public static let never = FaultAction(Cut(how: .never))
    /// Truncates the body although its length was announced.
    public static func truncate(_ place: Truncate) -> FaultAction { FaultAction(place) }
    /// Flips bits of the body.
    public static func corrupt(bytes: Int) -> FaultAction { FaultAction(Corrupt(bytes: bytes)) }
    /// Sends a wrong `Content-Type`.
    public static func contentType(_ value: String) -> FaultAction { FaultAction(WrongContentType(value: value)) }
    /// Makes the body invalid JSON.
    public static let malformedJSON = FaultAction(MalformedJSON())
    /// Sends a chunked reply with an invalid chunk size.
    public static let malformedChunk = FaultAction(MalformedChunk())
    /// Sends the body in small pieces with delays.
    public static func drip(bytes: Int, every: Duration) -> FaultAction {
        FaultAction(Drip(bytes: bytes, every: every))
    }
    /// Processes and commits the request, and loses the reply.
    public static func loseReply(_ how: ExchangeCut) -> FaultAction { FaultAction(LoseReply(by: how)) }
    /// Processes the request twice.
    public static let duplicate = FaultAction(Duplicate())
    /// Reads see an earlier state.
    public static func lag(_ lag: Lag) -> FaultAction { FaultAction(lag) }
    /// Changes a page of the change feed.
    public static func changes(_ page: ChangePageFault) -> FaultAction { FaultAction(ChangePage(page: page)) }
    /// Sends unreliable validators.
    public static func validators(_ mode: ValidatorFault) -> FaultAction { FaultAction(Validators(mode: mode)) }
    /// Treats the token as expired.
    public static let expireToken = FaultAction(ExpireToken())
    /// Loses packets: an application sees stalls, never missing bytes.
    public static func loss(_ model: BurstLoss) -> FaultAction { FaultAction(model) }
    /// Closes the server's port for a while. It affects all worlds, so only `main` may use it.
    public static func closeListener(_ duration: Duration) -> FaultAction {
        FaultAction(CloseListener(duration: duration))
    }
    /// Resets connections that were opened before the fault's window.
    public static let staleConnections = FaultAction(StaleConnections())
    /// Applies to the frames of an open WebSocket or event stream.
    public static func live(_ fault: LiveFault) -> FaultAction { FaultAction(fault) }
    /// Shows a wrong certificate in TLS handshakes. Certificates from files stay as they are.
    public static func certificate(_ wrong: WrongCertificate) -> FaultAction { FaultAction(Certificate(fault: wrong)) }
    /// Closes connections with TLS without `close_notify`.
    public static let noCloseNotify = FaultAction(NoCloseNotify())

    /// How a connection ends during an exchange.
    public enum ExchangeCut: String, Sendable, Hashable, CaseIterable {
        case reset
        case close
        case never
    }

    /// How far a replica lags behind.
    public struct Lag: Sendable, Hashable {
        /// The age of the state that reads see.
        public var age: Duration?
        /// The number of commits that reads do not see.
        public var commits: Int?
        /// Whether all reads of a device see the lagging replica; otherwise each read randomly sees it or the present state.
        public var isConsistent = true

        /// A replica that lags by `age`.
        public init(age: Duration) { self.age = age }

        /// A replica that lags by a number of commits.
        public init(commits: Int) { self.commits = commits }
    }

    /// What is wrong with the certificate of a server.
    public enum WrongCertificate: String, Sendable, Hashable, CaseIterable {
        case expired
        case notYetValid
        case wrongHost
        case unknownAuthority
        /// It is for clients and not for servers.
        case wrongPurpose
    }

    public enum ValidatorFault: String, Sendable, Hashable, CaseIterable {
        /// The same ETag forever, whatever the content: a 304 instead of a 200.
        case wrong
        case missing
        case weak
        /// A different ETag each time for the same content.
        case changing
    }

    // MARK: JSON

    /// Reads `{"type": "reset"}` and the like.
    static func read(_ reader: BodyReader) -> FaultAction? {
        let names = FaultKind.all.map(\.name)
        guard let type = reader.string("type", length: 1...64) else {
            reader.failMissing("type", "is missing; it is one of \(names.joined(separator: ", "))")
            return nil
        }
        guard let kind = FaultKind.all.first(where: { $0.name == type }) else {
            reader.failChoice("type", names)
            return nil
        }
        return kind.read(reader).map { FaultAction($0) }
    }

    var json: JSONValue {
        .object(JSONObject([.init(name: "type", value: .string(name))] + kind.write(effect)))
    }
}

/// Packet loss as seen through TCP: a two-state model (Gilbert–Elliott) decides for each segment whether it is retransmitted;
/// each retransmission delays later bytes by a timeout.
public struct BurstLoss: Sendable, Hashable {
    /// The probability that a segment changes the state from good to bad.
    public var goodToBad: Double
    /// The probability that a segment changes the state from bad to good.
    public var badToGood: Double
    /// The probability of loss in the good state.
    public var lossInGood: Double
    /// The probability of loss in the bad state.
    public var lossInBad: Double
    /// The retransmission timeout; it doubles for repeated losses of one segment.
    public var timeout: Duration

    /// About 1 % loss, in bursts.
    public init(
        goodToBad: Double = 0.02,
        badToGood: Double = 0.3,
        lossInGood: Double = 0,
        lossInBad: Double = 0.3,
        timeout: Duration = .milliseconds(300)
    ) {
        self.goodToBad = goodToBad
        self.badToGood = badToGood
        self.lossInGood = lossInGood
        self.lossInBad = lossInBad
        self.timeout = timeout
    }
}

/// Faults of a live channel's frames. Probabilities are per frame.
public struct LiveFault: Sendable, Hashable {
    /// The probability that a frame is lost.
    public var lose = 0.0
    /// The 1-based frame that is lost.
    public var loseFrame: Int?
    /// The probability that a frame is sent twice.
    public var duplicate = 0.0
    /// The probability that a frame is sent after the next one.
    public var reorder = 0.0
    /// The delay of a frame.
    public var delay: Distribution?
    /// The 1-based frame after which the channel ends. Other settings still apply to earlier frames.
    public var endAfterFrames: Int?
    /// The time after which the channel ends, regardless of pings.
    public var endAfter: Duration?
    /// The close code; nil ends the connection without a close frame.
    public var closeCode: Int?
    /// The frame after which nothing is sent although the connection stays open and pings are answered.
    public var silenceAfterFrames: Int?

    /// No fault until something is set.
    public init() {}
}
