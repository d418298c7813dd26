import LarderEngine
import LarderHTTP

/// The parameters of a request's query.
///
/// If nothing is percent-encoded, which is the usual case, a parameter is looked up in the bytes of the head without parsing
/// the query.
struct CallQuery: Sendable {
    private enum Form {
        /// A query of ASCII characters without escapes.
        case plain(ArraySlice<UInt8>)
        case parsed(QueryString)
    }

    private let form: Form

    /// Nil if the query is not percent-encoded UTF-8.
    init?(_ request: Request) {
        let bytes = request.query ?? []
        // The head parser accepts printable ASCII only.
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

    /// The part after `name=` in one item.
    private static func value(of name: StaticString, in item: ArraySlice<UInt8>) -> String? {
        let length = name.utf8CodeUnitCount
        // An empty part between two `&` is not an item.
        guard !item.isEmpty, item.count >= length else { return nil }
        for offset in 0..<length where unsafe item[item.startIndex + offset] != name.utf8Start[offset] { return nil }
        let behind = item.startIndex + length
        if behind == item.endIndex { return "" }
        guard item[behind] == UInt8(ascii: "=") else { return nil }
        return String(decoding: item[(behind + 1)...], as: UTF8.self)
    }
}
