extension FeatureFlags {
    /// The reason why feature flags could not be fetched or stored. Known settings stay in force.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// The kind of failure. A struct, because kinds may be added.
        public struct Code: RawRepresentable, Sendable, Hashable {
            /// The name of the code.
            public let rawValue: String

            /// Creates a code.
            public init(rawValue: String) { self.rawValue = rawValue }

            /// There is no fetch closure.
            public static let noFetch = Code(rawValue: "noFetch")
            public static let fetchFailed = Code(rawValue: "fetchFailed")
            /// The settings are invalid.
            public static let unusable = Code(rawValue: "unusable")
            /// The settings could not be stored and last until the process ends.
            public static let notStored = Code(rawValue: "notStored")
        }

        /// The kind of failure.
        public let code: Code
        /// What happened and what to do about it.
        public let description: String
        /// The underlying error.
        public let cause: (any Error)?

        init(_ code: Code, _ description: String, cause: (any Error)? = nil) {
            self.code = code
            self.description = description
            self.cause = cause
        }
    }
}
