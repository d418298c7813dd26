import LarderBackend

/// Settings of a world that change its replies, besides faults.
struct ReplySettings: Sendable, Hashable {
    /// The offset of each device's dates; `*` for all devices.
    var skews: [String: Duration] = [:]
    var dialect = Dialect()
    /// The seed of schema drift; nil for none.
    var drift: SchemaDrift?
}
