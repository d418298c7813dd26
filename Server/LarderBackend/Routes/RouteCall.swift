import LarderCoding
import LarderEngine
import LarderHTTP
import LarderTime

/// What the conditions and templates of custom routes can see of a request, and the values that routes keep between requests.
final class RouteCall {
    let request: Request
    let query: QueryString
    let now: WallTime
    var path: [String: String] = [:]
    /// The place in a repeated part of a body, from 0.
    var index: Int64 = 0
    /// The source of invented values: the same request gets the same ones, so that its validators hold.
    var random: SeededGenerator
    /// The numbers that this reply, or this item of a repeated part, has taken from counters.
    var numbers: [String: Int64] = [:]
    private let seed: UInt64
    private let meta: MetaTable
    private let changes: Changes
    /// The changes that end with this reply.
    private var forgotten: [String: String?] = [:]

    /// What becomes of changes of kept values.
    enum Changes {
        /// They throw `Change`.
        case refused
        case kept
        /// Only this reply sees them.
        case forgotten
    }

    /// A kept value changes, which needs a transaction.
    struct Change: Error {}

    init(_ request: Request, query: QueryString, in world: World, _ store: Store, _ changes: Changes) {
        self.changes = changes
        self.request = request
        now = world.clock.now
        seed = world.seed
        meta = store.meta
        self.query = query
        let target = Array("\(request.method) \(request.targetText)".utf8)
        random = SeededGenerator(seed: ContentHash.hash64(target.span, seed: seed))
    }

    /// The body as conditions and templates see it.
    lazy var body = RouteBody.value(of: request.body, request.fields[.contentType])

    // MARK: Kept values

    /// The state with that name; nil if no reply has set it.
    func state(_ name: String) throws -> String? { try kept("state " + name) }

    /// - Parameter value: nil removes the state.
    func setState(_ name: String, _ value: String?) throws { try keep(value, as: "state " + name) }

    private func kept(_ name: String) throws -> String? {
        if let value = forgotten[name] { return value }
        return try meta.text(.route(name))
    }

    private func keep(_ value: String?, as name: String) throws {
        switch changes {
        case .refused: throw Change()
        case .kept: if let value { try meta.set(.route(name), value) } else { try meta.remove(.route(name)) }
        case .forgotten: forgotten[name] = .some(value)
        }
    }

    /// The number that the reply has from a counter: the same one wherever the reply, or the item of a repeated part, names it.
    func number(of counter: String) throws -> Int64 {
        if let number = numbers[counter] { return number }
        let number = try count(counter)
        numbers[counter] = number
        return number
    }

    /// The next number of a counter, from 1.
    func count(_ name: String) throws -> Int64 {
        let next = (try kept("counter " + name).flatMap { Int64($0) } ?? 0) &+ 1
        try keep(String(next), as: "counter " + name)
        return next
    }

    /// A number in 0..<1 that differs from one request to the next and follows from the world's seed.
    func draw(_ name: String) throws -> Double {
        var generator = try generator(name)
        return generator.unit()
    }

    /// A UUID (RFC 9562, version 4) that no earlier request has got.
    func uuid() throws -> String {
        var generator = try generator("uuid")
        let digits = Array("0123456789abcdef")
        let form = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx"
        return String(form.map { $0 == "x" ? digits[generator.uniform(in: 0..<16)] : $0 })
    }

    private func generator(_ name: String) throws -> SeededGenerator {
        let text = "\(name) \(try count("draw " + name))"
        return SeededGenerator(seed: ContentHash.hash64(Array(text.utf8).span, seed: seed))
    }
}
