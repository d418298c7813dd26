import LarderCoding

extension World {
    /// A new secret of 160 bits, URL-safe.
    ///
    /// It comes from the system's random source and never from the world's seed: several worlds and several runs share a seed
    /// and would share their secrets. While the world is recorded it comes from the recording's own seed, so that a replay
    /// repeats it.
    func newSecret(prefix: String) -> String {
        var system = SystemRandomNumberGenerator()
        let words = hooks.secretWords(Self.secretWordCount) ?? (0..<Self.secretWordCount).map { _ in system.next() }
        var bytes: [UInt8] = []
        for word in words {
            for shift in stride(from: UInt64(0), to: 64, by: 8) where bytes.count < 20 {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return prefix + Base64.encodeURL(bytes)
    }

    /// The number of random words in a secret.
    static let secretWordCount = 3
}
