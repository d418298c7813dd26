import CSystem
import Glibc

/// Linux's epoll, level-triggered: unprocessed events are reported again.
@safe final class EpollPoller: Poller {
    private let descriptor: Int32
    /// The kernel's event list; lives as long as the poller.
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private var watched: Set<Int32> = []

    init() throws(EngineError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw EngineError("Creating an epoll instance failed", errno) }
        unsafe events = .allocate(capacity: 512)
        unsafe events.initialize(repeating: epoll_event())
    }

    deinit {
        unsafe events.deallocate()
        close(descriptor)
    }

    func watch(_ target: Int32, for interest: Readiness, isShared: Bool) throws(EngineError) {
        var event = unsafe epoll_event()
        var flags: UInt32 = 0
        // A peer's end is only reported to those who ask for it: the condition stays, and nobody else could clear it.
        if interest.contains(.read) { flags |= Self.input | Self.hangUp }
        if interest.contains(.end) { flags |= Self.hangUp }
        if interest.contains(.write) { flags |= Self.output }
        // If several loops wait for one listener, a connection wakes only one.
        if isShared { flags = Self.input | Self.exclusive }
        unsafe event.events = flags
        unsafe event.data.fd = target
        let operation = watched.insert(target).inserted ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
        guard unsafe epoll_ctl(descriptor, operation, target, &event) == 0 else {
            throw EngineError("Watching a descriptor failed", errno)
        }
    }

    func forget(_ target: Int32) {
        guard watched.remove(target) != nil else { return }
        epoll_ctl(descriptor, EPOLL_CTL_DEL, target, nil)
    }

    func wait(timeout: Int32) -> [(descriptor: Int32, readiness: Readiness)] {
        // An interrupted wait returns no events: the loop waits again.
        let count = Int(unsafe epoll_wait(descriptor, events.baseAddress, Int32(events.count), timeout))
        return (0..<max(0, count)).map { index in
            let (flags, target) = unsafe (events[index].events, events[index].data.fd)
            var readiness: Readiness = []
            if flags & (Self.input | Self.hangUp) != 0 { readiness.insert(.read) }
            if flags & Self.hangUp != 0 { readiness.insert(.end) }
            if flags & Self.output != 0 { readiness.insert(.write) }
            if flags & (Self.error | Self.gone) != 0 { readiness.insert(.hangUp) }
            return (target, readiness)
        }
    }

    private static let input = UInt32(EPOLLIN.rawValue)
    private static let output = UInt32(EPOLLOUT.rawValue)
    private static let error = UInt32(EPOLLERR.rawValue)
    private static let gone = UInt32(EPOLLHUP.rawValue)
    private static let hangUp = UInt32(EPOLLRDHUP.rawValue)
    private static let exclusive = UInt32(EPOLLEXCLUSIVE.rawValue)
}
