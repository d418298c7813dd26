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
package enum WorldGenerator {
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
        var random = SeededGenerator(seed: size.seed)
        let end = WallTime(seconds: 1_782_842_400)
        let begin = end - .seconds(90 * 86_400)
        var contents = WorldContents(
            origin: "generated from seed \(size.seed)",
            instant: end
        )
        contents.images = images
        let pictures = images.identifiers
        for row in 0..<size.people {
            let first = given[row % given.count]
            let last = family[(row / given.count + row * 7) % family.count]
            let handle = row == 0 ? "ana" : "person\(row + 1)"
            let profile = ProfileRow(
                Int64(row + 1),
                handle: handle,
                displayName: "\(first) \(last)",
                bio: pick(endings, &random),
                location: "",
                avatar: pictures.isEmpty ? nil : images[pick(pictures, &random)],
                cover: nil,
                joined: begin - .seconds(random.uniform(in: 0..<31_536_000))
            )
            contents.people.append((profile, handle))
        }
        guard size.people > 0 else { return contents }
        for row in 0..<size.posts {
            let likes = min(size.people, Int(random.unit() * random.unit() * random.unit() * 40))
            let post = PostRow(
                Int64(row + 1),
                author: Int64(random.uniform(in: 0..<size.people) + 1),
                text: "\(pick(openings, &random)) \(pick(middles, &random)) \(pick(endings, &random))",
                image: pictures.isEmpty || random.unit() > 0.4 ? nil : images[pick(pictures, &random)]?.json,
                created: instant(row, of: size.posts, begin, end),
                version: likes == 0 ? 1 : 2
            )
            contents.posts.append((post, likers(likes, of: size.people, &random)))
        }
        addBank(size, begin, end, &random, &contents)
        addChat(size, begin, end, &random, &contents)
        addTasks(size, begin, end, &random, &contents)
        return contents
    }

    private static func addBank(
        _ size: WorldSize,
        _ begin: WallTime,
        _ end: WallTime,
        _ random: inout SeededGenerator,
        _ contents: inout WorldContents
    ) {
        let currencies = ["EUR", "USD", "JPY"]
        for (index, currency) in currencies.enumerated() {
            contents.accounts.append(
                account(Int64(index + 1), owner: nil, "Opening balances", "system", currency, begin)
            )
        }
        var balances: [Int64] = []
        for person in contents.people {
            let currency = currencies[random.uniform(in: 0..<currencies.count)]
            let row = Int64(contents.accounts.count + 1)
            contents.accounts.append(account(row, owner: person.profile.row, "Everyday", "checking", currency, begin))
        }
        balances = Array(repeating: 0, count: contents.accounts.count + 1)
        let first = currencies.count + 1
        let last = contents.accounts.count
        let total = max(size.transfers, contents.people.count)
        for row in 0..<total {
            let at = instant(row, of: total, begin, end)
            // Everybody gets an opening balance; then money moves between people with the same currency.
            let target = row < contents.people.count ? first + row : random.uniform(in: first..<(last + 1))
            let currency = contents.accounts[target - 1].currency
            let system = Int64((currencies.firstIndex(of: currency) ?? 0) + 1)
            let source = random.uniform(in: first..<(last + 1))
            let amount = Int64(random.uniform(in: 100..<9_000))
            let isBetweenPeople =
                row >= contents.people.count && source != target && contents.accounts[source - 1].currency == currency
                && balances[source] >= amount
            let units = row < contents.people.count ? 250_000 : amount
            if isBetweenPeople { balances[source] -= units }
            balances[target] += units
            contents.transfers.append(
                WorldContents.Transfer(
                    row: Int64(row + 1),
                    at: at,
                    from: isBetweenPeople ? Int64(source) : system,
                    to: Int64(target),
                    minorUnits: units,
                    note: row < contents.people.count ? "Opening balance" : pick(notes, &random)
                )
            )
        }
    }

    private static func addChat(
        _ size: WorldSize,
        _ begin: WallTime,
        _ end: WallTime,
        _ random: inout SeededGenerator,
        _ contents: inout WorldContents
    ) {
        guard size.people >= 2, size.conversations > 0 else { return }
        for row in 0..<size.conversations {
            let first = Int64(row % size.people + 1)
            let second = Int64((row + 1 + row / size.people) % size.people + 1)
            let third = Int64(random.uniform(in: 0..<size.people) + 1)
            let isGroup = row % 4 == 3
            contents.conversations.append(
                WorldContents.Conversation(
                    row: Int64(row + 1),
                    title: isGroup ? "Plans \(row + 1)" : nil,
                    members: Array(Set(isGroup ? [first, second, third] : [first, second])).sorted(),
                    created: begin
                )
            )
        }
        for row in 0..<size.messages {
            let conversation = contents.conversations[random.uniform(in: 0..<size.conversations)]
            contents.messages.append(
                MessageRow(
                    Int64(row + 1),
                    conversation: conversation.row,
                    author: pick(conversation.members, &random),
                    text: pick(lines, &random),
                    sent: instant(row, of: size.messages, begin, end)
                )
            )
        }
    }

    private static func addTasks(
        _ size: WorldSize,
        _ begin: WallTime,
        _ end: WallTime,
        _ random: inout SeededGenerator,
        _ contents: inout WorldContents
    ) {
        for row in 0..<size.tasks {
            let created = instant(row, of: size.tasks, begin, end)
            let status = TaskStatus.allCases[random.uniform(in: 0..<TaskStatus.allCases.count)]
            let hasAssignee = status != .open || random.unit() < 0.7
            contents.tasks.append(
                TaskRow(
                    Int64(row + 1),
                    creator: Int64(random.uniform(in: 0..<size.people) + 1),
                    title: "\(pick(verbs, &random)) \(pick(things, &random))",
                    status: status,
                    assignee: hasAssignee ? Int64(random.uniform(in: 0..<size.people) + 1) : nil,
                    due: random.unit() < 0.8
                        ? TaskDate(on: created).advanced(byDays: random.uniform(in: 1..<60)) : nil,
                    created: created,
                    updated: status == .open ? created : min(created + .seconds(random.uniform(in: 60..<86_400)), end)
                )
            )
        }
    }

    private static func account(
        _ row: Int64,
        owner: Int64?,
        _ name: String,
        _ kind: String,
        _ currency: String,
        _ opened: WallTime
    ) -> AccountRow {
        AccountRow(
            row: row,
            owner: owner,
            name: name,
            kind: kind,
            currency: currency,
            isOpen: true,
            opened: opened,
            updated: opened
        )
    }

    private static func likers(_ count: Int, of people: Int, _ random: inout SeededGenerator) -> [Int64] {
        var chosen: Set<Int64> = []
        while chosen.count < count { chosen.insert(Int64(random.uniform(in: 0..<people) + 1)) }
        return chosen.sorted()
    }

    private static func instant(_ index: Int, of count: Int, _ begin: WallTime, _ end: WallTime) -> WallTime {
        let span = (end - begin).nanosecondsSaturating / 1_000_000
        return WallTime(milliseconds: begin.milliseconds + span / Int64(max(count, 1)) * Int64(index))
    }

    private static func pick<Value>(_ values: [Value], _ random: inout SeededGenerator) -> Value {
        values[random.uniform(in: 0..<values.count)]
    }
}
