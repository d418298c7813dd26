import Larder

/// What the server, the network or the disk refused; one line that says what to do next.
struct Failure: Error {
    let message: String

    init(_ message: String) { self.message = message }

    /// An error of the SDK's, with the command that may help.
    init(_ error: LarderError, server: String) {
        let hint: String? =
            switch error.code {
            case .offline, .timedOut: "Look whether \(server) answers (larder doctor)."
            case .notCached: "Leave out --offline to ask \(server)."
            case .inDoubt: "larder outbox send asks again, under the same key; larder outbox shows it."
            case .unauthorized,
                .refused where error.status == 401:
                "larder login --user NAME --password WORD signs in."
            case .storage: "larder doctor looks at the stores; --directory uses another place."
            default: nil
            }
        message = ([Self.sentence(error.description)] + [hint].compactMap { $0 }).joined(separator: " ")
    }

    /// A text with one full stop at its end.
    static func sentence(_ text: String) -> String {
        text.hasSuffix(".") || text.hasSuffix("?") || text.hasSuffix(")") ? text : text + "."
    }
}
