import Glibc

/// poll(2), which needs no state of the system: the simulator uses it. The cost grows with the number of watched descriptors.
final class PollPoller: Poller {
    private var entries: [pollfd] = []
    private var indices: [Int32: Int] = [:]
    /// A copy of the last result, because event handlers may watch and unwatch.
    private var ready: [pollfd] = []

    func watch(_ target: Int32, for interest: Readiness, isShared: Bool) throws(EngineError) {
        var events: Int32 = 0
        if interest.contains(.read) { events |= Int32(POLLIN) }
        if interest.contains(.write) { events |= Int32(POLLOUT) }
        let entry = pollfd(fd: target, events: Int16(events), revents: 0)
        if let index = indices[target] {
            entries[index] = entry
        } else {
            indices[target] = entries.count
            entries.append(entry)
        }
    }

    func forget(_ target: Int32) {
        guard let index = indices.removeValue(forKey: target) else { return }
        let last = entries.removeLast()
        guard index < entries.count else { return }
        entries[index] = last
        indices[last.fd] = index
    }

    func wait(timeout: Int32) -> Int {
        ready.removeAll(keepingCapacity: true)
        guard unsafe poll(&entries, nfds_t(entries.count), timeout) > 0 else { return 0 }
        ready.append(contentsOf: entries.lazy.filter { $0.revents != 0 })
        return ready.count
    }

    func event(_ index: Int) -> (descriptor: Int32, readiness: Readiness) {
        let flags = Int32(ready[index].revents)
        var readiness: Readiness = []
        if flags & Int32(POLLIN) != 0 { readiness.insert(.read) }
        if flags & Int32(POLLOUT) != 0 { readiness.insert(.write) }
        if flags & Int32(POLLERR | POLLNVAL) != 0 { readiness.insert(.hangUp) }
        // Bytes that arrived before the hang-up must still be read.
        if flags & Int32(POLLHUP) != 0 { readiness.insert(flags & Int32(POLLIN) != 0 ? .read : .hangUp) }
        return (ready[index].fd, readiness)
    }
}
