import LarderCoding
import LarderTime

/// Invented values for the replies of custom routes.
enum FakeValue {
    static let kinds: [String: @Sendable (inout SeededGenerator) -> JSONValue] = [
        "name": { .string(pick(first, &$0) + " " + pick(last, &$0)) },
        "firstName": { .string(pick(first, &$0)) },
        "lastName": { .string(pick(last, &$0)) },
        "email": { .string(handle(&$0) + "@example.com") },
        "username": { .string(handle(&$0)) },
        "phone": { .string("+1-555-01\($0.uniform(in: 10..<100))") },
        "city": { .string(pick(cities, &$0)) },
        "country": { .string(pick(countries, &$0)) },
        "street": { .string("\($0.uniform(in: 1..<200)) \(pick(last, &$0)) Street") },
        "company": { .string("\(pick(last, &$0)) \(pick(["Ltd", "Inc", "and Sons", "Group"], &$0))") },
        "word": { .string(pick(words, &$0)) },
        "sentence": { .string(sentence(&$0)) },
        "paragraph": { random in .string((0..<4).map { _ in sentence(&random) }.joined(separator: " ")) },
        "color": { .string(pick(["red", "orange", "yellow", "green", "teal", "blue", "purple", "grey"], &$0)) },
        "price": { .number(Double($0.uniform(in: 100..<100_000)) / 100) },
        "bool": { .bool($0.unit() < 0.5) },
        // Of the year 2026, so that it does not depend on the clock.
        "date": { .string(WallTime(seconds: 1_767_225_600 + Int64($0.uniform(in: 0..<31_536_000))).rfc3339()) },
    ]

    private static func handle(_ random: inout SeededGenerator) -> String {
        "\(pick(first, &random)).\(pick(last, &random))\(random.uniform(in: 1..<100))".lowercased()
    }

    private static func sentence(_ random: inout SeededGenerator) -> String {
        let count = random.uniform(in: 5..<11)
        let text = (0..<count).map { _ in pick(words, &random) }.joined(separator: " ")
        return text.prefix(1).uppercased() + text.dropFirst() + "."
    }

    private static func pick(_ texts: [String], _ random: inout SeededGenerator) -> String {
        texts[random.uniform(in: 0..<texts.count)]
    }

    private static let first = [
        "Ana", "Ben", "Chidi", "Daria", "Emre", "Fatima", "Goran", "Hana", "Jun", "Kofi", "Olga",
    ]
    private static let last = [
        "Ruiz", "Okafor", "Petrova", "Haddad", "Novak", "Sato", "Marin", "Fischer", "Chen", "Berg",
    ]
    private static let cities = ["Lisbon", "Oslo", "Lagos", "Lima", "Osaka", "Tallinn", "Accra", "Quito", "Lyon"]
    private static let countries = ["Portugal", "Norway", "Nigeria", "Peru", "Japan", "Estonia", "Ghana", "France"]
    private static let words = [
        "bread", "river", "lamp", "garden", "paper", "window", "summer", "small", "bright", "walks", "under", "with",
        "near", "stone", "music", "early", "train", "green", "opens", "quiet",
    ]
}
