import LarderBackend
import LarderCoding
import LarderHTTP
import LarderTLS

/// What a fault does to an exchange.
public enum FaultAction: Sendable, Hashable {
    /// Adds latency: to a new connection, the first byte, or the body.
    case latency(connect: Distribution?, firstByte: Distribution?, body: Distribution?)
    /// Limits the bandwidth in bytes per second and direction, shared by all connections of a device.
    case bandwidth(down: Int?, up: Int?)
    /// Sends another reply.
    case respond(CannedReply)
    /// Resets the connection (RST).
    case reset
    /// Closes the connection (FIN).
    case close
    /// Never answers.
    case never
    /// Closes the connection without a byte.
    case empty
    /// Truncates the body although its length was announced.
    case truncate(Truncation)
    /// Flips bits of the body.
    case corrupt(bytes: Int)
    /// Sends a wrong `Content-Type`.
    case contentType(String)
    /// Makes the body invalid JSON.
    case malformedJSON
    /// Sends a chunked reply with an invalid chunk size.
    case malformedChunk
    /// Sends the body in small pieces with delays.
    case drip(bytes: Int, every: Duration)
    /// Processes and commits the request, and loses the reply.
    case loseReply(ExchangeCut)
    /// Processes the request twice.
    case duplicate
    /// Reads see an earlier state.
    case lag(Lag)
    /// Sends unreliable validators.
    case validators(ValidatorFault)
    /// Treats the token as expired.
    case expireToken
    /// Loses packets: an application sees stalls, never missing bytes.
    case loss(BurstLoss)
    /// Closes the server's port for a while. It affects all worlds, so only `main` may use it.
    case closeListener(Duration)
    /// Resets connections that were opened before the fault's window.
    case staleConnections
    /// Applies to the frames of an open WebSocket or event stream.
    case live(LiveFault)
    /// Shows a wrong certificate in TLS handshakes. Certificates from files stay as they are.
    case certificate(WrongCertificate)
    /// Closes connections with TLS without `close_notify`.
    case noCloseNotify

    /// Where a body is truncated.
    public enum Truncation: Sendable, Hashable {
        case byte(Int)
        /// Inside a multi-byte character; in the middle if there is none.
        case insideCharacter
        /// Inside the size of a chunk.
        case insideChunkHeader
    }

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

        var fault: CertificateFault {
            switch self {
            case .expired: .expired
            case .notYetValid: .notYetValid
            case .wrongHost: .wrongHost
            case .unknownAuthority: .unknownAuthority
            case .wrongPurpose: .wrongPurpose
            }
        }
    }

    public enum ValidatorFault: String, Sendable, Hashable, CaseIterable {
        /// The same ETag forever, whatever the content: a 304 instead of a 200.
        case wrong
        case missing
        case weak
        /// A different ETag each time for the same content.
        case changing
    }

    /// The default stage of the action.
    var usualStage: Fault.Stage {
        switch self {
        case .loseReply, .truncate, .corrupt, .contentType, .malformedJSON, .malformedChunk, .drip, .validators, .loss,
            .live, .empty, .duplicate, .lag, .certificate, .noCloseNotify:
            stages[0]
        default: .afterRead
        }
    }

    /// The stages that the action supports.
    var stages: [Fault.Stage] {
        switch self {
        case .reset, .close, .never: Fault.Stage.allCases
        case .certificate, .noCloseNotify: [.handshake]
        case .respond, .latency: [.beforeRead, .afterRead, .afterCommit]
        case .empty: [.afterCommit, .beforeRead, .afterRead]
        case .truncate, .corrupt, .contentType, .malformedJSON, .malformedChunk, .drip, .validators, .loss: [.body]
        case .loseReply: [.afterCommit]
        case .bandwidth, .duplicate, .lag, .expireToken, .closeListener, .staleConnections, .live: [.afterRead]
        }
    }

    /// Whether the action decides the exchange, so that later ones have no effect.
    var isTerminal: Bool {
        switch self {
        case .respond, .reset, .close, .never, .empty, .loseReply, .expireToken, .closeListener, .staleConnections: true
        default: false
        }
    }
}

/// A reply that a fault sends instead of the server's.
public struct CannedReply: Sendable, Hashable {
    /// The form of `Retry-After`.
    public enum RetryAfter: Sendable, Hashable {
        case seconds(Int)
        /// An HTTP date that many seconds from now, in the world's time.
        case date(inSeconds: Int)
    }

    /// The status code, from 200 to 599.
    public var status: Int
    /// The name of one of the server's problem types; nil selects one by the status.
    public var problem: String?
    /// The problem's `detail`.
    public var detail: String?
    /// Additional fields.
    public var headers: [String: String] = [:]
    /// A body instead of a problem.
    public var body: String?
    /// The media type of `body`.
    public var contentType: String?
    /// `Retry-After`; nil for none.
    public var retryAfter: RetryAfter?

    /// A problem with a status.
    public init(status: Int) { self.status = status }
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
