import LarderCoding
import LarderHTTP
package import LarderStorage
import LarderTime

extension HTTPCacheEntry {
    // JSON with a version number.
    private static let version: Int64 = 3

    /// Encodes the entries of one URL.
    ///
    /// - Parameter clock: the clock by which their times are.
    package static func encode(_ entries: [HTTPCacheEntry], _ clock: ClockOffset? = nil) -> [UInt8] {
        JSONValue.members([
            "version": .integer(version), "entries": .array(entries.map(\.json)),
            "clock": clock.map { .array([.string($0.bootID), .integer($0.nanoseconds)]) },
        ]).encoded
    }

    private var json: JSONValue {
        .members([
            "body": .string(bodyID), "count": .integer(Int64(bodyCount)), "status": .integer(Int64(status.code)),
            "fields": .array(fields.flatMap { [.string($0.name.description), .string($0.value)] }),
            "selectors": .array(
                selectors.flatMap { [.string($0.name.description), $0.value.map { .string($0) } ?? .null] }
            ),
            "times": .array(
                [requestedAt, receivedAt, fetchedAt].map { .integer($0.nanosecondsSinceEpoch) }
            ), "invalidated": .bool(isInvalidated),
        ])
    }

    /// Decodes entries; nil for invalid data and for another version.
    ///
    /// - Parameter clock: their times are converted to this one, so that nothing looks younger than it is when it is set.
    package static func decode(_ bytes: [UInt8], _ clock: ClockOffset? = nil) -> [HTTPCacheEntry]? {
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch { return nil }
        guard value["version"]?.integer == version, let array = value["entries"]?.array else { return nil }
        var entries = array.compactMap { HTTPCacheEntry($0) }
        guard entries.count == array.count else { return nil }
        guard let clock, let bootID = value["clock"]?[0]?.string, let offset = value["clock"]?[1]?.integer else {
            return entries
        }
        let ahead = clock.ahead(of: ClockOffset(bootID: bootID, nanoseconds: offset)) ?? .zero
        for index in entries.indices where ahead != .zero {
            // The clock says less about the age than it said when the response was received.
            let age = ResponseTerms(entries[index]).age.components.seconds
            entries[index].fields.set(.age, "\(age)")
            entries[index].requestedAt = entries[index].requestedAt + ahead
            entries[index].receivedAt = entries[index].receivedAt + ahead
            entries[index].fetchedAt = entries[index].fetchedAt + ahead
        }
        return entries
    }

    private init?(_ value: JSONValue) {
        guard let bodyID = value["body"]?.string, let count = value["count"]?.integer,
            let status = value["status"]?.integer, let lines = value["fields"]?.array, lines.count % 2 == 0,
            let selectors = value["selectors"]?.array, selectors.count % 2 == 0,
            let times = value["times"]?.array?.compactMap(\.integer), times.count == 3,
            let isInvalidated = value["invalidated"]?.bool
        else { return nil }
        var fields = Fields()
        for index in stride(from: 0, to: lines.count, by: 2) {
            guard let name = lines[index].string.flatMap({ FieldName($0) }), let value = lines[index + 1].string else {
                return nil
            }
            fields.add(name, value)
        }
        var chosen: [Selector] = []
        for index in stride(from: 0, to: selectors.count, by: 2) {
            guard let name = selectors[index].string.flatMap({ FieldName($0) }) else { return nil }
            chosen.append(Selector(name: name, value: selectors[index + 1].string))
        }
        self.init(
            bodyID: bodyID,
            bodyCount: Int(count),
            status: Status(code: Int(status)),
            fields: fields,
            selectors: chosen,
            requestedAt: WallTime(nanosecondsSinceEpoch: times[0]),
            receivedAt: WallTime(nanosecondsSinceEpoch: times[1]),
            fetchedAt: WallTime(nanosecondsSinceEpoch: times[2]),
            isInvalidated: isInvalidated
        )
    }
}
