import LarderCoding
import LarderHTTP

/// The digest that a server sends with a representation (RFC 9530). Only SHA-256 is supported.
enum ImageDigest {
    /// Whether there is a digest and the bytes do not have it.
    ///
    /// - Parameter fields: the fields of the first reply, which began the file.
    static func contradicts(_ fields: Fields, _ bytes: [UInt8]) -> Bool {
        let expected = [reprDigest, contentDigest].compactMap { fields.combined($0).flatMap(sha256) }
        guard !expected.isEmpty else { return false }
        let digest = SHA256.hash(bytes)
        return !expected.allSatisfy { $0 == digest }
    }

    /// The value of `sha-256=:…:` in a dictionary (RFC 9651 §3.2).
    private static func sha256(_ text: String) -> [UInt8]? {
        for member in text.split(separator: ",") {
            let member = member.drop { $0 == " " || $0 == "\t" }
            guard member.hasPrefix("sha-256=:") else { continue }
            let value = member.dropFirst(9).prefix { $0 != ":" }
            return Base64.decode(String(value))
        }
        return nil
    }

    private static let reprDigest = FieldName("Repr-Digest")
    private static let contentDigest = FieldName("Content-Digest")
}
