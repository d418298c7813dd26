/// The words of the command line without its options.
struct Arguments: Sendable {
    struct Misuse: Error { var text: String }

    private(set) var words: [String]
    private(set) var server = "http://127.0.0.1:9100"
    private(set) var directory = "news-data"
    private(set) var isOffline = false

    init(_ arguments: [String]) throws(Misuse) {
        words = []
        var rest = arguments[...]
        while let word = rest.popFirst() {
            switch word {
            case "--offline": isOffline = true
            case "--server", "--directory":
                guard let value = rest.popFirst() else { throw Misuse(text: "\(word) requires a value") }
                if word == "--server" { server = value } else { directory = value }
            default: words.append(word)
            }
        }
    }

    /// The word after the command.
    func operand(_ place: Int, _ name: String) throws(Misuse) -> String {
        guard words.count > place else { throw Misuse(text: "\(words[0]) requires \(name)") }
        return words[place]
    }

    /// The identifier of an article.
    func article() throws(Misuse) -> Int {
        let text = try operand(1, "the ID of an article")
        guard let id = Int(text) else { throw Misuse(text: "'\(text)' is not the ID of an article") }
        return id
    }
}
