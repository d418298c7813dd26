public import Larder
import LarderTime
import Synchronization

/// A source for resources in tests: each request waits until the test answers it, in any order.
///
/// Safe from any task. A cancelled request throws `CancellationError` at once.
public final class ScriptedSource<Value: Sendable>: Sendable {
    private struct Request {
        var context: FetchContext
        var continuation: CheckedContinuation<Fetched<Value>, any Error>?
        var isCancelled = false
        /// Whether it waits for its answer or has it.
        var hasArrived = false
    }

    private struct State {
        var requests: [Request] = []
        /// How many requests wait for their answer or have it.
        var arrived = 0
        var prepared: [Result<Fetched<Value>, any Error>] = []
        var arrivals: [(count: Int, isAwake: Pending<Void>)] = []
        var cancellations: [(count: Int, isAwake: Pending<Void>)] = []
        var cancelled = 0
    }

    private let state = Mutex(State())

    /// A source without requests.
    public init() {}

    /// The contexts of all requests, in order.
    public var requests: [FetchContext] { state.withLock { $0.requests.map(\.context) } }

    /// The number of requests that were cancelled before they were answered.
    public var cancelled: Int { state.withLock { $0.cancelled } }

    /// Queues answers for the next requests.
    public func prepare(_ answers: Fetched<Value>...) {
        state.withLock { state in state.prepared += answers.map { .success($0) } }
    }

    /// Queues a failure for the next request.
    public func prepare(failure: any Error) { state.withLock { $0.prepared.append(.failure(failure)) } }

    /// The fetch function of a resource.
    public func fetch(_ context: FetchContext) async throws -> Fetched<Value> {
        let index = state.withLock { state in
            state.requests.append(Request(context: context))
            return state.requests.count - 1
        }
        defer { announce() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let ready = state.withLock { state -> Result<Fetched<Value>, any Error>? in
                    state.arrived += 1
                    state.requests[index].hasArrived = true
                    if state.requests[index].isCancelled { return .failure(CancellationError()) }
                    if !state.prepared.isEmpty { return state.prepared.removeFirst() }
                    state.requests[index].continuation = continuation
                    return nil
                }
                if let ready { continuation.resume(with: ready) }
                announce()
            }
        } onCancel: {
            let continuation = state.withLock { state in
                let continuation = state.requests[index].continuation.take()
                // One that has its answer is not counted.
                if continuation != nil || !state.requests[index].hasArrived { state.cancelled += 1 }
                state.requests[index].isCancelled = true
                return continuation
            }
            continuation?.resume(throwing: CancellationError())
            announce()
        }
    }

    /// Waits for a total number of requests. Returns at once if the calling task is cancelled.
    public func waitForRequests(_ count: Int) async {
        let isAwake = Pending<Void>()
        state.withLock { $0.arrivals.append((count, isAwake)) }
        announce()
        await isAwake.value(ifCancelled: ())
    }

    /// Waits for a total number of cancelled requests. Returns at once if the calling task is cancelled.
    public func waitForCancellations(_ count: Int) async {
        let isAwake = Pending<Void>()
        state.withLock { $0.cancellations.append((count, isAwake)) }
        announce()
        await isAwake.value(ifCancelled: ())
    }

    /// Answers a request by its index from 0. Returns false if it is not waiting.
    @discardableResult
    public func answer(_ index: Int, _ answer: Fetched<Value>) -> Bool { resume(index, .success(answer)) }

    /// Fails a request by its index from 0. Returns false if it is not waiting.
    @discardableResult
    public func fail(_ index: Int, _ error: any Error) -> Bool { resume(index, .failure(error)) }

    private func resume(_ index: Int, _ result: Result<Fetched<Value>, any Error>) -> Bool {
        let continuation = state.withLock { state in
            state.requests.indices.contains(index) ? state.requests[index].continuation.take() : nil
        }
        continuation?.resume(with: result)
        return continuation != nil
    }

    /// Resumes the waiters whose number is reached. A request counts once it waits for its answer or has it.
    private func announce() {
        let awake = state.withLock { state -> [Pending<Void>] in
            let count = state.arrived
            let cancelled = state.cancelled
            let awake =
                state.arrivals.filter { $0.count <= count }.map(\.isAwake)
                + state.cancellations.filter { $0.count <= cancelled }.map(\.isAwake)
            state.arrivals.removeAll { $0.count <= count }
            state.cancellations.removeAll { $0.count <= cancelled }
            return awake
        }
        for pending in awake { pending.finish(()) }
    }
}
