/// Hashes of keys, computed once for each call of the memory tier.
///
/// ASCII strings, as nearly all keys are, are hashed eight bytes at a time by folded multiplication (the construction of wyhash),
/// with a seed that the process draws: a quarter of the time of `Hasher`. All other keys use `Hasher`.
@usableFromInline package enum KeyHash {
    /// Differs between processes, unless the environment makes hashing deterministic.
    @usableFromInline static func seed() -> UInt64 { UInt64(truncatingIfNeeded: Hasher().finalize()) }

    @inlinable @inline(__always) static func of<Key: Hashable>(_ key: Key, _ seed: UInt64) -> UInt64 {
        // Decided at compile time if the type is known.
        if Key.self == String.self { return text(unsafe unsafeBitCast(key, to: String.self), seed) }
        return fold(UInt64(truncatingIfNeeded: key.hashValue) ^ seed, 0x9E37_79B9_7F4A_7C15)
    }

    @inlinable package static func text(_ text: String, _ seed: UInt64) -> UInt64 {
        let hash = unsafe text.utf8.withContiguousStorageIfAvailable { bytes in unsafe ascii(bytes, seed) }
        if let hash, let hash { return hash }
        return other(text, seed)
    }

    /// The hash of strings that are not contiguous or not ASCII. Equal strings have equal hashes, even if their bytes differ.
    @usableFromInline static func other(_ text: String, _ seed: UInt64) -> UInt64 {
        var text = text
        text.makeContiguousUTF8()
        // Three characters beyond ASCII are canonically equivalent to an ASCII one; Unicode guarantees that this does not change.
        text.unicodeScalars = String.UnicodeScalarView(
            text.unicodeScalars.map { scalar in
                switch scalar.value {
                case 0x037E: ";"
                case 0x1FEF: "`"
                case 0x212A: "K"
                default: scalar
                }
            }
        )
        let hash = unsafe text.utf8.withContiguousStorageIfAvailable { bytes in unsafe ascii(bytes, seed) }
        if let hash, let hash { return hash }
        var hasher = Hasher()
        hasher.combine(seed)
        hasher.combine(text)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }

    /// Nil if a byte is not ASCII.
    @inlinable static func ascii(_ bytes: UnsafeBufferPointer<UInt8>, _ seed: UInt64) -> UInt64? {
        let count = bytes.count
        var state = seed ^ 0xA076_1D64_78BD_642F
        var first: UInt64 = 0
        var last: UInt64 = 0
        var all: UInt64 = 0
        if count > 0, let start = unsafe UnsafeRawPointer(bytes.baseAddress) {
            if count > 16 {
                var offset = 0
                while offset < count - 16 {
                    let (left, right) = unsafe (word(start + offset), word(start + offset + 8))
                    all |= left | right
                    state = fold(left ^ 0xE703_7ED1_A0B4_28DB, right ^ state)
                    offset += 16
                }
                // The last word may overlap the one before it.
                unsafe (first, last) = (word(start + count - 16), word(start + count - 8))
            } else if count >= 8 {
                unsafe (first, last) = (word(start), word(start + count - 8))
            } else if count >= 4 {
                unsafe (first, last) = (half(start), half(start + count - 4))
            } else {
                unsafe first =
                    UInt64(bytes[0]) | UInt64(bytes[count >> 1]) << 8 | UInt64(bytes[count - 1]) << 16
            }
        }
        guard (all | first | last) & 0x8080_8080_8080_8080 == 0 else { return nil }
        return fold(
            0x8EBC_6AF0_9C88_C6E3 ^ UInt64(truncatingIfNeeded: count),
            fold(first ^ 0xE703_7ED1_A0B4_28DB, last ^ state)
        )
    }

    @inlinable static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let (high, low) = left.multipliedFullWidth(by: right)
        return high ^ low
    }

    @inlinable static func word(_ start: UnsafeRawPointer) -> UInt64 {
        unsafe start.loadUnaligned(as: UInt64.self)
    }

    @inlinable static func half(_ start: UnsafeRawPointer) -> UInt64 {
        UInt64(unsafe start.loadUnaligned(as: UInt32.self))
    }
}
