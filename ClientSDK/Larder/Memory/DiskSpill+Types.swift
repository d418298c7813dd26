extension DiskSpill {
    /// How much may be spilled.
    public struct Limits: Sendable, Hashable {
        /// Bytes on the disk, as they are written.
        public var bytesMaximum = 64 << 20
        /// The bytes of one entry as it is written; a larger one is dropped.
        public var entryBytesMaximum = 8 << 20
        /// The costs of the entries that wait to be written.
        public var waitingCostMaximum = 8 << 20
        /// For how long an entry may be used that says nothing itself.
        public var lifetime: Duration = .seconds(86_400)

        /// The usual limits.
        public init() {}
    }

    /// How entries become bytes. Functions may throw: what cannot be encoded or decoded is a miss, and told.
    public struct Coding: Sendable {
        let encode: @Sendable (Value) throws -> [UInt8]
        let decode: @Sendable ([UInt8]) throws -> Value
        let compress: (@Sendable ([UInt8]) throws -> [UInt8])?
        let decompress: (@Sendable ([UInt8]) throws -> [UInt8])?

        /// Without compression.
        public init(
            encode: @escaping @Sendable (Value) throws -> [UInt8],
            decode: @escaping @Sendable ([UInt8]) throws -> Value
        ) {
            self.encode = encode
            self.decode = decode
            compress = nil
            decompress = nil
        }

        /// With compression by functions of the caller's.
        public init(
            encode: @escaping @Sendable (Value) throws -> [UInt8],
            decode: @escaping @Sendable ([UInt8]) throws -> Value,
            compress: @escaping @Sendable ([UInt8]) throws -> [UInt8],
            decompress: @escaping @Sendable ([UInt8]) throws -> [UInt8]
        ) {
            self.encode = encode
            self.decode = decode
            self.compress = compress
            self.decompress = decompress
        }
    }

    /// What has happened so far.
    public struct Statistics: Sendable, Hashable {
        /// Entries that were written.
        public internal(set) var spilled = 0
        /// Entries that came back.
        public internal(set) var promoted = 0
        /// Entries that were lost: there was no room, their time was over, or the disk failed.
        public internal(set) var dropped = 0
        /// What the entries on the disk have now, in bytes.
        public internal(set) var bytes = 0
    }

    /// An entry that came back.
    public struct Entry: Sendable {
        /// Its value.
        public let value: Value
        /// Its cost.
        public let cost: Int
        /// For how long it may still be used; nil for as long as it stays.
        public let lifetime: Duration?
        let key: Key
        let ticket: Int
    }
}
