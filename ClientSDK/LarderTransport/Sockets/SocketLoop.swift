import Foundation
import Glibc
import LarderTime
import Synchronization

/// What a handler waits for.
package struct SocketInterest {
    /// The socket; nil: only the deadline.
    package var descriptor: Int32?
    package var reads = false
    package var writes = false
    /// The time until `SocketHandler.deadlineReached` must be called, on the handler's clock; nil: never.
    package var timeLeft: Duration?

    package init(descriptor: Int32? = nil, reads: Bool = false, writes: Bool = false, timeLeft: Duration? = nil) {
        self.descriptor = descriptor
        self.reads = reads
        self.writes = writes
        self.timeLeft = timeLeft
    }
}

/// A participant of the loop. Methods are called on the loop's thread, without a lock of the loop.
package protocol SocketHandler: AnyObject, Sendable {
    /// What to wait for; nil removes the handler from the loop.
    var interest: SocketInterest? { get }
    /// Called when the socket is readable, writable or failed.
    func ready()
    /// Called when time has passed. The deadline may not be reached yet.
    func deadlineReached()
}

/// One thread that waits for all sockets of the process with poll(2). It exists while there are handlers.
///
/// After a change of a handler's `interest`, `wake()` must be called. Safe from any thread.
package final class SocketLoop: Sendable {
    package static let shared = SocketLoop()

    private struct State {
        /// In the order in which they were added.
        var handlers: [any SocketHandler] = []
        var isRunning = false
        /// Whether the pipe contains an unread byte.
        var isWoken = false
        var pipe: (read: Int32, write: Int32)?
    }

    private let state = Mutex(State())
    private let isStepped: Bool

    /// - Parameter isStepped: whether the loop has no thread: the caller calls `step`. For a simulation on one thread.
    package init(isStepped: Bool = false) { self.isStepped = isStepped }

    /// Adds a handler.
    ///
    /// - Returns: false if no descriptor is left for the loop itself.
    package func add(_ handler: any SocketHandler) -> Bool {
        let (isThere, starts) = state.withLock { state in
            if state.pipe == nil { state.pipe = SocketCall.pipe() }
            guard state.pipe != nil else { return (false, false) }
            if !state.handlers.contains(where: { $0 === handler }) { state.handlers.append(handler) }
            guard !isStepped else { return (true, false) }
            defer { state.isRunning = true }
            return (true, !state.isRunning)
        }
        guard isThere else { return false }
        if starts {
            let thread = Thread { self.run() }
            thread.name = "larder-sockets"
            thread.start()
        } else {
            wake()
        }
        return true
    }

    /// Makes the loop read the interest of all handlers again.
    package func wake() {
        state.withLock { state in
            guard state.isRunning, !state.isWoken, let pipe = state.pipe else { return }
            state.isWoken = true
            _ = SocketCall.send(pipe.write, [1], from: 0, isPipe: true)
        }
    }

    private func run() {
        var polled: [pollfd] = []
        var owners: [any SocketHandler] = []
        while true {
            guard let (handlers, wakeUp) = begin() else { return }
            polled.removeAll(keepingCapacity: true)
            owners.removeAll(keepingCapacity: true)
            polled.append(pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0))
            let (timed, timeout) = watch(handlers, &polled, &owners)
            if owners.isEmpty, timed.isEmpty, state.withLock({ $0.handlers.isEmpty }) { continue }
            SocketCall.wait(&polled, for: timeout)
            if polled[0].revents != 0 { drain(wakeUp) }
            for (index, owner) in owners.enumerated() where polled[index + 1].revents != 0 { owner.ready() }
            for handler in timed { handler.deadlineReached() }
        }
    }

    /// Adds the descriptors that the handlers wait for, and removes the handlers that have ended.
    ///
    /// - Returns: the handlers with a deadline, and the time until the first one.
    private func watch(
        _ handlers: [any SocketHandler],
        _ polled: inout [pollfd],
        _ owners: inout [any SocketHandler]
    ) -> (timed: [any SocketHandler], timeout: Duration?) {
        var timeout: Duration?
        var timed: [any SocketHandler] = []
        for handler in handlers {
            guard let interest = handler.interest else {
                state.withLock { $0.handlers.removeAll { $0 === handler } }
                continue
            }
            if let left = interest.timeLeft {
                timeout = min(timeout ?? left, left)
                timed.append(handler)
            }
            guard let descriptor = interest.descriptor else { continue }
            var events: Int32 = 0
            if interest.reads { events |= Int32(POLLIN) }
            if interest.writes { events |= Int32(POLLOUT) }
            polled.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
            owners.append(handler)
        }
        return (timed, timeout)
    }

    /// Serves what is ready and due, without waiting. For a loop without a thread.
    ///
    /// - Returns: whether something was ready or due, and the time until the next deadline; nil: there is none.
    package func step() -> (isActive: Bool, timeLeft: Duration?) {
        precondition(isStepped, "A loop with a thread of its own must not be stepped.")
        var polled: [pollfd] = []
        var owners: [any SocketHandler] = []
        let (timed, timeout) = watch(state.withLock { $0.handlers }, &polled, &owners)
        if owners.isEmpty, timed.isEmpty { return (false, nil) }
        SocketCall.wait(&polled, for: .zero)
        var isActive = false
        for (index, owner) in owners.enumerated() where polled[index].revents != 0 {
            owner.ready()
            isActive = true
        }
        guard let timeout, timeout <= .zero else { return (isActive, timeout) }
        for handler in timed { handler.deadlineReached() }
        return (true, nil)
    }

    /// Returns the handlers; nil if there are none, so that the thread must end.
    private func begin() -> ([any SocketHandler], Int32)? {
        state.withLock { state in
            guard !state.handlers.isEmpty, let pipe = state.pipe else {
                state.isRunning = false
                return nil
            }
            return (state.handlers, pipe.read)
        }
    }

    private func drain(_ descriptor: Int32) {
        state.withLock { state in
            SocketCall.drain(descriptor)
            state.isWoken = false
        }
    }
}
