public import LarderTLS

extension DiskStore {
    /// Encrypts each payload with AES-256-GCM of the system's OpenSSL, which also detects every change.
    ///
    ///     let key = try await DiskStore.EncryptingTransform.key(in: keychain, forDataIn: directory)
    ///     configuration.transform = try DiskStore.EncryptingTransform(keys: [key])
    ///
    /// A stored payload has 32 bytes more than the original: an identifier of the key, a nonce and a tag. To change the key, pass the new
    /// one first and the old one after it: operations, metadata and secrets get the new key when the store is opened, and content
    /// when it is stored again. Then leave the old one out; content that still has it is fetched again.
    public struct EncryptingTransform: PayloadTransform, CustomStringConvertible {
        private static let identifierBytes = 4
        /// The ciphers with the identifiers of their keys, the current one first.
        private let ciphers: [(identifier: [UInt8], cipher: AESGCM)]

        /// The number of bytes of a key.
        public static let keyBytes = AESGCM.keyBytes

        /// - Parameter keys: at least one of 32 bytes each: the current one, then those that only decrypt.
        /// - Throws: `.invalidSettings` for no key or one of another length; `.unavailable` if the system has no OpenSSL.
        public init(keys: [[UInt8]]) throws(TLSError) {
            guard !keys.isEmpty else {
                throw TLSError(
                    .invalidSettings,
                    "There is no key to encrypt with. Make one with EncryptingTransform.makeKey()."
                )
            }
            var ciphers: [(identifier: [UInt8], cipher: AESGCM)] = []
            for key in keys {
                let cipher = try AESGCM(key: key)
                ciphers.append((Array(cipher.keyHash.prefix(Self.identifierBytes)), cipher))
            }
            self.ciphers = ciphers
        }

        /// A new random key. Keep it where other users of the machine cannot read it, and not beside the store.
        public static func makeKey() throws(TLSError) -> [UInt8] { try AESGCM.randomKey() }

        /// "aes-256-gcm", for every key: a store survives a change of keys.
        public var identifier: String { "aes-256-gcm" }

        /// Does not contain the keys.
        public var description: String { "\(identifier) with \(ciphers.count) keys" }

        /// Whether a payload was encrypted with the first key.
        public func isCurrent(_ stored: [UInt8]) -> Bool { stored.starts(with: ciphers[0].identifier) }

        /// Encrypts a payload with the current key.
        public func encode(_ payload: [UInt8]) throws -> [UInt8] {
            let current = ciphers[0]
            return current.identifier + (try current.cipher.seal(payload, context: current.identifier))
        }

        /// Decrypts a payload with the key that it was encrypted with.
        ///
        /// - Throws: `TLSError` with `.damaged` if the payload was changed or its key is not among `keys`.
        public func decode(_ stored: [UInt8]) throws -> [UInt8] {
            let identifier = Array(stored.prefix(Self.identifierBytes))
            guard let found = ciphers.first(where: { $0.identifier == identifier }) else {
                throw TLSError(.damaged, "A payload was encrypted with a key that was not given, or was changed.")
            }
            return try found.cipher.open(Array(stored.dropFirst(Self.identifierBytes)), context: identifier)
        }
    }
}
