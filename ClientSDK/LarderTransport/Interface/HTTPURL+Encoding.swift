import Foundation
package import LarderHTTP

extension HTTPURL {
    /// Parses an absolute URL and percent-encodes the characters that a URL must not contain.
    ///
    /// - Returns: nil if the text has no such form, or one of another scheme.
    package init?(encoding text: String, schemes: [Scheme]) {
        // Foundation encodes what people type. It is slow, and most URLs do not need it.
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
