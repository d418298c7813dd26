import LarderEngine
import LarderHTTP

/// The parameters of a request's query.
///
/// Where nothing is escaped, as is usual, a parameter is found in the head's own bytes when it is asked for, and nothing is
/// taken apart before.
struct CallQuery: Sendable {
    private enum Form {
        /// Well-formed as it stands: ASCII without escapes.
        case plain(ArraySlice<UInt8>)
        case parsed(QueryString)
    }

    private let form: Form

    /// Nil where the query is not percent-encoded UTF-8.
    init?(_ request: Request) {
        let bytes = request.query ?? []
        // The head's parser lets nothing through but printable ASCII.
        if !bytes.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") || $0 >= 0x80 }) {
            form = .plain(bytes)
        } else if let query = QueryString(parsing: Array(bytes)) {
            form = .parsed(query)
        } else {
            return nil
        }
    }

    /// The value of the first parameter with that name; empty where it has no `=`.
    func first(_ name: StaticString) -> String? {
        switch form {
        case .parsed(let query): return query.first(name.description)
        case .plain(let bytes):
            var start = bytes.startIndex
            while start < bytes.endIndex {
                var end = start
                while end < bytes.endIndex, bytes[end] != UInt8(ascii: "&") { end += 1 }
                if let value = Self.value(of: name, in: bytes[start..<end]) { return value }
                start = end + 1
            }
            return nil
        }
    }

    /// What stands behind `name=` in one item.
    private static func value(of name: StaticString, in item: ArraySlice<UInt8>) -> String? {
        let length = name.utf8CodeUnitCount
        // No bytes between two `&` are no item.
        guard !item.isEmpty, item.count >= length else { return nil }
        for offset in 0..<length where unsafe item[item.startIndex + offset] != name.utf8Start[offset] { return nil }
        let behind = item.startIndex + length
        if behind == item.endIndex { return "" }
        guard item[behind] == UInt8(ascii: "=") else { return nil }
        return String(decoding: item[(behind + 1)...], as: UTF8.self)
    }
}
