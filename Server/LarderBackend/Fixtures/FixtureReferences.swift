/// Checks that records of fixtures refer to existing records and that identifiers are unique.
///
/// The database would reject them too, but could not name the position.
struct FixtureReferences {
    private let contents: WorldContents

    /// - Throws: `FileError`, which names the file, the record, the member and the value.
    static func check(_ contents: WorldContents) throws(FileError) {
        try FixtureReferences(contents: contents).check()
    }

    private func check() throws(FileError) {
        let people = try rows(contents.people.map(\.row), "people.json")
        try distinct(contents.people.map(\.handle), "handle", "people.json")
        for (index, person) in contents.people.enumerated() {
            try picture(person.avatar, Place("people.json", index, "avatar"))
            try picture(person.cover, Place("people.json", index, "cover"))
        }
        _ = try rows(contents.posts.map(\.row), "posts.json")
        for (index, post) in contents.posts.enumerated() {
            try find([post.author], in: people, of: "people.json", Place("posts.json", index, "author"))
            try members(post.likedBy, people, Place("posts.json", index, "likedBy"))
            try picture(post.image, Place("posts.json", index, "image"))
        }
        let accounts = try rows(contents.accounts.map(\.row), "accounts.json")
        for (index, account) in contents.accounts.enumerated() {
            guard let owner = account.owner else { continue }
            try find([owner], in: people, of: "people.json", Place("accounts.json", index, "owner"))
        }
        _ = try rows(contents.transfers.map(\.row), "transfers.json")
        for (index, transfer) in contents.transfers.enumerated() {
            try find([transfer.from], in: accounts, of: "accounts.json", Place("transfers.json", index, "from"))
            try find([transfer.to], in: accounts, of: "accounts.json", Place("transfers.json", index, "to"))
        }
        try checkChat(people)
        _ = try rows(contents.tasks.map(\.row), "tasks.json")
        for (index, task) in contents.tasks.enumerated() {
            try find([task.creator], in: people, of: "people.json", Place("tasks.json", index, "creator"))
            guard let assignee = task.assignee else { continue }
            try find([assignee], in: people, of: "people.json", Place("tasks.json", index, "assignee"))
        }
    }

    private func checkChat(_ people: Set<Int64>) throws(FileError) {
        let conversations = try rows(contents.conversations.map(\.row), "conversations.json")
        for (index, conversation) in contents.conversations.enumerated() {
            try members(conversation.members, people, Place("conversations.json", index, "members"))
        }
        _ = try rows(contents.messages.map(\.row), "messages.json")
        for (index, message) in contents.messages.enumerated() {
            let place = Place("messages.json", index, "conversation")
            try find([message.conversation], in: conversations, of: "conversations.json", place)
            try find([message.author], in: people, of: "people.json", Place("messages.json", index, "author"))
        }
    }

    /// The position of a value in the fixtures.
    private struct Place {
        let file: String
        let index: Int
        let member: String

        init(_ file: String, _ index: Int, _ member: String) {
            self.file = file
            self.index = index
            self.member = member
        }

        func error(_ value: String, _ what: String) -> FileError {
            FileError("\(file), record \(index + 1): '\(member)' is \(value), \(what).")
        }
    }

    private func rows(_ rows: [Int64], _ file: String) throws(FileError) -> Set<Int64> {
        for (index, row) in rows.enumerated() where row < 1 {
            throw Place(file, index, "id").error("\(row)", "and must be 1 or more")
        }
        try distinct(rows, "id", file)
        return Set(rows)
    }

    private func distinct<Value: Hashable>(_ values: [Value], _ member: String, _ file: String) throws(FileError) {
        var seen: Set<Value> = []
        for (index, value) in values.enumerated() where !seen.insert(value).inserted {
            throw Place(file, index, member).error("\(value)", "which is used by an earlier record")
        }
    }

    private func members(_ values: [Int64], _ people: Set<Int64>, _ place: Place) throws(FileError) {
        try find(values, in: people, of: "people.json", place)
        var seen: Set<Int64> = []
        for value in values where !seen.insert(value).inserted {
            throw place.error("\(values)", "which names \(value) twice")
        }
    }

    private func find(
        _ values: [Int64],
        in known: Set<Int64>,
        of file: String,
        _ place: Place
    ) throws(FileError) {
        for value in values where !known.contains(value) {
            throw place.error("\(value)", "which is the id of no record in \(file)")
        }
    }

    private func picture(_ id: String?, _ place: Place) throws(FileError) {
        if let id, contents.images[id] == nil {
            throw place.error("'\(id)'", "which is the id of no record in images.json")
        }
    }
}
