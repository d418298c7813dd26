import LarderDevice
import LarderResources
import LarderTime

/// The state of a client, as the dashboard of a `larder-server` shows it. Neither tokens nor, unless they were asked for, values.
struct ClientReport: Encodable, Sendable {
    struct Value: Encodable, Sendable {
        let key: String
        /// `fresh`, `stale (expired)`, `missing`.
        let freshness: String
        let source: String?
        let validatedAt: String?
        let expiresAt: String?
        let version: Int64?
        let pendingChanges: Int
        let isFetching: Bool
        let error: String?
        let observers: Int
        /// The beginning of the value, if it was asked for.
        let text: String?

        init(_ value: HeldValue) {
            key = value.key
            let shown = value.shown
            freshness = "\(shown.freshness)"
            source = shown.source?.rawValue
            validatedAt = shown.validatedAt.flatMap { $0.nanosecondsSinceEpoch == .min ? nil : $0.rfc3339() }
            expiresAt = shown.expiresAt?.rfc3339()
            version = shown.version
            pendingChanges = shown.pendingChanges
            isFetching = shown.isFetching
            error = shown.refreshError.map { ClientReport.redacted($0.description) }
            observers = value.observerCount
            text = shown.value
        }
    }

    struct Operation: Encodable, Sendable {
        let id: Int64
        let operation: String
        let scope: String
        /// `pending`, `sending`, `inDoubt`, `rejected`.
        let state: String
        let attempts: Int
        let enqueuedAt: String
        let error: String?

        init(_ entry: Outbox.Entry) {
            id = entry.id.rawValue
            operation = entry.operation
            scope = ClientReport.redacted(entry.scope)
            state = "\(entry.state)"
            attempts = entry.attempts
            enqueuedAt = entry.enqueuedAt.rfc3339()
            error = entry.error.map { ClientReport.redacted($0.description) }
        }
    }

    struct Request: Encodable, Sendable {
        let id: String?
        let method: String
        /// Without query and user information, which may be secret.
        let url: String
        /// Why it was sent; nil if the app has sent it itself.
        let reason: String?
        let began: String
        /// Nil while it is in flight.
        var milliseconds: Int64?
        /// Nil without a reply.
        var status: Int?
        /// The code of the failure; nil for none.
        var failure: String?
    }

    struct Memory: Encodable, Sendable {
        /// Bytes of the cache in memory, and their limit.
        let bytes: Int
        let bytesMaximum: Int
        /// The level of the memory guard; nil without one.
        let level: String?
    }

    /// A text without the queries of its URLs and paths, which may be secret.
    private static func redacted(_ text: String) -> String {
        text.split(separator: " ", omittingEmptySubsequences: false)
            .map { word in word.contains("/") ? word.prefix { $0 != "?" && $0 != "#" } : word }
            .joined(separator: " ")
    }

    /// The most operations of a report.
    private static let operationsMaximum = 100

    let account: String
    let server: String
    let appVersion: String
    let session: String
    /// Nil without a monitor.
    let network: String?
    /// The network is switched off by the inspector or the app.
    let isOverridden: Bool
    let memory: Memory
    let values: [Value]
    let operations: [Operation]
    let operationCount: Int
    let requests: [Request]
}

extension ClientReport {
    /// The parts of a client that its report is made of.
    struct Parts: Sendable {
        let account: String
        let server: String
        let appVersion: String
        let cache: LarderCache
        let session: BearerSession
        let network: NetworkMonitor?
        let memory: MemoryGuard?
        let requests: RecentRequests
    }

    init(_ parts: Parts, showing shown: Set<String>) async {
        account = parts.account
        server = parts.server
        appVersion = parts.appVersion
        session =
            switch parts.session.state {
            case .signedOut: "signed out"
            case .signedIn(let user): "signed in as \(user)"
            case .expired(let user): "expired, of \(user)"
            }
        network = parts.network.map { "\($0.current.level.rawValue) (\($0.current.cause.rawValue))" }
        isOverridden = parts.network?.current.cause == .override
        memory = Memory(
            bytes: parts.cache.memoryCost,
            bytesMaximum: parts.cache.configuration.memoryBytesMaximum,
            level: parts.memory.map { "\($0.current.reported)" }
        )
        values = await parts.cache.heldValues(showing: shown).map { Value($0) }
        let entries = parts.cache.outbox.entries
        operationCount = entries.count
        operations = entries.prefix(Self.operationsMaximum).map { Operation($0) }
        requests = parts.requests.items
    }
}
