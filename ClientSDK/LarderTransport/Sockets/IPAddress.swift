import Glibc

/// An IPv4 or IPv6 address.
struct IPAddress: Sendable, Hashable {
    /// Four or sixteen.
    let bytes: [UInt8]

    /// Parses an address in text form, without brackets.
    init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        if unsafe inet_pton(AF_INET, text, &bytes) == 1 {
            self.bytes = Array(bytes[..<4])
        } else if unsafe inet_pton(AF_INET6, text, &bytes) == 1 {
            self.bytes = bytes
        } else {
            return nil
        }
    }

    var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// Whether the first bits are those of another address.
    func isIn(_ network: IPAddress, _ length: Int) -> Bool {
        guard bytes.count == network.bytes.count, (0...bytes.count * 8).contains(length) else { return false }
        return (0..<length).allSatisfy { bit in
            (bytes[bit / 8] ^ network.bytes[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0
        }
    }
}
