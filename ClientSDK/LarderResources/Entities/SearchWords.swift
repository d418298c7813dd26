import Foundation

/// The words of texts for a search: without case and diacritics, separated where a text has anything but letters and digits.
/// The index and the search in memory use the same words.
struct SearchWords {
    let words: [String]

    /// Only the beginning of a text is searched, so that the index of a long one stays small.
    private static let charactersMaximum = 4 << 10

    init(_ texts: [String]) {
        words = texts.flatMap { text -> [String] in
            let start = text.utf8.count > Self.charactersMaximum ? String(text.prefix(Self.charactersMaximum)) : text
            return start.folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
                .split { !$0.isLetter && !$0.isNumber }.map(String.init)
        }
    }

    var text: String { words.joined(separator: " ") }

    /// Whether some word of a text begins with each of these words.
    func areFound(in text: String) -> Bool {
        let known = text.utf8.split(separator: UInt8(ascii: " "))
        return words.allSatisfy { word in known.contains { $0.starts(with: word.utf8) } }
    }
}
