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
    /// Checks a request and the reply that `answer` returns or completes later; the exchange keeps the findings.
    func checking(
        _ request: Request,
        _ exchange: Exchange,
        _ owner: WorldExchange,
        _ answer: (Request, Exchange) -> Reply?
    ) -> Reply? {
        let match = match(request)
        let findings = findings(request, match)
        let check: @Sendable (Reply) -> Void = { reply in
            let all = findings + (match.operation.map { self.findings(reply, to: request, $0) } ?? [])
            owner.contractFindings.withLock { $0 = all }
        }
        var inner = exchange
        inner.interceptor = { reply in
            check(reply)
            exchange.complete(reply)
        }
        // A compressed body would have to be decompressed.
        let reply = answer(request.removing(["accept-encoding"]), inner)
        if let reply { check(reply) }
        return reply
    }
}
