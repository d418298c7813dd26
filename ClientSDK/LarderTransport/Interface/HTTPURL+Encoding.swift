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
}
