/// Why a flight recorder's file cannot be used.
public struct FlightRecorderError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Another recorder, perhaps of another process, writes to the file.
        public static let busy = Code(rawValue: "busy")
        /// The disk is full.
        public static let full = Code(rawValue: "full")
        /// The file cannot be opened, made or read.
        public static let cannotOpen = Code(rawValue: "cannotOpen")
        /// There is something else under that name.
        public static let foreignFile = Code(rawValue: "foreignFile")
    }

    /// What kind of failure it was.
    public let code: Code
    /// What happened and what to do.
    public let description: String
}
