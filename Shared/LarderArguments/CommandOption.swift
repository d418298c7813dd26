/// An option of a command line: its names, its value, its help, and what it does.
package struct CommandOption<Arguments> {
    /// Such as `--port`.
    package let name: String
    /// Such as `-p`; nil for none.
    let short: String?
    /// The word for its value in the help; nil for an option without a value.
    let value: String?
    /// What it does; several lines for a long text. Empty: the help leaves it out.
    let help: String
    /// Whether it may be given more than once.
    let repeats: Bool
    /// Stores the value; it is empty for an option without a value.
    let apply: (inout Arguments, String) throws(UsageError) -> Void

    /// An option with a value that `apply` reads.
    package init(
        _ name: String,
        short: String? = nil,
        _ value: String?,
        _ help: String,
        repeats: Bool = false,
        _ apply: @escaping (inout Arguments, String) throws(UsageError) -> Void
    ) {
        self.repeats = repeats || value == nil
        self.name = name
        self.short = short
        self.value = value
        self.help = help
        self.apply = apply
    }

    /// An option without a value.
    package init(
        _ name: String,
        short: String? = nil,
        _ help: String,
        _ set: @escaping (inout Arguments) -> Void
    ) {
        self.init(name, short: short, nil, help) { (arguments: inout Arguments, _: String) throws(UsageError) in
            set(&arguments)
        }
    }

    /// An option with a text.
    package init(
        _ name: String,
        short: String? = nil,
        _ value: String,
        _ help: String,
        _ place: WritableKeyPath<Arguments, String?>
    ) {
        self.init(name, short: short, value, help) { (arguments: inout Arguments, text: String) throws(UsageError) in
            arguments[keyPath: place] = text
        }
    }

    /// An option with an integer of a range.
    package init(
        _ name: String,
        short: String? = nil,
        _ value: String,
        _ range: ClosedRange<Int>,
        _ help: String,
        _ set: @escaping (inout Arguments, Int) -> Void
    ) {
        self.init(name, short: short, value, help) { (arguments: inout Arguments, text: String) throws(UsageError) in
            guard let number = Int(text), range.contains(number) else {
                throw UsageError(
                    message:
                        "\(name) requires an integer from \(range.lowerBound) to \(range.upperBound), not '\(text)'"
                )
            }
            set(&arguments, number)
        }
    }
}

/// The options of a command in sections. They are parsed and explained from one table.
package struct CommandOptions<Arguments> {
    package struct Section {
        let title: String
        let options: [CommandOption<Arguments>]

        package init(_ title: String, _ options: [CommandOption<Arguments>]) {
            self.title = title
            self.options = options
        }
    }

    private let sections: [Section]
    private static var columnWidth: Int { 26 }

    package init(_ sections: [Section]) { self.sections = sections }

    private var all: [CommandOption<Arguments>] { sections.flatMap(\.options) }

    private var names: [String] { all.filter { !$0.help.isEmpty }.map(\.name) }

    /// Reads a command line.
    ///
    /// - Parameters:
    ///   - what: what the error calls a word that nothing takes.
    ///   - advice: what the error says if no option has a similar name.
    ///   - take: takes a word that is no option, or the words after it as well; false if it does not.
    /// - Returns: the names of the options that were given.
    package func parse(
        _ words: some Collection<String>,
        into arguments: inout Arguments,
        unknown what: String = "unknown argument",
        orElse advice: @autoclosure () -> String,
        take: (inout Arguments, String, inout ArraySlice<String>) -> Bool = { _, _, _ in false }
    ) throws(UsageError) -> Set<String> {
        var given: Set<String> = []
        var rest = Array(words)[...]
        while let word = rest.popFirst() {
            if let option = try option(word, &rest, into: &arguments) {
                guard given.insert(option.name).inserted || option.repeats else {
                    throw UsageError(message: "\(option.name) was given twice; give it once")
                }
            } else if !take(&arguments, word, &rest) {
                throw .unknown(what, word, in: names, orElse: advice())
            }
        }
        return given
    }

    /// Reads an option with its value behind `=` or in the next word; nil if the word is no option.
    private func option(
        _ word: String,
        _ rest: inout ArraySlice<String>,
        into arguments: inout Arguments
    ) throws(UsageError) -> CommandOption<Arguments>? {
        var (name, inline) = (word, String?.none)
        if word.hasPrefix("--"), let equals = word.firstIndex(of: "=") {
            (name, inline) = (String(word[..<equals]), String(word[word.index(after: equals)...]))
        }
        guard let option = all.first(where: { $0.name == name || $0.short == name }) else { return nil }
        if option.value == nil, inline != nil { throw UsageError(message: "\(name) takes no value") }
        var value = ""
        if option.value != nil {
            guard let given = inline ?? rest.popFirst(), !given.isEmpty else {
                throw UsageError(message: "\(name) requires a value")
            }
            value = given
        }
        try option.apply(&arguments, value)
        return option
    }

    /// The names of a section's options, the short ones too; nil: of all sections.
    package func words(of title: String? = nil) -> Set<String> {
        let options = sections.filter { title == nil || $0.title == title }.flatMap(\.options)
        return Set(options.flatMap { [$0.name, $0.short].compactMap { $0 } })
    }

    package func names(of title: String) -> Set<String> {
        Set(sections.first { $0.title == title }?.options.map(\.name) ?? [])
    }

    /// The sections with a line or more for each option that has a help.
    ///
    /// - Parameter names: the options to show; nil: all.
    package func help(of names: Set<String>? = nil) -> String {
        sections.compactMap { section in
            let shown = section.options.filter { !$0.help.isEmpty && names?.contains($0.name) ?? true }
            return shown.isEmpty ? nil : ([section.title] + shown.flatMap { lines($0) }).joined(separator: "\n")
        }.joined(separator: "\n\n")
    }

    private func lines(_ option: CommandOption<Arguments>) -> [String] {
        let names = [option.short, option.name].compactMap { $0 }.joined(separator: ", ")
        let left = "  " + ([names] + (option.value.map { [$0] } ?? [])).joined(separator: " ")
        let pad = String(repeating: " ", count: Self.columnWidth)
        var help = option.help.split(separator: "\n").map { String($0) }
        guard left.count < Self.columnWidth - 1, !help.isEmpty else { return [left] + help.map { pad + $0 } }
        help[0] = left + String(repeating: " ", count: Self.columnWidth - left.count) + help[0]
        return [help[0]] + help.dropFirst().map { pad + $0 }
    }
}
