import LarderCoding

/// An invalid command line; the message is one line that says what to do.
package struct UsageError: Error, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(message: String) { self.message = message }

    /// A word that is none of the known ones, with the most similar one, or else where they are listed.
    package static func unknown(_ what: String, _ word: String, in known: [String], orElse advice: String) -> UsageError
    {
        let similar = NearestName.similar(to: word, in: known).first.map { "did you mean '\($0)'?" }
        return UsageError(message: "\(what) '\(word)'; \(similar ?? advice)")
    }
}
