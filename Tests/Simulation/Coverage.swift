/// How often something happened, by name.
struct Coverage {
    private(set) var counts: [String: Int] = [:]

    mutating func count(_ what: String, _ number: Int = 1) { counts[what, default: 0] += number }

    mutating func add(_ other: [String: Int]) { for (what, number) in other { count(what, number) } }
}
