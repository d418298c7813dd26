import LarderBackend
import LarderEngine
import LarderSQLite
import LarderTime
import Synchronization

/// The bytes that a world has received and sent since its recording began. Safe from any thread.
final class Recording: Sendable {
    /// One exchange.
    struct Entry: Sendable {
        /// The time of arrival, relative to the beginning of the recording, in the world's time.
        let at: Duration
        let connection: Int
        /// Head, empty line and body, as received except for the division into chunks.
        fileprivate(set) var request: [UInt8]
        /// All bytes that were sent.
        fileprivate(set) var reply: [UInt8] = []
        fileprivate(set) var ending = ""
        fileprivate(set) var faults: [String] = []
        /// Whether the reply is recorded. It never is for a live channel.
        fileprivate(set) var isFinished = false
    }

    /// The start of a recording.
    struct Beginning: Sendable {
        let image: DatabaseImage
        /// The seed of the secrets that are issued during the recording.
        let secretSeed: UInt64
        let time: WallTime
        let uptime: MonotonicTime
        let faults: [Fault]
        let settings: ReplySettings
    }

    /// The index of an exchange in one of the recordings of a world.
    struct Index: Sendable, Hashable {
        /// The number of the recording.
        fileprivate let recording: Int
        fileprivate let position: Int
    }

    private struct Arrival: Hashable {
        let connection: Int
        /// The number of the exchange on its connection.
        let exchange: Int
    }

    private struct State {
        /// How many recordings were started or stopped.
        var number = 0
        var beginning: Beginning?
        var entries: [Entry] = []
        /// The entries whose reply is not recorded yet.
        var unfinished: [Arrival: Int] = [:]
        var bytes = 0
        var isFull = false
        var secrets: SeededGenerator?

        /// Replaces the recording.
        mutating func restart(_ beginning: Beginning?) {
            self = State(number: number + 1, beginning: beginning)
            secrets = beginning.map { SeededGenerator(seed: $0.secretSeed) }
        }

        /// Takes room for further bytes. The first that do not fit end the recording: what follows depends on what is missing.
        mutating func take(_ count: Int, of maximum: Int) -> Bool {
            guard !isFull, bytes + count <= maximum else {
                isFull = true
                return false
            }
            bytes += count
            return true
        }
    }

    private let state = Mutex(State())
    private let isOn = Atomic<Bool>(false)

    private let bytesMaximum: Int

    /// - Parameter bytesMaximum: the maximum size of a recording, in bytes of requests and replies.
    init(bytesMaximum: Int = 64 << 20) { self.bytesMaximum = bytesMaximum }

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    func start(_ beginning: Beginning) {
        state.withLock { $0.restart(beginning) }
        isOn.store(true, ordering: .relaxed)
    }

    func stop() {
        isOn.store(false, ordering: .relaxed)
        state.withLock { $0.restart(nil) }
    }

    /// The random words of the next secret; nil if nothing is recorded.
    func nextSecretWords(_ count: Int) -> [UInt64]? {
        guard isRecording else { return nil }
        return state.withLock { state -> [UInt64]? in
            guard var generator = state.secrets else { return nil }
            defer { state.secrets = generator }
            return (0..<count).map { _ in generator.next() }
        }
    }

    /// Records the arrival of a request. The complete request replaces its head if that was recorded before.
    ///
    /// - Returns: its index; nil if nothing is recorded or the recording is full.
    func arrived(_ request: Request, connection: Int, uptime: MonotonicTime) -> Index? {
        guard isRecording else { return nil }
        return state.withLock { state in
            guard let beginning = state.beginning else { return nil }
            let arrival = Arrival(connection: connection, exchange: request.exchangeIndex)
            let bytes = Self.bytes(of: request)
            let known = state.unfinished[arrival]
            let more = bytes.count - (known.map { state.entries[$0].request.count } ?? 0)
            guard state.take(more, of: bytesMaximum) else { return nil }
            if let known {
                state.entries[known].request = bytes
                return Index(recording: state.number, position: known)
            }
            state.entries.append(Entry(at: uptime - beginning.uptime, connection: connection, request: bytes))
            state.unfinished[arrival] = state.entries.count - 1
            return Index(recording: state.number, position: state.entries.count - 1)
        }
    }

    /// The request as it can be sent again. A chunked body was decoded when it was received, and becomes one chunk.
    private static func bytes(of request: Request) -> [UInt8] {
        var bytes = request.head + Array("\r\n\r\n".utf8)
        guard request.fields.range(of: "transfer-encoding") != nil else { return bytes + request.body }
        if !request.body.isEmpty {
            bytes.append(contentsOf: "\(String(request.body.count, radix: 16))\r\n".utf8)
            bytes += request.body
            bytes.append(contentsOf: "\r\n".utf8)
        }
        return bytes + Array("0\r\n\r\n".utf8)
    }

    /// Records the reply to an exchange. Has no effect if another recording was started since.
    func finished(_ index: Index, _ request: Request, reply: [UInt8], ending: String, faults: [String]) {
        state.withLock { state in
            guard state.number == index.recording, state.take(reply.count, of: bytesMaximum) else { return }
            var entry = state.entries[index.position]
            entry.reply = reply
            entry.ending = ending
            entry.faults = faults
            entry.isFinished = true
            state.entries[index.position] = entry
            state.unfinished[Arrival(connection: entry.connection, exchange: request.exchangeIndex)] = nil
        }
    }

    /// The recorded exchanges that have their reply, in the order of arrival; nil if nothing is recorded.
    var contents: (beginning: Beginning, entries: [Entry], isFull: Bool)? {
        state.withLock { state in
            state.beginning.map { ($0, state.entries.filter(\.isFinished), state.isFull) }
        }
    }
}
