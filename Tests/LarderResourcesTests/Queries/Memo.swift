import LarderResources
import LarderStorage

/// An entity with indices.
struct Memo: CacheEntity {
    enum Color: String, Codable, Sendable, EntityField { case red, green, blue }

    static let entityType = "memo"
    static let indices: [Index] = [
        Index("color", \.color), Index("rank", \.rank), Index("weight", \.weight), .text(\.title),
    ]

    var id: String
    var title: String
    var color: Color
    var rank: Int?
    var weight: Double
    /// Without an index.
    var pages: Int

    init(_ id: String, title: String = "", color: Color = .red, rank: Int? = nil, weight: Double = 0, pages: Int = 0) {
        self.id = id
        self.title = title
        self.color = color
        self.rank = rank
        self.weight = weight
        self.pages = pages
    }
}

struct MemoEdit: Codable, Sendable {
    var id: String
    /// Nil: it is removed.
    var memo: Memo?

    static var operation: WriteBehind<MemoEdit, Void> {
        WriteBehind(
            "memo",
            scope: { $0.id },
            changes: { edit, local in
                guard let memo = edit.memo else { return local.remove(Memo.self, edit.id) }
                local.create(memo)
                local.modify(Memo.self, edit.id) { $0 = memo }
            },
            send: { attempts in attempts.map { _ in .accepted(()) } }
        )
    }
}

/// Every byte is changed, so that nothing is readable.
struct MaskingTransform: DiskStore.PayloadTransform {
    var identifier: String { "mask" }

    func encode(_ payload: [UInt8]) throws -> [UInt8] { payload.map { $0 ^ 0x5A } }

    func decode(_ stored: [UInt8]) throws -> [UInt8] { stored.map { $0 ^ 0x5A } }
}
