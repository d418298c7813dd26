import LarderEngine
import Synchronization

/// An exchange that is over. Live channels are not recorded.
struct RecordedExchange: Sendable {
    /// Head, empty line and body, as received except for the division into chunks.
    let request: [UInt8]
    /// All bytes that were sent.
    let reply: [UInt8]
    /// How a fault has ended the exchange; empty for a whole reply.
    let ending: String
}

/// The requests of a world and its replies since a recording began. Safe from any thread.
final class Recording: Sendable {
    /// The place of an exchange in one of the recordings of a world.
    struct Arrival: Sendable, Hashable {
        /// The number of the recording.
        fileprivate let recording: Int
        fileprivate let position: Int
    }

    private struct State {
        /// How many recordings were started or stopped.
        var number = 0
        var lastPosition = 0
        var entries: [(position: Int, exchange: RecordedExchange)] = []
        var bytes = 0
        var isFull = false
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

    /// Reserves a place for a request that has arrived; nil if nothing is recorded.
    func arrived() -> Arrival? {
        guard isRecording else { return nil }
        return state.withLock { state in
            state.lastPosition += 1
            return Arrival(recording: state.number, position: state.lastPosition)
        }
    }

    /// Records an exchange. The first that does not fit ends the recording. Has no effect if another recording was started since the arrival.
    func finished(_ arrival: Arrival, _ request: Request, reply: [UInt8], ending: String) {
        let bytes = Self.bytes(of: request)
        state.withLock { state in
            guard state.number == arrival.recording else { return }
            state.isFull = state.isFull || state.bytes + bytes.count + reply.count > bytesMaximum
            guard !state.isFull else { return }
            state.bytes += bytes.count + reply.count
            let exchange = RecordedExchange(request: bytes, reply: reply, ending: ending)
            state.entries.append((arrival.position, exchange))
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

    /// The recorded exchanges in the order of arrival; nil if nothing is recorded.
    var contents: (entries: [RecordedExchange], isFull: Bool)? {
        guard isRecording else { return nil }
        let (entries, isFull) = state.withLock { ($0.entries, $0.isFull) }
        return (entries.sorted { $0.position < $1.position }.map(\.exchange), isFull)
    }
}
