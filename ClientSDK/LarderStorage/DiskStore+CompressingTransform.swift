package import LarderCoding

extension DiskStore {
    /// Compresses each payload with DEFLATE if that saves an eighth of it or more, and stores it as it is otherwise, and without the
    /// system's zlib.
    ///
    ///     configuration.transform = DiskStore.CompressingTransform()
    ///     configuration.transform = DiskStore.CompressingTransform(then: encryption)
    ///
    /// Payloads below 256 bytes are not tried: the rows of small entities hardly become smaller, and a try costs some 10 µs. Of a payload above 16 KiB a sample is tried first, so that pictures, which are compressed
    /// already, cost some microseconds. A stored payload has at most one byte more than the original.
    ///
    /// Beside encryption, the size of a payload then depends on its content: do not use it if others can choose a part of a payload
    /// that also has a secret, and can observe sizes.
    public struct CompressingTransform: PayloadTransform {
        /// The stored bytes are not what this transform has written.
        struct Damage: Error, CustomStringConvertible {
            let description: String
        }

        private static let bytesMinimum = 256
        private static let sampledFrom = 16 << 10
        private static let sampleLength = 4 << 10
        /// The first byte of what is stored. After `deflated` follow four bytes with the length of the payload, lowest first.
        private static let plain: UInt8 = 0
        private static let deflated: UInt8 = 1
        private static let headLength = 5
        /// DEFLATE has less output for each byte of input.
        private static let ratioMaximum = 1_033

        private let next: (any PayloadTransform)?
        private let zlib: Result<Zlib, InflateError>

        /// - Parameter next: encodes what is compressed, for example an encryption. Encrypted bytes cannot be compressed, so this is the
        ///   only order.
        public init(then next: (any PayloadTransform)? = nil) { self.init(then: next, zlib: Zlib.system) }

        package init(then next: (any PayloadTransform)?, zlib: Result<Zlib, InflateError>) {
            self.next = next
            self.zlib = zlib
        }

        /// "deflate", and the name of the next transform.
        public var identifier: String { next.map { "deflate+\($0.identifier)" } ?? "deflate" }

        /// Compresses a payload if it becomes smaller, and passes it on.
        public func encode(_ payload: [UInt8]) throws -> [UInt8] {
            let stored = compressed(payload) ?? [Self.plain] + payload
            return try next?.encode(stored) ?? stored
        }

        /// Restores a payload. Allocates no more than DEFLATE can produce of what is stored.
        public func decode(_ stored: [UInt8]) throws -> [UInt8] {
            let stored = try next?.decode(stored) ?? stored
            switch stored.first {
            case Self.plain: return Array(stored.dropFirst())
            case Self.deflated where stored.count > Self.headLength: return try restored(stored)
            default: throw Damage(description: "the payload was not written by the compressing transform")
            }
        }

        private func compressed(_ payload: [UInt8]) -> [UInt8]? {
            guard case .success(let zlib) = zlib, payload.count >= Self.bytesMinimum,
                let length = UInt32(exactly: payload.count)
            else { return nil }
            if payload.count > Self.sampledFrom {
                // From the middle: the beginning of a picture is metadata.
                let start = payload.count / 2
                let sample = Array(payload[start..<(start + Self.sampleLength)])
                guard let coded = zlib.deflated(sample, .deflate, .fast),
                    Self.isWorthwhile(coded.count, of: Self.sampleLength)
                else { return nil }
            }
            var head = [Self.deflated]
            head.append(number: length)
            guard let stored = zlib.deflated(payload, .deflate, .fast, after: head) else { return nil }
            return Self.isWorthwhile(stored.count, of: payload.count) ? stored : nil
        }

        private static func isWorthwhile(_ count: Int, of original: Int) -> Bool { count <= original - original / 8 }

        private func restored(_ stored: [UInt8]) throws -> [UInt8] {
            let length = stored[1..<Self.headLength].reversed().reduce(0) { $0 << 8 | Int($1) }
            guard length / Self.ratioMaximum <= stored.count else {
                throw Damage(description: "\(stored.count) bytes cannot be a payload of \(length) bytes")
            }
            var inflater = Inflater(.deflate, zlib: zlib)
            var payload = [UInt8](repeating: 0, count: length)
            var consumed = Self.headLength
            var additional: [UInt8] = [0]
            guard try inflater.read(length, into: &payload, from: stored.span, consumed: &consumed) == length,
                try inflater.read(1, into: &additional, from: stored.span, consumed: &consumed) == 0, inflater.hasEnded
            else { throw Damage(description: "the compressed payload does not have \(length) bytes") }
            return payload
        }
    }
}
