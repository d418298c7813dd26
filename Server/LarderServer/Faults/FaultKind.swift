import LarderCoding
import LarderHTTP
import LarderTime

/// An entry in the table of fault actions: the one place that says which actions exist, what they are called, which members they have
/// within which bounds, and at which stages they act. Requests are read and written by it, and the description of the API is made of it.
struct FaultKind: Sendable {
    /// Which members must be given.
    enum Need: Sendable {
        case none
        case all([String])
        /// One of them at least.
        case any([String])
        /// Exactly one of them.
        case one([String])
    }

    let name: String
    /// The possible stages; the first is the default.
    let stages: [Fault.Stage]
    /// The effect in a few words.
    let about: String
    let need: Need
    /// Whether it needs the state of the demo backend.
    let needsDomain: Bool
    /// Each member's name, its JSON schema and an example.
    let members: [(name: String, schema: JSONValue, example: JSONValue)]
    /// Reads the members; nil after an error.
    let read: @Sendable (BodyReader) -> (any FaultEffect)?
    /// Writes the members of an effect of this kind.
    let write: @Sendable (any FaultEffect) -> [JSONObject.Member]

    /// - Parameter standard: the effect without any member.
    init<Effect: FaultEffect>(
        _ name: String,
        _ standard: Effect,
        at stages: [Fault.Stage],
        _ about: String,
        _ members: [FaultMember<Effect>] = [],
        need: Need = .none,
        needsDomain: Bool = false
    ) {
        self.name = name
        self.stages = stages
        self.about = about
        self.need = need
        self.needsDomain = needsDomain
        self.members = members.map { ($0.name, $0.schema, $0.example) }
        read = { reader in
            var effect = standard
            for member in members { member.read(reader, &effect) }
            let isMissing: Bool
            let names: [String]
            var ending = ""
            switch need {
            case .none: return effect
            case .all(let all): (names, isMissing) = (all, !all.allSatisfy { reader.has($0) })
            case .any(let any): (names, isMissing) = (any, effect == standard)
            case .one(let one):
                (names, isMissing) = (one, one.count { reader.has($0) } != 1)
                ending = ", not both"
            }
            guard isMissing else { return effect }
            let others = names.dropFirst().map { "or `\($0)` " }.joined()
            reader.failMissing(anyOf: names, others + "must be given" + ending)
            return nil
        }
        write = { effect in
            guard let effect = effect as? Effect else { return [] }
            return members.compactMap { member in
                member.write(effect).map { .init(name: member.name, value: $0) }
            }
        }
    }

    /// All actions, in the order of the documentation.
    static let all: [FaultKind] = [
        Latency.kind, Bandwidth.kind, CannedReply.kind, Certificate.kind, NoCloseNotify.kind, Cut.kind, Cut.close,
        Cut.never, LoseReply.kind, Truncate.kind, Corrupt.kind, WrongContentType.kind, MalformedJSON.kind,
        MalformedChunk.kind, Drip.kind, BurstLoss.kind, Duplicate.kind, FaultAction.Lag.kind, ChangePage.kind,
        Validators.kind, ExpireToken.kind, CloseListener.kind, StaleConnections.kind, LiveFault.kind,
    ]
}

/// A member of an action: its name, how it is read and written, and its JSON schema.
struct FaultMember<Effect: FaultEffect>: Sendable {
    let name: String
    let schema: JSONValue
    let example: JSONValue
    let read: @Sendable (BodyReader, inout Effect) -> Void
    let write: @Sendable (Effect) -> JSONValue?

    typealias Path<Value> = any WritableKeyPath<Effect, Value> & Sendable
}

extension FaultMember {
    /// A member with a value of its own where none is given.
    init<Value>(_ name: String, _ path: Path<Value>, _ value: FaultValue<Value>, example: Value) {
        self.init(name: name, schema: value.schema, example: value.write(example) ?? .null) { reader, effect in
            if let new = value.read(reader, name) { effect[keyPath: path] = new }
        } write: {
            value.write($0[keyPath: path])
        }
    }

    /// A member that may have no value.
    init<Value>(_ name: String, _ path: Path<Value?>, _ value: FaultValue<Value>, example: Value) {
        self.init(name: name, schema: value.schema, example: value.write(example) ?? .null) { reader, effect in
            if let new = value.read(reader, name) { effect[keyPath: path] = new }
        } write: {
            $0[keyPath: path].flatMap(value.write)
        }
    }
}

/// How the value of a member is read and written, and its JSON schema.
struct FaultValue<Value: Sendable>: Sendable {
    let schema: JSONValue
    let read: @Sendable (BodyReader, _ name: String) -> Value?
    /// Nil for what is not written.
    let write: @Sendable (Value) -> JSONValue?

    private static func schema(_ type: String, _ members: [(String, JSONValue?)] = []) -> JSONValue {
        .members([("type", .string(type))] + members)
    }
}

extension FaultValue<Int> {
    static func integer(_ range: ClosedRange<Int>) -> Self {
        let bounds: [(String, JSONValue?)] = [("minimum", .int(range.lowerBound)), ("maximum", .int(range.upperBound))]
        return Self(schema: schema("integer", bounds), read: { $0.integer($1, in: range) }, write: { .int($0) })
    }
}

extension FaultValue<Double> {
    /// - Parameter omitsZero: whether 0 is not written.
    static func probability(omitsZero: Bool = false) -> Self {
        let schema = schema("number", [("minimum", .integer(0)), ("maximum", .integer(1))])
        return Self(
            schema: schema,
            read: { $0.number($1, in: 0...1) },
            write: { omitsZero && $0 == 0 ? nil : .number($0) }
        )
    }
}

extension FaultValue<Duration> {
    static func seconds(maximum: Double? = nil) -> Self {
        let schema = schema("number", [("minimum", .integer(0)), ("maximum", maximum.map { .number($0) })])
        return Self(schema: schema, read: { $0.seconds($1, maximum: maximum ?? 31_536_000) }, write: { .seconds($0) })
    }
}

extension FaultValue<Distribution> {
    static var duration: Self {
        let schema = JSONValue.members(["$ref": .string("#/components/schemas/FaultDuration")])
        return Self(schema: schema, read: { Distribution.read($1, $0) }, write: { $0.json })
    }
}

extension FaultValue<Bool> {
    static var bool: Self {
        Self(schema: schema("boolean"), read: { $0.has($1) ? $0.bool($1) : nil }, write: { .bool($0) })
    }
}

extension FaultValue<String> {
    static func text(length: ClosedRange<Int> = 1...2_048) -> Self {
        Self(schema: schema("string"), read: { $0.string($1, length: length) }, write: { .string($0) })
    }
}

extension FaultValue where Value: RawRepresentable<String> & CaseIterable {
    /// One of several words.
    static var choice: Self {
        let words = JSONValue.array(Value.allCases.map { .string($0.rawValue) })
        return Self(
            schema: schema("string", [("enum", words)]),
            read: { $0.choice($1, Value.self) },
            write: { .string($0.rawValue) }
        )
    }
}
