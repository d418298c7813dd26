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
        while let found = bytes[position...].firstIndex(of: 0xFF), found + 1 < bytes.count {
            position = found
            let second = bytes[position + 1]
            if second != 0, second != 0xFF, !(0xD0...0xD7).contains(second) { return true }
            position += 1
        }
        position = bytes.count
        return false
    }
}
