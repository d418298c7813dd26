/// A link of a `Link` field (RFC 8288 §3).
package struct WebLink: Sendable, Hashable {
    /// The target: an absolute URL, or a reference relative to the URL of the response.
    package let target: String
    /// The relation types of the first `rel` parameter, in lower case.
    package let relations: [String]
    /// The other parameters in order, with names in lower case.
    package let parameters: [Parameter]

    /// A target attribute.
    package struct Parameter: Sendable, Hashable {
        package let name: String
        package let value: String
    }

    /// Whether the link has a relation type, compared without regard to case (§3.3).
    package func relates(as relation: String) -> Bool { relations.contains(relation.lowercased()) }

    /// Parses field values by the algorithm of appendix B.2. Parsing stops at the first syntax error of a value; links before it count.
    ///
    /// Links with an `anchor` are left out, because their context is another resource (§3.2). Cost: linear in the text.
    package static func parse(_ values: [String]) -> [WebLink] {
        values.flatMap { value -> [WebLink] in
            var scanner = Scanner(value)
            var links: [WebLink] = []
            while let link = scanner.link() { if let link = link.inContext { links.append(link) } }
            return links
        }
    }

    private var inContext: WebLink? { parameters.contains { $0.name == "anchor" } ? nil : self }

    private struct Scanner {
        private let bytes: [UInt8]
        private var index = 0

        init(_ text: String) { bytes = Array(text.utf8) }

        private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

        private mutating func skip(_ set: [UInt8]) { while let byte, set.contains(byte) { index += 1 } }

        private mutating func take(_ expected: UInt8) -> Bool {
            guard byte == expected else { return false }
            index += 1
            return true
        }

        private mutating func token(until ends: [UInt8]) -> String {
            let start = index
            while let byte, !ends.contains(byte) { index += 1 }
            return FieldList.trimmed(String(decoding: bytes[start..<index], as: UTF8.self))
        }

        private mutating func quoted() -> String {
            var text: [UInt8] = []
            while let byte, byte != UInt8(ascii: "\"") {
                if byte == UInt8(ascii: "\\"), index + 1 < bytes.count { index += 1 }
                text.append(bytes[index])
                index += 1
            }
            _ = take(UInt8(ascii: "\""))
            return String(decoding: text, as: UTF8.self)
        }

        mutating func link() -> WebLink? {
            skip([0x20, 0x09, UInt8(ascii: ",")])
            guard take(UInt8(ascii: "<")), let end = bytes[index...].firstIndex(of: UInt8(ascii: ">")) else {
                index = bytes.count
                return nil
            }
            let target = FieldList.trimmed(String(decoding: bytes[index..<end], as: UTF8.self))
            index = end + 1
            var relations: [String]?
            var parameters: [WebLink.Parameter] = []
            while true {
                skip([0x20, 0x09])
                guard take(UInt8(ascii: ";")) else { break }
                let name = token(until: [UInt8(ascii: "="), UInt8(ascii: ";"), UInt8(ascii: ",")]).lowercased()
                var value = ""
                if take(UInt8(ascii: "=")) {
                    skip([0x20, 0x09])
                    value =
                        take(UInt8(ascii: "\"")) ? quoted() : token(until: [UInt8(ascii: ";"), UInt8(ascii: ",")])
                }
                if name == "rel" {
                    // Only the first counts (§3.3).
                    relations = relations ?? value.lowercased().split(separator: " ").map(String.init)
                } else if !name.isEmpty {
                    parameters.append(WebLink.Parameter(name: name, value: value))
                }
            }
            return WebLink(target: target, relations: relations ?? [], parameters: parameters)
        }
    }
}
