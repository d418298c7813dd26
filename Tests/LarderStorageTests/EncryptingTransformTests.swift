import LarderStorage
import LarderTLS
import TestSupport
import Testing

@Suite("Disk store: encryption", .oneMinute)
struct EncryptingTransformTests {
    private typealias Encryption = DiskStore.EncryptingTransform

    private let text = Array("a sentence that is not on the disk".utf8)

    @Test(arguments: [0, 1, 31, 32, 1_000, 100_000])
    func `what is decoded is what was encoded, and any changed byte is noticed`(_ count: Int) throws {
        let transform = try Encryption(keys: [Encryption.makeKey()])
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        let stored = try transform.encode(payload)
        #expect(stored.count == count + 32)
        #expect(try transform.decode(stored) == payload)
        #expect(try transform.encode(payload) != stored)
        for position in stride(from: 0, to: stored.count, by: max(1, stored.count / 50)) {
            var changed = stored
            changed[position] ^= 1
            let error = #expect(throws: TLSError.self) { try transform.decode(changed) }
            #expect(error?.code == .damaged)
        }
        for cut in [0, 3, 4, 31] where cut < stored.count {
            #expect(throws: TLSError.self) { try transform.decode(Array(stored.prefix(cut))) }
        }
    }

    @Test func `after a change of keys old payloads are decoded and new ones have the new key`() throws {
        let (old, new) = (try Encryption.makeKey(), try Encryption.makeKey())
        let before = try Encryption(keys: [old])
        let both = try Encryption(keys: [new, old])
        let after = try Encryption(keys: [new])
        let stored = try before.encode(text)
        #expect(try both.decode(stored) == text)
        #expect(try after.decode(both.encode(text)) == text)
        #expect(throws: TLSError.self) { try after.decode(stored) }
        #expect(before.identifier == after.identifier)
    }

    @Test func `printing a transform or a configuration with it does not show the key`() throws {
        let key = try Encryption.makeKey()
        let transform = try Encryption(keys: [key])
        let shown = key.map { "\($0)" }.joined(separator: ", ")
        #expect(!"\(transform)".contains(shown) && !String(reflecting: [transform]).contains(shown))
        #expect(!String(reflecting: try AESGCM(key: key)).contains(shown))
        #expect(transform.isCurrent(try transform.encode(text)))
        #expect(try !Encryption(keys: [Encryption.makeKey(), key]).isCurrent(transform.encode(text)))
    }

    @Test func `keys that cannot be used are refused`() {
        for keys: [[UInt8]] in [[], [[1, 2, 3]]] {
            let error = #expect(throws: TLSError.self) { try Encryption(keys: keys) }
            #expect(error?.code == .invalidSettings)
        }
    }
}
