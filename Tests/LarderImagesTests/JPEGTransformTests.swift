import Foundation
import LarderTime
import TestSupport
import Testing

@testable import LarderImages

@Suite("JPEG decoder, transforms", .oneMinute)
struct JPEGTransformTests {
    /// The 64 samples of a block by the definition (ITU T.81 §A.3.3), not rounded and not clamped.
    private func samples(_ coefficients: [Int16]) -> [Double] {
        (0..<64).map { place in
            let (x, y) = (Double(place % 8), Double(place / 8))
            var sum = 0.0
            for v in 0..<8 {
                for u in 0..<8 where coefficients[v * 8 + u] != 0 {
                    let scale = (u == 0 ? 0.5.squareRoot() : 1) * (v == 0 ? 0.5.squareRoot() : 1) / 4
                    sum +=
                        scale * Double(coefficients[v * 8 + u]) * cos((2 * x + 1) * Double(u) * .pi / 16)
                        * cos((2 * y + 1) * Double(v) * .pi / 16)
                }
            }
            return sum + 128
        }
    }

    private func transform(_ block: [Int16]) -> [UInt8] {
        let factors = [Int16](repeating: 1, count: 64)
        var target = [UInt8](repeating: 0, count: 64)
        let isFlat = block.dropFirst().allSatisfy { $0 == 0 }
        unsafe target.withUnsafeMutableBufferPointer { target in
            unsafe block.withUnsafeBufferPointer { block in
                unsafe factors.withUnsafeBufferPointer { factors in
                    unsafe JPEGInverseDCT.transform(
                        block.baseAddress.unsafelyUnwrapped,
                        factors.baseAddress.unsafelyUnwrapped,
                        isFlat: isFlat,
                        into: target.baseAddress.unsafelyUnwrapped,
                        stride: 8
                    )
                }
            }
        }
        return target
    }

    @Test func `samples are those by the definition, within one`() {
        let seed: UInt64 = 64
        var random = SeededGenerator(seed: seed)
        for round in 0..<500 {
            var block = [Int16](repeating: 0, count: 64)
            block[0] = Int16(random.uniform(in: -300..<300))
            for _ in 0..<(round % 12) {
                block[random.uniform(in: 0..<64)] = Int16(random.uniform(in: -60..<60))
            }
            let exact = samples(block)
            for (sample, expected) in zip(transform(block), exact) {
                #expect(abs(Double(sample) - min(255, max(0, expected))) <= 1, "seed \(seed), round \(round)")
            }
        }
    }

    @Test func `Huffman codes of every length are decoded, and others are not`() throws {
        // One code of each length from 1 to 16: 0, 10, 110 and so on; the code of ones only is free.
        let counts = [UInt8](repeating: 1, count: 16)
        let code = try JPEGHuffmanCode(counts: counts[...], symbols: Array(0x10...0x1F)[...], isDC: false)
        var table = [UInt32](repeating: 7, count: JPEGHuffmanCode.tableLength)
        code.build(into: &table, at: 0)
        for length in 1...17 {
            // So many ones less one, a zero, and then the value's bits, all ones.
            var bytes: [UInt8] = []
            let bits = [Bool](repeating: true, count: length - 1) + [false] + [Bool](repeating: true, count: 47)
            for start in stride(from: 0, to: bits.count - 7, by: 8) {
                let byte = bits[start..<(start + 8)].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
                bytes += byte == 255 ? [255, 0] : [byte]
            }
            unsafe bytes.withUnsafeBufferPointer { bytes in
                unsafe table.withUnsafeBufferPointer { table in
                    var reader = unsafe JPEGBits(bytes.baseAddress.unsafelyUnwrapped, 0..<bytes.count)
                    let entry = unsafe reader.symbol(table.baseAddress.unsafelyUnwrapped)
                    let size = Int(entry >> 12) & 15
                    let value = unsafe size > 0 ? reader.takeValue(size) : Int(Int32(bitPattern: entry) >> 16)
                    #expect(value == (length > 16 ? 0 : (1 << (length - 1)) - 1), "length \(length)")
                    #expect((entry == 0) == (length > 16) && (entry >> 8) & 15 == (length > 16 ? 0 : 1))
                }
            }
        }
        #expect(throws: ImageError.self) {
            try JPEGHuffmanCode(counts: [3] + counts[1...], symbols: Array(0...17)[...], isDC: false)
        }
        #expect(throws: ImageError.self) {
            try JPEGHuffmanCode(counts: counts[...], symbols: Array(1...16)[...], isDC: true)
        }
    }
}
