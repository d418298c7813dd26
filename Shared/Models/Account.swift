/// A bank account of the reader's.
public struct Account: Codable, Sendable, Hashable, Identifiable {
    /// The account's identifier.
    public var id: String
    /// What its owner calls it.
    public var name: String
    /// What kind of account it is: `checking`, `savings`, `card`, `system`, or a kind that is newer than this.
    public var kind: String
    /// Whether it can be used: `open`, `closed`, or a status that is newer than this.
    public var status: String
    /// What is on it.
    public var balance: Money
    /// Grows with every change.
    public var version: Int64
    /// When it last changed, RFC 3339.
    public var updatedAt: String
}

/// One side of a transfer, as the account's owner sees it.
public struct Transaction: Codable, Sendable, Hashable, Identifiable {
    /// The transaction's identifier.
    public var id: String
    /// The account that it is on.
    public var accountId: String
    /// The transfer that it belongs to.
    public var transferId: String
    /// What came in; negative where it went out.
    public var amount: Money
    /// What was on the account after it.
    public var balanceAfter: Money
    /// Who is on the other side.
    public var counterparty: String
    /// What it was for.
    public var note: String
    /// When it was posted, RFC 3339.
    public var postedAt: String
    /// Grows with every change.
    public var version: Int64
}

/// Money that was moved from one account to another.
public struct Transfer: Codable, Sendable, Hashable, Identifiable {
    /// The transfer's identifier.
    public var id: String
    /// The account that it came from.
    public var fromAccountId: String
    /// The account that it went to.
    public var toAccountId: String
    /// How much.
    public var amount: Money
    /// What it was for.
    public var note: String
    /// Where it stands: `completed`, or a status that is newer than this.
    public var status: String
    /// When it was made, RFC 3339.
    public var createdAt: String
    /// Grows with every change.
    public var version: Int64
}
