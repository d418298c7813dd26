/// A bank account of the signed-in user.
public struct Account: Codable, Sendable, Hashable, Identifiable {
    /// The account's ID.
    public var id: String
    /// The display name that the owner has chosen.
    public var name: String
    /// `checking`, `savings`, `card`, `system`, or an unknown kind of a newer server.
    public var kind: String
    /// `open`, `closed`, or an unknown status of a newer server.
    public var status: String
    /// The current balance.
    public var balance: Money
    /// Increases with every change.
    public var version: Int64
    /// The time of the last change, RFC 3339.
    public var updatedAt: String
}

/// One side of a transfer, as the owner of the account sees it.
public struct Transaction: Codable, Sendable, Hashable, Identifiable {
    /// The transaction's ID.
    public var id: String
    public var accountID: String
    public var transferID: String
    /// The change of the balance: negative for an outgoing transfer.
    public var amount: Money
    /// The balance after the transaction.
    public var balanceAfter: Money
    /// The name of the other party.
    public var counterparty: String
    /// The payment reference.
    public var note: String
    /// The posting time, RFC 3339.
    public var postedAt: String
    /// Increases with every change.
    public var version: Int64

    private enum CodingKeys: String, CodingKey {
        case id, amount, balanceAfter, counterparty, note, postedAt, version
        case accountID = "accountId"
        case transferID = "transferId"
    }
}

/// A transfer of money between two accounts.
public struct Transfer: Codable, Sendable, Hashable, Identifiable {
    /// The transfer's ID.
    public var id: String
    /// The ID of the debited account.
    public var fromAccountID: String
    /// The ID of the credited account.
    public var toAccountID: String
    /// The amount, greater than zero.
    public var amount: Money
    /// The payment reference.
    public var note: String
    /// `completed`, or an unknown status of a newer server.
    public var status: String
    /// The creation time, RFC 3339.
    public var createdAt: String
    /// Increases with every change.
    public var version: Int64

    private enum CodingKeys: String, CodingKey {
        case id, amount, note, status, createdAt, version
        case fromAccountID = "fromAccountId"
        case toAccountID = "toAccountId"
    }
}
