import Synchronization

/// The exchanges of a world since a recording began, as the entries of an HTTP archive. Live channels, and replies that a fault has cut, are
/// not recorded. Safe from any thread.
final class Recording: Sendable {
    /// The place of an exchange in one of the recordings of a world.
    struct Arrival: Sendable {
        /// The number of the recording.
        fileprivate let recording: Int
        fileprivate let position: Int
    }

    private struct State {
        /// How many recordings were started or stopped.
        var number = 0
        var lastPosition = 0
        var entries: [(position: Int, json: [UInt8])] = []
        var bytes = 0
        var isFull = false
    }

    private let state = Mutex(State())
    private let isOn = Atomic<Bool>(false)

    private let bytesMaximum: Int

    /// - Parameter bytesMaximum: the maximum size of all entries.
    init(bytesMaximum: Int = 64 << 20) { self.bytesMaximum = bytesMaximum }

    var isRecording: Bool { isOn.load(ordering: .relaxed) }

    /// Starts an empty recording, which replaces an earlier one; returns the number of its exchanges.
    @discardableResult func start() -> Int { restart(isRecording: true) }

    func stop() { restart(isRecording: false) }

    @discardableResult private func restart(isRecording: Bool) -> Int {
        defer { isOn.store(isRecording, ordering: .relaxed) }
        return state.withLock { state in
            defer { state = State(number: state.number + 1) }
            return state.entries.count
        }
    }

    /// Reserves a place for a request that has arrived; nil if nothing is recorded.
    func arrived() -> Arrival? {
        guard isRecording else { return nil }
        return state.withLock { state in
            state.lastPosition += 1
            return Arrival(recording: state.number, position: state.lastPosition)
        }
    }

    /// Adds an entry in JSON. The first that does not fit ends the recording. Has no effect if another recording was started since the arrival.
    ///
    /// - Parameter entry: called if the recording is not full.
    func finished(_ arrival: Arrival, _ entry: () -> [UInt8]) {
        guard state.withLock({ $0.number == arrival.recording && !$0.isFull }) else { return }
        let entry = entry()
        state.withLock { state in
            guard state.number == arrival.recording else { return }
            state.isFull = state.isFull || state.bytes + entry.count > bytesMaximum
            guard !state.isFull else { return }
            state.bytes += entry.count
            state.entries.append((arrival.position, entry))
        }
    }

    /// The archive, in the order of arrival; nil if nothing is recorded.
    var document: [UInt8]? {
        guard isRecording else { return nil }
        let (entries, isFull) = state.withLock { ($0.entries, $0.isFull) }
        return HAR.document(entries.sorted { $0.position < $1.position }.map(\.json), isComplete: !isFull)
    }
}
