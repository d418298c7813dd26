import LarderStorage

/// The stored items of a list or of a page, for requests by index. Not a part of the identity of a request.
struct StoredItems: Sendable, Hashable {
    /// An item in a version.
    struct Version: Sendable {
        let key: EntityKey
        let version: Int64
    }

    /// The values of complete items that are stored in a version or a newer one and are not invalidated, by identifier.
    let values: @Sendable (_ items: [Version], _ decode: @escaping Decoder) async -> [String: any Sendable]
    typealias Decoder = @Sendable ([UInt8]) throws -> any Sendable
    let count: Int
    /// How long ago they were confirmed; nil: unknown.
    let age: Duration?
    /// Whether they are the whole list.
    var isWholeList = false

    /// The number of items from which an index of a whole list that is shorter than a page is expected to cost less.
    private static let countMinimum = 10
    /// How long ago they must have been confirmed: before that their own validator is expected to save more.
    private static let ageMinimum = Duration.seconds(7_200)

    static func == (left: StoredItems, right: StoredItems) -> Bool { true }

    func hash(into hasher: inout Hasher) {}

    /// Whether an index is expected to cost less than the whole page.
    func pays(limit: Int) -> Bool {
        let isMostlyStored = count * 2 >= limit || (isWholeList && count >= Self.countMinimum)
        return isMostlyStored && age.map { $0 >= Self.ageMinimum } ?? true
    }
}
