import LarderCoding

extension World {
    /// A new secret of 160 bits, URL-safe.
    ///
    /// It comes from the system's random source and never from the world's seed: several worlds and several runs share a seed
    /// and would share their secrets.
    func newSecret(prefix: String) -> String {
        prefix + Base64.encodeURL((0..<20).map { _ in UInt8.random(in: .min ... .max) })
    }
}
