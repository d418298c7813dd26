import LarderCoding
import LarderTime

extension JSONValue {
    static func int(_ number: Int) -> JSONValue { .integer(Int64(number)) }

    /// Texts by name, in the order of the names; nil for none.
    static func texts(_ texts: [String: String]) -> JSONValue? {
        texts.isEmpty ? nil : .members(texts.sorted { $0.key < $1.key }.map { ($0.key, .string($0.value)) })
    }

    /// A duration in the control plane's form: seconds.
    static func seconds(_ duration: Duration) -> JSONValue {
        let nanoseconds = duration.nanosecondsSaturating
        if nanoseconds % 1_000_000_000 == 0 { return .integer(nanoseconds / 1_000_000_000) }
        return .number(Double(nanoseconds) / 1e9)
    }

    /// The value at a JSON pointer (RFC 6901).
    func value(at pointer: String) -> JSONValue? {
        guard pointer.isEmpty || pointer.hasPrefix("/") else { return nil }
        let tokens = pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        return tokens.reduce(self as JSONValue?) { value, token in
            let name = String(token).replacing("~1", with: "/").replacing("~0", with: "~")
            return value?[name] ?? Int(name).flatMap { value?[$0] }
        }
    }
}
