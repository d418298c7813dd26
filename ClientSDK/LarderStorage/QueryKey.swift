import LarderCoding

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
    public var description: String {
        guard !parameters.isEmpty else { return name }
        return name + "?" + parameters.map { $0.name + "=" + $0.value }.joined(separator: "&")
    }

    /// The parameters as one string, which `init(name:canonicalParameters:)` parses: a JSON array of names and values.
    package var canonicalParameters: String {
        guard !parameters.isEmpty else { return "" }
        var writer = JSONWriter()
        writer.value(.array(parameters.flatMap { [.string($0.name), .string($0.value)] }))
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Parses a stored key; nil if the string is invalid.
    package init?(name: String, canonicalParameters text: String) {
        var texts: [String] = []
        do {
            if !text.isEmpty { texts = try JSONParser.parse(Array(text.utf8)).array?.map { $0.string ?? "" } ?? [] }
        } catch { return nil }
        let pairs = stride(from: 0, to: texts.count - 1, by: 2).map { Parameter(texts[$0], texts[$0 + 1]) }
        self.init(name: name, sorted: pairs)
    }
}
