/// The query of a request target as names and values, in order.
package struct QueryString: Sendable, Hashable {
    /// One `name=value`.
    package struct Item: Sendable, Hashable {
        /// The decoded name.
        package let name: String
        /// The decoded value; empty where there is no `=`.
        package let value: String
    }

    /// The items in order; repeats are kept.
    package let items: [Item]

    /// Parses the part after `?`. Names and values are percent-decoded, `+` is a space; nil for invalid UTF-8 or an incomplete
    /// escape.
    package init?(parsing bytes: [UInt8]) {
        var items: [Item] = []
        for part in bytes.split(separator: UInt8(ascii: "&")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.percentDecoded(Array(pair[0]), plusIsSpace: true),
                let value = pair.count > 1 ? Self.percentDecoded(Array(pair[1]), plusIsSpace: true) : ""
            else { return nil }
            items.append(Item(name: name, value: value))
        }
        self.items = items
    }

    package func first(_ name: String) -> String? { items.first { $0.name == name }?.value }

    /// Percent-decodes (RFC 3986 §2.1); nil for an invalid escape and for bytes that are not UTF-8.
    package static func percentDecoded(_ bytes: [UInt8], plusIsSpace: Bool = false) -> String? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "%"):
                guard index + 2 < bytes.count, let high = hexValue(bytes[index + 1]),
                    let low = hexValue(bytes[index + 2])
                else { return nil }
                decoded.append(high << 4 | low)
                index += 3
                continue
            case UInt8(ascii: "+") where plusIsSpace: decoded.append(0x20)
            default: decoded.append(bytes[index])
            }
            index += 1
        }
        return String(validating: decoded, as: UTF8.self)
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986 §2.3).
    package static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
