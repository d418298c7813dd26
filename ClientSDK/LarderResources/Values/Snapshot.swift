public import LarderEvents
public import LarderStorage
public import LarderTime

/// The state of a resource at one moment: value, freshness, network activity and last error.
///
/// Content (`value`, `freshness`) and activity (`isFetching`, `refreshError`) are independent: a failed refresh does not remove the
/// content.
public struct Snapshot<Value: Sendable>: Sendable {
    /// The value; nil if there is none, or if the policy does not allow it to be shown yet.
    public var value: Value?
    /// Whether the value is current.
    public var freshness = Freshness.missing
    /// How complete the value is.
    public var completeness = Completeness.unknown
    /// Where the value came from; nil without a value.
    public var source: CacheTier?
    /// When the value was fetched, was validated and expires; nil without a value.
    package var times: Freshness.Times?
    /// The server's version; nil if it has none.
    public var version: Int64?
    /// The validator that came with it (an ETag). Nil if there is none, or if the value has changed since.
    public var validator: String?
    /// Whether a request is in flight.
    public var isFetching: Bool
    /// The error of the last refresh; nil if it succeeded.
    public var refreshError: LarderError?
    /// The number of local changes in the value that the server has not acknowledged.
    public var pendingChanges = 0
    /// Grows with every change: of two snapshots the one with the larger revision is later.
    public var revision: UInt64

    /// When the content was fetched from the server.
    public var fetchedAt: WallTime? { times?.fetchedAt }
    /// When the server last confirmed the content.
    public var validatedAt: WallTime? { times?.validatedAt }
    /// When it stops being fresh, by the reader's rule or by the lifetime that the source stated.
    public var expiresAt: WallTime? { times?.expiresAt }

    /// The snapshot with a transformed value.
    public func map<Other: Sendable>(_ transform: (Value) throws -> Other) rethrows -> Snapshot<Other> {
        Snapshot<Other>(
            value: try value.map(transform),
            freshness: freshness,
            completeness: completeness,
            source: source,
            times: times,
            version: version,
            validator: validator,
            isFetching: isFetching,
            refreshError: refreshError,
            pendingChanges: pendingChanges,
            revision: revision
        )
    }
}

extension Snapshot: CustomStringConvertible {
    /// One line: freshness, source, times, activity, error and the beginning of the value.
    public var description: String {
        var parts = ["\(freshness)"]
        if let source { parts.append("from \(source.rawValue)") }
        if let validatedAt, validatedAt != Freshness.Times.never { parts.append("validated \(validatedAt.rfc3339())") }
        if let expiresAt { parts.append("expires \(expiresAt.rfc3339())") }
        if pendingChanges > 0 { parts.append("\(pendingChanges) pending") }
        if isFetching { parts.append("fetching") }
        if let refreshError { parts.append("error \(refreshError.code.rawValue)") }
        guard let value else { return parts.joined(separator: ", ") }
        let text = "\(value)"
        return parts.joined(separator: ", ") + ": " + (text.count > 200 ? text.prefix(200) + "…" : text[...])
    }
}

extension Snapshot {
    /// What to tell a person about the value.
    ///
    /// - Parameters:
    ///   - now: the present time.
    ///   - isOffline: whether the server is known to be unreachable. A snapshot whose last refresh failed without a connection counts as
    ///     offline anyway.
    public func notice(at now: WallTime, isOffline: Bool = false) -> Freshness.Notice {
        Freshness.Notice(
            freshness,
            validatedAt: validatedAt,
            isFetching: isFetching,
            isOffline: isOffline || refreshError?.code == .offline,
            at: now
        )
    }
}
