public import LarderTime

/// Why a flight recorder's file cannot be used.
public struct FlightRecorderError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<FlightRecorderError>
    /// What happened and what to do about it.
    public let description: String
}

extension ErrorCode where Scope == FlightRecorderError {
    /// Another recorder, perhaps of another process, writes to the file.
    public static var busy: Self { Self(rawValue: "busy") }
    /// The disk is full.
    public static var full: Self { Self(rawValue: "full") }
    /// The file cannot be opened, made or read.
    public static var cannotOpen: Self { Self(rawValue: "cannotOpen") }
    /// The path names a file of another kind.
    public static var foreignFile: Self { Self(rawValue: "foreignFile") }
}
