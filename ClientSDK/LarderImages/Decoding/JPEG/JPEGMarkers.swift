/// Finds the markers of a JPEG (ITU T.81 §B.1.1).
struct JPEGMarkers {
    private let bytes: [UInt8]
    private(set) var position: Int

    init(_ bytes: [UInt8], from position: Int) {
        self.bytes = bytes
        self.position = position
    }

    /// Moves behind the next marker. Bytes before it are ignored, as by other decoders.
    ///
    /// - Returns: the second byte of the marker; nil at the end of the bytes.
    mutating func next() -> UInt8? {
        while position + 1 < bytes.count {
            if bytes[position] == 0xFF, bytes[position + 1] != 0, bytes[position + 1] != 0xFF {
                position += 2
                return bytes[position - 1]
            }
            position += 1
        }
        return nil
    }

    /// Moves behind the segment at the position, and returns its content; nil if it is not complete.
    mutating func segment() throws(ImageError) -> ArraySlice<UInt8>? {
        guard bytes.count - position >= 2 else { return nil }
        let length = Int(bytes[position]) << 8 | Int(bytes[position + 1])
        guard length >= 2 else {
            throw ImageError(.damaged, "The JPEG has a segment at \(position) of \(length) bytes.")
        }
        guard bytes.count - position >= length else { return nil }
        defer { position += length }
        return bytes[(position + 2)..<(position + length)]
    }

    /// Moves to the marker that ends a scan's data.
    ///
    /// - Returns: whether there is one.
    mutating func skipData() -> Bool {
        let count = bytes.count
        position = unsafe bytes.withUnsafeBytes { bytes in
            var position = position
            while position + 1 < count {
                if count - position >= 9 {
                    // In bounds: the word ends before the last byte, which leaves one behind any 0xFF in it.
                    let word = unsafe bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
                    if (~word &- 0x0101_0101_0101_0101) & word & 0x8080_8080_8080_8080 == 0 {
                        position += 8
                        continue
                    }
                }
                let (first, second) = unsafe (bytes[position], bytes[position + 1])
                if first == 0xFF, second != 0, second != 0xFF, !(0xD0...0xD7).contains(second) { return position }
                position += 1
            }
            return count
        }
        return position < count
    }
}
