/// The size of a PNG or JPEG file in pixels, from its head.
struct PictureSize: Equatable {
    let mediaType: String
    let width: Int
    let height: Int

    /// Nil for other files, and for damaged heads.
    init?(of bytes: [UInt8]) {
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            guard bytes.count >= 24 else { return nil }
            self.init("image/png", Self.integer(bytes, 16, 4), Self.integer(bytes, 20, 4))
        } else {
            self.init(jpeg: bytes)
        }
    }

    private init?(_ mediaType: String, _ width: Int, _ height: Int) {
        guard (1...65_535).contains(width), (1...65_535).contains(height) else { return nil }
        (self.mediaType, self.width, self.height) = (mediaType, width, height)
    }

    /// Looks for the frame header among the segments (ITU-T T.81 §B.2.2).
    private init?(jpeg bytes: [UInt8]) {
        guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
        var place = 2
        while place + 9 < bytes.count, bytes[place] == 0xFF {
            let marker = bytes[place + 1]
            if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker) {
                self.init("image/jpeg", Self.integer(bytes, place + 7, 2), Self.integer(bytes, place + 5, 2))
                return
            }
            place += 2 + Self.integer(bytes, place + 2, 2)
        }
        return nil
    }

    private static func integer(_ bytes: [UInt8], _ start: Int, _ count: Int) -> Int {
        bytes[start..<start + count].reduce(0) { $0 << 8 | Int($1) }
    }
}
