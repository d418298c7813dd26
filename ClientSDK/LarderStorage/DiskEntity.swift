/// A stored entity: the bytes of its value and its metadata.
@dynamicMemberLookup
package struct DiskEntity: Sendable, Hashable {
    /// The completeness of an entity: the part that a list shows, or the whole.
    package enum Completeness: Int, Sendable, Comparable {
        case partial = 0
        case complete = 100

        /// Orders from less to more complete.
        package static func < (left: Completeness, right: Completeness) -> Bool { left.rawValue < right.rawValue }
    }

    package var key: EntityKey
    /// The encoded value.
    package var payload: [UInt8]
    /// The server's version, which only increases; nil if there is none. Any value replaces one without a version.
    package var version: Int64?
    /// The entity tag of its response.
    package var entityTag: String?
    package var times: RowTimes
    /// The completeness of the payload.
    package var completeness: Completeness
    /// When what has brought or confirmed it began.
    package var asked = Stamp.never
    /// When it was last invalidated.
    package var invalid = Stamp.never
    /// When the commit that has stored this value began. Not read back.
    package var changed = Stamp.never
    /// Whether it was marked as stale since it was stored or validated.
    package var isInvalidated: Bool { invalid > asked }
    /// The fields to index it by, when it is stored. Not read back.
    package var fields: [DiskField] = []

    package init(
        _ key: EntityKey,
        payload: [UInt8],
        version: Int64? = nil,
        entityTag: String? = nil,
        _ times: RowTimes,
        _ completeness: Completeness = .complete
    ) {
        (self.key, self.payload, self.version, self.entityTag) = (key, payload, version, entityTag)
        (self.times, self.completeness) = (times, completeness)
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<RowTimes, Value>) -> Value {
        get { times[keyPath: path] }
        set { times[keyPath: path] = newValue }
    }
}

extension DiskStore {
    /// The result of storing an entity.
    package enum PutOutcome: Sendable, Hashable {
        case stored
        /// Not stored: the stored entity or deletion is newer.
        case keptNewer
        /// Not stored: the stored entity has the same version and is more complete. Its times may be renewed with a touch.
        case keptMoreComplete
    }
}
