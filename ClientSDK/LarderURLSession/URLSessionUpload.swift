import Dispatch
import Foundation
import LarderTime
import LarderTransport
import Synchronization

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A body that a session reads from a pipe while another task fills the pipe, one piece at a time.
final class URLSessionUpload: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var lastProgress: MonotonicTime?
    }

    let pipe = RequestBodyPipe()
    private let body: RequestBody
    private let length: Int?
    private let state = Mutex(State())

    init(_ body: RequestBody, length: Int?) {
        self.body = body
        self.length = length
    }

    /// Begins to read the body.
    ///
    /// - Parameter failed: called if it cannot be read. The session gets an error then.
    func start(_ clock: any MonotonicClock, failed: @escaping @Sendable (TransportError) -> Void) {
        let task = Task.detached { [self] in
            do throws(TransportError) {
                let isWhole = try await body.write(length) { piece, _ in
                    guard await pipe.write(piece) else { return false }
                    state.withLock { $0.lastProgress = clock.uptime }
                    return true
                }
                pipe.finish(isWhole: isWhole)
            } catch {
                pipe.finish(isWhole: false)
                failed(error)
            }
        }
        state.withLock { $0.task = task }
    }

    /// Stops reading the body. The session gets an error and not an end, which could make a part look complete.
    func stop() {
        pipe.finish(isWhole: false)
        state.withLock { $0.task.take() }?.cancel()
    }

    /// Runs `work`, but not beyond the time in which no piece was sent.
    ///
    /// - Returns: nil if that time came first.
    func untilIdle<Value: Sendable>(
        for timeout: Duration,
        _ clock: any MonotonicClock & Sleeper,
        _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let start = clock.uptime
        return await withTaskGroup(of: IdleEnd<Value>.self) { group in
            group.addTask { .done(await work()) }
            group.addTask {
                while true {
                    let begin = self.state.withLock { $0.lastProgress } ?? start
                    guard clock.uptime < begin + timeout else { return .late }
                    do { try await clock.sleep(until: begin + timeout) } catch { return .cancelled }
                }
            }
            defer { group.cancelAll() }
            while let end = await group.next() {
                switch end {
                case .done(let value): return value
                case .late: return nil
                case .cancelled: continue
                }
            }
            return nil
        }
    }
}

private enum IdleEnd<Value: Sendable>: Sendable {
    case done(Value)
    case late
    case cancelled
}

/// One piece between the task that reads a body and the queue of the session that sends it.
final class RequestBodyPipe: Sendable {
    private struct State {
        var piece: [UInt8] = []
        var start = 0
        var taken: Pending<Bool>?
        /// Whether the end is that of the whole body; nil before the end.
        var isWhole: Bool?
    }

    private let state = Mutex(State())
    private let changed = DispatchSemaphore(value: 0)

    /// Whether the end is that of the whole body; nil before the end.
    var isWhole: Bool? { state.withLock { $0.isWhole } }

    /// Waits until the session has taken the whole piece.
    ///
    /// - Returns: false if the pipe has ended.
    func write(_ piece: [UInt8]) async -> Bool {
        guard !piece.isEmpty else { return true }
        let taken = Pending<Bool>()
        let isOver = state.withLock { state in
            guard state.isWhole == nil else { return true }
            state.piece = piece
            state.start = 0
            state.taken = taken
            return false
        }
        guard !isOver else { return false }
        changed.signal()
        return await taken.value(ifCancelled: false)
    }

    /// Sets the end; only the first call has an effect.
    func finish(isWhole: Bool) {
        let waiting: Pending<Bool>? = state.withLock { state in
            guard state.isWhole == nil else { return nil }
            state.isWhole = isWhole
            return state.taken.take()
        }
        waiting?.finish(false)
        changed.signal()
    }

    /// Waits for bytes and copies them; 0 at the end of the whole body, -1 if it is not complete.
    func read(_ buffer: UnsafeMutablePointer<UInt8>, _ maximum: Int) -> Int {
        while true {
            let (count, taken): (Int?, Pending<Bool>?) = state.withLock { state in
                if state.isWhole == false { return (-1, nil) }
                let count = min(maximum, state.piece.count - state.start)
                guard count > 0 else { return (state.isWhole == nil ? nil : 0, nil) }
                let target = unsafe UnsafeMutableRawBufferPointer(start: buffer, count: count)
                unsafe target.copyBytes(from: state.piece[state.start..<state.start + count])
                state.start += count
                guard state.start == state.piece.count else { return (count, nil) }
                state.piece = []
                state.start = 0
                return (count, state.taken.take())
            }
            taken?.finish(true)
            if let count { return count }
            changed.wait()
        }
    }
}

/// A pipe as a stream that a session reads on a queue of its own. Reading blocks this queue until there is a piece.
final class RequestBodyStream: InputStream {
    private let pipe: RequestBodyPipe
    private let isOpen = Mutex(false)

    init(_ pipe: RequestBodyPipe) {
        self.pipe = pipe
        super.init(data: Data())
    }

    override func open() { isOpen.withLock { $0 = true } }

    override func close() { pipe.finish(isWhole: false) }

    override var streamStatus: Stream.Status { isOpen.withLock { $0 } ? .open : .notOpen }

    override var streamError: (any Error)? { pipe.isWhole == false ? URLError(.cancelled) : nil }

    /// Whether `read` has a result, which may be the end.
    override var hasBytesAvailable: Bool { pipe.isWhole != true }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>,
        length: UnsafeMutablePointer<Int>
    ) -> Bool {
        false
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
        unsafe pipe.read(buffer, maxLength)
    }
}
