import CSystem
import Glibc

/// Interrupts a loop's wait from another thread: an eventfd.
final class WakeUp: Sendable {
    let descriptor: Int32

    init() throws(EngineError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        guard descriptor >= 0 else { throw EngineError("Creating an eventfd failed", errno) }
    }

    deinit { close(descriptor) }

    func signal() {
        var one: UInt64 = 1
        // A full counter means that a signal is already pending: a failed write loses nothing.
        _ = unsafe write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    func clear() {
        var value: UInt64 = 0
        _ = unsafe read(descriptor, &value, MemoryLayout<UInt64>.size)
    }
}
