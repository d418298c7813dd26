/// An amount of money, exact: minor units and a currency. It never passes through floating point.
public struct Money: Codable, Sendable, Hashable {
    /// The amount in the currency's smallest unit: cents.
    public var minorUnits: Int64
    /// The currency (ISO 4217).
    public var currency: String

    /// An amount.
    public init(minorUnits: Int64, currency: String) {
        self.minorUnits = minorUnits
        self.currency = currency
    }
}
