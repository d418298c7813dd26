/// What came of waiting for an outbox to be drained.
public struct OutboxDrain: Sendable {
    /// Why an operation has not been sent. A struct, because reasons will be added.
    public struct Reason: RawRepresentable, Sendable, Hashable {
        /// The reason's name.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The time was over before it was its turn.
        public static let waiting = Reason(rawValue: "waiting")
        /// It is on its way, and its answer has not come.
        public static let sending = Reason(rawValue: "sending")
        /// It has failed, and is sent again later; `OutboxEntry.error` says with what.
        public static let postponed = Reason(rawValue: "postponed")
        /// The server has refused it; `OutboxEntry.refusal` says why. It waits for `retry`, `edit` or `drop`.
        public static let refused = Reason(rawValue: "refused")
        /// It waits behind one that was refused (`LaneRule.hold`).
        public static let behindRefused = Reason(rawValue: "behindRefused")
        /// The network may not be used at present.
        public static let offline = Reason(rawValue: "offline")
        /// The outbox is paused, or was never resumed.
        public static let paused = Reason(rawValue: "paused")
        /// Another process of the account has the turn, or the store cannot say whether one has.
        public static let elsewhere = Reason(rawValue: "elsewhere")
        /// No operation of its name is registered.
        public static let unregistered = Reason(rawValue: "unregistered")
    }

    /// An operation that is still there.
    public struct Remainder: Sendable, Identifiable {
        /// The operation.
        public let entry: OutboxEntry
        /// Why it has not been sent.
        public let reason: Reason

        /// Which operation.
        public var id: OperationID { entry.id }
    }

    /// What is still there, in the order in which it was put in.
    public let remaining: [Remainder]

    /// Whether nothing is left that is to be sent. Refused operations may be.
    public var isDrained: Bool { remaining.allSatisfy { $0.reason == .refused } }
}
