import Foundation

/// A picture that is shown.
struct Shown {
    var key: Int
    /// The bytes of its decoded pixels.
    var byteCount: Int
    /// The pixels of its file, which decide how long decoding takes.
    var sourcePixels: Int
}

/// SplitMix64.
struct Generator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }

    /// A number below `count`, small ones more often.
    mutating func popular(_ count: Int) -> Int { Int(pow(Double.random(in: 0..<1, using: &self), 3) * Double(count)) }
}

/// The order in which an app shows pictures.
enum PictureTrace: String, CaseIterable {
    /// A feed of avatars and photos that is scrolled down, partly back, and up again; profiles are opened in between.
    case feed
    /// Grids of thumbnails, photos in full size that are swiped through, and back to the grid.
    case gallery
    /// Chats with avatars, stickers and photos of all sizes, which are opened again.
    case mixed

    static let length = 60_000

    private static func avatar(_ key: Int) -> Shown { Shown(key: key, byteCount: 96 * 96 * 4, sourcePixels: 192 * 192) }

    private static func photo(_ key: Int) -> Shown {
        Shown(key: 100_000 + key, byteCount: 750 * 563 * 4, sourcePixels: 1_280 * 960)
    }

    private static func thumbnail(_ key: Int) -> Shown {
        Shown(key: 1_000_000 + key, byteCount: 180 * 180 * 4, sourcePixels: 320 * 240)
    }

    private static func full(_ key: Int) -> Shown {
        Shown(key: 2_000_000 + key, byteCount: 1_280 * 960 * 4, sourcePixels: 1_280 * 960)
    }

    var pictures: [Shown] {
        var generator = Generator(state: 7)
        var shown: [Shown] = []
        while shown.count < Self.length {
            switch self {
            case .feed: Self.feed(&shown, &generator)
            case .gallery: Self.gallery(&shown, &generator)
            case .mixed: Self.chats(&shown, &generator)
            }
        }
        return Array(shown.prefix(Self.length))
    }

    private static func feed(_ shown: inout [Shown], _ generator: inout Generator) {
        let newest = 20_000 + shown.count / 20
        func row(_ post: Int) {
            var own = Generator(state: UInt64(post))
            shown.append(avatar(own.popular(400)))
            if own.number(0..<3) > 0 { shown.append(photo(post)) }
        }
        let depth = generator.number(10..<120)
        for offset in 0..<depth {
            row(newest - offset)
            if generator.number(0..<15) == 0 {
                let author = generator.popular(400)
                shown.append(full(author))
                for number in 0..<6 { shown.append(thumbnail(author * 100 + number)) }
            }
            guard generator.number(0..<12) == 0 else { continue }
            for back in 0..<min(offset, generator.number(3..<25)) { row(newest - offset + back) }
        }
        for offset in (0..<depth).reversed() { row(newest - offset) }
    }

    private static func gallery(_ shown: inout [Shown], _ generator: inout Generator) {
        let album = generator.number(0..<12)
        let (base, length) = (album * 1_000, 60 + album * 40)
        for start in stride(from: 0, to: length, by: 12) {
            let page = base + start
            for offset in 0..<12 { shown.append(thumbnail(page + offset)) }
            guard generator.number(0..<3) == 0 else { continue }
            let first = page + generator.number(0..<12)
            for step in 0..<generator.number(1..<8) {
                shown.append(full(first + step))
                if generator.number(0..<5) == 0 { shown.append(full(first + step - 1)) }
            }
            for offset in 0..<12 { shown.append(thumbnail(page + offset)) }
        }
        for offset in (0..<length).reversed() where generator.number(0..<2) == 0 {
            shown.append(thumbnail(base + offset))
        }
    }

    private static func chats(_ shown: inout [Shown], _ generator: inout Generator) {
        let chat = generator.popular(40)
        shown.append(avatar(chat))
        func received(_ number: Int) -> Shown {
            var own = Generator(state: UInt64(chat * 100_000 + number))
            let byteCount = Int(50_000 * pow(120, Double.random(in: 0..<1, using: &own)))
            return Shown(
                key: 6_000_000 + chat * 100_000 + number,
                byteCount: byteCount,
                sourcePixels: byteCount * 3 / 8
            )
        }
        let newest = 1_000 + shown.count / 20
        for _ in 0..<generator.number(5..<40) {
            switch generator.number(0..<10) {
            case 0..<4:
                let sticker = 5_000_000 + generator.popular(600)
                shown.append(Shown(key: sticker, byteCount: 256 * 256 * 4, sourcePixels: 256 * 256))
            case 4..<6: shown.append(avatar(generator.number(0..<80)))
            default: shown.append(received(newest - generator.popular(200)))
            }
        }
        for number in (newest - generator.number(5..<40))..<newest { shown.append(received(number)) }
    }
}
