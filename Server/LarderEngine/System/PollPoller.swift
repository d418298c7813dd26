import CSystem
import Glibc

/// poll(2), which needs no state of the system: the simulator uses it. The cost grows with the number of watched descriptors.
final class PollPoller: Poller {
    private var interests: [Int32: Readiness] = [:]
    /// POLLRDHUP, which is the same bit for both calls.
    private static let end = Int32(EPOLLRDHUP.rawValue)

    func watch(_ target: Int32, for interest: Readiness, isShared: Bool) throws(EngineError) {
        interests[target] = interest
    }

    func forget(_ target: Int32) { interests[target] = nil }

    func wait(timeout: Int32) -> [(descriptor: Int32, readiness: Readiness)] {
        // In one order, so that a simulation can be repeated.
        var entries = interests.sorted { $0.key < $1.key }.map { target, interest in
            var events = (interest.contains(.read) ? POLLIN : 0) | (interest.contains(.write) ? POLLOUT : 0)
            if interest.contains(.end) { events |= Self.end }
            return pollfd(fd: target, events: Int16(events), revents: 0)
        }
        guard unsafe poll(&entries, nfds_t(entries.count), timeout) > 0 else { return [] }
        return entries.filter { $0.revents != 0 }.map { entry in
            let flags = Int32(entry.revents)
            var readiness: Readiness = []
            if flags & Int32(POLLIN) != 0 { readiness.insert(.read) }
            if flags & Int32(POLLOUT) != 0 { readiness.insert(.write) }
            if flags & Self.end != 0 { readiness.insert(.end) }
            if flags & Int32(POLLERR | POLLNVAL) != 0 { readiness.insert(.hangUp) }
            // Bytes that arrived before the hang-up must still be read.
            if flags & Int32(POLLHUP) != 0 { readiness.insert(flags & Int32(POLLIN) != 0 ? .read : .hangUp) }
            return (entry.fd, readiness)
        }
    }
}
