import Larder

/// A failure of the server, the network or the disk: one line that ends with what to do.
struct Failure: Error, CustomStringConvertible {
    let message: String
    var description: String { message }

    init(_ message: String) { self.message = message }

    /// An error of the SDK, with a hint.
    init(_ error: LarderError, server: String) {
        let hint: String? =
            switch error.code {
            case .offline, .timedOut: "Check that \(server) answers (larder doctor)."
            case .untrusted: "Check the date of this machine, and that it knows the authority of \(server)."
            case .notCached: "Remove --offline to ask \(server)."
            case .inDoubt: "'larder outbox send' retries it with the same idempotency key."
            case .unauthorized,
                .rejected where error.status == 401:
                "Sign in with 'larder login --user NAME --password WORD'."
            case .storage: "Run 'larder doctor' to check the stores, or choose another place with --directory."
            default: nil
            }
        message = ([Self.sentence(error.description)] + [hint].compactMap { $0 }).joined(separator: " ")
    }

    /// The text with a full stop at its end.
    static func sentence(_ text: String) -> String {
        text.hasSuffix(".") || text.hasSuffix("?") || text.hasSuffix(")") ? text : text + "."
    }
}
