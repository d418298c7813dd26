/// Why feature flags could not be fetched or stored. Those that were known before still hold.
public struct FlagError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is nowhere to fetch them from.
        public static let noFetch = Code(rawValue: "noFetch")
        /// They could not be fetched.
        public static let fetchFailed = Code(rawValue: "fetchFailed")
        /// What came cannot be used.
        public static let unusable = Code(rawValue: "unusable")
        /// They could not be stored: they hold until the process ends.
        public static let notStored = Code(rawValue: "notStored")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do.
    public let description: String
    /// What led to it.
    public let cause: (any Error)?

    init(_ code: Code, _ description: String, cause: (any Error)? = nil) {
        self.code = code
        self.description = description
        self.cause = cause
    }
}
