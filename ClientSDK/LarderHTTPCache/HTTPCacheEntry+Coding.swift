import LarderCoding
import LarderHTTP
import LarderTime

extension HTTPCacheEntry {
    // JSON with a version number.
    private static let version: Int64 = 3

    /// Encodes the entries of one URL.
    package static func encode(_ entries: [HTTPCacheEntry]) -> [UInt8] {
        JSONValue.members(["version": .integer(version), "entries": .array(entries.map(\.json))]).encoded
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
    package static func decode(_ bytes: [UInt8]) -> [HTTPCacheEntry]? {
        let value: JSONValue
        do { value = try JSONParser.parse(bytes) } catch { return nil }
        guard value["version"]?.integer == version, let array = value["entries"]?.array else { return nil }
        let entries = array.compactMap { HTTPCacheEntry($0) }
        return entries.count == array.count ? entries : nil
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
