import Foundation
import LarderHTTP
import LarderTime
import TestSupport
import Testing

@testable import LarderImages
@testable import LarderMemory
@testable import LarderStorage

/// Ways to share memory beside the default: budgets by size, order, compression and spilling.
@Suite("Image pipeline, choices of memory", .oneMinute)
struct ImageMemoryChoiceTests {
    private func url(_ number: Int) -> String { "http://pictures/\(number).png" }

    /// Small pictures have 1,024 bytes of pixels, large ones (from 100) 4,096.
    private func setting(
        _ memory: ImagePipeline.Memory,
        bytes: Int = 8_192,
        spill: DiskStore? = nil
    ) throws -> ImageSetting {
        let setting = try ImageSetting {
            $0.memory = memory
            $0.spill = spill
            $0.memoryBytesMaximum = bytes
            // Evicted pixels are written before the next decode.
            $0.decodesMaximum = 1
        }
        for number in 0..<200 {
            let side = number < 100 ? 16 : 32
            let picture = PNGBuilder.picture(width: side, height: side) { _, _ in (UInt8(number), 7, 9) }
            setting.server[url(number)] = .init(bytes: picture, fields: [.cacheControl: "max-age=3600"])
        }
        return setting
    }

    private func show(_ numbers: Range<Int>, _ setting: ImageSetting) async throws {
        for number in numbers { _ = try await setting.pipeline.image(for: ImageRequest(url: url(number))) }
    }

    private func kept(_ numbers: Range<Int>, _ setting: ImageSetting) -> Int {
        numbers.filter { setting.pipeline.cachedImage(for: ImageRequest(url: url($0))) != nil }.count
    }

    private func decodes(_ setting: ImageSetting) -> Int {
        setting.log.events.count { if case .decoded = $0 { true } else { false } }
    }

    private let budgets = SizeBudgets(threshold: 2_048, small: 4_096, large: 8_192)

    @Test func `the two budgets of the seeds are 5 MiB up to 2 MiB and 20 MiB above, in LRU order`() {
        let memory = ImagePipeline.Memory.twoBudgets
        #expect(memory.budgets == SizeBudgets(threshold: 2 << 20, small: 5 << 20, large: 20 << 20, lends: false))
        #expect(memory.order == .lru && !memory.isCompressed)
    }

    @Test func `a full budget of small pictures evicts nothing large, and the other way round`() async throws {
        let setting = try setting(.init(budgets: budgets, order: .lru))
        defer { setting.remove() }
        try await show(100..<102, setting)
        try await show(0..<20, setting)
        #expect(kept(100..<102, setting) == 2 && kept(16..<20, setting) == 4 && kept(0..<16, setting) == 0)
        try await show(102..<110, setting)
        #expect(kept(108..<110, setting) == 2 && kept(16..<20, setting) == 4)
        // With one budget of the same size the small pictures leave.
        let single = try self.setting(.init(order: .lru), bytes: 12_288)
        defer { single.remove() }
        try await show(16..<20, single)
        try await show(102..<110, single)
        #expect(kept(16..<20, single) == 0)
    }

    @Test func `with lending, small pictures use the room of large ones until those come`() async throws {
        var budgets = budgets
        budgets.lends = true
        let setting = try setting(.init(budgets: budgets, order: .lru))
        defer { setting.remove() }
        try await show(0..<20, setting)
        #expect(kept(0..<20, setting) == 12)
        try await show(100..<102, setting)
        #expect(kept(0..<20, setting) == 4 && kept(100..<102, setting) == 2)
    }

    @Test func `under pressure both budgets shrink, and grow again`() async throws {
        let setting = try setting(.init(budgets: budgets, order: .lru))
        defer { setting.remove() }
        try await show(0..<10, setting)
        try await show(100..<104, setting)
        #expect(setting.pipeline.memoryCost == 12_288)
        setting.pipeline.setMemoryShare(0.5)
        #expect(kept(0..<10, setting) == 2 && kept(100..<104, setting) == 1)
        setting.pipeline.setMemoryShare(1)
        try await show(0..<10, setting)
        #expect(kept(0..<10, setting) == 4)
    }

    @Test func `an order by time of storing evicts a picture that is used`() async throws {
        for (order, isKept) in [(EvictionPolicy.fifo, false), (.lru, true), (.lfu, true)] {
            let setting = try setting(.init(order: order), bytes: 4_096)
            defer { setting.remove() }
            try await show(0..<4, setting)
            _ = setting.pipeline.cachedImage(for: ImageRequest(url: url(0)))
            try await show(4..<5, setting)
            #expect(kept(0..<1, setting) == (isKept ? 1 : 0), "\(order)")
        }
    }

    @Test func `compressed pixels take less memory, and are the same pixels`() async throws {
        let setting = try setting(.init(isCompressed: true), bytes: 4_096)
        let plain = try self.setting(.init(), bytes: 4_096)
        defer {
            setting.remove()
            plain.remove()
        }
        try await show(0..<20, setting)
        try await show(0..<20, plain)
        #expect(kept(0..<20, setting) == 20 && kept(0..<20, plain) == 4)
        #expect(setting.pipeline.memoryCost <= 4_096)
        let restored = try #require(setting.pipeline.cachedImage(for: ImageRequest(url: url(19))))
        #expect(restored == plain.pipeline.cachedImage(for: ImageRequest(url: url(19))))
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url(19))) == restored)
        #expect(decodes(setting) == 20)
    }

    @Test func `spilled pixels are read instead of decoding the file again, and their store bounds them`() async throws
    {
        let clock = ManualClock()
        let fixture = try SpillFixture(clock)
        defer { fixture.remove() }
        let setting = try setting(.init(), bytes: 4_096, spill: fixture.store)
        defer { setting.remove() }
        try await show(0..<20, setting)
        #expect(decodes(setting) == 20)
        let again = try await setting.pipeline.image(for: ImageRequest(url: url(0)))
        #expect(decodes(setting) == 20, "Read from the spilled pixels.")
        #expect(again.pixels.prefix(3) == [0, 7, 9] && again.width == 16)
        // A new file has other content: its old pixels are not used.
        setting.server[url(1)]?.bytes = PNGBuilder.picture(width: 16, height: 16) { _, _ in (99, 7, 9) }
        setting.server[url(1)]?.tag = "\"v2\""
        setting.clock.advance(by: .seconds(3_601))
        #expect(try await setting.pipeline.image(for: ImageRequest(url: url(1))).pixels.first == 99)
        #expect(decodes(setting) == 21)
        await setting.pipeline.removeAll()
        #expect(try fixture.names().isEmpty)
        // Pressure discards pixels and writes none.
        try await show(50..<53, setting)
        setting.pipeline.setMemoryShare(0)
        try await show(60..<61, setting)
        #expect(try fixture.names().isEmpty)
    }

    @Test func `pressure writes no pixels either if only one of two budgets is exceeded`() async throws {
        let fixture = try SpillFixture(ManualClock())
        defer { fixture.remove() }
        let budgets = SizeBudgets(threshold: 2_048, small: 4_096, large: 4_096)
        let setting = try setting(.init(budgets: budgets, order: .lru), spill: fixture.store)
        defer { setting.remove() }
        try await show(0..<4, setting)
        setting.pipeline.setMemoryShare(0.5)
        #expect(kept(0..<4, setting) == 2)
        try await show(100..<101, setting)
        #expect(try fixture.names().isEmpty)
    }

    @Test func `pixels of a request that must not be written to disk are not spilled`() async throws {
        let fixture = try SpillFixture(ManualClock())
        defer { fixture.remove() }
        let setting = try setting(.init(), bytes: 4_096, spill: fixture.store)
        defer { setting.remove() }
        for number in 0..<8 {
            let request = ImageRequest(url: url(number), cache: .skipDiskWrite)
            _ = try await setting.pipeline.image(for: request)
        }
        // The last decode begins after what the one before it has evicted was written.
        #expect(kept(0..<8, setting) == 4)
        #expect(try fixture.names().isEmpty)
        try await show(10..<16, setting)
        // Two of those that may be on disk have left.
        try await reached { try fixture.names().count == 2 }
    }

    @Test func `damaged spilled pixels are decoded again`() async throws {
        #expect(throws: PixelCoding.Damage.self) { try PixelCoding.image([1, 2, 3]) }
        let image = DecodedImage(width: 1, height: 2, pixels: Array(0..<8), isOpaque: true, sourceWidth: 300)
        let bytes = PixelCoding.bytes(image)
        #expect(try PixelCoding.image(bytes) == image)
        #expect(throws: PixelCoding.Damage.self) { try PixelCoding.image(Array(bytes.dropLast())) }
        #expect(throws: PixelCoding.Damage.self) { try PixelCoding.image([255, 255, 255, 255] + bytes.dropFirst(4)) }
    }
}

/// A store for spilled pixels.
private struct SpillFixture {
    let directory: String
    let store: DiskStore

    init(_ clock: ManualClock) throws {
        directory =
            FileManager.default.temporaryDirectory.appendingPathComponent("larder-spill-\(UUID().uuidString)")
            .path
        store = try DiskStore(DiskStore.Configuration(directory: directory, clock: clock))
    }

    func names() throws -> [String] {
        try store.read { transaction in try transaction.entityIDs(ofType: "") }
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }
}
