/// The choices that RFC 9111 leaves to a cache. A value: decisions are functions of it.
public struct HTTPCachePolicy: Sendable, Hashable {
    /// Whether responses to requests with different `Authorization` are kept apart where the server did not say so by `Vary`.
    ///
    /// On, as a cache may see the account change; a cache that is certainly of one account alone may turn it off (§3.5).
    public var separatesByAuthorization = true
    /// The share of the time since `Last-Modified` for which a response without a stated lifetime is fresh (§4.2.2).
    /// Less than 0 counts as 0, more than 1 as 1.
    public var heuristicFraction = 0.1
    /// The longest lifetime that is guessed.
    public var heuristicMaximum: Duration = .seconds(86_400)
    /// For how long beyond its lifetime a response may stand in for an error where the server did not say (RFC 5861 §4,
    /// RFC 9111 §4.2.4). Never where the server forbade it.
    public var staleIfError: Duration = .zero
    /// Whether a 200 is stored that can never be fresh and has no validator, to be shown when there is no network.
    public var keepsForOffline = true
    /// Responses with more bytes of content than this are not stored; less than 0 counts as 0.
    public var bodyBytesMaximum = 16 << 20
    /// Responses with more bytes of fields than this are not stored; less than 0 counts as 0.
    public var fieldBytesMaximum = 64 << 10
    /// Responses of longer URLs are not stored; less than 0 counts as 0.
    public var urlBytesMaximum = 4 << 10
    /// How many responses of one URL are stored; the one that was received first leaves. Less than 1 counts as 1.
    public var variantsMaximum = 16

    /// The usual choices.
    public init() {}
}
