import LarderCoding
import LarderTime

extension JSONValue {
    static func int(_ number: Int) -> JSONValue { .integer(Int64(number)) }

    /// A duration in the control plane's form: seconds.
    static func seconds(_ duration: Duration) -> JSONValue {
        let nanoseconds = duration.nanosecondsSaturating
        if nanoseconds % 1_000_000_000 == 0 { return .integer(nanoseconds / 1_000_000_000) }
        return .number(Double(nanoseconds) / 1e9)
    }

    /// The value at a JSON pointer (RFC 6901).
    func value(at pointer: String) -> JSONValue? {
        guard !pointer.isEmpty else { return self }
        guard pointer.hasPrefix("/") else { return nil }
        var current = self
        for token in pointer.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            let name = token.split(separator: "~1", omittingEmptySubsequences: false).joined(separator: "/")
                .split(separator: "~0", omittingEmptySubsequences: false).joined(separator: "~")
            switch current {
            case .object(let object):
                guard let next = object[name] else { return nil }
                current = next
            case .array(let array):
                guard let index = Int(name), array.indices.contains(index) else { return nil }
                current = array[index]
            default: return nil
            }
        }
        return current
    }
}
