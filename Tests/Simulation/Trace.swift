/// The record of a run: a hash of everything that has happened, and its last lines for the reader.
struct Trace {
    /// FNV-1a of 64 bits.
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var lines: [String] = []
    /// Whether all lines are kept; otherwise only their hash.
    let keepsLines: Bool

    init(keepsLines: Bool) { self.keepsLines = keepsLines }

    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    mutating func add(_ number: some FixedWidthInteger) {
        hash = (hash ^ UInt64(truncatingIfNeeded: number)) &* 0x100_0000_01B3
    }

    /// Adds a line that is not part of the hash.
    mutating func remark(_ line: String) { if keepsLines { lines.append("\(line) \(String(hash, radix: 16))") } }

    mutating func add(_ line: String) {
        add(line.utf8)
        if keepsLines { lines.append(line) }
    }
}
