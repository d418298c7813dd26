import LarderTime
import OrderedJobs

/// Returns when the process is at rest: no task can go on before a test does something, a clock is moved, or something happens outside
/// of the process. Tests of one process rest one after another.
///
/// With `LARDER_ORDER_SEED=off` nobody knows that, and this lets other tasks run for a while: such runs look for data races only.
package func rest() async {
    guard order_is_on() else {
        for _ in 0..<1_000 { await Task.yield() }
        return
    }
    await withCheckedContinuation { continuation in
        let call = Call { continuation.resume() }
        unsafe order_at_rest({ unsafe Call.run($0) }, Unmanaged.passRetained(call).toOpaque())
    }
}

/// Returns after a time of the system's clock. For time limits only: a test does not depend on that clock.
func pass(_ limit: Duration) async throws {
    guard order_is_on() else {
        let clock = SystemMonotonicClock()
        return try await clock.sleep(until: clock.uptime + limit)
    }
    let isOver = Pending<Bool>()
    let call = Call { isOver.finish(true) }
    let nanoseconds = limit.components.seconds * 1_000_000_000
    unsafe order_add_after(nanoseconds, { unsafe Call.run($0) }, Unmanaged.passRetained(call).toOpaque())
    guard await isOver.value(ifCancelled: false) else { throw CancellationError() }
}

/// Work without a thread of its own in the order of the process, until this is released.
///
/// Made and released in a task. `@unchecked Sendable`: the step is called in the order of the process only.
package final class WorkSource: @unchecked Sendable {
    private final class Step {
        let body: () -> Bool
        init(_ body: @escaping () -> Bool) { self.body = body }
    }

    private let step: Step

    /// - Parameter body: called whenever no task can go on; returns whether it did something.
    package init(_ body: @escaping () -> Bool) {
        step = Step(body)
        unsafe order_add_source(
            { context in
                guard let context = unsafe context else { return false }
                return unsafe Unmanaged<Step>.fromOpaque(context).takeUnretainedValue().body()
            },
            Unmanaged.passUnretained(step).toOpaque()
        )
    }

    deinit { unsafe order_remove_source(Unmanaged.passUnretained(step).toOpaque()) }
}

/// A call on its way through the order of the process.
private final class Call: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    static func run(_ context: UnsafeMutableRawPointer?) {
        guard let context = unsafe context else { return }
        unsafe Unmanaged<Call>.fromOpaque(context).takeRetainedValue().body()
    }
}

/// Called before the first job of a process whose jobs have one order.
@_cdecl("larder_order_begins")
func orderBegins() {
    JobOrder.current = JobOrder(
        add: { body in
            unsafe order_add({ unsafe Call.run($0) }, Unmanaged.passRetained(Call(body)).toOpaque())
        },
        settle: { order_settle() }
    )
}
