/// Measures text in terminal columns, and removes control characters.
enum TextWidth {
    /// The number of columns: wide characters take two.
    static func columns(_ text: String) -> Int { text.reduce(0) { $0 + columns($1) } }

    private static func columns(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        switch scalar.value {
        case ..<0x300: return 1
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60:
            return 2
        default:
            let isPicture = scalar.properties.isEmojiPresentation || character.unicodeScalars.contains("\u{fe0f}")
            return isPicture ? 2 : 1
        }
    }

    /// Replaces control and bidirectional formatting characters, which could control the terminal, by `·`, and tabs and line breaks by
    /// spaces.
    static func clean(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar -> Unicode.Scalar in
                    switch scalar.value {
                    case 0x09, 0x0A, 0x0D: " "
                    case ..<0x20, 0x7F..<0xA0, 0x202A...0x202E, 0x2066...0x2069: "·"
                    default: scalar
                    }
                }
            )
        )
    }

    /// The longest prefix that fits into `width` columns, clean; it ends with `…` if text was cut off.
    static func fit(_ text: String, _ width: Int) -> String {
        let text = clean(text)
        guard columns(text) > width else { return text }
        var room = max(0, width - 1)
        var kept = ""
        for character in text {
            room -= columns(character)
            if room < 0 { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// The clean text, padded with spaces to `width` columns.
    static func pad(_ text: String, _ width: Int) -> String {
        clean(text) + String(repeating: " ", count: max(0, width - columns(text)))
    }
}
