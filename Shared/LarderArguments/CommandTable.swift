import LarderCoding

/// A command of a program: its words and its help.
package struct CommandEntry: Sendable {
    /// The command with its words, as in `faults [add JSON | remove ID]`.
    package let usage: String
    let note: String
    /// The options that it takes besides those of all commands.
    package let options: Set<String>

    /// - Parameter note: what it does, in a line.
    package init(_ usage: String, _ note: String = "", options: Set<String> = []) {
        (self.usage, self.note, self.options) = (usage, note, options)
    }

    package var name: String { String(usage.prefix { $0 != " " }) }

    fileprivate var lines: String { "  \(usage)" + (note.isEmpty ? "" : "\n      \(note)") }
}

/// The commands of a program in sections. They are checked and explained from one table.
package struct CommandTable: Sendable {
    package struct Section: Sendable {
        let title: String
        package let entries: [CommandEntry]

        package init(_ title: String, _ entries: [CommandEntry]) { (self.title, self.entries) = (title, entries) }
    }

    private let program: String
    package let sections: [Section]

    package init(_ program: String, _ sections: [Section]) { (self.program, self.sections) = (program, sections) }

    package var all: [CommandEntry] { sections.flatMap(\.entries) }

    /// - Throws: an error that names the most similar command.
    package func entry(_ name: String) throws(UsageError) -> CommandEntry {
        if let entry = all.first(where: { $0.name == name }) { return entry }
        throw .unknown(
            "unknown command",
            name,
            in: all.map(\.name) + ["help"],
            orElse: "\(program) help lists all commands"
        )
    }

    /// The error for other words of a command than those that it takes, with the word that was perhaps meant.
    package func wrong(_ name: String, _ words: some Sequence<String> = []) -> UsageError {
        let entry = all.first { $0.name == name }
        let known = (entry?.usage ?? "").dropFirst(name.count).split { !$0.isLetter }.filter { $0 == $0.lowercased() }
            .map(String.init)
        // A number or a name of the user is similar to none.
        let similar = words.lazy.filter { !known.contains($0) }
            .compactMap { NearestName.similar(to: $0, in: known).first }.first
        let meant = similar.map { "did you mean '\($0)'? " } ?? ""
        return UsageError(message: "\(meant)usage: \(program) \(entry?.usage ?? name)")
    }

    /// A section with the lines of its commands.
    package func help(of section: Section) -> String {
        section.title + "\n" + section.entries.map(\.lines).joined(separator: "\n")
    }

    /// The help of a command, without its options.
    package func help(of entry: CommandEntry) -> String {
        "\(program) \(entry.usage)" + (entry.note.isEmpty ? "" : "\n  \(entry.note)")
    }
}
