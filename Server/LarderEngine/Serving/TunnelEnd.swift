import Synchronization

/// The far end of a tunnel: a connection to another server that has answered an upgrade with 101 (RFC 9110 §7.8).
///
/// Nothing is read from it before a reply with it is sent. If it is released without that, because a fault has replaced the reply or the
/// client has gone, its request is cancelled.
package final class TunnelEnd: Sendable {
    private let exchange: UpstreamExchange
    private let isOpen = Atomic<Bool>(false)

    package init(_ exchange: UpstreamExchange) { self.exchange = exchange }

    deinit { if !isOpen.load(ordering: .relaxed) { exchange.cancel() } }

    /// The connection to the server; nil if it has ended. On the exchange's loop.
    func open() -> UpstreamConnection? {
        isOpen.store(true, ordering: .relaxed)
        return exchange.connection
    }
}
