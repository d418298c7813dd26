import Glibc

/// A local port that refuses connections and stays reserved while this exists.
package final class ClosedPort {
    private let descriptor: Int32
    package let port: Int

    /// Binds a socket to a free port without listening.
    package init() throws { (descriptor, port) = try LoopbackSocket.bound(backlog: nil) }

    deinit { close(descriptor) }
}
