/// Why the SDK sends a request. It is known where the request is decided and read where it is sent (`MonitoredTransport`).
package struct RequestReason: Sendable, Hashable, CustomStringConvertible {
    /// What needs the reply: the key of a resource, an operation, a change feed, the session.
    package let subject: String
    /// Why a request is necessary: `missing`, `stale (expired)`, `a refresh`.
    package let cause: String
    /// The name of the read policy; nil for what is no read.
    package let policy: String?

    /// The reason of the requests that the current task sends; nil: unknown.
    @TaskLocal package static var current: RequestReason?

    package init(_ subject: String, cause: String, policy: String? = nil) {
        self.subject = subject
        self.cause = cause
        self.policy = policy
    }

    /// Such as `feed: stale (expired), policy staleWhileRevalidate`.
    package var description: String { "\(subject): \(cause)" + (policy.map { ", policy \($0)" } ?? "") }

    /// Runs `work`, whose requests have this reason.
    package func around<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await Self.$current.withValue(self) {
            do throws(Failure) { return .success(try await work()) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
