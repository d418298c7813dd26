import LarderTime

/// The size and seed of a generated world. Equal values generate identical worlds.
public struct WorldSize: Sendable, Hashable {
    /// The seed of everything except the size.
    public var seed: UInt64 = 1
    /// The number of people.
    public var people = 50
    /// The number of posts.
    public var posts = 1_000
    /// The number of conversations.
    public var conversations = 30
    /// The number of messages.
    public var messages = 2_000
    /// The number of tasks.
    public var tasks = 120
    /// The number of transfers.
    public var transfers = 3_000

    /// The size of the fixtures.
    public init() {}
}

/// Generates worlds from a seed: people, posts, likes, money, chats and tasks.
package struct WorldGenerator {
    private let size: WorldSize
    private var random: SeededGenerator
    private var contents: WorldContents
    private let end = WallTime(seconds: 1_782_842_400)
    private var begin: WallTime { end - .seconds(90 * 86_400) }

    private static let given = [
        "Ana", "Ben", "Chidi", "Daria", "Emre", "Fatima", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Mei", "Nils",
        "Olga", "Pau", "Quinn", "Rosa", "Sami", "Tara", "Uma", "Vera", "Wen", "Ximena", "Yusuf", "Zoë", "Δήμητρα",
        "Олег",
        "美咲", "지우", "नेहा", "عمر",
    ]
    private static let family = [
        "Ruiz", "Okafor", "Lindqvist", "Petrova", "Yılmaz", "Haddad", "Novak", "Sato", "Marin", "Castro", "Mensah",
        "Fischer", "Chen", "Berg", "Rossi", "Dubois", "Silva", "Kowalska", "Nguyen", "Sharma",
    ]
    private static let openings = [
        "Finally", "Today", "This morning", "On the way home", "After three tries", "Against all advice", "Once more",
        "Somewhere between two meetings", "In the rain", "Before sunrise", "At the market", "With far too much coffee",
    ]
    private static let middles = [
        "I fixed the bicycle", "we found the trail above the lake", "the bread rose properly", "I finished the book",
        "the tram took another route", "she taught me to prune roses", "the whole street smelled of oranges",
        "I sorted thirty years of photographs", "the test passed at last", "we counted eleven herons",
        "the new neighbours brought soup", "I learned what a bowline is for",
    ]
    private static let endings = [
        "and it was worth it.", "and nobody noticed but me.", "so the rest can wait 🌿", "— who would have thought?",
        "and I'd do it again tomorrow.", "though my shoes disagree 🥾", "and then the sun came out ☀️",
        "which is more than I can say of last week.", "and there are pictures.", "and now: tea 🍵",
    ]
    private static let lines = [
        "Are you still coming tonight?", "Yes, running ten minutes late", "No hurry, the kettle is on",
        "Can you bring the cable?",
        "Found it under the sofa 😅", "That makes sense", "Let me check and come back to you", "Saturday works for me",
        "I sent you the list", "Thanks! You're a star ⭐️", "Not sure, ask Lena", "Same place as last time?", "On my way",
        "Could we make it eight?", "Perfect",
    ]
    private static let notes = [
        "Groceries", "Rent", "Dinner", "Tickets", "Coffee", "Books", "Train", "Gift", "Electricity",
    ]

    private static let verbs = [
        "Order", "Check", "Repair", "Clean", "Return", "Count", "Label", "Book", "Sort", "Paint",
    ]
    private static let things = [
        "the projector", "the seed trays", "the minutes", "the spare keys", "the stage lamps", "the ladder",
        "the tea urn",
        "the first-aid box", "the chairs", "the notice board", "the choir folders", "the van",
    ]

    package static func generate(_ size: WorldSize, images: ImageCatalogue) -> WorldContents {
        var generator = WorldGenerator(size, images)
        generator.addPeople()
        guard size.people > 0 else { return generator.contents }
        generator.addPosts()
        generator.addBank()
        generator.addChat()
        generator.addTasks()
        return generator.contents
    }

    private init(_ size: WorldSize, _ images: ImageCatalogue) {
        self.size = size
        random = SeededGenerator(seed: size.seed)
        contents = WorldContents(origin: "generated from seed \(size.seed)", instant: end)
        contents.images = images
    }

    private mutating func addPeople() {
        for row in 0..<size.people {
            let first = Self.given[row % Self.given.count]
            let last = Self.family[(row / Self.given.count + row * 7) % Self.family.count]
            contents.people.append(
                .profile(
                    Int64(row + 1),
                    handle: row == 0 ? "ana" : "person\(row + 1)",
                    displayName: "\(first) \(last)",
                    bio: pick(Self.endings),
                    location: "",
                    avatar: picture(),
                    cover: nil,
                    joined: begin - .seconds(random.uniform(in: 0..<31_536_000))
                )
            )
        }
    }

    private mutating func addPosts() {
        for row in 0..<size.posts {
            let likes = min(size.people, Int(random.unit() * random.unit() * random.unit() * 40))
            let post = EntityRow.post(
                Int64(row + 1),
                author: person(),
                text: "\(pick(Self.openings)) \(pick(Self.middles)) \(pick(Self.endings))",
                image: contents.images.identifiers.isEmpty || random.unit() > 0.4 ? nil : picture()?.json,
                created: instant(row, of: size.posts),
                likes: likes
            )
            var likers: Set<Int64> = []
            while likers.count < likes { likers.insert(person()) }
            contents.posts.append((post, likers.sorted()))
        }
    }

    private mutating func addBank() {
        let currencies = ["EUR", "USD", "JPY"]
        for (index, currency) in currencies.enumerated() {
            contents.accounts.append(
                .account(Int64(index + 1), owner: nil, "Opening balances", kind: "system", currency, opened: begin)
            )
        }
        for person in contents.people {
            let currency = currencies[random.uniform(in: 0..<currencies.count)]
            let row = Int64(contents.accounts.count + 1)
            contents.accounts.append(
                .account(row, owner: person.id.row, "Everyday", kind: "checking", currency, opened: begin)
            )
        }
        var balances = Array(repeating: 0 as Int64, count: contents.accounts.count + 1)
        let people = currencies.count + 1..<contents.accounts.count + 1
        let total = max(size.transfers, contents.people.count)
        for row in 0..<total {
            // Everybody gets an opening balance; then money moves between people with the same currency.
            let isOpening = row < contents.people.count
            let target = isOpening ? people.lowerBound + row : random.uniform(in: people)
            let currency = contents.accounts[target - 1].currency
            let system = (currencies.firstIndex(of: currency) ?? 0) + 1
            let source = random.uniform(in: people)
            let amount = Int64(random.uniform(in: 100..<9_000))
            let isBetweenPeople =
                !isOpening && source != target && contents.accounts[source - 1].currency == currency
                && balances[source] >= amount
            let units = isOpening ? 250_000 : amount
            if isBetweenPeople { balances[source] -= units }
            balances[target] += units
            contents.transfers.append(
                WorldContents.Transfer(
                    row: Int64(row + 1),
                    at: instant(row, of: total),
                    from: Int64(isBetweenPeople ? source : system),
                    to: Int64(target),
                    minorUnits: units,
                    note: isOpening ? "Opening balance" : pick(Self.notes)
                )
            )
        }
    }

    private mutating func addChat() {
        guard size.people >= 2, size.conversations > 0 else { return }
        for row in 0..<size.conversations {
            let first = Int64(row % size.people + 1)
            let second = Int64((row + 1 + row / size.people) % size.people + 1)
            let third = person()
            let isGroup = row % 4 == 3
            let members = Set(isGroup ? [first, second, third] : [first, second]).sorted()
            let title = isGroup ? "Plans \(row + 1)" : nil
            contents.conversations.append(
                (.conversation(Int64(row + 1), title: title, members: members, created: begin), members)
            )
        }
        for row in 0..<size.messages {
            let (conversation, members) = pick(contents.conversations)
            contents.messages.append(
                .message(
                    Int64(row + 1),
                    conversation: conversation.id.row,
                    author: pick(members),
                    text: pick(Self.lines),
                    sent: instant(row, of: size.messages)
                )
            )
        }
    }

    private mutating func addTasks() {
        for row in 0..<size.tasks {
            let created = instant(row, of: size.tasks)
            let status = pick(TaskStatus.allCases)
            let hasAssignee = status != .open || random.unit() < 0.7
            contents.tasks.append(
                .task(
                    Int64(row + 1),
                    creator: person(),
                    title: "\(pick(Self.verbs)) \(pick(Self.things))",
                    status: status,
                    assignee: hasAssignee ? person() : nil,
                    due: random.unit() < 0.8
                        ? TaskDate(on: created).advanced(byDays: random.uniform(in: 1..<60)) : nil,
                    created: created,
                    updated: status == .open ? created : min(created + .seconds(random.uniform(in: 60..<86_400)), end)
                )
            )
        }
    }

    private mutating func person() -> Int64 { Int64(random.uniform(in: 0..<size.people) + 1) }

    private mutating func picture() -> ImageCatalogue.Image? {
        contents.images.identifiers.isEmpty ? nil : contents.images[pick(contents.images.identifiers)]
    }

    private func instant(_ index: Int, of count: Int) -> WallTime {
        let span = (end - begin).nanosecondsSaturating / 1_000_000
        return WallTime(milliseconds: begin.milliseconds + span / Int64(max(count, 1)) * Int64(index))
    }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values[random.uniform(in: 0..<values.count)] }
}
