/// Why the SDK sends a request. It is known where the request is decided and read where it is sent (`MonitoredTransport`).
package struct RequestReason: Sendable, Hashable, CustomStringConvertible {
    /// What needs the reply: the key of a resource, an operation, a change feed, the session.
    package let subject: String
    /// Why a request is necessary: `missing`, `stale (expired)`, `a refresh`.
    package let cause: String
    /// The name of the read policy; nil for what is no read.
    package let policy: String?
    /// Whether a person waits for the reply. Such a request is sent while only failed requests say that there is no network, and although
    /// its host has asked to wait.
    package private(set) var isUserInitiated: Bool
    /// Whether the server holds the reply back on purpose (`TransportRequest.isLongPoll`).
    package let isLongPoll: Bool
    /// Whether the request carries a stored change of a user. It is not sent without one who is signed in.
    package let isOfStoredChange: Bool

    /// The reason of the requests that the current task sends; nil: unknown.
    @TaskLocal package static var current: RequestReason?

    /// Whether a person waits for the current task.
    package static var isUserWaiting: Bool { current?.isUserInitiated ?? false }

    package init(
        _ subject: String,
        cause: String,
        policy: String? = nil,
        isUserInitiated: Bool = false,
        isLongPoll: Bool = false,
        isOfStoredChange: Bool = false
    ) {
        self.isLongPoll = isLongPoll
        self.isOfStoredChange = isOfStoredChange
        self.subject = subject
        self.cause = cause
        self.policy = policy
        self.isUserInitiated = isUserInitiated
    }

    /// Such as `feed: stale (expired), policy staleWhileRevalidate`.
    package var description: String { "\(subject): \(cause)" + (policy.map { ", policy \($0)" } ?? "") }

    /// Runs `work`, whose requests have this reason. What a user-initiated request needs, as a new access token, is user-initiated too.
    package func around<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        var reason = self
        if Self.isUserWaiting { reason.isUserInitiated = true }
        let result: Result<Value, Failure> = await Self.$current.withValue(reason) {
            do throws(Failure) { return .success(try await work()) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
