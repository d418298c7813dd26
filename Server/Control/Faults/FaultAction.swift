import LarderCoding
import LarderHTTP

/// What goes wrong.
public enum FaultAction: Sendable, Hashable {
    /// Everything takes longer: a new connection, the first byte, the body.
    case latency(connect: Distribution?, firstByte: Distribution?, body: Distribution?)
    /// Bytes a second in each direction, shared by all connections of a device.
    case bandwidth(down: Int?, up: Int?)
    /// Another reply instead.
    case respond(CannedReply)
    /// The connection is torn down (RST).
    case reset
    /// The connection is closed in order (FIN).
    case close
    /// Nothing ever comes.
    case never
    /// The connection is closed without a byte.
    case empty
    /// The body breaks off although its length was promised.
    case truncate(Truncation)
    /// Some bits of the body are flipped.
    case corrupt(bytes: Int)
    /// The body is said to be something that it is not.
    case contentType(String)
    /// The body is JSON no more.
    case malformedJSON
    /// The reply is chunked, and one chunk's size is no number.
    case malformedChunk
    /// The body comes drop by drop.
    case drip(bytes: Int, every: Duration)
    /// What was asked for is done and committed, and nobody is told.
    case loseReply(ExchangeCut)
    /// The request is carried out twice.
    case duplicate
    /// Reads show the state as it was.
    case lag(Lag)
    /// Validators that cannot be relied on.
    case validators(ValidatorFault)
    /// The token counts as expired.
    case expireToken
    /// Packets are lost: what an application sees are stalls, never missing bytes.
    case loss(BurstLoss)
    /// The server cannot be connected to for a while; all worlds are hit, so only `main` may ask for it.
    case closeListener(Duration)
    /// Connections that were there before the fault's window began are dead.
    case staleConnections
    /// What happens on a WebSocket or an event stream once it is open.
    case live(LiveFault)

    /// How a body breaks off.
    public enum Truncation: Sendable, Hashable {
        case byte(Int)
        /// Inside a character of several bytes; in the middle where there is none.
        case insideCharacter
        /// Inside the size of a chunk.
        case insideChunkHeader
    }

    /// How a connection ends under an exchange.
    public enum ExchangeCut: String, Sendable, Hashable, CaseIterable {
        case reset
        case close
        case never
    }

    /// How far a replica lags behind.
    public struct Lag: Sendable, Hashable {
        /// How long ago the state was what reads show.
        public var age: Duration?
        /// How many commits ago it was.
        public var commits: Int?
        /// Whether all reads of a device see the lagging replica, or each by chance that or the present.
        public var isConsistent = true

        /// A replica that is `age` behind.
        public init(age: Duration) { self.age = age }

        /// A replica that is so many commits behind.
        public init(commits: Int) { self.commits = commits }
    }

    /// What is wrong with validators.
    public enum ValidatorFault: String, Sendable, Hashable, CaseIterable {
        /// The same ETag for ever, whatever the bytes are: a 304 where a 200 was due.
        case wrong
        case missing
        case weak
        /// Another ETag each time for the same bytes.
        case changing
    }

    /// Where the action strikes if nothing else is said.
    var usualStage: Fault.Stage {
        switch self {
        case .loseReply, .truncate, .corrupt, .contentType, .malformedJSON, .malformedChunk, .drip, .validators, .loss,
            .live, .empty, .duplicate, .lag:
            stages[0]
        default: .afterRead
        }
    }

    /// Where the action may strike.
    var stages: [Fault.Stage] {
        switch self {
        case .reset, .close, .never: Fault.Stage.allCases
        case .respond, .latency: [.beforeRead, .afterRead, .afterCommit]
        case .empty: [.afterCommit, .beforeRead, .afterRead]
        case .truncate, .corrupt, .contentType, .malformedJSON, .malformedChunk, .drip, .validators, .loss: [.body]
        case .loseReply: [.afterCommit]
        case .bandwidth, .duplicate, .lag, .expireToken, .closeListener, .staleConnections, .live: [.afterRead]
        }
    }

    /// Whether nothing after it can matter any more.
    var isTerminal: Bool {
        switch self {
        case .respond, .reset, .close, .never, .empty, .loseReply, .expireToken, .closeListener, .staleConnections: true
        default: false
        }
    }
}

/// A reply that a fault gives instead of the server's.
public struct CannedReply: Sendable, Hashable {
    /// How `Retry-After` is written.
    public enum RetryAfter: Sendable, Hashable {
        case seconds(Int)
        /// As an HTTP date that many seconds from now, in the world's time.
        case date(inSeconds: Int)
    }

    /// The status code, from 200 to 599.
    public var status: Int
    /// The name of a problem type of the server; nil for one that goes by the status.
    public var problem: String?
    /// What the problem says of this occasion.
    public var detail: String?
    /// Further fields.
    public var headers: [String: String] = [:]
    /// A body of your own instead of a problem.
    public var body: String?
    /// The media type of `body`.
    public var contentType: String?
    /// When to come again, if the reply says so.
    public var retryAfter: RetryAfter?

    /// A problem with a status.
    public init(status: Int) { self.status = status }
}

/// Loss of packets as TCP shows it: a two-state model (Gilbert and Elliott) decides for each segment whether it must be sent
/// again, and every one that must delays what follows by a retransmission time-out.
public struct BurstLoss: Sendable, Hashable {
    /// How likely a good state turns bad with the next segment.
    public var goodToBad: Double
    /// How likely a bad state turns good with the next segment.
    public var badToGood: Double
    /// How likely a segment is lost in the good state.
    public var lossInGood: Double
    /// How likely a segment is lost in the bad state.
    public var lossInBad: Double
    /// How long one retransmission takes; it doubles while one segment is lost again and again.
    public var timeout: Duration

    /// About 1 % lost, in bursts.
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

/// What goes wrong with the frames of a live channel. Probabilities are for each frame.
public struct LiveFault: Sendable, Hashable {
    /// How likely a frame is lost.
    public var lose = 0.0
    /// How likely a frame is sent twice.
    public var duplicate = 0.0
    /// How likely a frame waits until the next has gone.
    public var reorder = 0.0
    /// How long a frame waits.
    public var delay: Distribution?
    /// The frame, from 1, behind which the channel ends; and what happens before it is not disturbed by that.
    public var endAfterFrames: Int?
    /// The time after which the channel ends, even while pings flow.
    public var endAfter: Duration?
    /// How it ends: with this close code, or without a close frame if nil.
    public var closeCode: Int?
    /// The frame behind which nothing comes any more although the connection stays and pings are answered.
    public var silenceAfterFrames: Int?

    /// Nothing, until something is set.
    public init() {}
}
