import Foundation
import Glibc

/// A thread that waits for descriptors in poll(2), for sources that the system reports through files and sockets.
///
/// Ends and closes the descriptors when this object is released.
final class PollThread: Sendable {
    /// A descriptor and the events to wait for.
    struct Descriptor: Sendable {
        let number: Int32
        let events: Int16
        /// Whether an error is final, as for the kernel's triggers. A socket recovers.
        var endsWithError = false
    }

    private let wakeUp: Int32

    /// Nil if the process has no descriptors left.
    ///
    /// - Parameters:
    ///   - descriptors: owned by the thread from now on.
    ///   - timeout: the first timeout in milliseconds; -1 for none.
    ///   - body: called with the events of each descriptor, all zero after a timeout; returns the next timeout.
    init?(
        _ name: String,
        _ descriptors: [Descriptor],
        timeout: Int32,
        _ body: @escaping @Sendable (_ ready: [Int16]) -> Int32
    ) {
        var ends: [Int32] = [0, 0]
        guard unsafe pipe(&ends) == 0 else {
            for descriptor in descriptors { close(descriptor.number) }
            return nil
        }
        let (stop, wakeUp) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        self.wakeUp = wakeUp
        let thread = Thread {
            var timeout = timeout
            var polled = descriptors.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
            polled.append(pollfd(fd: stop, events: Int16(POLLIN), revents: 0))
            while true {
                let count = unsafe poll(&polled, nfds_t(polled.count), timeout)
                if count < 0 {
                    if errno == EINTR { continue }
                    break
                }
                if polled[polled.count - 1].revents != 0 { break }
                timeout = body(polled.dropLast().map(\.revents))
                for (index, descriptor) in descriptors.enumerated() {
                    let last = Int16(POLLNVAL) | Int16(POLLHUP) | (descriptor.endsWithError ? Int16(POLLERR) : 0)
                    // poll(2) ignores negative descriptors; otherwise it would return at once for ever.
                    if polled[index].revents & last != 0 { polled[index].fd = -1 }
                }
            }
            close(stop)
            for descriptor in descriptors { close(descriptor.number) }
        }
        thread.name = name
        thread.stackSize = 256 << 10
        thread.start()
    }

    deinit { close(wakeUp) }
}
