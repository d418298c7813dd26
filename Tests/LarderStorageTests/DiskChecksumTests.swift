import LarderTime
import TestSupport
import Testing

@testable import LarderStorage

@Suite("Disk checksum", .oneMinute)
struct DiskChecksumTests {
    private let checksum = DiskChecksum(transform: nil)

    private func sum(_ bytes: [UInt8], key: String = "k") -> UInt64 { checksum.content(.entity, "t", key, nil, bytes) }

    @Test func `the checksum changes with any bit, at every length`() {
        var generator = SeededGenerator(seed: 3)
        for count in 0...140 {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            let known = sum(bytes)
            for index in 0..<count {
                for bit in 0..<8 {
                    var other = bytes
                    other[index] ^= 1 << UInt8(bit)
                    #expect(sum(other) != known, "bit \(bit) of byte \(index) of \(count)")
                }
            }
            #expect(sum(bytes + [0]) != known)
        }
    }

    @Test func `the checksum changes when words swap places`() {
        let bytes = (0..<256).map { UInt8($0) }
        let known = sum(bytes)
        for first in stride(from: 0, to: 256, by: 8) {
            for second in stride(from: first + 8, to: 256, by: 8) {
                var other = bytes
                for offset in 0..<8 { other.swapAt(first + offset, second + offset) }
                #expect(sum(other) != known)
            }
        }
    }

    @Test func `the checksum covers the key, the kind, the ETag and the transform`() {
        let sums = [
            sum([1]), sum([1], key: "l"), sum([1], key: ""), checksum.content(.query, "t", "k", nil, [1]),
            checksum.content(.entity, "tk", "", nil, [1]), checksum.content(.entity, "t", "k", "", [1]),
            checksum.content(.entity, "t", "k", "e", [1]), checksum.tombstone("t", "k"), sum([]),
            DiskChecksum(transform: "").content(.entity, "t", "k", nil, [1]),
            DiskChecksum(transform: "zip").content(.entity, "t", "k", nil, [1]),
        ]
        #expect(Set(sums).count == sums.count)
    }

    @Test func `times can be exchanged without the content`() {
        let old = DiskChecksum.times(version: 1, fetched: 2, validated: 3, expires: 4)
        let new = DiskChecksum.times(version: 1, fetched: 2, validated: 5, expires: 6)
        #expect(sum([1]) ^ old ^ old ^ new == sum([1]) ^ new)
        #expect(
            Set([
                old, new, DiskChecksum.times(version: nil, fetched: 2, validated: 3, expires: 4),
                DiskChecksum.times(version: 1, fetched: 3, validated: 2, expires: 4),
            ]).count == 4
        )
    }
}
