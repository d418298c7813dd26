extension Outbox {
    /// Why an operation is still in the outbox. Reasons may be added.
    public struct Reason: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The reason's name.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        public var description: String { rawValue }

        /// The time was over before it could be sent.
        public static let waiting = Reason(rawValue: "waiting")
        /// It is in flight.
        public static let sending = Reason(rawValue: "sending")
        /// It failed and is sent again later; see `Outbox.Entry.error`.
        public static let postponed = Reason(rawValue: "postponed")
        /// The server has rejected it; see `Outbox.Entry.rejection`. It waits for `retry`, `edit` or `drop`.
        public static let rejected = Reason(rawValue: "rejected")
        /// A rejected operation blocks its scope (`WriteBehind.rejectionBlocksScope`).
        public static let blocked = Reason(rawValue: "blocked")
        /// The network may not be used at present.
        public static let offline = Reason(rawValue: "offline")
        /// The outbox is paused, or was never resumed.
        public static let paused = Reason(rawValue: "paused")
        /// Another process holds the send lock, or the store is not accessible.
        public static let elsewhere = Reason(rawValue: "elsewhere")
        /// Its name is not registered.
        public static let unregistered = Reason(rawValue: "unregistered")
    }
}
