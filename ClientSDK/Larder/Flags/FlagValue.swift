/// What a feature flag can be: on or off, a number, a text, or an enumeration of texts.
public protocol FlagValue: Sendable, Equatable {
    /// The value of a setting; nil where the setting is something else, so that the flag keeps its default.
    init?(flag setting: FlagSetting)

    /// The value as a setting.
    var flagSetting: FlagSetting { get }
}

extension Bool: FlagValue {
    /// True and false; 1 and 0 are numbers and not meant.
    public init?(flag setting: FlagSetting) {
        guard case .bool(let value) = setting else { return nil }
        self = value
    }

    /// The value as a setting.
    public var flagSetting: FlagSetting { .bool(self) }
}

extension Int: FlagValue {
    /// A whole number, also one that was written with a fraction of zero.
    public init?(flag setting: FlagSetting) {
        switch setting {
        case .integer(let value): self.init(exactly: value)
        case .number(let value): self.init(exactly: value)
        case .bool, .string: return nil
        }
    }

    /// The value as a setting.
    public var flagSetting: FlagSetting { .integer(Int64(self)) }
}

extension Double: FlagValue {
    /// Any number.
    public init?(flag setting: FlagSetting) {
        switch setting {
        case .integer(let value): self.init(value)
        case .number(let value): self = value
        case .bool, .string: return nil
        }
    }

    /// The value as a setting.
    public var flagSetting: FlagSetting { .number(self) }
}

extension String: FlagValue {
    /// A text.
    public init?(flag setting: FlagSetting) {
        guard case .string(let value) = setting else { return nil }
        self = value
    }

    /// The value as a setting.
    public var flagSetting: FlagSetting { .string(self) }
}

/// An enumeration of texts is a flag by conforming to `FlagValue`, without more: a text that is none of its cases keeps the
/// default, so that an older program survives a newer server.
extension FlagValue where Self: RawRepresentable, RawValue == String {
    /// The case of that text.
    public init?(flag setting: FlagSetting) {
        guard case .string(let value) = setting else { return nil }
        self.init(rawValue: value)
    }

    /// The value as a setting.
    public var flagSetting: FlagSetting { .string(rawValue) }
}
