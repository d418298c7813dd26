import LarderEngine
import Synchronization

/// The requests of a world and its replies since a recording began. Safe from any thread.
final class Recording: Sendable {
    /// One exchange.
    struct Entry: Sendable {
        /// Head, empty line and body, as received except for the division into chunks.
        fileprivate(set) var request: [UInt8]
        /// All bytes that were sent.
        fileprivate(set) var reply: [UInt8] = []
        fileprivate(set) var ending = ""
        /// Whether the reply is recorded. It never is for a live channel.
        fileprivate(set) var isFinished = false
    }

    /// The index of an exchange in one of the recordings of a world.
    struct Index: Sendable, Hashable {
        /// The number of the recording.
        fileprivate let recording: Int
        fileprivate let position: Int
    }

    private struct Arrival: Hashable {
        let connection: UInt64
        /// The number of the exchange on its connection.
        let exchange: Int

        init(_ request: Request) { (connection, exchange) = (request.connection, request.exchangeIndex) }
    }

    private struct State {
        /// How many recordings were started or stopped.
        var number = 0
        var entries: [Entry] = []
        /// The entries whose reply is not recorded yet.
        var unfinished: [Arrival: Int] = [:]
        var bytes = 0
        var isFull = false

        /// Takes room for further bytes. The first that do not fit end the recording.
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

    /// Starts an empty recording, which replaces an earlier one.
    func start() { restart(isRecording: true) }

    func stop() { restart(isRecording: false) }

    private func restart(isRecording: Bool) {
        state.withLock { $0 = State(number: $0.number + 1) }
        isOn.store(isRecording, ordering: .relaxed)
    }

    /// Records the arrival of a request. The complete request replaces its head if that was recorded before.
    ///
    /// - Returns: its index; nil if nothing is recorded or the recording is full.
    func arrived(_ request: Request) -> Index? {
        guard isRecording else { return nil }
        return state.withLock { state in
            let arrival = Arrival(request)
            let bytes = Self.bytes(of: request)
            let known = state.unfinished[arrival]
            let more = bytes.count - (known.map { state.entries[$0].request.count } ?? 0)
            guard state.take(more, of: bytesMaximum) else { return nil }
            if let known {
                state.entries[known].request = bytes
                return Index(recording: state.number, position: known)
            }
            state.entries.append(Entry(request: bytes))
            state.unfinished[arrival] = state.entries.count - 1
            return Index(recording: state.number, position: state.entries.count - 1)
        }
    }

    /// The request as it can be read again. A chunked body was decoded when it was received, and becomes one chunk.
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
    func finished(_ index: Index, _ request: Request, reply: [UInt8], ending: String) {
        state.withLock { state in
            guard state.number == index.recording, state.take(reply.count, of: bytesMaximum) else { return }
            state.entries[index.position].reply = reply
            state.entries[index.position].ending = ending
            state.entries[index.position].isFinished = true
            state.unfinished[Arrival(request)] = nil
        }
    }

    /// The recorded exchanges that have their reply, in the order of arrival; nil if nothing is recorded.
    var contents: (entries: [Entry], isFull: Bool)? {
        guard isRecording else { return nil }
        return state.withLock { state in (state.entries.filter(\.isFinished), state.isFull) }
    }
}
