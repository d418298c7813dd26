/// A type of feature flags: booleans, numbers, strings and string enumerations.
public protocol FlagValue: Sendable, Equatable {
    /// The value of a setting; nil if the setting has another type, so that the default applies.
    init?(flag setting: FeatureFlags.Setting)

    /// The value as a setting.
    var flagSetting: FeatureFlags.Setting { get }
}

extension Bool: FlagValue {
    /// Accepts `true` and `false`, and no numbers.
    public init?(flag setting: FeatureFlags.Setting) {
        guard case .bool(let value) = setting else { return nil }
        self = value
    }

    /// The value as a setting.
    public var flagSetting: FeatureFlags.Setting { .bool(self) }
}

extension Int: FlagValue {
    /// Accepts integers, also with a fraction of zero.
    public init?(flag setting: FeatureFlags.Setting) {
        switch setting {
        case .integer(let value): self.init(exactly: value)
        case .number(let value): self.init(exactly: value)
        case .bool, .string: return nil
        }
    }

    /// The value as a setting.
    public var flagSetting: FeatureFlags.Setting { .integer(Int64(self)) }
}

extension Double: FlagValue {
    /// Accepts all numbers.
    public init?(flag setting: FeatureFlags.Setting) {
        switch setting {
        case .integer(let value): self.init(value)
        case .number(let value): self = value
        case .bool, .string: return nil
        }
    }

    /// The value as a setting.
    public var flagSetting: FeatureFlags.Setting { .number(self) }
}

extension String: FlagValue {
    /// Accepts strings.
    public init?(flag setting: FeatureFlags.Setting) {
        guard case .string(let value) = setting else { return nil }
        self = value
    }

    /// The value as a setting.
    public var flagSetting: FeatureFlags.Setting { .string(self) }
}

/// A string enumeration only needs to declare its conformance to `FlagValue`. An unknown case keeps the default, so that an old
/// program survives a new server.
extension FlagValue where Self: RawRepresentable, RawValue == String {
    /// The case with this raw value.
    public init?(flag setting: FeatureFlags.Setting) {
        guard case .string(let value) = setting else { return nil }
        self.init(rawValue: value)
    }

    public var flagSetting: FeatureFlags.Setting { .string(rawValue) }
}
