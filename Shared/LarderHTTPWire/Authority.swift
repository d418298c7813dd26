/// A host with an optional port, as in `Host` and absolute targets (RFC 9110 §7.2, RFC 3986 §3.2).
package enum Authority {
    /// Whether the bytes are `uri-host [":" port]` or empty. Userinfo is not allowed in HTTP (RFC 9110 §4.2.4).
    package static func isValid(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first else { return true }
        var rest = bytes
        if first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")), end > bytes.startIndex + 1,
                bytes[(bytes.startIndex + 1)..<end].allSatisfy({ isNameByte($0) || $0 == UInt8(ascii: ":") })
            else { return false }
            rest = bytes[(end + 1)...]
        } else {
            rest = rest.drop(while: isNameByte)
            // A port without a host is invalid.
            guard rest.startIndex > bytes.startIndex else { return false }
        }
        guard let colon = rest.first else { return true }
        return colon == UInt8(ascii: ":") && rest.dropFirst().allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
    }

    /// Whether the host is a name or an address of this machine.
    package static func isLoopback(_ authority: String) -> Bool {
        let host =
            authority.hasPrefix("[") ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        if host.lowercased() == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        // Decimal octets without leading zeros (RFC 3986 §3.2.2).
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0).map { String($0) } == String($0) }
    }

    /// Whether a registered name or an address may contain this byte: unreserved, percent, sub-delims.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "%"),
            UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "("),
            UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="):
            true
        default: false
        }
    }
}
