import LarderEngine
import LarderSQLite
import LarderTime
import Synchronization

/// What was asked and answered in a world since recording began, byte by byte. Safe from any thread.
final class Tape: Sendable {
    /// One exchange.
    struct Entry: Sendable {
        /// The world's time at its arrival, counted from the beginning of the recording.
        let at: Duration
        let connection: Int
        /// Head, empty line and body, as they came.
        let request: [UInt8]
        /// Everything that was sent.
        var reply: [UInt8] = []
        var ending = ""
        var faults: [String] = []
    }

    /// Where a recording begins.
    struct Beginning: Sendable {
        let image: DatabaseImage
        /// What the secrets are made from that are issued while the recording runs.
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

    /// What a tape holds at most, in bytes of requests and replies.
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

    /// The random words of the next secret; nil when nothing is recorded.
    func nextSecretWords() -> [UInt64]? {
        guard isRecording else { return nil }
        return state.withLock { state -> [UInt64]? in
            guard var generator = state.secrets else { return nil }
            defer { state.secrets = generator }
            return (0..<World.secretWordCount).map { _ in generator.next() }
        }
    }

    /// Notes the arrival of a request; returns its place, or nil when nothing is recorded or the tape is full.
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

    /// What was recorded; nil when nothing is.
    var recording: (beginning: Beginning, entries: [Entry], isFull: Bool)? {
        state.withLock { state in state.beginning.map { ($0, state.entries, state.isFull) } }
    }
}
