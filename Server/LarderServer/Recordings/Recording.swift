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
        /// Head, empty line and body, as received.
        let request: [UInt8]
        /// All bytes that were sent.
        var reply: [UInt8] = []
        var ending = ""
        var faults: [String] = []
    }

    /// The start of a recording.
    struct Beginning: Sendable {
        let image: DatabaseImage
        /// The seed of the secrets that are issued during the recording.
        let secretSeed: UInt64
        let time: WallTime
        let uptime: MonotonicTime
    }

    private struct State {
        var beginning: Beginning?
        var entries: [Entry] = []
        var bytes = 0
        var isFull = false
        var secrets: SeededGenerator?
    }

    private let state = Mutex(State())
    private let isOn = Atomic<Bool>(false)

    /// The maximum size of a recording, in bytes of requests and replies.
    static let bytesMaximum = 64 << 20

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    func start(_ beginning: Beginning) {
        state.withLock { state in
            state = State()
            state.beginning = beginning
            state.secrets = SeededGenerator(seed: beginning.secretSeed)
        }
        isOn.store(true, ordering: .relaxed)
    }

    func stop() {
        isOn.store(false, ordering: .relaxed)
        state.withLock { $0 = State() }
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

    /// Records the arrival of a request; returns its index, or nil if nothing is recorded or the recording is full.
    func arrived(_ request: Request, connection: Int, uptime: MonotonicTime) -> Int? {
        guard isRecording else { return nil }
        return state.withLock { state in
            guard let beginning = state.beginning else { return nil }
            let bytes = request.head + Array("\r\n\r\n".utf8) + request.body
            guard state.bytes + bytes.count <= Self.bytesMaximum else {
                state.isFull = true
                return nil
            }
            state.bytes += bytes.count
            state.entries.append(Entry(at: uptime - beginning.uptime, connection: connection, request: bytes))
            return state.entries.count - 1
        }
    }

    func finished(_ place: Int, reply: [UInt8], ending: String, faults: [String]) {
        state.withLock { state in
            guard state.entries.indices.contains(place) else { return }
            guard state.bytes + reply.count <= Self.bytesMaximum else {
                state.isFull = true
                return
            }
            state.bytes += reply.count
            state.entries[place].reply = reply
            state.entries[place].ending = ending
            state.entries[place].faults = faults
        }
    }

    /// The recorded exchanges; nil if nothing is recorded.
    var contents: (beginning: Beginning, entries: [Entry], isFull: Bool)? {
        state.withLock { state in state.beginning.map { ($0, state.entries, state.isFull) } }
    }
}
