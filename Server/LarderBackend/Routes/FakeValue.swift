import LarderCoding
import LarderTime

/// Invented values for the replies of custom routes.
enum FakeValue: String, CaseIterable, Sendable {
    case name, firstName, lastName, email, username, phone, city, country, street, company, word, sentence, paragraph,
        color, price
    case bool, date

    func draw(_ random: inout SeededGenerator) -> JSONValue {
        switch self {
        case .name: .string(Self.pick(Self.first, &random) + " " + Self.pick(Self.last, &random))
        case .firstName: .string(Self.pick(Self.first, &random))
        case .lastName: .string(Self.pick(Self.last, &random))
        case .email: .string(Self.handle(&random) + "@example.com")
        case .username: .string(Self.handle(&random))
        case .phone: .string("+1-555-01\(random.uniform(in: 10..<100))")
        case .city: .string(Self.pick(Self.cities, &random))
        case .country: .string(Self.pick(Self.countries, &random))
        case .street: .string("\(random.uniform(in: 1..<200)) \(Self.pick(Self.last, &random)) Street")
        case .company:
            .string("\(Self.pick(Self.last, &random)) \(Self.pick(["Ltd", "Inc", "and Sons", "Group"], &random))")
        case .word: .string(Self.pick(Self.words, &random))
        case .sentence: .string(Self.sentence(&random))
        case .paragraph: .string((0..<4).map { _ in Self.sentence(&random) }.joined(separator: " "))
        case .color:
            .string(Self.pick(["red", "orange", "yellow", "green", "teal", "blue", "purple", "grey"], &random))
        case .price: .number(Double(random.uniform(in: 100..<100_000)) / 100)
        case .bool: .bool(random.unit() < 0.5)
        // Of the year 2026, so that it does not depend on the clock.
        case .date: .string(WallTime(seconds: 1_767_225_600 + Int64(random.uniform(in: 0..<31_536_000))).rfc3339())
        }
    }

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
        "Ana", "Ben", "Chidi", "Daria", "Emre", "Fatima", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Mei", "Nils",
        "Olga", "Rosa",
    ]
    private static let last = [
        "Ruiz", "Okafor", "Lindqvist", "Petrova", "Haddad", "Novak", "Sato", "Marin", "Mensah", "Fischer", "Chen",
        "Berg", "Rossi",
    ]
    private static let cities = [
        "Lisbon", "Oslo", "Lagos", "Lima", "Osaka", "Porto", "Tallinn", "Accra", "Quito", "Lyon",
    ]
    private static let countries = [
        "Portugal", "Norway", "Nigeria", "Peru", "Japan", "Estonia", "Ghana", "Ecuador", "France",
    ]
    private static let words = [
        "bread", "river", "lamp", "garden", "paper", "window", "summer", "small", "bright", "walks", "under", "with",
        "near", "stone",
        "music", "early", "train", "green", "opens", "quiet",
    ]
}
