/// The key of a stored list: the query's name and its parameters in any order.
public struct QueryKey: Sendable, Hashable, CustomStringConvertible {
    /// The query's name: `feed`.
    public let name: String
    /// The parameters, sorted by name and then by value; a name may occur more than once.
    package let parameters: [Parameter]
    /// Computed once, because keys are looked up far more often than created.
    private let hash: Int

    package struct Parameter: Sendable, Hashable, Comparable {
        package let name: String
        package let value: String

        /// Creates a parameter.
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Orders by the bytes of the name, then by those of the value.
        package static func < (left: Parameter, right: Parameter) -> Bool {
            if left.name.utf8.elementsEqual(right.name.utf8) {
                return left.value.utf8.lexicographicallyPrecedes(right.value.utf8)
            }
            return left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
        }
    }

    /// Creates a key. The order of parameters does not matter.
    package init(_ name: String, _ parameters: [Parameter]) {
        self.init(name: name, sorted: parameters.count > 1 ? parameters.sorted() : parameters)
    }

    private init(name: String, sorted parameters: [Parameter]) {
        self.name = name
        self.parameters = parameters
        var hasher = Hasher()
        hasher.combine(name)
        hasher.combine(parameters)
        hash = hasher.finalize()
    }

    /// Compares names and parameters.
    public static func == (left: QueryKey, right: QueryKey) -> Bool {
        left.hash == right.hash && left.name == right.name && left.parameters == right.parameters
    }

    /// Uses the hash computed at initialization.
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// Creates a key with parameters that occur once each.
    public init(_ name: String, _ parameters: [String: String] = [:]) {
        self.init(name, parameters.map { Parameter($0.key, $0.value) })
    }

    /// The name and the parameters, for messages.
    public var description: String { parameters.isEmpty ? name : "\(name)?\(canonicalParameters)" }

    /// The parameters as one string, which `init(name:canonicalParameters:)` parses.
    package var canonicalParameters: String {
        parameters.map { Self.escape($0.name) + "=" + Self.escape($0.value) }.joined(separator: "&")
    }

    /// Parses a stored key; nil if the string is invalid.
    package init?(name: String, canonicalParameters text: String) {
        var parameters: [Parameter] = []
        for part in text.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: true) {
            let sides = part.split(separator: UInt8(ascii: "="), omittingEmptySubsequences: false)
            guard sides.count == 2, let name = Self.unescape(sides[0]), let value = Self.unescape(sides[1]) else {
                return nil
            }
            parameters.append(Parameter(name, value))
        }
        self.init(name: name, sorted: parameters)
    }

    private static func escape(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "%"): result += Array("%25".utf8)
            case UInt8(ascii: "&"): result += Array("%26".utf8)
            case UInt8(ascii: "="): result += Array("%3D".utf8)
            default: result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func unescape(_ text: Substring.UTF8View.SubSequence) -> String? {
        var result: [UInt8] = []
        var bytes = text.makeIterator()
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            guard let high = bytes.next(), let low = bytes.next() else { return nil }
            switch (high, low) {
            case (UInt8(ascii: "2"), UInt8(ascii: "5")): result.append(UInt8(ascii: "%"))
            case (UInt8(ascii: "2"), UInt8(ascii: "6")): result.append(UInt8(ascii: "&"))
            case (UInt8(ascii: "3"), UInt8(ascii: "D")): result.append(UInt8(ascii: "="))
            default: return nil
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
