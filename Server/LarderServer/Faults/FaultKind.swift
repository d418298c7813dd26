import LarderBackend
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
    let read: @Sendable (inout BodyReader) -> (any FaultEffect)?
    /// Writes the members of an effect of this kind.
    let write: @Sendable (any FaultEffect) -> [JSONObject.Member]

    /// - Parameter standard: the effect without any member.
    init<Effect: FaultEffect>(
        _ standard: Effect,
        at stages: [Fault.Stage],
        _ about: String,
        _ members: [FaultMember<Effect>] = [],
        need: Need = .none,
        needsDomain: Bool = false
    ) {
        let name = standard.name
        self.name = name
        self.stages = stages
        self.about = about
        self.need = need
        self.needsDomain = needsDomain
        self.members = members.map { ($0.name, $0.schema, $0.example) }
        read = { reader in
            var effect = standard
            for member in members { member.read(&reader, &effect) }
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
        Latency.kind, Bandwidth.kind, CannedReply.kind, Certificate.kind, NoCloseNotify.kind, Cut.reset, Cut.close,
        Cut.never,
        LoseReply.emptyKind, LoseReply.kind, Truncate.kind, Corrupt.kind, WrongContentType.kind, MalformedJSON.kind,
        MalformedChunk.kind, Drip.kind, BurstLoss.kind, Duplicate.kind, FaultAction.Lag.kind, Validators.kind,
        ExpireToken.kind, CloseListener.kind, StaleConnections.kind, LiveFault.kind,
    ]

    private static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    static func named(_ name: String) -> FaultKind? { byName[name] }
}

/// A member of an action: its name, how it is read and written, and its JSON schema.
struct FaultMember<Effect: FaultEffect>: Sendable {
    let name: String
    let schema: JSONValue
    let example: JSONValue
    let read: @Sendable (inout BodyReader, inout Effect) -> Void
    let write: @Sendable (Effect) -> JSONValue?

    typealias Path<Value> = any WritableKeyPath<Effect, Value> & Sendable

    static func integer(
        _ name: String,
        _ path: Path<Int>,
        in range: ClosedRange<Int>,
        example: Int
    ) -> FaultMember {
        FaultMember(
            name: name,
            schema: numeric("integer", range),
            example: .integer(Int64(example)),
            read: { if let value = $0.integer(name, in: range) { $1[keyPath: path] = value } },
            write: { .integer(Int64($0[keyPath: path])) }
        )
    }

    static func integer(
        _ name: String,
        _ path: Path<Int?>,
        in range: ClosedRange<Int>,
        example: Int
    ) -> FaultMember {
        FaultMember(
            name: name,
            schema: numeric("integer", range),
            example: .integer(Int64(example)),
            read: { $1[keyPath: path] = $0.integer(name, in: range) },
            write: { $0[keyPath: path].map { .integer(Int64($0)) } }
        )
    }

    /// - Parameter omitsZero: whether 0 is not written.
    static func probability(
        _ name: String,
        _ path: Path<Double>,
        omitsZero: Bool = false,
        example: Double = 0.1
    ) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["type": .string("number"), "minimum": .integer(0), "maximum": .integer(1)]),
            example: .number(example),
            read: { if let value = $0.number(name, in: 0...1) { $1[keyPath: path] = value } },
            write: { omitsZero && $0[keyPath: path] == 0 ? nil : .number($0[keyPath: path]) }
        )
    }

    static func seconds(
        _ name: String,
        _ path: Path<Duration>,
        maximum: Double,
        example: Double
    ) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["type": .string("number"), "minimum": .integer(0), "maximum": .number(maximum)]),
            example: .number(example),
            read: { if let value = $0.seconds(name, maximum: maximum) { $1[keyPath: path] = value } },
            write: { .seconds($0[keyPath: path]) }
        )
    }

    static func seconds(_ name: String, _ path: Path<Duration?>, example: Double) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["type": .string("number"), "minimum": .integer(0)]),
            example: .number(example),
            read: { $1[keyPath: path] = $0.seconds(name) },
            write: { $0[keyPath: path].map { .seconds($0) } }
        )
    }

    static func duration(_ name: String, _ path: Path<Distribution?>, example: JSONValue) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["$ref": .string("#/components/schemas/FaultDuration")]),
            example: example,
            read: { $1[keyPath: path] = Distribution.read(name, &$0) },
            write: { $0[keyPath: path]?.json }
        )
    }

    static func bool(_ name: String, _ path: Path<Bool>) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["type": .string("boolean")]),
            example: .bool(false),
            read: { reader, effect in effect[keyPath: path] = reader.bool(name, default: effect[keyPath: path]) },
            write: { .bool($0[keyPath: path]) }
        )
    }

    static func text(
        _ name: String,
        _ path: Path<String?>,
        length: ClosedRange<Int> = 1...2_048,
        example: String
    ) -> FaultMember {
        FaultMember(
            name: name,
            schema: .members(["type": .string("string")]),
            example: .string(example),
            read: { if let value = $0.string(name, length: length) { $1[keyPath: path] = value } },
            write: { $0[keyPath: path].map { .string($0) } }
        )
    }

    static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        example: Value
    ) -> FaultMember where Value.RawValue == String {
        FaultMember(
            name: name,
            schema: oneOf(Value.self),
            example: .string(example.rawValue),
            read: { if let value = $0.choice(name, Value.self) { $1[keyPath: path] = value } },
            write: { .string($0[keyPath: path].rawValue) }
        )
    }

    static func choice<Value: RawRepresentable & CaseIterable & Sendable>(
        _ name: String,
        _ path: Path<Value?>,
        example: Value
    ) -> FaultMember where Value.RawValue == String {
        FaultMember(
            name: name,
            schema: oneOf(Value.self),
            example: .string(example.rawValue),
            read: { $1[keyPath: path] = $0.choice(name, Value.self) },
            write: { $0[keyPath: path].map { .string($0.rawValue) } }
        )
    }

    private static func numeric(_ type: String, _ range: ClosedRange<Int>) -> JSONValue {
        .members([
            "type": .string(type), "minimum": .integer(Int64(range.lowerBound)),
            "maximum": .integer(Int64(range.upperBound)),
        ])
    }

    private static func oneOf<Value: RawRepresentable & CaseIterable>(_ type: Value.Type) -> JSONValue
    where Value.RawValue == String {
        .members(["type": .string("string"), "enum": .array(type.allCases.map { .string($0.rawValue) })])
    }
}
