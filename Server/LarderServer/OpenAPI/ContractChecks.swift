import LarderBackend
import LarderEngine
import LarderHTTP
import Synchronization

/// The contract of a server, and the findings on exchanges that are not in the journal yet. Safe from any thread.
final class ContractChecks: Sendable {
    /// Identifies an exchange until its journal entry is written.
    private struct Key: Hashable {
        let connection: UInt64
        let index: Int

        init(_ request: Request) {
            connection = request.connection
            index = request.exchangeIndex
        }
    }

    private struct State {
        var contract: Contract?
        var findings: [Key: [String]] = [:]
    }

    private let state = Mutex(State())

    /// Nil if nothing is checked.
    var contract: Contract? { state.withLock { $0.contract } }

    func replace(with contract: Contract) { state.withLock { $0.contract = contract } }

    /// Checks a request and the reply that `answer` returns or completes later.
    func checking(
        _ request: Request,
        _ exchange: Exchange,
        _ contract: Contract,
        _ answer: (Request, Exchange) -> Reply?
    ) -> Reply? {
        let match = contract.match(request)
        let findings = contract.findings(request, match)
        let check: @Sendable (Reply) -> Void = { [self] reply in
            let all = findings + (match.operation.map { contract.findings(reply, to: request, $0) } ?? [])
            state.withLock { $0.findings[Key(request)] = all.isEmpty ? nil : all }
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

    /// The findings on an exchange that is over; they are forgotten.
    func take(_ request: Request) -> [String] {
        state.withLock { $0.findings.isEmpty ? [] : $0.findings.removeValue(forKey: Key(request)) ?? [] }
    }
}
