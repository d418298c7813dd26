/// An exact amount of money: an integer of minor units and a currency.
public struct Money: Codable, Sendable, Hashable {
    /// The amount in the currency's smallest unit: cents.
    public var minorUnits: Int64
    /// The currency code (ISO 4217).
    public var currency: String

    /// An amount of `minorUnits` in `currency`.
    public init(minorUnits: Int64, currency: String) {
        self.minorUnits = minorUnits
        self.currency = currency
    }
}
