import LarderSQLite
public import LarderTime

/// The reason why the store failed.
///
/// Nothing of the transaction was stored, and earlier content is unchanged. The app can continue in memory.
public struct DiskError: Error, Sendable, CustomStringConvertible {
    /// The kind of failure.
    public let code: ErrorCode<DiskError>
    /// What happened and what to do about it.
    public let description: String
    /// The underlying error.
    public let cause: (any Error)?

    package init(_ code: ErrorCode<DiskError>, _ description: String, cause: (any Error)? = nil) {
        self.code = code
        self.description = description
        self.cause = cause
    }

    /// The damage for which the database must be replaced; nil for any other failure.
    var damage: SQLiteError? { (cause as? SQLiteError).flatMap { $0.isDamage ? $0 : nil } }

    init(_ error: SQLiteError) {
        let code: ErrorCode<DiskError> =
            switch error.code {
            case .full: .full
            case .readOnly: .readOnly
            case .busy, .locked: .busy
            case .cannotOpen: .cannotOpen
            case .tooBig: .tooLarge
            default: error.isDamage ? .damaged : .inputOutput
            }
        self.init(code, "The cache on disk: \(error)", cause: error)
    }

    package init(_ error: any Error) {
        switch error {
        case let error as DiskError: self = error
        case let error as SQLiteError: self.init(error)
        case let error as MigrationError:
            switch error {
            case .newerSchema: self.init(.newerSchema, "The cache on disk: \(error)", cause: error)
            case .foreignFile: self.init(.foreignFile, "The cache on disk: \(error)", cause: error)
            case .failed(_, let cause): self.init(cause)
            }
        default: self.init(.inputOutput, "The cache on disk: \(error)", cause: error)
        }
    }
}

extension ErrorCode where Scope == DiskError {
    /// The disk is full.
    public static var full: Self { Self(rawValue: "full") }
    /// The directory or the file may not be written.
    public static var readOnly: Self { Self(rawValue: "readOnly") }
    /// Another process held the store for longer than the busy timeout.
    public static var busy: Self { Self(rawValue: "busy") }
    /// The directory cannot be made or opened, or it has vanished since the store was opened.
    public static var cannotOpen: Self { Self(rawValue: "cannotOpen") }
    /// The store was written by a newer program.
    public static var newerSchema: Self { Self(rawValue: "newerSchema") }
    /// The file is a database of another application.
    public static var foreignFile: Self { Self(rawValue: "foreignFile") }
    /// The database is damaged and could not be replaced.
    public static var damaged: Self { Self(rawValue: "damaged") }
    /// The disk failed.
    public static var inputOutput: Self { Self(rawValue: "inputOutput") }
    /// What should be stored is larger than the store takes.
    public static var tooLarge: Self { Self(rawValue: "tooLarge") }
    /// The payload transform failed.
    public static var transform: Self { Self(rawValue: "transform") }
    /// The store has been erased.
    public static var erased: Self { Self(rawValue: "erased") }
}

extension DiskError {
    /// Whether the value cannot be stored, and others can.
    package var isOfValue: Bool { code == .tooLarge || code == .transform }
}

extension SQLiteError {
    /// Whether the file is damaged.
    var isDamage: Bool {
        switch code {
        case .corrupt, .notADatabase: true
        // The statements are fixed and match the schema: if one is rejected, the schema has changed.
        case .error, .constraint, .mismatch, .format: true
        case .inputOutput: extendedCode == SQLiteError.shortRead
        default: false
        }
    }
}
