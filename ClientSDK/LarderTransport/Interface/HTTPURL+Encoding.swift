import Foundation
package import LarderHTTP

extension HTTPURL {
    /// Parses an absolute URL and percent-encodes the characters that a URL must not contain.
    ///
    /// - Returns: nil if the text cannot be encoded as an absolute URL, or has another scheme.
    package init?(encoding text: String, schemes: [Scheme]) {
        // Foundation encodes text that users type. It is slow, and most URLs do not need it.
        if let url = HTTPURL(text, schemes: schemes), url.isEncoded {
            self = url
        } else if let encoded = URL(string: text)?.absoluteString, let url = HTTPURL(encoded, schemes: schemes),
            url.isEncoded
        {
            self = url
        } else {
            return nil
        }
    }

    /// A text without spaces, control characters and others than ASCII: they are percent-encoded, so that a URL has one spelling. Another text
    /// stays as it is.
    static func encoded(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) else { return text }
        return HTTPURL(encoding: text, schemes: [.http, .https, .ws, .wss])?.text ?? text
    }
}
