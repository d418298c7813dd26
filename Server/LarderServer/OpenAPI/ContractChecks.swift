import LarderEngine
import LarderHTTP
import Synchronization

/// The contract of a server, which can be replaced while it runs. Safe from any thread.
final class ContractChecks: Sendable {
    private let current = Mutex<Contract?>(nil)

    /// Nil if nothing is checked.
    var contract: Contract? { current.withLock { $0 } }

    func replace(with contract: Contract) { current.withLock { $0 = contract } }
}

extension Contract {
    /// Checks a request, and its reply if `exchange` is completed with it; the exchange keeps the findings.
    ///
    /// - Returns: what checks a reply that does not complete the exchange.
    func check(
        _ request: inout Request,
        _ exchange: inout Exchange,
        _ owner: WorldExchange
    ) -> @Sendable (Reply) -> Void {
        let match = match(request)
        let findings = findings(request, match)
        let check: @Sendable (Reply) -> Void = { [request] reply in
            // What the proxy answers itself is not described.
            let isOwn = reply.head["proxy-status"]?.hasPrefix("larder;") ?? false
            let all = findings + (isOwn ? [] : match.operation.map { self.findings(reply, to: request, $0) } ?? [])
            owner.contractFindings.withLock { $0 = all }
        }
        exchange.interceptor = { [exchange] reply in
            check(reply)
            exchange.complete(reply)
        }
        // A compressed body would have to be decompressed.
        request = request.removing(["accept-encoding"])
        return check
    }
}
