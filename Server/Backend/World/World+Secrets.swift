import LarderCoding

extension World {
    /// A new secret of 160 bits, URL-safe.
    ///
    /// It comes from the system's random source and never from the world's seed: a seed is the same in several worlds and in
    /// several runs, and so would be their secrets. While the world is recorded it comes from the recording's own seed, so
    /// that a replay gives it again.
    func newSecret(prefix: String) -> String {
        var system = SystemRandomNumberGenerator()
        let words = control.tape.nextSecretWords() ?? (0..<Self.secretWordCount).map { _ in system.next() }
        var bytes: [UInt8] = []
        for word in words {
            for shift in stride(from: UInt64(0), to: 64, by: 8) where bytes.count < 20 {
                bytes.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return prefix + Base64.encodeURL(bytes)
    }

    /// How many random words one secret takes.
    static let secretWordCount = 3
}
