import LarderSQLite

/// Why the disk tier could not do what it was asked for.
///
/// Whatever it is, nothing of the transaction was kept, and what was stored before is as it was. One can go on in memory.
public struct DiskError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it was. A struct, because kinds will be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The code's name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The disk is full.
        public static let full = Code(rawValue: "full")
        /// The directory or the file may not be written.
        public static let readOnly = Code(rawValue: "readOnly")
        /// Another process held the store for longer than the busy timeout.
        public static let busy = Code(rawValue: "busy")
        /// The directory cannot be made or opened, or it has vanished since the store was opened.
        public static let cannotOpen = Code(rawValue: "cannotOpen")
        /// The store was written by a newer program.
        public static let newerSchema = Code(rawValue: "newerSchema")
        /// The file is a database of another application.
        public static let foreignFile = Code(rawValue: "foreignFile")
        /// The database is damaged and could not be replaced.
        public static let damaged = Code(rawValue: "damaged")
        /// The disk failed.
        public static let inputOutput = Code(rawValue: "inputOutput")
        /// What should be stored is larger than the store takes.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// The budget is used up by what may not be evicted.
        public static let budget = Code(rawValue: "budget")
        /// The payload transform failed.
        public static let transform = Code(rawValue: "transform")
        /// The store has been erased.
        public static let erased = Code(rawValue: "erased")
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

    /// Whether the database is damaged, so that it must be replaced.
    var isDamage: Bool { (cause as? SQLiteError)?.isDamage ?? false }

    init(_ error: SQLiteError) {
        let code: Code =
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

    init(_ error: any Error) {
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

extension SQLiteError {
    /// Whether the file is not what it should be.
    var isDamage: Bool {
        switch code {
        case .corrupt, .notADatabase: true
        // The statements are fixed and right for the schema: where one of them is refused, the schema is not what it was.
        case .error, .constraint, .mismatch, .format: true
        case .inputOutput: extendedCode == SQLiteError.shortRead
        default: false
        }
    }
}
