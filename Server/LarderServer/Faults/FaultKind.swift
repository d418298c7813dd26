import LarderCoding
import LarderHTTP

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
    private init<Value>(
        _ name: String,
        _ schema: JSONValue,
        _ example: JSONValue,
        _ path: Path<Value>,
        _ read: @escaping @Sendable (BodyReader) -> Value?,
        _ write: @escaping @Sendable (Value) -> JSONValue?
    ) {
        self.init(name: name, schema: schema, example: example) { reader, effect in
            if let value = read(reader) { effect[keyPath: path] = value }
        } write: {
            write($0[keyPath: path])
        }
    }

    /// A member that may have no value.
    private init<Value>(
        _ name: String,
        _ schema: JSONValue,
        _ example: JSONValue,
        optional path: Path<Value?>,
        _ read: @escaping @Sendable (BodyReader) -> Value?,
        _ write: @escaping @Sendable (Value) -> JSONValue
    ) {
        self.init(name, schema, example, path, { read($0).map { .some($0) } }, { $0.map(write) })
    }

    static func integer(_ name: String, _ path: Path<Int>, in range: ClosedRange<Int>, example: Int) -> Self {
        Self(name, numeric(range), .int(example), path, { $0.integer(name, in: range) }, { .int($0) })
    }

    static func integer(_ name: String, _ path: Path<Int?>, in range: ClosedRange<Int>, example: Int) -> Self {
        Self(name, numeric(range), .int(example), optional: path, { $0.integer(name, in: range) }, { .int($0) })
    }

    /// - Parameter omitsZero: whether 0 is not written.
    static func probability(
        _ name: String,
        _ path: Path<Double>,
        omitsZero: Bool = false,
        example: Double = 0.1
    ) -> Self {
        let schema = JSONValue.members([
            "type": .string("number"), "minimum": .integer(0), "maximum": .integer(1),
        ])
        return Self(name, schema, .number(example), path, { $0.number(name, in: 0...1) }) {
            omitsZero && $0 == 0 ? nil : .number($0)
        }
    }

    static func seconds(_ name: String, _ path: Path<Duration>, maximum: Double, example: Double) -> Self {
        Self(name, seconds(maximum), .number(example), path, { $0.seconds(name, maximum: maximum) }, { .seconds($0) })
    }

    static func seconds(_ name: String, _ path: Path<Duration?>, example: Double) -> Self {
        Self(name, seconds(nil), .number(example), optional: path, { $0.seconds(name) }, { .seconds($0) })
    }

    static func duration(_ name: String, _ path: Path<Distribution?>, example: JSONValue) -> Self {
        let schema = JSONValue.members(["$ref": .string("#/components/schemas/FaultDuration")])
        return Self(name, schema, example, optional: path, { Distribution.read(name, $0) }, { $0.json })
    }

    static func bool(_ name: String, _ path: Path<Bool>) -> Self {
        let schema = JSONValue.members(["type": .string("boolean")])
        return Self(name, schema, .bool(false), path, { $0.has(name) ? $0.bool(name) : nil }, { .bool($0) })
    }

    static func text(
        _ name: String,
        _ path: Path<String?>,
        length: ClosedRange<Int> = 1...2_048,
        example: String
    ) -> Self {
        let schema = JSONValue.members(["type": .string("string")])
        return Self(name, schema, .string(example), optional: path, { $0.string(name, length: length) }) { .string($0) }
    }

    static func choice<Value>(_ name: String, _ path: Path<Value>, example: Value) -> Self where Value: FaultChoice {
        Self(name, oneOf(Value.self), .string(example.rawValue), path, { $0.choice(name, Value.self) }) {
            .string($0.rawValue)
        }
    }

    static func choice<Value>(_ name: String, _ path: Path<Value?>, example: Value) -> Self where Value: FaultChoice {
        Self(name, oneOf(Value.self), .string(example.rawValue), optional: path, { $0.choice(name, Value.self) }) {
            .string($0.rawValue)
        }
    }

    private static func numeric(_ range: ClosedRange<Int>) -> JSONValue {
        .members([
            "type": .string("integer"), "minimum": .int(range.lowerBound), "maximum": .int(range.upperBound),
        ])
    }

    private static func seconds(_ maximum: Double?) -> JSONValue {
        .members([
            "type": .string("number"), "minimum": .integer(0), "maximum": maximum.map { .number($0) },
        ])
    }

    private static func oneOf<Value: FaultChoice>(_ type: Value.Type) -> JSONValue {
        .members(["type": .string("string"), "enum": .array(type.allCases.map { .string($0.rawValue) })])
    }
}

/// The value of a member that is one of several words.
typealias FaultChoice = RawRepresentable<String> & CaseIterable & Sendable
