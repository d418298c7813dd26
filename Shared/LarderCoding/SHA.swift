/// SHA-256 (FIPS 180-4): names of blobs, digests of tokens and bodies.
package enum SHA256 {
    package static func hash(_ message: [UInt8]) -> [UInt8] {
        var state = initial
        MerkleDamgard.run(message) { block in compress(&state, block) }
        return state.flatMap { $0.bigEndianBytes }
    }

    private static let initial: [UInt32] = [
        0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19,
    ]

    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    private static func compress(_ state: inout [UInt32], _ block: ArraySlice<UInt8>) {
        var schedule = InlineArray<64, UInt32>(repeating: 0)
        for index in 0..<16 { schedule[index] = UInt32(bigEndian: block, at: index * 4) }
        for index in 16..<64 {
            let a = schedule[index - 15]
            let b = schedule[index - 2]
            let s0 = a.rotatedRight(7) ^ a.rotatedRight(18) ^ (a >> 3)
            let s1 = b.rotatedRight(17) ^ b.rotatedRight(19) ^ (b >> 10)
            schedule[index] = schedule[index - 16] &+ s0 &+ schedule[index - 7] &+ s1
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let s1 = e.rotatedRight(6) ^ e.rotatedRight(11) ^ e.rotatedRight(25)
            let choice = (e & f) ^ (~e & g)
            let first = h &+ s1 &+ choice &+ constants[index] &+ schedule[index]
            let s0 = a.rotatedRight(2) ^ a.rotatedRight(13) ^ a.rotatedRight(22)
            let majority = (a & b) ^ (a & c) ^ (b & c)
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ s0 &+ majority)
        }
        for (index, word) in [a, b, c, d, e, f, g, h].enumerated() { state[index] &+= word }
    }
}

/// SHA-1 (FIPS 180-4), only for the opening handshake of WebSockets (RFC 6455 §4.2.2), where it protects nothing.
package enum SHA1 {
    package static func hash(_ message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        MerkleDamgard.run(message) { block in
            var schedule = InlineArray<80, UInt32>(repeating: 0)
            for index in 0..<16 { schedule[index] = UInt32(bigEndian: block, at: index * 4) }
            for index in 16..<80 {
                let word = schedule[index - 3] ^ schedule[index - 8] ^ schedule[index - 14] ^ schedule[index - 16]
                schedule[index] = word.rotatedRight(31)
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for index in 0..<80 {
                let (function, constant): (UInt32, UInt32)
                switch index {
                case 0..<20: (function, constant) = ((b & c) | (~b & d), 0x5A82_7999)
                case 20..<40: (function, constant) = (b ^ c ^ d, 0x6ED9_EBA1)
                case 40..<60: (function, constant) = ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
                default: (function, constant) = (b ^ c ^ d, 0xCA62_C1D6)
                }
                let next = a.rotatedRight(27) &+ function &+ e &+ constant &+ schedule[index]
                (e, d, c, b, a) = (d, c, b.rotatedRight(2), a, next)
            }
            for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
        }
        return state.flatMap { $0.bigEndianBytes }
    }
}

/// Lower-case hexadecimal.
package func hexEncode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
        text.append(hexDigit: byte >> 4)
        text.append(hexDigit: byte & 15)
    }
    return String(decoding: text, as: UTF8.self)
}

/// The padding and block processing that both functions share.
private enum MerkleDamgard {
    static func run(_ message: [UInt8], _ compress: (ArraySlice<UInt8>) -> Void) {
        var start = 0
        while start + 64 <= message.count {
            compress(message[start..<(start + 64)])
            start += 64
        }
        var tail = Array(message[start...])
        tail.append(0x80)
        while tail.count % 64 != 56 { tail.append(0) }
        let bitCount = UInt64(message.count) * 8
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            tail.append(UInt8(truncatingIfNeeded: bitCount >> shift))
        }
        for block in stride(from: 0, to: tail.count, by: 64) { compress(tail[block..<(block + 64)]) }
    }
}

extension UInt32 {
    fileprivate init(bigEndian bytes: ArraySlice<UInt8>, at offset: Int) {
        let start = bytes.startIndex + offset
        self =
            UInt32(bytes[start]) << 24 | UInt32(bytes[start + 1]) << 16 | UInt32(bytes[start + 2]) << 8
            | UInt32(bytes[start + 3])
    }

    fileprivate func rotatedRight(_ count: UInt32) -> UInt32 { (self >> count) | (self << (32 - count)) }

    fileprivate var bigEndianBytes: [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: self >> UInt32($0)) }
    }
}
