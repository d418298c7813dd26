/// A fast hash that is identical on every platform and in every version: the basis of content ETags and of cache keys.
///
/// Words are multiplied in pairs to 128 bits and folded, as in Wang Yi's wyhash; two lanes with different constants give 128
/// bits. Not resistant to attackers: do not use it for anything that must be secret or unforgeable.
package enum ContentHash {
    private static let k0: UInt64 = 0xA076_1D64_78BD_642F
    private static let k1: UInt64 = 0xE703_7ED1_A0B4_28DB
    private static let k2: UInt64 = 0x8EBC_6AF0_9C88_C6E3
    private static let k3: UInt64 = 0x5899_65CC_7537_4CC3

    package static func hash64(_ bytes: Span<UInt8>, seed: UInt64 = 0) -> UInt64 { hash128(bytes, seed: seed).0 }

    package static func hash128(_ bytes: Span<UInt8>, seed: UInt64 = 0) -> (UInt64, UInt64) {
        let count = bytes.count
        var a = seed ^ k0
        var b = seed ^ k3
        let words = unsafe bytes.bytes
        var index = 0
        while index + 16 <= count {
            let x = unsafe words.unsafeLoadUnaligned(fromUncheckedByteOffset: index, as: UInt64.self).littleEndian
            let y = unsafe words.unsafeLoadUnaligned(fromUncheckedByteOffset: index + 8, as: UInt64.self).littleEndian
            a = fold(x ^ k1, y ^ a)
            b = fold(y ^ k2, x ^ b)
            index += 16
        }
        var x: UInt64 = 0
        var y: UInt64 = 0
        for offset in index..<count {
            let position = offset - index
            if position < 8 {
                x |= UInt64(bytes[offset]) << UInt64(8 * position)
            } else {
                y |= UInt64(bytes[offset]) << UInt64(8 * (position - 8))
            }
        }
        let length = UInt64(count)
        a = fold(fold(x ^ k1, y ^ a) ^ k2, length ^ k3)
        b = fold(fold(y ^ k2, x ^ b) ^ k0, length ^ k1)
        return (a, b)
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
