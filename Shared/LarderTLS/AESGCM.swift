/// AES-256 in Galois/Counter Mode (NIST SP 800-38D), by OpenSSL: encrypts, and detects every change.
package struct AESGCM: Sendable, CustomStringConvertible {
    package static let keyBytes = 32
    private static let nonceBytes = 12
    private static let tagBytes = 16
    /// How many bytes a sealed message is longer than its plain text.
    package static let overhead = nonceBytes + tagBytes

    private let library: OpenSSL
    private let key: [UInt8]

    /// - Parameter key: 32 bytes, from `randomKey` or a secret store.
    /// - Throws: `.invalidSettings` for a key of another length, `.unavailable`.
    package init(key: [UInt8]) throws(TLSError) {
        guard key.count == Self.keyBytes else {
            throw TLSError(.invalidSettings, "A key for AES-256 has \(key.count) bytes. It must have \(Self.keyBytes).")
        }
        library = try OpenSSL.required()
        self.key = key
    }

    /// Random bytes of cryptographic quality, for `init(key:)`.
    package static func randomKey() throws(TLSError) -> [UInt8] { try OpenSSL.required().randomBytes(keyBytes) }

    /// Does not contain the key.
    package var description: String { "AES-256-GCM" }

    /// SHA-256, by whose beginning a payload names the key that it was sealed with.
    package var keyHash: [UInt8] { library.sha256(key) }

    /// Encrypts bytes under a random nonce. At most 2^32 messages may be sealed with one key.
    ///
    /// - Parameter context: authenticated but not contained: `open` needs the same.
    /// - Returns: nonce, ciphertext and tag.
    package func seal(_ plain: [UInt8], context: [UInt8] = []) throws(TLSError) -> [UInt8] {
        let nonce = try library.randomBytes(Self.nonceBytes)
        guard let (bytes, tag) = run(plain[...], nonce, context, tag: nil) else {
            throw TLSError(.damaged, "OpenSSL did not encrypt: \(library.takeReason() ?? "no reason given").")
        }
        return nonce + bytes + tag
    }

    /// Decrypts what `seal` has returned.
    ///
    /// - Throws: `.damaged` if anything was changed, or the key or context is another.
    package func open(_ sealed: [UInt8], context: [UInt8] = []) throws(TLSError) -> [UInt8] {
        guard sealed.count >= Self.overhead else {
            throw TLSError(.damaged, "A sealed message has \(sealed.count) bytes: fewer than \(Self.overhead).")
        }
        let nonce = Array(sealed.prefix(Self.nonceBytes))
        let tag = Array(sealed.suffix(Self.tagBytes))
        guard let (plain, _) = run(sealed.dropFirst(Self.nonceBytes).dropLast(Self.tagBytes), nonce, context, tag: tag)
        else {
            throw TLSError(.damaged, "A sealed message was changed, or was sealed with another key or context.")
        }
        return plain
    }

    /// - Parameter tag: the expected tag of bytes that are decrypted; nil encrypts.
    private func run(
        _ bytes: ArraySlice<UInt8>,
        _ nonce: [UInt8],
        _ context: [UInt8],
        tag: [UInt8]?
    ) -> (bytes: [UInt8], tag: [UInt8])? {
        guard bytes.count < Int(Int32.max), context.count < Int(Int32.max) else { return nil }
        library.clearErrors()
        defer { library.clearErrors() }
        guard let cipher = unsafe library.newCipher() else { return nil }
        defer { unsafe library.freeCipher(cipher) }
        guard unsafe library.beginCipher(cipher, library.aes256GCM(), nil, key, nonce, tag == nil ? 1 : 0) == 1 else {
            return nil
        }
        var count: Int32 = 0
        if !context.isEmpty {
            guard unsafe library.cipher(cipher, nil, &count, context, Int32(context.count)) == 1 else { return nil }
        }
        var isDone = true
        let result = unsafe [UInt8](unsafeUninitializedCapacity: bytes.count) { buffer, initialized in
            guard !bytes.isEmpty else { return }
            isDone = unsafe bytes.withUnsafeBufferPointer { input in
                unsafe library.cipher(cipher, buffer.baseAddress, &count, input.baseAddress, Int32(input.count)) == 1
            }
            initialized = isDone ? Int(count) : 0
        }
        guard isDone, result.count == bytes.count else { return nil }
        var final = [UInt8](repeating: 0, count: Self.tagBytes)
        if var tag {
            guard unsafe library.cipherControl(cipher, Self.setTag, Int32(tag.count), &tag) == 1,
                unsafe library.endCipher(cipher, &final, &count) == 1
            else { return nil }
            return (result, tag)
        }
        guard unsafe library.endCipher(cipher, &final, &count) == 1,
            unsafe library.cipherControl(cipher, Self.getTag, Int32(final.count), &final) == 1
        else { return nil }
        return (result, final)
    }

    private static let getTag: Int32 = 0x10
    private static let setTag: Int32 = 0x11
}
